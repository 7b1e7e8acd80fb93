import { and, eq, gt, lt } from 'drizzle-orm'
import { DAY_MS, HOUR_MS, now, toIsoString } from '../core/clock'
import { generateToken, sha256 } from '../core/crypto'
import { deleteInBatches } from '../jobs/batch-delete'
import type { Lease } from '../jobs/with-lease'
import type { Db, Tx } from '../storage/port'
import type { Tenant } from '../tenancy/tenants'
import { oneTimeTokens } from './tables'

/** How long a token is valid, in ms. */
const TOKEN_TTL_MS = {
  verification: 3 * DAY_MS,
  passwordReset: HOUR_MS,
  emailRevert: 7 * DAY_MS,
  secondFactor: 5 * 60_000,
  redirect: 60_000,
  linking: 10 * 60_000,
  signinLink: HOUR_MS,
}
export type TokenPurpose = keyof typeof TOKEN_TTL_MS

type TokenData = Record<string, string>

/** Issues a token that can be used once, and returns it. Only its hash is stored. */
export async function issueOneTimeToken(
  tx: Tx,
  purpose: TokenPurpose,
  user: string,
  data: TokenData = {},
): Promise<string> {
  const token = generateToken()
  const row = { hash: sha256(token), purpose, user, data, expires: toIsoString(now() + TOKEN_TTL_MS[purpose]) }
  await tx.insert(oneTimeTokens).values(row)
  return token
}

/** Returns the row of a token that is valid for this purpose, or undefined. */
export const findOneTimeToken = (db: Db, purpose: TokenPurpose, token: string) =>
  db.select().from(oneTimeTokens).where(matchesValidToken(purpose, token)).get()

/**
 * Deletes a token that is valid for this purpose and returns its row, or undefined. Only one of several concurrent
 * callers gets it.
 */
export const consumeOneTimeToken = (tx: Tx, purpose: TokenPurpose, token: string) =>
  tx.delete(oneTimeTokens).where(matchesValidToken(purpose, token)).returning().get()

/** Revokes all tokens of a user for a purpose. */
export const revokeOneTimeTokens = (tx: Tx, purpose: TokenPurpose, user: string) =>
  tx
    .delete(oneTimeTokens)
    .where(and(eq(oneTimeTokens.user, user), eq(oneTimeTokens.purpose, purpose)))
    .run()

const matchesValidToken = (purpose: TokenPurpose, token: string) =>
  and(
    eq(oneTimeTokens.hash, sha256(token)),
    eq(oneTimeTokens.purpose, purpose),
    gt(oneTimeTokens.expires, toIsoString(now())),
  )

/** Removes tokens that expired without being used. */
export const removeExpired = (tenant: Tenant & Lease) =>
  deleteInBatches(tenant, oneTimeTokens, oneTimeTokens.hash, lt(oneTimeTokens.expires, toIsoString(now())))
