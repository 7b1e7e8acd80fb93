import { eq, inArray, lte, sql } from 'drizzle-orm'
import { config } from '../config'
import { now, toIsoString } from '../core/clock'
import { sha256 } from '../core/crypto'
import { tooManyRequests } from '../core/problem'
import { emit } from '../jobs/outbox'
import type { Tx } from '../storage/port'
import type { Tenant } from '../tenancy/tenants'
import { signinFailures } from './tables'

const MAX_FAILURES = 10
/** Behind one address there may be a whole office, so its people together may be wrong more often. */
const MAX_FAILURES_OF_ADDRESS = 100
const ATTEMPT_WINDOW_MS = 10 * 60_000 // ms

/**
 * Whoever tries: an account, an address, and the device if the account has signed in on it before. That a sign-in begins to
 * be refused is told, with the user if there is one of that name.
 */
export type ThrottleSubjects = {
  account: string
  address: string
  device?: string
  telling?: { user?: string }
  of?: AttemptKind
}

/** What is tried, when it is not a password. */
type AttemptKind = 'second factor' | 'passkey' | 'forgotten password' | 'verification'

type CounterKind = 'account' | 'address' | 'device'

/** Kept by a hash, since what people type as a name may be a password. */
type AttemptCounter = { about: CounterKind; subject: string; limit: number }

/**
 * What an attempt counts for. Guesses at a password from elsewhere never lock out an account, nor a device that it has signed in
 * on; a second factor is guessed by who has the password already, so there all guesses count together.
 */
function toCounters({ account, address, device, of }: ThrottleSubjects): AttemptCounter[] {
  const counter = (about: CounterKind, limit: number, ...values: string[]): AttemptCounter => ({
    ...{ about, limit },
    subject: `${about} ${sha256([of ?? 'password', ...values].join('\n'))}`,
  })
  const own = device && counter('device', MAX_FAILURES, account, device)
  const ofAddress = counter('address', MAX_FAILURES_OF_ADDRESS, address)
  if (of === undefined) return own ? [own] : [counter('account', MAX_FAILURES, account, address), ofAddress]
  const ofAccount = counter('account', MAX_FAILURES, account)
  if (of === 'second factor' && own) return [own, { ...ofAccount, limit: Number.POSITIVE_INFINITY }]
  // Each of these may send a mail.
  const sends = of === 'forgotten password' || of === 'verification'
  return [ofAccount, sends ? { ...ofAddress, limit: MAX_FAILURES } : ofAddress]
}

/**
 * Counts an attempt in windows of ten minutes, before it is known how it ends: of many at once none passes unseen.
 * @throws 429 RATE_LIMITED when too many have failed of late
 */
export async function countAttempt(tenant: Tenant, subjects: ThrottleSubjects) {
  if (config.ATOLL_RATE_LIMITS === 'off') return
  const time = now()
  const counters = toCounters(subjects)
  const wait = await tenant.write(async (tx) => {
    await tx.delete(signinFailures).where(lte(signinFailures.since, toIsoString(time - ATTEMPT_WINDOW_MS)))
    const names = counters.map(({ subject }) => subject)
    const rows = await tx.select().from(signinFailures).where(inArray(signinFailures.subject, names))
    const exceeded = counters.flatMap((counter) => {
      const row = rows.find(({ subject }) => subject === counter.subject)
      return row && row.count >= counter.limit ? [{ ...counter, since: row.since }] : []
    })
    if (subjects.telling) for (const one of exceeded) await emitOnce(tenant, tx, subjects, one)
    if (exceeded.length) return Math.max(...exceeded.map(({ since }) => Date.parse(since) + ATTEMPT_WINDOW_MS - time))
    const count = sql`${signinFailures.count} + 1`
    for (const subject of names)
      await tx
        .insert(signinFailures)
        .values({ subject, count: 1, since: toIsoString(time) })
        .onConflictDoUpdate({ target: signinFailures.subject, set: { count } })
  })
  if (wait) tooManyRequests(wait / 1000, 'Too many attempts failed.')
}

/** A success clears the account or device, and takes this attempt from the address, which may have tried others. */
export async function recordSuccess({ write }: Tenant, subjects: ThrottleSubjects) {
  if (config.ATOLL_RATE_LIMITS === 'off') return
  await write(async (tx) => {
    for (const { about, subject } of toCounters(subjects)) {
      const those = eq(signinFailures.subject, subject)
      if (about === 'address')
        await tx
          .update(signinFailures)
          .set({ count: sql`${signinFailures.count} - 1` })
          .where(those)
      else await tx.delete(signinFailures).where(those)
    }
  })
}

/** That attempts are refused is written down when it begins; a row that ends with theirs says that it was. */
async function emitOnce(
  tenant: Tenant,
  tx: Tx,
  { address, telling, of }: ThrottleSubjects,
  { about, subject, limit, since }: AttemptCounter & { since: string },
) {
  const first = await tx
    .insert(signinFailures)
    .values({ subject: `told ${subject}`, count: 0, since })
    .onConflictDoNothing()
    .returning()
    .get()
  if (!first) return
  const user = telling?.user
  await emit(tenant, tx, {
    source: 'accounts',
    kind: 'signin',
    eventName: 'signin-failed',
    metadata: { about, user, of, ...(address !== user && { address }), attempts: limit },
  })
}
