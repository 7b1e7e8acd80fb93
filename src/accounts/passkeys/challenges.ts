import { and, eq, gt, isNull, lt } from 'drizzle-orm'
import { iso, now } from '../../core/clock'
import { hashed, secret } from '../../core/secret'
import type { Lease } from '../../jobs/holding'
import { removeInSlices } from '../../jobs/removal'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import { passkeyChallenges } from './tables'

/** How long somebody has to answer with their authenticator, in ms. */
export const PATIENCE = 5 * 60_000

export type Challenge = typeof passkeyChallenges.$inferSelect
type Purpose = Challenge['purpose']

/** A challenge for an authenticator (base64url), which is good once. */
export async function giveChallenge(tx: Tx, purpose: Purpose, origin: string, user?: string): Promise<string> {
  const challenge = secret()
  const row = { hash: hashed(challenge), purpose, user, origin, expires: iso(now() + PATIENCE) }
  await tx.insert(passkeyChallenges).values(row)
  return challenge
}

/** What was known when this challenge was given, and it is good no more: of several who come with it, one gets it. */
export const takeChallenge = ({ write }: Tenant, purpose: Purpose, challenge: string, user?: string) =>
  write((tx) =>
    tx
      .delete(passkeyChallenges)
      .where(
        and(
          eq(passkeyChallenges.hash, hashed(challenge)),
          eq(passkeyChallenges.purpose, purpose),
          user ? eq(passkeyChallenges.user, user) : isNull(passkeyChallenges.user),
          gt(passkeyChallenges.expires, iso(now())),
        ),
      )
      .returning()
      .get(),
  )

/** Removes challenges that nobody has answered. */
export const removeExpired = (tenant: Tenant & Lease) =>
  removeInSlices(tenant, passkeyChallenges, passkeyChallenges.hash, lt(passkeyChallenges.expires, iso(now())))
