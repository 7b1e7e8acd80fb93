import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** What a vendor was asked, as it came in. */
export type VendorRequest = {
  method: string
  path: string
  query: URLSearchParams
  headers: Record<string, string>
  // biome-ignore lint/suspicious/noExplicitAny: what is asked may be anything
  body: any
}
export type VendorResponse = { status: number; body?: unknown; replayed?: boolean }

/**
 * What goes wrong: nobody answers and nothing was done, nobody answers though it was done, it takes so long (ms), it was
 * done long before it is answered, or it is answered with a status, by a refusal or by what is no answer to that.
 */
export type InjectedFailure =
  | 'down'
  | 'lost'
  | { slow: number }
  | { late: Promise<void> }
  | { status: number; body?: unknown }

/** What a vendor tells by webhook: a body that is signed as it is, and how. */
export type SignedWebhook = { raw: string; headers: Record<string, string> }

/** How one vendor differs from others. */
export type VendorBehavior = {
  read(text: string, type: string): unknown
  answer(asked: VendorRequest): VendorResponse | Promise<VendorResponse>
  /** How it says that it refuses. */
  refusal(status: number, code: string): unknown
  /** The header by which it knows a question again. */
  keyHeader: string
  /** What it answers when a key comes with another question. */
  reused: VendorResponse
}

/** A server that behaves as a vendor's API does, on a port of its own. */
export async function startVendor(make: VendorBehavior) {
  const seen: VendorRequest[] = []
  const responsesByKey = new Map<string, { of: string; answered: VendorResponse }>()
  const own = {
    /** What goes wrong with the next questions, one after the other. */
    next: [] as InjectedFailure[],
    /** What goes wrong with some. */
    failing: (_: VendorRequest): InjectedFailure | undefined => undefined,
  }

  const isIdempotent = ({ method }: VendorRequest) => method !== 'GET' && method !== 'DELETE'
  const fingerprintOf = ({ method, path, body }: VendorRequest) => JSON.stringify([method, path, body])

  async function answerOnce(asked: VendorRequest): Promise<VendorResponse> {
    const key = asked.headers[make.keyHeader]
    const writes = isIdempotent(asked)
    const of = fingerprintOf(asked)
    const before = key && writes ? responsesByKey.get(key) : undefined
    if (before) return before.of === of ? { ...before.answered, replayed: true } : make.reused
    const answer = await make.answer(asked)
    // What was refused may be tried again, unless it failed there.
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
    const failure = own.next.shift() ?? own.failing(asked)
    if (failure === 'down') return request.socket.destroy()
    if (typeof failure === 'object' && 'slow' in failure) await Bun.sleep(failure.slow)
    const refused = typeof failure === 'object' && 'status' in failure ? failure : undefined
    const answer = refused
      ? { status: refused.status, body: refused.body ?? make.refusal(refused.status, 'made_to_fail') }
      : await answerOnce(asked)
    const key = headers[make.keyHeader]
    if (refused && refused.status >= 500 && key && isIdempotent(asked))
      responsesByKey.set(key, { of: fingerprintOf(asked), answered: answer })
    if (typeof failure === 'object' && 'late' in failure) await failure.late
    if (failure === 'lost') return request.socket.destroy()
    const replayed = 'replayed' in answer && answer.replayed && { 'idempotent-replayed': 'true' }
    response.writeHead(answer.status, { 'content-type': 'application/json', ...replayed })
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
    /** What it was asked at a path, without the base. */
    asked: (method: string, path: RegExp) => seen.filter((one) => one.method === method && path.test(one.path)),
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

let idCount = 0
/** An id of the kind that vendors give. */
export const newId = (prefix: string) =>
  `${prefix}${(++idCount).toString(36).padStart(6, '0')}${crypto.randomUUID().slice(0, 8)}`
