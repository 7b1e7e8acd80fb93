import { BoundedMap } from '../core/bounded-map'
import { HOUR_MS, now } from '../core/clock'
import { log } from '../core/log'
import { AuthorityUnavailable, readSuggestedRenewal } from './acme-authority'
import { listIssuedRows, planRenewal } from './certificates'

const MAX_QUESTIONS = 20 // each time, so that orders do not wait for many
const DEFAULT_INTERVAL_MS = 6 * HOUR_MS
let pausedUntil = 0
const askAt = new BoundedMap<string, number>(100_000)

/**
 * Asks the authority when certificates should be renewed, as often as it says, and plans each renewal at a moment of the
 * window that it suggests. A window that has passed means now: the authority may be about to revoke the certificate.
 */
export async function followSuggestedRenewals() {
  if (now() < pausedUntil) return
  try {
    await askForRenewals()
  } catch (error) {
    if (!(error instanceof AuthorityUnavailable)) throw error
    pausedUntil = now() + error.retryAfterMs
    log.warn({ what: 'RENEWALS_UNKNOWN', message: error.message })
  }
}

async function askForRenewals() {
  let questions = 0
  for (const row of await listIssuedRows()) {
    // The latest answer is about another certificate when it was replaced.
    const key = `${row.host} ${row.issued}`
    if ((askAt.get(key) ?? 0) > now()) continue
    if (++questions > MAX_QUESTIONS) return
    askAt.set(key, now() + DEFAULT_INTERVAL_MS)
    const suggested = await readSuggestedRenewal(row.chain)
    if (!suggested) continue
    const { start, end, askAgain } = suggested
    askAt.set(key, now() + askAgain)
    const due = Date.parse(row.due)
    if (due < start || due > end) await planRenewal(row, Math.floor(start + Math.random() * (end - start)))
  }
}
