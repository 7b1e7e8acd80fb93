import type { IncomingMessage } from 'node:http'
import { type Reach, Refused } from './addresses'
import { type HttpRequest, headersOf, sendHttpRequest } from './http-request'
import { Unreachable } from './outside'

/** What else a server may not do, beside saying nothing at first. */
export type Limits = {
  /** ms that it may say nothing once it has begun, while somebody listens. */
  silence?: number
  /** Bytes of its answer. */
  limit?: number
}

/** A server said nothing for too long, after it had begun to. */
export class Silent extends Error {}

/** What came back. A body that came along with the head is there already. */
export type Answered = { status: number; headers: Headers; body: Body }
type Body = Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | null

const AHEAD = 64 << 10 // bytes

/**
 * Asks another server as `outside` does, with a body and an answer that are passed on as they come, however long that
 * takes. `head` is how long nothing may move until its first word (ms). Redirections are answers like others. How many there
 * are at once, whoever asks counts: they last as long as somebody listens.
 * @throws 502 OUTSIDE_UNREACHABLE
 */
export async function outsideAsItComes(
  url: string,
  question: HttpRequest,
  reach: Reach & Limits & { tenant: string; head: number },
): Promise<Answered> {
  let late = false
  const ending = new AbortController()
  const giveUp = () => {
    late = true
    ending.abort()
  }
  let timer = setTimeout(giveUp, reach.head)
  const moves = () => {
    clearTimeout(timer)
    if (!ending.signal.aborted) timer = setTimeout(giveUp, reach.head)
  }
  try {
    const signal = AbortSignal.any([question.signal, ending.signal])
    const { tenant, privateNetwork, http, resolve } = reach
    const options = { privateNetwork, http, resolve, onProgress: moves }
    const message = await sendHttpRequest(tenant, new URL(url), { ...question, signal }, options)
    return await answerOf(message, question.method, reach)
  } catch (cause) {
    throw new Unreachable(late ? 'timeout' : cause instanceof Refused ? 'refused' : 'unreachable', cause)
  } finally {
    clearTimeout(timer)
  }
}

async function answerOf(message: IncomingMessage, method: string, limits: Limits): Promise<Answered> {
  const headers = headersOf(message)
  const { statusCode: status = 502 } = message
  const empty = [204, 205, 304].includes(status) || method === 'HEAD'
  if (empty) message.resume()
  return { status, headers, body: empty ? null : await bodyOf(message, limits) }
}

/** What came along with the head, if that is all; else a stream that is no faster than it is read. */
async function bodyOf(message: IncomingMessage, { silence, limit = Number.POSITIVE_INFINITY }: Limits): Promise<Body> {
  const early: Buffer[] = []
  let take = (chunk: Buffer) => void early.push(chunk)
  let over: { error?: unknown } | undefined
  let end = () => {}
  const ends = (error?: unknown) => {
    over ??= { error }
    clearInterval(watch)
    end()
  }
  let size = 0
  let moved = performance.now()
  let heard = true
  const breakOff = (error: Error) => {
    ends(error)
    message.destroy()
  }
  const look = () => {
    if (heard && performance.now() - moved > silence!) breakOff(new Silent('The server said nothing any more.'))
  }
  const watch = silence ? setInterval(look, Math.max(10, silence / 10)) : undefined
  message.on('data', (chunk: Buffer) => {
    moved = performance.now()
    size += chunk.byteLength
    if (size > limit) breakOff(new Error(`The answer has more than ${limit} bytes.`))
    else take(chunk)
  })
  message.on('end', () => ends())
  message.on('error', ends).on('close', () => ends(new Error('The answer broke off.')))
  await new Promise(setImmediate)
  if (over && !over.error) return new Uint8Array(Buffer.concat(early))
  message.pause()
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        take = (chunk) => {
          controller.enqueue(new Uint8Array(chunk))
          if ((controller.desiredSize ?? 0) > 0) return
          heard = false
          message.pause()
        }
        end = () => {
          take = () => {}
          end = () => {}
          if (over?.error) controller.error(over.error)
          else controller.close()
        }
        for (const chunk of early) take(chunk)
        if (over) end()
      },
      pull() {
        moved = performance.now()
        heard = true
        message.resume()
      },
      cancel() {
        clearInterval(watch)
        take = () => {}
        end = () => {}
        message.destroy()
      },
    },
    { highWaterMark: AHEAD, size: (chunk) => chunk?.byteLength ?? 0 },
  )
}
