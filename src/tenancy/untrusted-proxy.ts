import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { config } from '../config'
import { DAY, iso, now } from '../core/clock'
import { report } from '../core/log'

const file = join(config.ATOLL_TENANTS, '.untrusted-proxy')
let noticed: number | undefined

/** When a request last came with `X-Forwarded-For` although no proxy is trusted (ms), as far as it was noted. */
export function untrustedProxySeen(): number {
  try {
    return Date.parse(readFileSync(file, 'utf8').trim()) || 0
  } catch {
    return 0
  }
}

/** Warns at most once a day that a proxy seems to be in front whose word about addresses does not count. */
export function noticeUntrustedProxy({ headers }: Request) {
  if (config.ATOLL_TRUST_PROXY === 'on' || !headers.has('x-forwarded-for')) return
  noticed ??= untrustedProxySeen()
  const time = now()
  if (time >= noticed && time < noticed + DAY) return
  noticed = time
  report('UNTRUSTED_PROXY', { hint: UNTRUSTED_PROXY })
  // A note for `atoll doctor`; without it, the log still says so.
  writeFile(file, `${iso(time)}\n`, { mode: 0o600 }).catch(() => {})
}

/** What to do about it, in words. */
export const UNTRUSTED_PROXY =
  'Requests come with X-Forwarded-For, but ATOLL_TRUST_PROXY is off. If a proxy of yours sets it, switch ATOLL_TRUST_PROXY on: until then all callers count as one address, and share its limits.'
