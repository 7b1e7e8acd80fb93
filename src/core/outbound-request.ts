import type { Agent, ClientRequest, IncomingMessage } from 'node:http'
import type { LookupFunction } from 'node:net'
import { DURATION_BOUNDS, Histogram } from './histogram'
import { normalizeHost, type OutboundPolicy, resolveAllowedAddresses } from './ssrf-guard'
import { currentTrace, runInSpan, toTraceparent } from './trace'

/** A request to another server. A stream is sent as it arrives. All headers are sent unchanged, except `host`. */
export type OutboundRequest = {
  method: string
  headers: Headers
  body: ReadableStream<Uint8Array> | Uint8Array | null
  signal: AbortSignal
  /** Whether the request may be sent twice, although its method is not idempotent. */
  isRepeatable?: boolean
}

type SendOptions = OutboundPolicy & {
  /** The authority that signed the server's certificate, in place of the public authorities (PEM). */
  ca?: string
  /** Called whenever a chunk of the body is written. */
  onProgress?: () => void
}

// `fetch` is not used: Bun allows 256 of them per process, so one tenant could leave none to the others.
const IDLE_SOCKET_MS = 4_000 // most servers close an idle connection after 5 s
const MAX_TENANTS_WITH_SOCKETS = 1_000 // beyond that the longest unused tenant's connections are not reused

/** The addresses of a request's host. */
type WithAddresses = { addresses?: string[] }

/**
 * Returns the HTTP clients by protocol. The first request loads them, because their modules include streams, sockets and TLS.
 */
function loadProtocols() {
  const { Agent, request: overHttp } = process.getBuiltinModule('node:http')
  const { Agent: TlsAgent, request: overHttps } = process.getBuiltinModule('node:https')
  // A connection is reused only while its host has the same addresses.
  class HttpAgent extends Agent {
    override getName(options?: Parameters<Agent['getName']>[0] & WithAddresses) {
      return `${super.getName(options)} ${options?.addresses}`
    }
  }
  class HttpsAgent extends TlsAgent {
    override getName(options?: Parameters<typeof TlsAgent.prototype.getName>[0] & WithAddresses) {
      return `${super.getName(options)} ${options?.addresses}`
    }
  }
  const options = { keepAlive: true, timeout: IDLE_SOCKET_MS }
  return {
    'http:': { request: overHttp, createAgent: () => new HttpAgent(options) },
    'https:': { request: overHttps, createAgent: () => new HttpsAgent(options) },
  }
}
type Protocols = ReturnType<typeof loadProtocols>
let protocols: Protocols | undefined
const getProtocols = () => {
  protocols ??= loadProtocols()
  return protocols
}

type TenantAgents = Record<keyof Protocols, Agent>
const agentsByTenant = new Map<string, TenantAgents>()

/** Returns the agents of one tenant. Tenants share no connections. */
function agentsOf(tenant: string): TenantAgents {
  const tenantAgents = agentsByTenant.get(tenant) ?? {
    'http:': getProtocols()['http:'].createAgent(),
    'https:': getProtocols()['https:'].createAgent(),
  }
  agentsByTenant.delete(tenant)
  agentsByTenant.set(tenant, tenantAgents)
  const [oldest] = agentsByTenant.keys()
  // Active connections go on, and idle ones end by themselves.
  if (agentsByTenant.size > MAX_TENANTS_WITH_SOCKETS && oldest !== undefined) agentsByTenant.delete(oldest)
  return tenantAgents
}

/**
 * Tells whether a request may be sent twice: its method is idempotent (RFC 9110 §9.2.2), a header lets the server
 * recognize a repetition, or its sender says so.
 */
const mayBeSentTwice = ({ method, headers, body, isRepeatable }: OutboundRequest) =>
  !(body instanceof ReadableStream) &&
  (isRepeatable ||
    /^(GET|HEAD|OPTIONS|PUT|DELETE)$/.test(method) ||
    headers.has('idempotency-key') ||
    headers.has('webhook-id'))

/** The requests of this process to other servers: how long they took until the head of the response (s), and results. */
export const outboundStatistics = {
  durations: new Histogram(DURATION_BOUNDS),
  /** By the class of the status, such as `2xx`, or `failed` without a response. */
  results: new Map<string, number>(),
}

function countOutbound(result: string, began: number) {
  const { durations, results } = outboundStatistics
  durations.record((performance.now() - began) / 1_000)
  results.set(result, (results.get(result) ?? 0) + 1)
}

/**
 * Sends a request for a tenant, to a checked address of the URL's host only. Resolves when the head of the response has
 * arrived. Connections are reused only for repeatable requests, because a server may close an idle connection at any
 * moment.
 * @throws BlockedAddress when the address is not allowed, or the error of the connection
 */
export function sendOutboundRequest(tenant: string, url: URL, outbound: OutboundRequest, options: SendOptions) {
  const { method } = outbound
  const began = performance.now()
  // The path and the query are left out: they may hold secrets.
  const describe = () => ({
    ...{ 'http.request.method': method, 'server.address': url.hostname, 'url.scheme': url.protocol.slice(0, -1) },
    ...(url.port && { 'server.port': Number(url.port) }),
    'atoll.tenant': tenant,
  })
  return runInSpan(method, 'client', describe, async (span) => {
    try {
      const message = await send(tenant, url, outbound, options)
      const { statusCode = 0 } = message
      countOutbound(`${Math.floor(statusCode / 100)}xx`, began)
      span?.describe({ 'http.response.status_code': statusCode })
      return message
    } catch (error) {
      countOutbound('failed', began)
      throw error
    }
  })
}

async function send(
  tenant: string,
  url: URL,
  outbound: OutboundRequest,
  options: SendOptions,
): Promise<IncomingMessage> {
  const { method, headers, body, signal } = outbound
  const addresses = await raceAbort(signal, resolveAllowedAddresses(url, options))
  signal.throwIfAborted()
  const resolved = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
  const lookup: LookupFunction = (_, { all }, callback) =>
    all ? callback(null, resolved) : callback(null, resolved[0]!.address, resolved[0]!.family)
  const isTls = url.protocol === 'https:'
  const sentHeaders = Object.fromEntries(headers)
  const trace = currentTrace()
  if (trace) {
    sentHeaders.traceparent = toTraceparent(trace)
    if (trace.state) sentHeaders.tracestate = trace.state
    else delete sentHeaders.tracestate
  }
  if (body instanceof Uint8Array) sentHeaders['content-length'] = `${body.byteLength}`
  else if (!body && !['GET', 'HEAD'].includes(method)) sentHeaders['content-length'] = '0'
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const mayRepeat = mayBeSentTwice(outbound)
  const out = getProtocols()[isTls ? 'https:' : 'http:'].request({
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
      // An upgraded connection is of no use, and other statuses cannot be passed on.
      if (statusCode < 200 || statusCode > 599) out.destroy(new Error(`Invalid response status ${statusCode}.`))
      else resolve(message)
    })
    .on('error', (error) => {
      isRetried = out.reusedSocket && mayRepeat && !hasResponse && !signal.aborted
      if (isRetried) send(tenant, url, outbound, options).then(resolve, reject)
      else reject(error)
    })
    // After an upgrade (101) there is neither a response nor an error.
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

async function pipeBody(body: ReadableStream<Uint8Array>, out: ClientRequest, onProgress?: () => void) {
  const closed = new Promise<void>((resolve) => out.once('close', resolve))
  for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
    if (out.destroyed) return
    onProgress?.()
    if (!out.write(chunk)) await Promise.race([new Promise<void>((resolve) => out.once('drain', resolve)), closed])
  }
  out.end()
}

/** A DNS lookup cannot be cancelled, but an abort ends the wait for it. */
function raceAbort<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const giveUp = () => reject(signal.reason)
  if (signal.aborted) giveUp()
  signal.addEventListener('abort', giveUp, { once: true })
  return Promise.race([work, promise]).finally(() => signal.removeEventListener('abort', giveUp))
}

/** Returns the headers of a response, including those that occur several times. */
export function toHeaders({ rawHeaders }: IncomingMessage): Headers {
  const headers = new Headers()
  for (let n = 0; n < rawHeaders.length; n += 2) headers.append(rawHeaders[n]!, rawHeaders[n + 1]!)
  return headers
}
