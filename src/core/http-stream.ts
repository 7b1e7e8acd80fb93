import type { IncomingMessage } from 'node:http'
import { UpstreamUnreachable } from './http-client'
import { type OutboundRequest, sendOutboundRequest, toHeaders } from './outbound-request'
import { BlockedAddress, type OutboundPolicy } from './ssrf-guard'

/** Limits of a streamed response after its first byte. */
export type StreamLimits = {
  /** ms that the server may be silent after its first byte, while the stream is being read. */
  idleTimeout?: number
  /** The most bytes that the response may have. */
  limit?: number
}

/** Thrown when a server was silent for too long after its first byte. */
export class IdleTimeout extends Error {}

/** The response of another server. The body is a stream, unless all of it arrived with the head. */
export type UpstreamResponse = { status: number; headers: Headers; body: UpstreamBody }
export type UpstreamBody = Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | null

const READ_AHEAD_BYTES = 64 << 10 // bytes

/**
 * Requests a URL as `fetchExternal` does, but streams the bodies of the request and the response, however long that
 * takes. `policy.head` limits how long nothing may move until the head of the response arrives (ms). Redirects are
 * returned as they are. The caller limits how many streams run at once: a stream lasts as long as it is read.
 * @throws 502 OUTSIDE_UNREACHABLE when the request fails
 */
export async function fetchExternalStream(
  url: string,
  request: OutboundRequest,
  policy: OutboundPolicy & StreamLimits & { tenant: string; head: number },
): Promise<UpstreamResponse> {
  let isTimedOut = false
  const controller = new AbortController()
  const giveUp = () => {
    isTimedOut = true
    controller.abort()
  }
  let timer = setTimeout(giveUp, policy.head)
  let hasHead = false
  const restartTimer = () => {
    clearTimeout(timer)
    // The body of the request may go on after the head of the response.
    if (!hasHead && !controller.signal.aborted) timer = setTimeout(giveUp, policy.head)
  }
  try {
    const signal = AbortSignal.any([request.signal, controller.signal])
    const { tenant, privateNetwork, http, resolve } = policy
    const options = { privateNetwork, http, resolve, onProgress: restartTimer }
    const message = await sendOutboundRequest(tenant, new URL(url), { ...request, signal }, options)
    hasHead = true
    return await toUpstreamResponse(message, request.method, policy)
  } catch (cause) {
    throw new UpstreamUnreachable(
      isTimedOut ? 'timeout' : cause instanceof BlockedAddress ? 'refused' : 'unreachable',
      cause,
    )
  } finally {
    clearTimeout(timer)
  }
}

const isEventStream = ({ headers }: IncomingMessage) => /^text\/event-stream\b/i.test(headers['content-type'] ?? '')

async function toUpstreamResponse(
  message: IncomingMessage,
  method: string,
  limits: StreamLimits,
): Promise<UpstreamResponse> {
  const headers = toHeaders(message)
  const { statusCode: status = 502 } = message
  const isEmpty = [204, 205, 304].includes(status) || method === 'HEAD'
  // Only a 205 can announce a body that never comes, for which the connection would stay open.
  if (status === 205) message.destroy()
  else if (isEmpty) message.resume()
  return { status, headers, body: isEmpty ? null : await toUpstreamBody(message, limits) }
}

/**
 * Returns the bytes that arrived with the head when they are the whole body; otherwise, and for events, a stream with
 * backpressure.
 */
async function toUpstreamBody(
  message: IncomingMessage,
  { idleTimeout, limit = Number.POSITIVE_INFINITY }: StreamLimits,
): Promise<UpstreamBody> {
  const buffered: Buffer[] = []
  let onChunk = (chunk: Buffer) => void buffered.push(chunk)
  let ended: { error?: unknown } | undefined
  let onEnd = () => {}
  const finish = (error?: unknown) => {
    ended ??= { error }
    clearInterval(idleTimer)
    onEnd()
  }
  let size = 0
  let lastActivity = performance.now()
  let isReading = true
  const abort = (error: Error) => {
    finish(error)
    message.destroy()
  }
  const checkIdle = () => {
    if (isReading && performance.now() - lastActivity > idleTimeout!)
      abort(new IdleTimeout('The server stopped sending data.'))
  }
  const idleTimer = idleTimeout ? setInterval(checkIdle, Math.max(10, idleTimeout / 10)) : undefined
  message.on('data', (chunk: Buffer) => {
    lastActivity = performance.now()
    size += chunk.byteLength
    if (size > limit) abort(new Error(`The response has more than ${limit} bytes.`))
    else onChunk(chunk)
  })
  message.on('end', () => finish())
  message.on('error', finish).on('close', () => finish(new Error('The response ended early.')))
  // Events come one by one, and their reader waits for the first.
  if (!isEventStream(message)) await new Promise(setImmediate)
  if (ended && !ended.error) return new Uint8Array(Buffer.concat(buffered))
  message.pause()
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        onChunk = (chunk) => {
          controller.enqueue(new Uint8Array(chunk))
          if ((controller.desiredSize ?? 0) > 0) return
          isReading = false
          message.pause()
        }
        onEnd = () => {
          onChunk = () => {}
          onEnd = () => {}
          if (ended?.error) controller.error(ended.error)
          else controller.close()
        }
        for (const chunk of buffered) onChunk(chunk)
        if (ended) onEnd()
      },
      pull() {
        lastActivity = performance.now()
        isReading = true
        message.resume()
      },
      cancel() {
        clearInterval(idleTimer)
        onChunk = () => {}
        onEnd = () => {}
        message.destroy()
      },
    },
    { highWaterMark: READ_AHEAD_BYTES, size: (chunk) => chunk?.byteLength ?? 0 },
  )
}
