import { and, eq, inArray } from 'drizzle-orm'
import { Problem } from '../core/problem'
import type { Tx } from '../storage/port'
import { passkeys } from './passkeys/tables'
import { identities } from './social/tables'
import { users } from './tables'

/**
 * Requires that a user has a sign-in method left. It is called after the removal of one, in the same transaction.
 * Identities only count when their provider is one of `providers`, which are configured; a verified address counts where
 * users sign in by mail.
 * @throws 409 LAST_SIGN_IN_METHOD
 */
export async function assertNotLastMethod(
  tx: Tx,
  user: string,
  { providers, email }: { providers: string[]; email: boolean },
) {
  const row = await tx.select().from(users).where(eq(users._id, user)).get()
  if (row?.password || (email && row?.emailVerified)) return
  if (await tx.select({ _id: passkeys._id }).from(passkeys).where(eq(passkeys.user, user)).limit(1).get()) return
  const usable = and(eq(identities.user, user), inArray(identities.provider, providers))
  if (await tx.select({ user: identities.user }).from(identities).where(usable).limit(1).get()) return
  throw new Problem(
    409,
    'LAST_SIGN_IN_METHOD',
    'This is your last sign-in method. Set a password or add another method first.',
  )
}
