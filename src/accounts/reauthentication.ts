import { eq } from 'drizzle-orm'
import { now } from '../core/clock'
import { Problem } from '../core/problem'
import { findSupportUser } from '../tenancy/support-user'
import type { Ctx } from './context'
import { verifyPassword } from './passwords'
import type { Proof } from './shapes'
import { countAttempt, recordSuccess } from './signin-throttle'
import { sessions, type UserRow } from './tables'
import { countCodeAttempt, invalidCode, isTotpEnabled, prepareCodeUse } from './totp/code-verification'
import { getUser } from './users/users'
import { toWorkOwner } from './work-owner'

const RECENT_SIGN_IN_MS = 10 * 60_000

const PROOF_MESSAGES = {
  code: 'A two-factor code is required: send it as code.',
  currentPassword: 'Your current password is required: send it as currentPassword.',
  signin: 'Sign in again first. Your last sign-in was more than ten minutes ago.',
}

/**
 * Requires that the caller signed in within the last ten minutes or proves again who they are: by a code of their
 * second factor or, without one, by their password. Returns what proved it.
 * @throws 403 PROOF_REQUIRED, INVALID_CODE, INVALID_CREDENTIALS, FORBIDDEN for the operator of the installation; 429
 */
export async function requireRecentAuth(
  ctx: Ctx,
  { currentPassword, code }: Proof,
  request: Request,
): Promise<keyof typeof PROOF_MESSAGES> {
  const user = await getUser(ctx, ctx.actor.user)
  // What a support session makes would outlive it.
  if ((await findSupportUser(ctx.tenant)) === user._id)
    throw new Problem(403, 'FORBIDDEN', 'The operator signs in by links for support only.')
  const by = (await isTotpEnabled(ctx, user._id)) ? 'code' : user.password ? 'currentPassword' : 'signin'
  if (by === 'code' && code !== undefined) {
    await verifyCurrentCode(ctx, code, request)
    return by
  }
  if (by === 'currentPassword' && currentPassword !== undefined) {
    await verifyCurrentPassword(ctx, user, currentPassword)
    return by
  }
  if (await hasRecentSignIn(ctx)) return 'signin'
  throw new Problem(403, 'PROOF_REQUIRED', PROOF_MESSAGES[by], { details: { by } })
}

async function hasRecentSignIn({ db, actor }: Ctx) {
  const session = await db
    .select({ created: sessions.created })
    .from(sessions)
    .where(eq(sessions._id, actor.session ?? ''))
    .get()
  return !!session && Date.parse(session.created) > now() - RECENT_SIGN_IN_MS
}

async function verifyCurrentCode(ctx: Ctx, code: string, request: Request) {
  const { user } = ctx.actor
  const subjects = await countCodeAttempt(ctx, user, request)
  const consumeCode = await prepareCodeUse(ctx, user, code)
  if (!(await ctx.write(consumeCode))) throw invalidCode(403)
  await recordSuccess(ctx, subjects)
}

/** @throws 403 INVALID_CREDENTIALS when the password is wrong, 429 RATE_LIMITED */
export async function verifyCurrentPassword(ctx: Ctx, user: UserRow, password: string) {
  const subjects = { account: user.usernameKey, address: user._id, telling: { user: user._id } }
  if (!(await verifyPassword(toWorkOwner(ctx), password, user.password, () => countAttempt(ctx, subjects))))
    throw new Problem(403, 'INVALID_CREDENTIALS', 'The current password is incorrect.')
  await recordSuccess(ctx, subjects)
}
