import { eq } from 'drizzle-orm'
import { iso, now } from '../../core/clock'
import { Problem } from '../../core/problem'
import { success } from '../../core/shapes'
import type { Tx } from '../../storage/port'
import { networkOf } from '../../tenancy/caller'
import { changing } from '../../tenancy/memory'
import type { Tenant } from '../../tenancy/tenants'
import type { Ctx } from '../guard'
import { takeOnce } from '../one-time'
import { type UserRow, users } from '../tables'
import { countAttempt } from '../throttle'
import { find, keysOf, refuseTaken } from '../users'
import { tellUpdated } from '../users/events'
import { post } from './mails'

type Asked = Pick<UserRow, '_id' | 'email' | 'emailVerified' | 'pendingEmail'>

/** Sends a confirmation code, after this transaction, to the address of a user that is pending or not verified yet. */
export async function askToVerify(tenant: Pick<Tenant, 'tenant'>, tx: Tx, user: Asked) {
  const to = user.pendingEmail ?? (user.emailVerified ? null : user.email)
  if (to) await post(tenant, tx, { to, template: 'verification', user: user._id })
}

/** Sends the caller another code, unless their address is verified. @throws 409 NO_EMAIL, 429 */
export async function askAgain(ctx: Ctx, request: Request) {
  const user = await find(ctx, ctx.actor.user)
  if (!user.email && !user.pendingEmail)
    throw new Problem(409, 'NO_EMAIL', 'Add an e-mail address to your profile first.')
  if (user.emailVerified && !user.pendingEmail) return success
  await countAttempt(ctx, { account: user._id, address: networkOf(request), of: 'verification' })
  await ctx.write((tx) => askToVerify(ctx, tx, user))
  return success
}

/**
 * Takes an address as verified for who sends its code back; one that was pending takes the place of the old one.
 * @throws 400 INVALID_TOKEN, 409 EMAIL_EXISTS
 */
export async function verify(tenant: Tenant, token: string) {
  await changing(tenant, 'actors', async (tx) => {
    const { user: _id, data } = (await takeOnce(tx, 'verification', token)) ?? worthless()
    const user = (await tx.select().from(users).where(eq(users._id, _id)).get()) ?? worthless()
    const email = user.pendingEmail
    const pending = email !== null && email === data.email
    if (!pending && user.emailKey !== data.emailKey) return worthless()
    if (pending) await refuseTaken(tx, { _id, ...keysOf({ email }) })
    const change = {
      ...(pending && { email, ...keysOf({ email }), pendingEmail: null }),
      ...{ emailVerified: true, updated: iso(now()) },
    }
    const changed = await tx.update(users).set(change).where(eq(users._id, _id)).returning().get()
    if (pending) await tellUpdated(tenant, tx, user, changed)
  })
  return success
}

/** Refuses what is no token of ours, or not any more. */
export const worthless = (): never => {
  throw new Problem(400, 'INVALID_TOKEN', 'This link is invalid or has expired. Request a new one.')
}
