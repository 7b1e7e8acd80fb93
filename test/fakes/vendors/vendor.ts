import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A request as the vendor received it. */
export type VendorRequest = {
  method: string
  path: string
  query: URLSearchParams
  headers: Record<string, string>
  // biome-ignore lint/suspicious/noExplicitAny: a body may be anything
  body: any
}
export type VendorResponse = { status: number; body?: unknown; replayed?: boolean }

/**
 * A failure. `down`: the connection is closed before anything is done. `lost`: the connection is closed after the work
 * was done. `slow`: the work begins after this time (ms). `late`: the work is done at once, but the answer waits for
 * the promise. `status`: the answer has this status, and this body or a refusal.
 */
export type InjectedFailure =
  | 'down'
  | 'lost'
  | { slow: number }
  | { late: Promise<void> }
  | { status: number; body?: unknown; headers?: Record<string, string> }

/** A webhook of a vendor: the body exactly as it was signed, and the headers. */
export type SignedWebhook = { raw: string; headers: Record<string, string> }

/** The differences between vendors. */
export type VendorBehavior = {
  read(text: string, type: string): unknown
  answer(asked: VendorRequest): VendorResponse | Promise<VendorResponse>
  /** Returns the body of a refusal. */
  refusal(status: number, code: string): unknown
  /** The name of the header with the idempotency key, where the vendor knows one. */
  keyHeader?: string
  /** The response to a key that was used for another request. */
  reused?: VendorResponse
}

/** Starts a server that behaves like the API of a vendor, on a free port. */
export async function startVendor(make: VendorBehavior) {
  const seen: VendorRequest[] = []
  const responsesByKey = new Map<string, { of: string; answered: VendorResponse }>()
  const own = {
    /** The failures of the next requests, in order. */
    nextFailures: [] as InjectedFailure[],
    /** Returns the failure of a request, if there is one. */
    failWhen: (_: VendorRequest): InjectedFailure | undefined => undefined,
  }

  const isIdempotent = ({ method }: VendorRequest) => method !== 'GET' && method !== 'DELETE'
  const fingerprintOf = ({ method, path, body }: VendorRequest) => JSON.stringify([method, path, body])

  async function answerOnce(asked: VendorRequest): Promise<VendorResponse> {
    const key = asked.headers[make.keyHeader ?? '']
    const writes = isIdempotent(asked)
    const of = fingerprintOf(asked)
    const before = key && writes ? responsesByKey.get(key) : undefined
    if (before) return before.of === of ? { ...before.answered, replayed: true } : make.reused!
    const answer = await make.answer(asked)
    // A refused request may be tried again with its key, unless it failed with a 5xx status.
    if (key && writes && answer.status < 400) responsesByKey.set(key, { of, answered: structuredClone(answer) })
    return answer
  }

  async function handle(request: IncomingMessage, response: ServerResponse) {
    let text = ''
    for await (const chunk of request.setEncoding('utf8')) text += chunk
    const url = new URL(request.url ?? '/', 'http://vendor')
    const headers = request.headers as Record<string, string>
    const body = text ? make.read(text, headers['content-type'] ?? '') : undefined
    const asked = { method: request.method ?? '', path: url.pathname, query: url.searchParams, headers, body }
    seen.push(asked)
    const failure = own.nextFailures.shift() ?? own.failWhen(asked)
    if (failure === 'down') return request.socket.destroy()
    if (typeof failure === 'object' && 'slow' in failure) await Bun.sleep(failure.slow)
    const refused = typeof failure === 'object' && 'status' in failure ? failure : undefined
    const answer = refused
      ? { status: refused.status, body: refused.body ?? make.refusal(refused.status, 'made_to_fail') }
      : await answerOnce(asked)
    const key = headers[make.keyHeader ?? '']
    if (refused && refused.status >= 500 && key && isIdempotent(asked))
      responsesByKey.set(key, { of: fingerprintOf(asked), answered: answer })
    if (typeof failure === 'object' && 'late' in failure) await failure.late
    if (failure === 'lost') return request.socket.destroy()
    const replayed = 'replayed' in answer && answer.replayed && { 'idempotent-replayed': 'true' }
    response.writeHead(answer.status, { 'content-type': 'application/json', ...replayed, ...refused?.headers })
    response.end(answer.body === undefined ? '' : JSON.stringify(answer.body))
  }

  const server = createServer((request, response) => {
    handle(request, response).catch((error) => {
      console.error(error)
      response.writeHead(500).end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    own,
    /** Returns the received requests with a method and a path. */
    asked: (method: string, path: RegExp) => seen.filter((one) => one.method === method && path.test(one.path)),
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

let idCount = 0
/** Returns a new id like those of vendors. */
export const newId = (prefix: string) =>
  `${prefix}${(++idCount).toString(36).padStart(6, '0')}${crypto.randomUUID().slice(0, 8)}`
