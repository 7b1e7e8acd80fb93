import { Agent, type IncomingMessage, request as overHttp } from 'node:http'
import { request as overHttps, Agent as TlsAgent } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { addressesOf, hostIn, type Reach } from './addresses'

/** What is asked. A stream goes out as it comes in. Headers are sent as they are, but for `host`. */
export type HttpRequest = {
  method: string
  headers: Headers
  body: ReadableStream<Uint8Array> | Uint8Array | null
  signal: AbortSignal
}

type Options = Reach & {
  /** Who vouches for the server's certificate, instead of the public authorities (PEM). */
  ca?: string
  /** Told whenever a piece of the body was handed over. */
  onProgress?: () => void
}

// Not by `fetch`, of which a process of Bun has 256 at a time: one tenant's would leave none to others.
const FREE = 4_000 // ms that a connection waits for another request; most servers give up after 5 s
const MAX_TENANTS = 1_000 // whose connections are kept; of those beyond, new ones are made

/** Where the host of a request is. */
type Located = { addresses?: string[] }

/** A connection is used again only for a host that is where it was. */
class HttpAgent extends Agent {
  override getName(options?: Parameters<Agent['getName']>[0] & Located) {
    return `${super.getName(options)} ${options?.addresses}`
  }
}
class HttpsAgent extends TlsAgent {
  override getName(options?: Parameters<TlsAgent['getName']>[0] & Located) {
    return `${super.getName(options)} ${options?.addresses}`
  }
}

type Agents = { 'http:': HttpAgent; 'https:': HttpsAgent }
const agents = new Map<string, Agents>()

/** The connections of one tenant, which no other uses. */
function agentsOf(tenant: string): Agents {
  const options = { keepAlive: true, timeout: FREE }
  const found = agents.get(tenant) ?? { 'http:': new HttpAgent(options), 'https:': new HttpsAgent(options) }
  agents.delete(tenant)
  agents.set(tenant, found)
  const [oldest] = agents.keys()
  // Connections that are in use go on, and free ones end by themselves.
  if (agents.size > MAX_TENANTS && oldest !== undefined) agents.delete(oldest)
  return found
}

/** Whether it does no harm to be asked twice (RFC 9110 §9.2.2), or says by what its server knows it again. */
const isRepeatable = ({ method, headers, body }: HttpRequest) =>
  !(body instanceof ReadableStream) &&
  (/^(GET|HEAD|OPTIONS|PUT|DELETE)$/.test(method) || headers.has('idempotency-key') || headers.has('webhook-id'))

/**
 * Sends a request for a tenant, to an address of the URL's host that was looked at, and to no other. Answers when the head of
 * the response is there. Connections are only used again for what may be sent twice: a server may hang up just then.
 * @throws Refused, or what the connection failed of
 */
export async function sendHttpRequest(tenant: string, url: URL, asked: HttpRequest, options: Options) {
  const { method, headers, body, signal } = asked
  const addresses = await unlessAborted(signal, addressesOf(url, options))
  signal.throwIfAborted()
  const places = addresses.map((address) => ({ address, family: isIP(address) }))
  const lookup: LookupFunction = (_, { all }, found) =>
    all ? found(null, places) : found(null, places[0]!.address, places[0]!.family)
  const secure = url.protocol === 'https:'
  const sent = Object.fromEntries(headers)
  if (body instanceof Uint8Array) sent['content-length'] = `${body.byteLength}`
  else if (!body && !['GET', 'HEAD'].includes(method)) sent['content-length'] = '0'
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const repeatable = isRepeatable(asked)
  const out = (secure ? overHttps : overHttp)({
    ...{ method, signal, headers: { ...sent, host: url.host }, lookup, addresses },
    agent: repeatable ? agentsOf(tenant)[secure ? 'https:' : 'http:'] : false,
    ...{ hostname: hostIn(url), port: url.port || undefined, path: `${url.pathname}${url.search}` },
    ...(secure && options.ca && { ca: options.ca }),
  })
  let [answered, repeated] = [false, false]
  out
    .on('response', (message) => {
      answered = true
      const { statusCode = 0 } = message
      // A connection that changed its protocol is of no use, and nobody could pass on what is no status.
      if (statusCode < 200 || statusCode > 599) out.destroy(new Error(`No answer has the status ${statusCode}.`))
      else resolve(message)
    })
    .on('error', (error) => {
      repeated = out.reusedSocket && repeatable && !answered && !signal.aborted
      if (repeated) sendHttpRequest(tenant, url, asked, options).then(resolve, reject)
      else reject(error)
    })
    // After an upgrade (101) there is neither an answer nor an error.
    .on('close', () => !repeated && reject(new Error('The connection ended without an answer.')))
  if (!body) out.end()
  else if (body instanceof Uint8Array) out.end(body)
  else
    send(body, out, options.onProgress).catch((error) => {
      out.destroy()
      reject(error)
    })
  return promise
}

async function send(body: ReadableStream<Uint8Array>, out: ReturnType<typeof overHttp>, onProgress?: () => void) {
  const closed = new Promise<void>((resolve) => out.once('close', resolve))
  for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
    if (out.destroyed) return
    onProgress?.()
    if (!out.write(chunk)) await Promise.race([new Promise<void>((resolve) => out.once('drain', resolve)), closed])
  }
  out.end()
}

/** Looking for a name can't be broken off, but need not be waited for. */
function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const giveUp = () => reject(signal.reason)
  if (signal.aborted) giveUp()
  signal.addEventListener('abort', giveUp, { once: true })
  return Promise.race([work, promise]).finally(() => signal.removeEventListener('abort', giveUp))
}

/** The headers of a response, those that come several times one by one. */
export function headersOf({ rawHeaders }: IncomingMessage): Headers {
  const headers = new Headers()
  for (let n = 0; n < rawHeaders.length; n += 2) headers.append(rawHeaders[n]!, rawHeaders[n + 1]!)
  return headers
}
