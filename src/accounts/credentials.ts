import { invalid, Problem } from '../core/problem'
import type { Ctx } from './guard'
import { hashPassword } from './passwords'
import { prove, proveByPassword } from './proof'
import type { Proof } from './shapes'
import type { UserRow } from './tables'
import { checkedPassword } from './users'

type Named = { username?: string; email?: string | null }

/** The fields without a username and an e-mail address that stay the same, so that a profile that was read can be sent back. */
export function withoutUnchanged<Fields extends Named>({ username, email, ...fields }: Fields, user: UserRow) {
  return {
    ...fields,
    ...(username !== undefined && username !== user.username && { username }),
    ...(email !== undefined && (email || null) !== user.email && { email: email || null }),
  }
}

/**
 * Requires that the users themselves, who prove it, change what they sign in with: not an API token of theirs, which would
 * become the whole account by it, and not an admin who acts as them.
 * @throws 403 FORBIDDEN, and what `prove` throws
 */
export async function requireOwner(ctx: Ctx, proof: Proof, request: Request) {
  if (ctx.actor.impersonator || ctx.actor.via === 'api-key') throw notOwner()
  await prove(ctx, proof, request)
}

/** @throws 400 for `endTokens` without a new password, which would end nothing */
export function validateEndTokens({ password, endTokens }: { password?: string; endTokens?: boolean }) {
  if (endTokens && password === undefined)
    invalid({ path: '/endTokens', message: 'endTokens needs a new password beside it.' })
}

/** The hash of a new password of the caller's, who proves that it is theirs to change. @throws 400, 403, 429 */
export async function hashOwnPassword(ctx: Ctx, user: UserRow, password: string, proof: Proof, request: Request) {
  // A token for one workspace would reach further by it.
  if (ctx.actor.impersonator || ctx.actor.token?.bound) throw notOwner()
  checkedPassword(password)
  if (!user.password) await requireOwner(ctx, proof, request)
  else if (!proof.currentPassword) invalid({ path: '/currentPassword', message: 'currentPassword is required.' })
  else await proveByPassword(ctx, user, proof.currentPassword)
  return hashPassword(ctx, password)
}

const notOwner = () =>
  new Problem(
    403,
    'FORBIDDEN',
    'Sign-in credentials can only be changed by the user, signed in and without an API token, or by an admin at /api/users.',
  )
