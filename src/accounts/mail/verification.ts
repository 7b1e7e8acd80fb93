import { eq } from 'drizzle-orm'
import { now, toIsoString } from '../../core/clock'
import { Problem } from '../../core/problem'
import { success } from '../../core/shapes'
import type { Tx } from '../../storage/port'
import { writeInvalidating } from '../../tenancy/cache'
import { clientNetwork } from '../../tenancy/client-connection'
import type { Tenant } from '../../tenancy/tenants'
import type { Ctx } from '../context'
import { consumeOneTimeToken } from '../one-time-tokens'
import { countAttempt } from '../signin-throttle'
import { type UserRow, users } from '../tables'
import { emitUserUpdated } from '../users/events'
import { assertLoginAvailable, getUser, toLoginKeys } from '../users/users'
import { assertMailQuota, queueRepeatableMail } from './mails'

type VerifiableUser = Pick<UserRow, '_id' | 'email' | 'emailVerified' | 'pendingEmail'>

/** Queues a verification code to the address of a user that is pending or not verified yet, if there is one. */
export async function sendVerification(tenant: Pick<Tenant, 'tenant'>, tx: Tx, user: VerifiableUser) {
  const to = user.pendingEmail ?? (user.emailVerified ? null : user.email)
  if (to) await queueRepeatableMail(tenant, tx, { to, template: 'verification', user: user._id })
}

/**
 * Queues another verification code for the caller, unless their address is verified.
 * @throws 403 QUOTA_EXCEEDED, 409 NO_EMAIL, 429 RATE_LIMITED
 */
export async function resendVerification(ctx: Ctx, request: Request) {
  const user = await getUser(ctx, ctx.actor.user)
  if (!user.email && !user.pendingEmail)
    throw new Problem(409, 'NO_EMAIL', 'Add an e-mail address to your profile first.')
  if (user.emailVerified && !user.pendingEmail) return success
  await countAttempt(ctx, { account: user._id, address: clientNetwork(request), of: 'verification' })
  await assertMailQuota(ctx)
  await ctx.write((tx) => sendVerification(ctx, tx, user))
  return success
}

/**
 * Marks the address to which a code was sent as verified. A pending address replaces the old one.
 * @throws 400 INVALID_TOKEN, 409 EMAIL_EXISTS
 */
export async function verifyEmail(tenant: Tenant, token: string) {
  await writeInvalidating(tenant, 'actors', async (tx) => {
    const { user: _id, data } = (await consumeOneTimeToken(tx, 'verification', token)) ?? throwInvalidToken()
    const user = (await tx.select().from(users).where(eq(users._id, _id)).get()) ?? throwInvalidToken()
    const email = user.pendingEmail
    const isPending = email !== null && email === data.email
    if (!isPending && user.emailKey !== data.emailKey) return throwInvalidToken()
    if (isPending) await assertLoginAvailable(tx, { _id, ...toLoginKeys({ email }) })
    const change = {
      ...(isPending && { email, ...toLoginKeys({ email }), pendingEmail: null }),
      ...{ emailVerified: true, updated: toIsoString(now()) },
    }
    const changed = await tx.update(users).set(change).where(eq(users._id, _id)).returning().get()
    if (isPending) await emitUserUpdated(tenant, tx, user, changed)
  })
  return success
}

/** @throws 400 INVALID_TOKEN for a token that is unknown, used or expired */
export const throwInvalidToken = (): never => {
  throw new Problem(400, 'INVALID_TOKEN', 'This link is invalid or has expired. Request a new one.')
}
