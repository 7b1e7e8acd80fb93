import { and, eq, gt, isNull, lt } from 'drizzle-orm'
import { now, toIsoString } from '../../core/clock'
import { generateToken, sha256 } from '../../core/crypto'
import { deleteInBatches } from '../../jobs/batch-delete'
import type { Lease } from '../../jobs/with-lease'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import { passkeyChallenges } from './tables'

/** How long a challenge is valid, in ms. */
export const CHALLENGE_TTL_MS = 5 * 60_000

export type Challenge = typeof passkeyChallenges.$inferSelect
type ChallengePurpose = Challenge['purpose']

/** Returns a new challenge for an authenticator (base64url), which can be used once. */
export async function issueChallenge(
  tx: Tx,
  purpose: ChallengePurpose,
  origin: string,
  user?: string,
): Promise<string> {
  const challenge = generateToken()
  const row = { hash: sha256(challenge), purpose, user, origin, expires: toIsoString(now() + CHALLENGE_TTL_MS) }
  await tx.insert(passkeyChallenges).values(row)
  return challenge
}

/**
 * Consumes a challenge and returns its row, or undefined when it is invalid. Of several simultaneous uses, one
 * succeeds.
 */
export const consumeChallenge = ({ write }: Tenant, purpose: ChallengePurpose, challenge: string, user?: string) =>
  write((tx) =>
    tx
      .delete(passkeyChallenges)
      .where(
        and(
          eq(passkeyChallenges.hash, sha256(challenge)),
          eq(passkeyChallenges.purpose, purpose),
          user ? eq(passkeyChallenges.user, user) : isNull(passkeyChallenges.user),
          gt(passkeyChallenges.expires, toIsoString(now())),
        ),
      )
      .returning()
      .get(),
  )

/** Removes expired challenges. */
export const removeExpired = (tenant: Tenant & Lease) =>
  deleteInBatches(tenant, passkeyChallenges, passkeyChallenges.hash, lt(passkeyChallenges.expires, toIsoString(now())))
