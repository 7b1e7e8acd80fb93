import type { IncomingMessage } from 'node:http'
import { UpstreamUnreachable } from './http-client'
import { type OutboundRequest, sendOutboundRequest, toHeaders } from './outbound-request'
import { BlockedAddress, type OutboundPolicy } from './ssrf-guard'

/** What else a server may not do, beside saying nothing at first. */
export type StreamLimits = {
  /** ms that it may say nothing once it has begun, while somebody listens. */
  idleTimeout?: number
  /** Bytes of its answer. */
  limit?: number
}

/** A server said nothing for too long, after it had begun to. */
export class IdleTimeout extends Error {}

/** What came back. A body that came along with the head is there already. */
export type UpstreamResponse = { status: number; headers: Headers; body: UpstreamBody }
type UpstreamBody = Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | null

const READ_AHEAD_BYTES = 64 << 10 // bytes

/**
 * Asks another server as `outside` does, with a body and an answer that are passed on as they come, however long that
 * takes. `head` is how long nothing may move until its first word (ms). Redirections are answers like others. How many there
 * are at once, whoever asks counts: they last as long as somebody listens.
 * @throws 502 OUTSIDE_UNREACHABLE
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
  const restartTimer = () => {
    clearTimeout(timer)
    if (!controller.signal.aborted) timer = setTimeout(giveUp, policy.head)
  }
  try {
    const signal = AbortSignal.any([request.signal, controller.signal])
    const { tenant, privateNetwork, http, resolve } = policy
    const options = { privateNetwork, http, resolve, onProgress: restartTimer }
    const message = await sendOutboundRequest(tenant, new URL(url), { ...request, signal }, options)
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

async function toUpstreamResponse(
  message: IncomingMessage,
  method: string,
  limits: StreamLimits,
): Promise<UpstreamResponse> {
  const headers = toHeaders(message)
  const { statusCode: status = 502 } = message
  const empty = [204, 205, 304].includes(status) || method === 'HEAD'
  if (empty) message.resume()
  return { status, headers, body: empty ? null : await toUpstreamBody(message, limits) }
}

/** What came along with the head, if that is all; else a stream that is no faster than it is read. */
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
  await new Promise(setImmediate)
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
