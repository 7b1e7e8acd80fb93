import { Agent, type IncomingMessage, request as overHttp } from 'node:http'
import { request as overHttps, Agent as TlsAgent } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { addressesOf, hostIn, type Reach, Refused } from './addresses'
import { Unreachable } from './outside'

/** A question whose body goes out as it comes in. Its headers are sent as they are, but for `host`. */
export type Question = {
  method: string
  headers: Headers
  body: ReadableStream<Uint8Array> | Uint8Array | null
  /** Who asked has gone: so do we. */
  signal: AbortSignal
}

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

// Not by `fetch`, of which a process of Bun has 256 at a time: long streams would leave none to others.
const FREE = 4_000 // ms that a connection waits for another question; others give up after 5 s
const agents = {
  'http:': new Agent({ keepAlive: true, timeout: FREE }),
  'https:': new TlsAgent({ keepAlive: true, timeout: FREE }),
}
const AHEAD = 64 << 10 // bytes

/**
 * Asks another server as `outside` does, with a body and an answer that are passed on as they come, however long that
 * takes. `head` is how long nothing may move until its first word (ms). Redirections are answers like others.
 * @throws 502 OUTSIDE_UNREACHABLE
 */
export async function outsideAsItComes(
  url: string,
  question: Question,
  reach: Reach & Limits & { head: number },
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
    const message = await asking(new URL(url), question, reach, signal, moves)
    return await answerOf(message, question.method, reach)
  } catch (cause) {
    throw new Unreachable(late ? 'timeout' : cause instanceof Refused ? 'refused' : 'unreachable', cause)
  } finally {
    clearTimeout(timer)
  }
}

/** Connects to an address that was looked at, and to no other. */
async function asking(
  url: URL,
  { method, headers, body }: Omit<Question, 'signal'>,
  reach: Reach,
  signal: AbortSignal,
  moves: () => void,
) {
  const addresses = await addressesOf(url, reach)
  signal.throwIfAborted()
  const places = addresses.map((address) => ({ address, family: isIP(address) }))
  const lookup: LookupFunction = (_, { all }, found) =>
    all ? found(null, places) : found(null, places[0]!.address, places[0]!.family)
  const secure = url.protocol === 'https:'
  const sent = Object.fromEntries(headers)
  if (!body && !['GET', 'HEAD'].includes(method)) sent['content-length'] = '0'
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const out = (secure ? overHttps : overHttp)({
    ...{ method, signal, headers: { ...sent, host: url.host }, agent: agents[secure ? 'https:' : 'http:'] },
    ...{ hostname: hostIn(url), port: url.port || undefined, path: `${url.pathname}${url.search}` },
    lookup,
  })
  out.on('response', resolve).on('error', (error) => {
    // Whoever was about to hang up is asked once more.
    const again = out.reusedSocket && !body && ['GET', 'HEAD'].includes(method) && !signal.aborted
    if (again) asking(url, { method, headers, body }, reach, signal, moves).then(resolve, reject)
    else reject(error)
  })
  if (!body) out.end()
  else if (body instanceof Uint8Array) out.end(body)
  else
    send(body, out, moves).catch((error) => {
      out.destroy()
      reject(error)
    })
  return promise
}

async function send(body: ReadableStream<Uint8Array>, out: ReturnType<typeof overHttp>, moves: () => void) {
  const closed = new Promise<void>((resolve) => out.once('close', resolve))
  for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
    if (out.destroyed) return
    moves()
    if (!out.write(chunk)) await Promise.race([new Promise<void>((resolve) => out.once('drain', resolve)), closed])
  }
  out.end()
}

async function answerOf(message: IncomingMessage, method: string, limits: Limits): Promise<Answered> {
  const headers = new Headers()
  for (let n = 0; n < message.rawHeaders.length; n += 2)
    headers.append(message.rawHeaders[n]!, message.rawHeaders[n + 1]!)
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
