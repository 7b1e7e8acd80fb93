import type { PublicCtx } from '../../accounts/context'
import { toWorkOwner } from '../../accounts/work-owner'
import { toBodyStream } from '../../core/body-stream'
import { BoundedMap } from '../../core/bounded-map'
import { costlyWork, type WorkOwner } from '../../tenancy/fair-queue'
import { hasReaderThreads, readInThread, ThreadFailed } from '../../tenancy/reader-threads'
import type { ThreadRead } from '../../tenancy/thread-messages'
import { COSTLY_READ_LIMITS } from './read-costs'

/**
 * How much a read has to do: the main thread answers a small one, tries one of unknown size, and leaves a large one to a
 * thread. `end` is called when it is answered.
 */
export type PreparedRead = { size: 'small' | 'unknown' | 'large'; end?(): void }

/** A read that a reader thread can answer, by its name, and how its answer becomes the result. */
export type ThreadedRead<T> = {
  name: string
  args: string[]
  receive(response: Response): T | Promise<T>
  /** Prepares the read when another one of its shape was costly, or when it became costly itself (`hasBegun`). */
  prepare?(hasBegun: boolean): Promise<PreparedRead>
}

/**
 * Returns what a reader thread answers.
 * @throws ThreadFailed when the read has to be repeated here, 503 BUSY when too many are under way
 */
export async function readThreaded<T>(ctx: PublicCtx, request: Request, threaded: ThreadedRead<T>): Promise<T> {
  const owner = toWorkOwner(ctx, request)
  const leaveQueue = costlyWork.acquireSlot(owner, COSTLY_READ_LIMITS)
  try {
    await costlyWork.run(owner, async () => costlyWork.chargeThreadTime(MAIN_THREAD_MS))
    const response = await readInThread(toThreadRead(ctx, request, threaded, false), request.signal)
    return await threaded.receive(response)
  } finally {
    leaveQueue()
  }
}

/**
 * Returns the answer of a reader thread as a stream. The read counts as under way only while the thread works on it.
 * `onEnd` is called when the stream ends or the client disconnects. Returns undefined without reader threads, and when
 * the thread failed.
 * @throws 503 BUSY as `readFairly` does
 */
export async function streamInThread(
  ctx: PublicCtx,
  request: Request,
  read: Pick<ThreadedRead<unknown>, 'name' | 'args'>,
  onEnd: () => void,
): Promise<Response | undefined> {
  if (!hasReaderThreads(ctx.place)) return
  const owner = toWorkOwner(ctx, request)
  const leaveQueue = costlyWork.acquireSlot(owner, COSTLY_READ_LIMITS)
  try {
    const { status, headers, body } = await readInThread(toThreadRead(ctx, request, read, true), request.signal)
    return new Response(toBodyStream(readParts(body!, owner, onEnd)), { status, headers })
  } catch (error) {
    if (!(error instanceof ThreadFailed)) throw error
  } finally {
    leaveQueue()
  }
}

async function* readParts(body: ReadableStream<Uint8Array>, owner: WorkOwner, onEnd: () => void) {
  const reader = body.getReader()
  try {
    for (;;) {
      const leaveQueue = costlyWork.acquireSlot(owner)
      const { done, value } = await reader.read().finally(leaveQueue)
      if (done) return
      yield value
    }
  } finally {
    await reader.cancel()
    onEnd()
  }
}

function toThreadRead(
  ctx: PublicCtx,
  { url, headers }: Request,
  { name, args }: Pick<ThreadedRead<unknown>, 'name' | 'args'>,
  isStreamed: boolean,
): ThreadRead {
  const sent = SENT_HEADERS.flatMap((header): [string, string][] => {
    const value = headers.get(header)
    return value === null ? [] : [[header, value]]
  })
  return { name, args, isStreamed, place: ctx.place!, actor: ctx.actor, url, headers: sent }
}

/** The headers that the answer of a list depends on. */
const SENT_HEADERS = ['accept-version']

const COSTLY_TTL_MS = 10_000
/** The time that the main thread spends on a threaded read (ms). It is charged like other costly work. */
const MAIN_THREAD_MS = 0.25
/** Until when (`performance.now()`) reads of a shape go to a thread at once. */
const costlyUntil = new BoundedMap<string, number>(10_000)
/** Records that a read turned out to be costly, for others of its shape. */
export const markCostly = (ctx: PublicCtx, request: Request, threaded: ThreadedRead<unknown>) =>
  void costlyUntil.set(shapeOf(ctx, request, threaded), performance.now() + COSTLY_TTL_MS)

/** Tells whether a read is costly, because another one of its shape was lately. */
export const isKnownCostly = (ctx: PublicCtx, request: Request, threaded: ThreadedRead<unknown>) =>
  (costlyUntil.get(shapeOf(ctx, request, threaded)) ?? 0) > performance.now()

/** Returns what reads have in common that take about equally long: everything but the values of their filters. */
const shapeOf = (
  { tenant }: PublicCtx,
  { url }: Request,
  { name, args }: Pick<ThreadedRead<unknown>, 'name' | 'args'>,
) => `${tenant} ${name} ${args.join(' ')} ${url.slice(url.indexOf('?') >>> 0).replace(/=[^&]*/g, '')}`
