import { eq, inArray, lte, sql } from 'drizzle-orm'
import { config } from '../config'
import { iso, now } from '../core/clock'
import { tooMany } from '../core/problem'
import { hashed } from '../core/secret'
import { emit } from '../jobs/outbox'
import type { Tx } from '../storage/port'
import type { Tenant } from '../tenancy/tenants'
import { signinFailures } from './tables'

const FAILURES = 10
const WINDOW = 10 * 60_000 // ms

/**
 * Whoever tries: an account and an address. Kept as hashes, since what people type as a name may be a password. That a
 * sign-in begins to be refused is told, with the user if there is one of that name.
 */
export type Subjects = { account: string; address: string; telling?: { user?: string }; of?: Trial }

/** What is tried, when it is not a password. */
type Trial = 'second factor' | 'passkey' | 'forgotten password' | 'verification'

/**
 * Counts an attempt of both, in windows of ten minutes, before it is known how it ends: of many at once none passes
 * unseen. @throws 429 when the account or the address has failed too often of late.
 */
export async function countAttempt(tenant: Tenant, subjects: Subjects) {
  if (config.ATOLL_RATE_LIMITS === 'off') return
  const time = now()
  const wait = await tenant.write(async (tx) => {
    await tx.delete(signinFailures).where(lte(signinFailures.since, iso(time - WINDOW)))
    const known = await tx
      .select()
      .from(signinFailures)
      .where(inArray(signinFailures.subject, keys(subjects)))
    const full = known.filter(({ count }) => count >= FAILURES)
    if (subjects.telling) for (const one of full) await tellOnce(tenant, tx, subjects, one)
    if (full.length) return Math.max(...full.map(({ since }) => Date.parse(since) + WINDOW - time))
    const count = sql`${signinFailures.count} + 1`
    for (const subject of keys(subjects))
      await tx
        .insert(signinFailures)
        .values({ subject, count: 1, since: iso(time) })
        .onConflictDoUpdate({ target: signinFailures.subject, set: { count } })
  })
  if (wait) tooMany(wait / 1000, 'Too many attempts failed.')
}

/** A success clears the account, and takes this attempt from the address, which may have tried others. */
export async function noteSuccess({ write }: Tenant, { account, address, of }: Subjects) {
  if (config.ATOLL_RATE_LIMITS === 'off') return
  await write(async (tx) => {
    await tx.delete(signinFailures).where(eq(signinFailures.subject, key('account', account, of)))
    const count = sql`${signinFailures.count} - 1`
    await tx
      .update(signinFailures)
      .set({ count })
      .where(eq(signinFailures.subject, key('address', address, of)))
  })
}

type Failures = typeof signinFailures.$inferSelect

/** That attempts are refused is written down when it begins; a row that ends with theirs says that it was. */
async function tellOnce(
  tenant: Tenant,
  tx: Tx,
  { account, address, telling, of }: Subjects,
  { subject, since }: Failures,
) {
  const first = await tx
    .insert(signinFailures)
    .values({ subject: `told ${subject}`, count: 0, since })
    .onConflictDoNothing()
    .returning()
    .get()
  if (!first) return
  const user = telling?.user
  const about = subject === key('account', account, of) ? 'account' : 'address'
  await emit(tenant, tx, {
    source: 'accounts',
    kind: 'signin',
    eventName: 'signin-failed',
    metadata: { about, user, of, ...(address !== user && { address }), attempts: FAILURES },
  })
}

const key = (kind: string, value: string, of?: Trial) => `${kind} ${hashed(of ? `${of} ${value}` : value)}`
const keys = ({ account, address, of }: Subjects) => [key('account', account, of), key('address', address, of)]
