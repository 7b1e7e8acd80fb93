import { eq, inArray, lt } from 'drizzle-orm'
import { config } from '../config'
import { iso, now } from '../core/clock'
import { tooMany } from '../core/problem'
import { hashed } from '../core/secret'
import type { Tenant } from '../tenancy/tenants'
import { signinFailures } from './tables'

const FAILURES = 10
const WINDOW = 10 * 60_000 // ms

/** Whoever tries: an account and an address. Kept as hashes, since what people type as a name may be a password. */
export type Subjects = { account: string; address: string }

/** Refuses with 429 when the account or the address has failed too often of late. */
export async function refuseGuessing({ db }: Tenant, subjects: Subjects) {
  if (config.ATOLL_RATE_LIMITS === 'off') return
  const time = now()
  const rows = await db
    .select()
    .from(signinFailures)
    .where(inArray(signinFailures.subject, keys(subjects)))
  const wait = Math.max(
    0,
    ...rows.map(({ count, since }) => (count >= FAILURES ? Date.parse(since) + WINDOW - time : 0)),
  )
  if (wait > 0) tooMany(wait / 1000, 'Too many attempts failed.')
}

/** Counts a failure of both, in windows of ten minutes. */
export async function noteFailure({ write }: Tenant, subjects: Subjects) {
  if (config.ATOLL_RATE_LIMITS === 'off') return
  const [time, start] = [now(), now() - WINDOW]
  await write(async (tx) => {
    await tx.delete(signinFailures).where(lt(signinFailures.since, iso(start)))
    for (const subject of keys(subjects)) {
      const known = await tx.select().from(signinFailures).where(eq(signinFailures.subject, subject)).get()
      if (!known) await tx.insert(signinFailures).values({ subject, count: 1, since: iso(time) })
      else
        await tx
          .update(signinFailures)
          .set({ count: known.count + 1 })
          .where(eq(signinFailures.subject, subject))
    }
  })
}

/** A success clears the account; the address may have tried others. */
export async function noteSuccess({ db, write }: Tenant, { account }: Subjects) {
  const mine = eq(signinFailures.subject, key('account', account))
  if (await db.select().from(signinFailures).where(mine).get())
    await write((tx) => tx.delete(signinFailures).where(mine).run())
}

const key = (kind: string, value: string) => `${kind} ${hashed(value)}`
const keys = ({ account, address }: Subjects) => [key('account', account), key('address', network(address))]

/** One household has 2^64 addresses of version 6, so those count as one. */
function network(address: string) {
  if (!address.includes(':') || address.includes('.')) return address
  const [head = '', tail = ''] = address.split('::')
  const [front, back] = [head.split(':').filter(Boolean), tail.split(':').filter(Boolean)]
  const zeros = address.includes('::') ? Array(Math.max(0, 8 - front.length - back.length)).fill('0') : []
  return [...front, ...zeros, ...back].slice(0, 4).join(':')
}
