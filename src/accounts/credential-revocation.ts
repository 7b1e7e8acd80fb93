import { eq } from 'drizzle-orm'
import type { Tx } from '../storage/port'
import type { Tenant } from '../tenancy/tenants'
import { queueRepeatableMail } from './mail/mails'
import { emailChanges } from './mail/tables'
import { revokeOneTimeTokens } from './one-time-tokens'
import { passkeyChallenges, passkeys } from './passkeys/tables'
import { revokeApiTokens, revokeOtherSessions } from './sessions'
import { identities } from './social/tables'
import { oneTimeTokens, type UserRow, users } from './tables'

/**
 * Ends all sessions and API tokens of a user, and any pending change of their e-mail address. It is for a user who
 * recovers an account that somebody else had access to. It must be called in a write that changes the topic `actors`.
 */
export async function revokeSignIns(tx: Tx, user: string) {
  await revokeOtherSessions(tx, user, {})
  await revokeApiTokens(tx, user)
  for (const purpose of ['verification', 'linking'] as const) await revokeOneTimeTokens(tx, purpose, user)
  await tx.update(users).set({ pendingEmail: null }).where(eq(users._id, user))
}

/**
 * Removes all credentials of a user except the second factor. It is for the owner of an e-mail address who proves it
 * for an account that somebody else may have created with the address. Returns whether the user had a password, which a
 * mail then tells them. It must be called in a write that changes the topic `actors`.
 */
export async function revokeAllCredentials(
  tenant: Pick<Tenant, 'tenant'>,
  tx: Tx,
  { _id: user, email, password }: UserRow,
): Promise<boolean> {
  await revokeSignIns(tx, user)
  for (const table of [emailChanges, identities, oneTimeTokens, passkeys, passkeyChallenges])
    await tx.delete(table).where(eq(table.user, user))
  if (password === null) return false
  await tx.update(users).set({ password: null }).where(eq(users._id, user))
  if (email) await queueRepeatableMail(tenant, tx, { to: email, template: 'passwordRemoved', user })
  return true
}
