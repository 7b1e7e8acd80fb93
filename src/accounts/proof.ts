import { eq } from 'drizzle-orm'
import { now } from '../core/clock'
import { Problem } from '../core/problem'
import type { Ctx } from './guard'
import { verifyPassword } from './passwords'
import type { Proof } from './shapes'
import { sessions, type UserRow } from './tables'
import { countAttempt, noteSuccess } from './throttle'
import { spending } from './totp/spending'
import { counted, isEnabled, wrong } from './totp/totp'
import { find } from './users'

const RECENT = 10 * 60_000 // ms

const ways = {
  code: 'A two-factor code is required: send it as code.',
  currentPassword: 'Your current password is required: send it as currentPassword.',
  signin: 'Sign in again first. Your last sign-in was more than ten minutes ago.',
}

/**
 * Lets only those go on who have signed in within ten minutes, or prove once more who they are: by a code of their second
 * factor, or where they have none by their password. @throws 403 PROOF_REQUIRED, INVALID_CODE, INVALID_CREDENTIALS; 429
 */
export async function prove(ctx: Ctx, { currentPassword, code }: Proof, request: Request) {
  const user = await find(ctx, ctx.actor.user)
  const by = (await isEnabled(ctx, user._id)) ? 'code' : user.password ? 'currentPassword' : 'signin'
  if (by === 'code' && code !== undefined) await proveByCode(ctx, code, request)
  else if (by === 'currentPassword' && currentPassword !== undefined) await proveByPassword(ctx, user, currentPassword)
  else if (!(await isFresh(ctx))) throw new Problem(403, 'PROOF_REQUIRED', ways[by], { details: { by } })
}

async function isFresh({ db, actor }: Ctx) {
  const session = await db
    .select({ created: sessions.created })
    .from(sessions)
    .where(eq(sessions._id, actor.session ?? ''))
    .get()
  return !!session && Date.parse(session.created) > now() - RECENT
}

async function proveByCode(ctx: Ctx, code: string, request: Request) {
  const { user } = ctx.actor
  const subjects = await counted(ctx, user, request)
  const spent = await spending(ctx, user, code)
  if (!(await ctx.write(spent))) throw wrong(403)
  await noteSuccess(ctx, subjects)
}

/** @throws 403 INVALID_CREDENTIALS, 429 */
export async function proveByPassword(ctx: Ctx, user: UserRow, password: string) {
  const subjects = { account: user.usernameKey, address: user._id, telling: { user: user._id } }
  if (!(await verifyPassword(ctx, password, user.password, () => countAttempt(ctx, subjects))))
    throw new Problem(403, 'INVALID_CREDENTIALS', 'The current password is not right.')
  await noteSuccess(ctx, subjects)
}
