import { eq } from 'drizzle-orm'
import type { Tx } from '../storage/port'
import { passkeyChallenges, passkeys } from './passkeys/tables'
import { endOthers } from './sessions'
import { identities } from './social/tables'
import { apiTokens, oneTimeTokens, users } from './tables'

/**
 * Ends all by which somebody could come in as this user, but for a second factor. For who proves that an address is theirs
 * at an account which somebody else may have made for it. To be called in a write that changes the topic `actors`.
 */
export async function endAllWaysIn(tx: Tx, user: string) {
  await endOthers(tx, user, {})
  for (const table of [apiTokens, identities, oneTimeTokens, passkeys, passkeyChallenges])
    await tx.delete(table).where(eq(table.user, user))
  await tx.update(users).set({ password: null }).where(eq(users._id, user))
}
