import { eq } from 'drizzle-orm'
import type { Tx } from '../storage/port'
import { emailChanges } from './mail/tables'
import { takeAll } from './one-time'
import { passkeyChallenges, passkeys } from './passkeys/tables'
import { endApiTokens, endOthers } from './sessions'
import { identities } from './social/tables'
import { oneTimeTokens, users } from './tables'

/**
 * Ends all sessions and API tokens of a user, and a change of their e-mail address that is pending. For who gets an account
 * back that somebody else was in. To be called in a write that changes the topic `actors`.
 */
export async function endSignIns(tx: Tx, user: string) {
  await endOthers(tx, user, {})
  await endApiTokens(tx, user)
  for (const purpose of ['verification', 'linking'] as const) await takeAll(tx, purpose, user)
  await tx.update(users).set({ pendingEmail: null }).where(eq(users._id, user))
}

/**
 * Ends all by which somebody could come in as this user, but for a second factor. For who proves that an address is theirs
 * at an account which somebody else may have made for it. To be called in a write that changes the topic `actors`.
 */
export async function endAllWaysIn(tx: Tx, user: string) {
  await endSignIns(tx, user)
  for (const table of [emailChanges, identities, oneTimeTokens, passkeys, passkeyChallenges])
    await tx.delete(table).where(eq(table.user, user))
  await tx.update(users).set({ password: null }).where(eq(users._id, user))
}
