import { and, eq, gt, isNull, lt } from 'drizzle-orm'
import { now, toIsoString } from '../../core/clock'
import { generateToken, sha256 } from '../../core/crypto'
import { deleteInBatches } from '../../jobs/batch-delete'
import type { Lease } from '../../jobs/with-lease'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import { passkeyChallenges } from './tables'

/** How long a user has to answer a challenge, in ms. */
export const CHALLENGE_TTL_MS = 5 * 60_000

export type Challenge = typeof passkeyChallenges.$inferSelect
type ChallengePurpose = Challenge['purpose']

/** Issues a challenge for an authenticator (base64url), which can be used once, and returns it. */
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

/** Deletes a valid challenge and returns its row, or undefined. Only one of several concurrent callers gets it. */
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

/** Removes challenges that expired without an answer. */
export const removeExpired = (tenant: Tenant & Lease) =>
  deleteInBatches(tenant, passkeyChallenges, passkeyChallenges.hash, lt(passkeyChallenges.expires, toIsoString(now())))
