import { Agent, type IncomingMessage, request as overHttp } from 'node:http'
import { request as overHttps, Agent as TlsAgent } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { normalizeHost, type OutboundPolicy, resolveAllowedAddresses } from './ssrf-guard'

/** What is asked. A stream goes out as it comes in. Headers are sent as they are, but for `host`. */
export type OutboundRequest = {
  method: string
  headers: Headers
  body: ReadableStream<Uint8Array> | Uint8Array | null
  signal: AbortSignal
}

type SendOptions = OutboundPolicy & {
  /** Who vouches for the server's certificate, instead of the public authorities (PEM). */
  ca?: string
  /** Told whenever a piece of the body was handed over. */
  onProgress?: () => void
}

// Not by `fetch`, of which a process of Bun has 256 at a time: one tenant's would leave none to others.
const IDLE_SOCKET_MS = 4_000 // ms that a connection waits for another request; most servers give up after 5 s
const MAX_TENANTS_WITH_SOCKETS = 1_000 // whose connections are kept; of those beyond, new ones are made

/** Where the host of a request is. */
type WithAddresses = { addresses?: string[] }

/** A connection is used again only for a host that is where it was. */
class HttpAgent extends Agent {
  override getName(options?: Parameters<Agent['getName']>[0] & WithAddresses) {
    return `${super.getName(options)} ${options?.addresses}`
  }
}
class HttpsAgent extends TlsAgent {
  override getName(options?: Parameters<TlsAgent['getName']>[0] & WithAddresses) {
    return `${super.getName(options)} ${options?.addresses}`
  }
}

type TenantAgents = { 'http:': HttpAgent; 'https:': HttpsAgent }
const agentsByTenant = new Map<string, TenantAgents>()

/** The connections of one tenant, which no other uses. */
function agentsOf(tenant: string): TenantAgents {
  const options = { keepAlive: true, timeout: IDLE_SOCKET_MS }
  const tenantAgents = agentsByTenant.get(tenant) ?? {
    'http:': new HttpAgent(options),
    'https:': new HttpsAgent(options),
  }
  agentsByTenant.delete(tenant)
  agentsByTenant.set(tenant, tenantAgents)
  const [oldest] = agentsByTenant.keys()
  // Connections that are in use go on, and free ones end by themselves.
  if (agentsByTenant.size > MAX_TENANTS_WITH_SOCKETS && oldest !== undefined) agentsByTenant.delete(oldest)
  return tenantAgents
}

/** Whether it does no harm to be asked twice (RFC 9110 §9.2.2), or says by what its server knows it again. */
const isRepeatable = ({ method, headers, body }: OutboundRequest) =>
  !(body instanceof ReadableStream) &&
  (/^(GET|HEAD|OPTIONS|PUT|DELETE)$/.test(method) || headers.has('idempotency-key') || headers.has('webhook-id'))

/**
 * Sends a request for a tenant, to an address of the URL's host that was looked at, and to no other. Answers when the head of
 * the response is there. Connections are only used again for what may be sent twice: a server may hang up just then.
 * @throws Refused, or what the connection failed of
 */
export async function sendOutboundRequest(tenant: string, url: URL, outbound: OutboundRequest, options: SendOptions) {
  const { method, headers, body, signal } = outbound
  const addresses = await raceAbort(signal, resolveAllowedAddresses(url, options))
  signal.throwIfAborted()
  const resolved = addresses.map((address) => ({ address, family: isIP(address) }))
  const lookup: LookupFunction = (_, { all }, callback) =>
    all ? callback(null, resolved) : callback(null, resolved[0]!.address, resolved[0]!.family)
  const isTls = url.protocol === 'https:'
  const sentHeaders = Object.fromEntries(headers)
  if (body instanceof Uint8Array) sentHeaders['content-length'] = `${body.byteLength}`
  else if (!body && !['GET', 'HEAD'].includes(method)) sentHeaders['content-length'] = '0'
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const mayRepeat = isRepeatable(outbound)
  const out = (isTls ? overHttps : overHttp)({
    ...{ method, signal, headers: { ...sentHeaders, host: url.host }, lookup, addresses },
    agent: mayRepeat ? agentsOf(tenant)[isTls ? 'https:' : 'http:'] : false,
    ...{ hostname: normalizeHost(url), port: url.port || undefined, path: `${url.pathname}${url.search}` },
    ...(isTls && options.ca && { ca: options.ca }),
  })
  let [hasResponse, isRetried] = [false, false]
  out
    .on('response', (message) => {
      hasResponse = true
      const { statusCode = 0 } = message
      // A connection that changed its protocol is of no use, and nobody could pass on what is no status.
      if (statusCode < 200 || statusCode > 599) out.destroy(new Error(`Invalid response status ${statusCode}.`))
      else resolve(message)
    })
    .on('error', (error) => {
      isRetried = out.reusedSocket && mayRepeat && !hasResponse && !signal.aborted
      if (isRetried) sendOutboundRequest(tenant, url, outbound, options).then(resolve, reject)
      else reject(error)
    })
    // After an upgrade (101) there is neither an answer nor an error.
    .on('close', () => !isRetried && reject(new Error('The connection closed without a response.')))
  if (!body) out.end()
  else if (body instanceof Uint8Array) out.end(body)
  else
    pipeBody(body, out, options.onProgress).catch((error) => {
      out.destroy()
      reject(error)
    })
  return promise
}

async function pipeBody(body: ReadableStream<Uint8Array>, out: ReturnType<typeof overHttp>, onProgress?: () => void) {
  const closed = new Promise<void>((resolve) => out.once('close', resolve))
  for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
    if (out.destroyed) return
    onProgress?.()
    if (!out.write(chunk)) await Promise.race([new Promise<void>((resolve) => out.once('drain', resolve)), closed])
  }
  out.end()
}

/** Looking for a name can't be broken off, but need not be waited for. */
function raceAbort<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const giveUp = () => reject(signal.reason)
  if (signal.aborted) giveUp()
  signal.addEventListener('abort', giveUp, { once: true })
  return Promise.race([work, promise]).finally(() => signal.removeEventListener('abort', giveUp))
}

/** The headers of a response, those that come several times one by one. */
export function toHeaders({ rawHeaders }: IncomingMessage): Headers {
  const headers = new Headers()
  for (let n = 0; n < rawHeaders.length; n += 2) headers.append(rawHeaders[n]!, rawHeaders[n + 1]!)
  return headers
}
