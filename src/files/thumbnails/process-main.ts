import { openSync, readSync, writeFileSync } from 'node:fs'
import { confineProcess } from '../../core/confinement'
import { toTrueColorBmp } from './bmp'
import { composeFirstFrame } from './gif'
import { EXIT, LIMIT_SIGNAL, type ThumbnailLimits, type ThumbnailOrder } from './order'
import { makeThumbnail, readFormat } from './resize'

// The process of one thumbnail: it reads a picture from its input and writes the thumbnail to its output. Decoders are
// native code that reads what strangers made, so it has nothing to lose but itself.

const MONITOR_INTERVAL_MS = 5

const { limits, ...order } = JSON.parse(process.argv.at(-1)!) as ThumbnailOrder & { limits: ThumbnailLimits }

// When memory is short the kernel kills this process first.
if (process.platform === 'linux')
  try {
    writeFileSync('/proc/self/oom_score_adj', '1000')
  } catch {
    // Not allowed in some containers.
  }

// Stays open, because no file can be opened after the confinement.
const statusFile = process.platform === 'linux' ? openSync('/proc/self/status', 'r') : -1
const status = Buffer.alloc(4_096)

confineProcess()

function readResidentBytes() {
  if (statusFile < 0) return process.memoryUsage.rss()
  const length = readSync(statusFile, status, 0, status.length, 0)
  return Number(/VmRSS:\s+(\d+) kB/.exec(status.toString('latin1', 0, length))?.[1]) * 1024
}

// Decoding does not block this thread.
const end = () => process.kill(process.pid, LIMIT_SIGNAL)
setInterval(() => readResidentBytes() <= limits.memoryBytes || end(), MONITOR_INTERVAL_MS)
setTimeout(end, limits.timeMs)

const EXIT_CODES: Partial<Record<string, number>> = {
  ERR_IMAGE_TOO_MANY_PIXELS: EXIT.tooManyPixels,
  ERR_IMAGE_FORMAT_UNSUPPORTED: EXIT.unsupported,
  ERR_IMAGE_DECODE_FAILED: EXIT.unreadable,
  ERR_IMAGE_UNKNOWN_FORMAT: EXIT.unreadable,
}

try {
  const bytes = await Bun.stdin.bytes()
  const picture = order.from === 'bmp' ? toTrueColorBmp(bytes, limits.pixels) : bytes
  if ((await readFormat(picture, limits.pixels)) !== order.from) process.exit(EXIT.unreadable)
  const whole = order.from === 'gif' ? await composeFirstFrame(picture, limits.pixels) : picture
  await Bun.write(Bun.stdout, await makeThumbnail(whole, order, limits.pixels))
  process.exit(0)
} catch (error) {
  process.exit(EXIT_CODES[(error as { code?: string }).code ?? ''] ?? 1)
}
