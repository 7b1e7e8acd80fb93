import { availableParallelism } from 'node:os'
import type { Content } from '../../backups/contents/content-store'
import { Busy } from '../../core/busy'
import { FairShare } from '../../core/fair-share'
import { logError } from '../../core/log'
import { OWN_COMMAND } from '../../core/own-command'
import { Problem } from '../../core/problem'
import { lowerPriority } from '../../core/process-priority'
import type { WorkOwner } from '../../core/turn-queue'
import { EXIT, LIMIT_SIGNAL, type ThumbnailLimits, type ThumbnailOrder } from './order'

// A phone makes pictures of 12 to 50 million pixels. A PNG of the most pixels takes about 370 MB.
const THUMBNAIL_LIMITS: ThumbnailLimits = { pixels: 64_000_000, memoryBytes: 512 << 20, timeMs: 20_000 }
const PROCESS_TIMEOUT_MS = 25_000 // it ends itself before, unless it hangs

const thumbnailShare = new FairShare({
  running: { total: Math.min(4, Math.max(1, availableParallelism() - 1)) }, // each takes a core
  waiting: { perTenant: 100, timeoutMs: 60_000 },
  turnMs: 100,
})

/**
 * Makes a thumbnail of a picture in a process of its own, in turn with others, and returns what `receive` makes of its
 * bytes, whose end throws unless they are complete.
 * @throws 415 PICTURE_UNREADABLE, 503 BUSY
 */
export const runThumbnailProcess = <T>(
  owner: WorkOwner,
  picture: Content,
  order: ThumbnailOrder,
  receive: (thumbnail: AsyncIterable<Uint8Array>) => Promise<T>,
  limits = THUMBNAIL_LIMITS,
): Promise<T> => thumbnailShare.run(owner, () => receive(readOutput(picture, { ...order, limits })))

async function* readOutput(
  picture: Content,
  order: ThumbnailOrder & { limits: ThumbnailLimits },
): AsyncGenerator<Uint8Array> {
  const child = Bun.spawn([...OWN_COMMAND, 'thumbnail', JSON.stringify(order)], {
    env: { NODE_ENV: 'production', DO_NOT_TRACK: '1', BUN_ENABLE_CRASH_REPORTING: '0' },
    cwd: '/',
    stdin: picture instanceof Blob ? picture : picture.stream(),
    stdout: 'pipe',
    stderr: 'ignore',
    timeout: PROCESS_TIMEOUT_MS,
    killSignal: 'SIGKILL',
  })
  lowerPriority(child.pid)
  try {
    yield* child.stdout
    await child.exited
    if (child.exitCode !== 0) throw toProblem(child)
  } finally {
    if (child.exitCode === null) child.kill('SIGKILL')
  }
}

function toProblem({ exitCode, signalCode }: Bun.Subprocess): Error {
  const refusal = REFUSALS[`${signalCode ?? exitCode}`]
  if (refusal) return new Problem(415, 'PICTURE_UNREADABLE', refusal)
  // The process was ended from outside or timed out, so the picture is not to blame.
  if (['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGHUP'].includes(`${signalCode}`)) return new Busy()
  logError('THUMBNAIL_FAILED', { exitCode, signalCode })
  return new Problem(415, 'PICTURE_UNREADABLE', BROKEN)
}

const BROKEN = 'No thumbnail can be made of this picture: it is broken.'
const REFUSALS: Record<string, string> = {
  [EXIT.unreadable]: BROKEN,
  [EXIT.tooManyPixels]: `No thumbnail can be made of this picture: it has more than ${THUMBNAIL_LIMITS.pixels / 1e6} million pixels.`,
  [EXIT.unsupported]: 'This server cannot read pictures of this format. Upload it as JPEG, PNG or WebP.',
  [LIMIT_SIGNAL]: 'No thumbnail can be made of this picture: it takes too much time or memory.',
}
