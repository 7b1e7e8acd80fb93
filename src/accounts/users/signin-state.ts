import { and, eq, gt, max } from 'drizzle-orm'
import { now, toIsoString } from '../../core/clock'
import { success } from '../../core/shapes'
import type { Tx } from '../../storage/port'
import { writeInvalidating } from '../../tenancy/cache'
import type { Ctx } from '../context'
import { passkeys } from '../passkeys/tables'
import { assertMayManage } from '../permissions'
import { revokeApiTokens, revokeOtherSessions } from '../sessions'
import { identities } from '../social/tables'
import { apiTokens, sessions } from '../tables'
import { isTotpEnabled } from '../totp/code-verification'
import { getUser } from './users'

/**
 * Returns by what a user signs in, and how many sessions and API tokens they have.
 * @throws 404 USER_NOT_FOUND
 */
export async function getSignInState(ctx: Ctx, id: string) {
  const { db } = ctx
  const { emailVerified, pendingEmail, password } = await getUser(ctx, id)
  const isActive = and(eq(sessions.user, id), gt(sessions.expires, toIsoString(now())))
  const linked = await db
    .selectDistinct({ provider: identities.provider })
    .from(identities)
    .where(eq(identities.user, id))
  const used = await db
    .select({ time: max(sessions.used) })
    .from(sessions)
    .where(eq(sessions.user, id))
    .get()
  return {
    emailVerified,
    pendingEmail,
    password: password !== null,
    secondFactor: await isTotpEnabled(ctx, id),
    passkeys: await db.$count(passkeys, eq(passkeys.user, id)),
    providers: linked.map(({ provider }) => provider).sort(),
    sessions: await db.$count(sessions, isActive),
    apiTokens: await db.$count(apiTokens, eq(apiTokens.user, id)),
    lastActive: used?.time ?? null,
  }
}

/**
 * Ends all sessions of a user. Admins who end their own keep the one that they use.
 * @throws 404 USER_NOT_FOUND
 */
export const endSessions = (ctx: Ctx, id: string) =>
  revoke(ctx, id, (tx) => revokeOtherSessions(tx, id, id === ctx.actor.user ? ctx.actor : {}))

/**
 * Deletes all API tokens of a user.
 * @throws 404 USER_NOT_FOUND
 */
export const deleteApiTokens = (ctx: Ctx, id: string) => revoke(ctx, id, (tx) => revokeApiTokens(tx, id))

async function revoke(ctx: Ctx, id: string, change: (tx: Tx) => PromiseLike<unknown>) {
  assertMayManage(ctx.actor, await getUser(ctx, id))
  await writeInvalidating(ctx, 'actors', async (tx) => void (await change(tx)))
  return success
}
