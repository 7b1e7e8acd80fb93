import { and, eq, gt, lt } from 'drizzle-orm'
import { DAY, iso, now } from '../core/clock'
import { hashed, secret } from '../core/secret'
import type { Lease } from '../jobs/holding'
import { removeInSlices } from '../jobs/removal'
import type { Db, Tx } from '../storage/port'
import type { Tenant } from '../tenancy/tenants'
import { oneTimeTokens } from './tables'

/** How long a token is good for what it is for, in ms. */
const TTL = {
  verification: 3 * DAY,
  passwordReset: 3_600_000,
  emailRevert: 7 * DAY,
  secondFactor: 5 * 60_000,
  redirect: 60_000,
  linking: 10 * 60_000,
}
export type Purpose = keyof typeof TTL

type Data = Record<string, string>

/** A token that is good once. What it is good for is known to us only by its hash. */
export async function giveOnce(tx: Tx, purpose: Purpose, user: string, data: Data = {}): Promise<string> {
  const token = secret()
  const row = { hash: hashed(token), purpose, user, data, expires: iso(now() + TTL[purpose]) }
  await tx.insert(oneTimeTokens).values(row)
  return token
}

/** Whose token this is, when it is good for that. */
export const lookAt = (db: Db, purpose: Purpose, token: string) =>
  db.select().from(oneTimeTokens).where(goodFor(purpose, token)).get()

/** The same, and it is good no more: of several who come with it at once, one gets it. */
export const takeOnce = (tx: Tx, purpose: Purpose, token: string) =>
  tx.delete(oneTimeTokens).where(goodFor(purpose, token)).returning().get()

/** Makes all tokens of a user for a purpose worth nothing. */
export const takeAll = (tx: Tx, purpose: Purpose, user: string) =>
  tx
    .delete(oneTimeTokens)
    .where(and(eq(oneTimeTokens.user, user), eq(oneTimeTokens.purpose, purpose)))
    .run()

const goodFor = (purpose: Purpose, token: string) =>
  and(eq(oneTimeTokens.hash, hashed(token)), eq(oneTimeTokens.purpose, purpose), gt(oneTimeTokens.expires, iso(now())))

/** Removes tokens whose time is over. */
export const removeExpired = (tenant: Tenant & Lease) =>
  removeInSlices(tenant, oneTimeTokens, oneTimeTokens.hash, lt(oneTimeTokens.expires, iso(now())))
