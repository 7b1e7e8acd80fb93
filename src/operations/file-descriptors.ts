import { closeSync, openSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { devNull } from 'node:os'
import { log } from '../core/log'

const CHECK_INTERVAL_MS = 1_000
const [WARN_SHARE, CALM_SHARE] = [0.8, 0.6] // of the limit

/** Returns undefined where the system does not tell. */
export const countDescriptors = () =>
  readdir('/proc/self/fd').then(
    ({ length }) => length,
    () => undefined,
  )

/** Returns undefined where the system does not tell. */
export const readDescriptorLimit = () =>
  readFile('/proc/self/limits', 'utf8').then(
    (limits) => Number(/^Max open files +(\d+)/m.exec(limits)?.[1]) || undefined,
    () => undefined,
  )

let risk: string | undefined

/** Says that most of the file descriptors are in use, or returns undefined while they are not. */
export const findDescriptorRisk = (): string | undefined => risk

/** Logs FILE_DESCRIPTORS_LOW once whenever most descriptors have come to be in use. Returns a function that ends it. */
export function startDescriptorCheck(): () => void {
  const check = createDescriptorCheck()
  const limit = readDescriptorLimit()
  const timer = setInterval(async () => {
    risk = check(probeDescriptors(), await limit)
  }, CHECK_INTERVAL_MS).unref()
  return () => clearInterval(timer)
}

/**
 * Returns a function that takes how many descriptors are open, undefined when none is free, and the limit, if known. It
 * returns what is wrong.
 */
export function createDescriptorCheck(warn: (about: object) => void = (about) => log.warn(about)) {
  let message: string | undefined
  return (open: number | undefined, limit: number | undefined) => {
    const share = open === undefined ? 1 : open / (limit ?? Number.POSITIVE_INFINITY)
    if (message ? share > CALM_SHARE : share < WARN_SHARE) return message
    if (message) {
      message = undefined
      return
    }
    const used = open === undefined ? 'All file descriptors' : `${open} of ${limit} file descriptors`
    message = `${used} are in use by connections and databases, and without a free one new connections are refused. Raise the limit (LimitNOFILE of the systemd unit, "ulimit -n" in a shell), or lower ATOLL_OPEN_TENANTS.`
    warn({
      what: 'FILE_DESCRIPTORS_LOW',
      ...(open !== undefined && { open }),
      ...(limit !== undefined && { limit }),
      message,
    })
    return message
  }
}

/** Returns how many descriptors are open at least, which the lowest free one says; undefined when none is free. */
function probeDescriptors(): number | undefined {
  try {
    const descriptor = openSync(devNull, 'r')
    closeSync(descriptor)
    return descriptor
  } catch {
    return undefined
  }
}
