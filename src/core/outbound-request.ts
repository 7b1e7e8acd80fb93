import type { ClientRequest, IncomingMessage } from 'node:http'
import type { LookupFunction } from 'node:net'
import { DURATION_BOUNDS, Histogram } from './histogram'
import { ipVersionOf, normalizeHost, type OutboundPolicy, resolveAllowedAddresses } from './ssrf-guard'
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
  const { agentsOf, requestBy } = await import('./outbound-agents')
  const addresses = await raceAbort(signal, resolveAllowedAddresses(url, options))
  signal.throwIfAborted()
  const resolved = addresses.map((address) => ({ address, family: ipVersionOf(address) }))
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
  const out = requestBy[isTls ? 'https:' : 'http:']({
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
