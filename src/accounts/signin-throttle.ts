import { eq, gt, inArray, lte, or, sql } from 'drizzle-orm'
import { config } from '../config'
import { now, toIsoString } from '../core/clock'
import { sha256 } from '../core/crypto'
import { tooManyRequests } from '../core/problem'
import { emit } from '../jobs/outbox'
import type { Tx } from '../storage/port'
import { widerNetworks } from '../tenancy/client-connection'
import type { Tenant } from '../tenancy/tenants'
import { STRANGER_DELAY_MS } from './stranger-throttle'
import { signinFailures } from './tables'

const MAX_FAILURES = 10
/** A whole office may share one address, so its limit is higher. */
const MAX_FAILURES_OF_ADDRESS = 100
const ATTEMPT_WINDOW_MS = 10 * 60_000

/**
 * The subjects whose attempts are counted: an account, an address, and the device if the account has signed in on it
 * before. With `telling`, an event is emitted when attempts begin to be rejected; it names the user if one has that
 * name.
 */
export type ThrottleSubjects = {
  account: string
  address: string
  device?: string
  telling?: { user?: string }
  of?: AttemptKind
}

/** The kind of an attempt that is not a password. */
type AttemptKind =
  | 'second factor'
  | 'passkey'
  | 'forgotten password'
  | 'verification'
  | 'e-mail sign-in'
  | 'e-mail code'

type CounterKind = 'account' | 'address' | 'device'

/**
 * The subject is a hash, because users may type a password as the username. `slows`: beyond the limit attempts wait
 * instead of being rejected.
 */
type AttemptCounter = { about: CounterKind; subject: string; limit: number; slows?: boolean }

/**
 * Returns the counters of an attempt. Wrong passwords from elsewhere never lock out an account, nor a device on which
 * it has signed in. A second factor can only be guessed by somebody who already has the password, so all guesses count
 * together. Mails that strangers request for an account slow down further requests for it, and its own devices have a
 * limit of their own.
 */
function toCounters({ account, address, device, of }: ThrottleSubjects): AttemptCounter[] {
  const counter = (about: CounterKind, limit: number, ...values: string[]): AttemptCounter => ({
    ...{ about, limit },
    subject: `${about} ${sha256([of ?? 'password', ...values].join('\n'))}`,
  })
  const own = device && counter('device', MAX_FAILURES, account, device)
  const ofAddress = (limit: number) => [
    counter('address', limit, address),
    ...widerNetworks(address).map(({ network, factor }) => counter('address', limit * factor, network)),
  ]
  if (of === undefined)
    return own ? [own] : [counter('account', MAX_FAILURES, account, address), ...ofAddress(MAX_FAILURES_OF_ADDRESS)]
  const ofAccount = counter('account', MAX_FAILURES, account)
  if (of === 'second factor' && own) return [own, { ...ofAccount, limit: Number.POSITIVE_INFINITY }]
  // Each of these attempts may send a mail.
  if (of === 'forgotten password' || of === 'e-mail sign-in')
    return own ? [own] : [{ ...ofAccount, slows: true }, ...ofAddress(MAX_FAILURES)]
  return [ofAccount, ...ofAddress(of === 'verification' ? MAX_FAILURES : MAX_FAILURES_OF_ADDRESS)]
}

/**
 * Counts an attempt, in windows of ten minutes, before its outcome is known, so that concurrent attempts cannot bypass
 * the limit. Waits where a limit slows attempts down.
 * @throws 429 RATE_LIMITED when too many recent attempts failed
 */
export async function countAttempt(tenant: Tenant, subjects: ThrottleSubjects) {
  if (config.ATOLL_RATE_LIMITS === 'off') return
  const time = now()
  const counters = toCounters(subjects)
  let isSlowed = false
  const wait = await tenant.write(async (tx) => {
    const isOver = lte(signinFailures.since, toIsoString(time - ATTEMPT_WINDOW_MS))
    // Failures of a clock that was ahead would lock people out until then.
    const isOfFuture = gt(signinFailures.since, toIsoString(time + ATTEMPT_WINDOW_MS))
    await tx.delete(signinFailures).where(or(isOver, isOfFuture))
    const names = counters.map(({ subject }) => subject)
    const rows = await tx.select().from(signinFailures).where(inArray(signinFailures.subject, names))
    const reached = counters.flatMap((counter) => {
      const row = rows.find(({ subject }) => subject === counter.subject)
      return row && row.count >= counter.limit ? [{ ...counter, since: row.since }] : []
    })
    const exceeded = reached.filter(({ slows }) => !slows)
    isSlowed = reached.length > 0
    if (subjects.telling) for (const counter of exceeded) await emitOnce(tenant, tx, subjects, counter)
    if (exceeded.length) return Math.max(...exceeded.map(({ since }) => Date.parse(since) + ATTEMPT_WINDOW_MS - time))
    const count = sql`${signinFailures.count} + 1`
    for (const subject of names)
      await tx
        .insert(signinFailures)
        .values({ subject, count: 1, since: toIsoString(time) })
        .onConflictDoUpdate({ target: signinFailures.subject, set: { count } })
  })
  if (wait) tooManyRequests(wait / 1000, 'Too many attempts failed.')
  if (isSlowed) await Bun.sleep(STRANGER_DELAY_MS)
}

/**
 * Clears the counter of the account or device. The counter of the address only loses this attempt, because the address
 * may have tried other accounts.
 */
export async function recordSuccess({ write }: Tenant, subjects: ThrottleSubjects) {
  if (config.ATOLL_RATE_LIMITS === 'off') return
  await write(async (tx) => {
    for (const { about, subject } of toCounters(subjects)) {
      const isSubject = eq(signinFailures.subject, subject)
      if (about === 'address')
        await tx
          .update(signinFailures)
          .set({ count: sql`${signinFailures.count} - 1` })
          .where(isSubject)
      else await tx.delete(signinFailures).where(isSubject)
    }
  })
}

/**
 * Emits one event when attempts begin to be rejected. A row that expires with the counter records that it was emitted.
 */
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
