import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { config } from '../config'
import { DAY_MS, now, toIsoString } from '../core/clock'
import { logError } from '../core/log'

const noticeFile = join(config.ATOLL_TENANTS, '.untrusted-proxy')
let lastNoticeAt: number | undefined

/**
 * Returns when a request last came with `X-Forwarded-For` although no proxy is trusted (ms), as far as it was recorded;
 * else 0.
 */
export function untrustedProxySeenAt(): number {
  try {
    return Date.parse(readFileSync(noticeFile, 'utf8').trim()) || 0
  } catch {
    return 0
  }
}

/** Logs at most once a day that there seems to be a proxy whose headers are not trusted. */
export function warnAboutUntrustedProxy({ headers }: Request) {
  if (config.ATOLL_TRUST_PROXY === 'on' || !headers.has('x-forwarded-for')) return
  lastNoticeAt ??= untrustedProxySeenAt()
  const time = now()
  if (time >= lastNoticeAt && time < lastNoticeAt + DAY_MS) return
  lastNoticeAt = time
  logError('UNTRUSTED_PROXY', { hint: UNTRUSTED_PROXY_HINT })
  // For `atoll doctor`. Without it, the log still has the warning.
  writeFile(noticeFile, `${toIsoString(time)}\n`, { mode: 0o600 }).catch(() => {})
}

/** How to fix it. */
export const UNTRUSTED_PROXY_HINT =
  'Requests carry X-Forwarded-For, but ATOLL_TRUST_PROXY is off. If your proxy sets this header, set ATOLL_TRUST_PROXY=on. Until then all clients count as one IP address and share its limits.'
