import { badRequest, Problem } from '../core/problem'
import type { Ctx } from './context'
import { hashPassword } from './passwords'
import { requireRecentAuth, verifyCurrentPassword } from './reauthentication'
import type { Proof } from './shapes'
import type { UserRow } from './tables'
import { requireValidPassword } from './users/users'
import { toWorkOwner } from './work-owner'

type LoginFields = { username?: string; email?: string | null }

/**
 * Returns the fields without an unchanged username or e-mail address, so that clients can send back the profile that
 * they read.
 */
export function omitUnchanged<Fields extends LoginFields>({ username, email, ...fields }: Fields, user: UserRow) {
  return {
    ...fields,
    ...(username !== undefined && username !== user.username && { username }),
    ...(email !== undefined && (email || null) !== user.email && { email: email || null }),
  }
}

/** @throws 400 INVALID_INPUT for `endTokens` without a new password, which would have no effect */
export function assertEndTokensWithPassword({ password, endTokens }: { password?: string; endTokens?: boolean }) {
  if (endTokens && password === undefined)
    badRequest({ path: '/endTokens', message: 'endTokens requires a new password.' })
}

/**
 * Requires that users change their own credentials, with a proof: neither an API token, which could take over the whole
 * account, nor an admin who impersonates them may do so. A new password also requires the current one, if there is one.
 * Returns the hash of the new password, if there is one.
 * @throws 400, 403 FORBIDDEN, and the errors of `requireRecentAuth` and `verifyCurrentPassword`
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
  // With a new password, a token that is bound to one workspace would gain access to others.
  if (changesPassword && (impersonator || token?.bound)) throw notOwner()
  if (changesPassword) requireValidPassword(password)
  if (changesPassword && user.password && !proof.currentPassword)
    badRequest({ path: '/currentPassword', message: 'currentPassword is required.' })
  // From here on codes are consumed and attempts are counted, so each proof is verified only once.
  const proven = needsRecentAuth && (await requireRecentAuth(ctx, proof, request))
  if (!changesPassword) return
  if (user.password && proven !== 'currentPassword') await verifyCurrentPassword(ctx, user, proof.currentPassword!)
  return hashPassword(toWorkOwner(ctx), password)
}

const notOwner = () =>
  new Problem(
    403,
    'FORBIDDEN',
    'Sign-in credentials can only be changed by the user, signed in and without an API token, or by an admin at /api/users.',
  )
