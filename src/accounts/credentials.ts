import { badRequest, Problem } from '../core/problem'
import type { Ctx } from './context'
import { hashPassword } from './passwords'
import { requireRecentAuth, verifyCurrentPassword } from './reauthentication'
import type { Proof } from './shapes'
import type { UserRow } from './tables'
import { requireValidPassword } from './users/users'

type LoginFields = { username?: string; email?: string | null }

/** The fields without a username and an e-mail address that stay the same, so that a profile that was read can be sent back. */
export function omitUnchanged<Fields extends LoginFields>({ username, email, ...fields }: Fields, user: UserRow) {
  return {
    ...fields,
    ...(username !== undefined && username !== user.username && { username }),
    ...(email !== undefined && (email || null) !== user.email && { email: email || null }),
  }
}

/** @throws 400 for `endTokens` without a new password, which would end nothing */
export function assertEndTokensWithPassword({ password, endTokens }: { password?: string; endTokens?: boolean }) {
  if (endTokens && password === undefined)
    badRequest({ path: '/endTokens', message: 'endTokens requires a new password.' })
}

/**
 * Requires that the users themselves, who prove it, change what they sign in with: not an API token of theirs, which would
 * become the whole account by it, and not an admin who acts as them. A new password also needs the current one where there is
 * one. Returns the hash of the new password, if there is one.
 * @throws 400, 403 FORBIDDEN, and what `requireRecentAuth` and `verifyCurrentPassword` throw
 */
export async function authorizeCredentialChange(
  ctx: Ctx,
  user: UserRow,
  { username, email, password }: LoginFields & { password?: string },
  proof: Proof,
  request: Request,
): Promise<string | undefined> {
  const { impersonator, via, token } = ctx.actor
  const changesPassword = password !== undefined
  const needsRecentAuth = username !== undefined || email !== undefined || (changesPassword && !user.password)
  if (needsRecentAuth && (impersonator || via === 'api-key')) throw notOwner()
  // A token for one workspace would reach further by it.
  if (changesPassword && (impersonator || token?.bound)) throw notOwner()
  if (changesPassword) requireValidPassword(password)
  if (changesPassword && user.password && !proof.currentPassword)
    badRequest({ path: '/currentPassword', message: 'currentPassword is required.' })
  // From here on codes are used up and attempts counted, so each proof is taken once.
  const proven = needsRecentAuth && (await requireRecentAuth(ctx, proof, request))
  if (!changesPassword) return
  if (user.password && proven !== 'currentPassword') await verifyCurrentPassword(ctx, user, proof.currentPassword!)
  return hashPassword(ctx, password)
}

const notOwner = () =>
  new Problem(
    403,
    'FORBIDDEN',
    'Sign-in credentials can only be changed by the user, signed in and without an API token, or by an admin at /api/users.',
  )
