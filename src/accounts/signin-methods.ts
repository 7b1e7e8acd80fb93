import { and, eq, inArray } from 'drizzle-orm'
import { Problem } from '../core/problem'
import type { Tx } from '../storage/port'
import { passkeys } from './passkeys/tables'
import { identities } from './social/tables'
import { users } from './tables'

/**
 * After something was taken away by which a user signs in, in that transaction: refuses it when nothing is left. Of their
 * identities those count whose provider is set up. @throws 409 LAST_SIGN_IN_METHOD
 */
export async function assertNotLastMethod(tx: Tx, user: string, providers: string[]) {
  const row = await tx.select({ password: users.password }).from(users).where(eq(users._id, user)).get()
  if (row?.password) return
  if (await tx.select({ _id: passkeys._id }).from(passkeys).where(eq(passkeys.user, user)).limit(1).get()) return
  const usable = and(eq(identities.user, user), inArray(identities.provider, providers))
  if (await tx.select({ user: identities.user }).from(identities).where(usable).limit(1).get()) return
  throw new Problem(
    409,
    'LAST_SIGN_IN_METHOD',
    'This is your last sign-in method. Set a password or add another method first.',
  )
}
