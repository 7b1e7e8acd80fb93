import { and, eq } from 'drizzle-orm'
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
import { find } from '../users'
import { post } from './mails'

/** Asks who has an unproven address to prove it, after this transaction. */
export async function askToVerify(tenant: Pick<Tenant, 'tenant'>, tx: Tx, { _id, email, emailVerified }: UserRow) {
  if (email && !emailVerified) await post(tenant, tx, { to: email, template: 'verification', user: _id })
}

/** Sends the caller another mail, unless their address is proven. @throws 409 NO_EMAIL, 429 */
export async function askAgain(ctx: Ctx, request: Request) {
  const user = await find(ctx, ctx.actor.user)
  if (!user.email) throw new Problem(409, 'NO_EMAIL', 'Add an e-mail address to your profile first.')
  if (user.emailVerified) return success
  await countAttempt(ctx, { account: user._id, address: networkOf(request), of: 'verification' })
  await ctx.write((tx) => askToVerify(ctx, tx, user))
  return success
}

/** Takes it as proven that a user reads what is sent to their address. @throws 400 INVALID_TOKEN */
export async function verify(tenant: Tenant, token: string) {
  await changing(tenant, 'actors', async (tx) => {
    const { user, data } = (await takeOnce(tx, 'verification', token)) ?? worthless()
    const change = { emailVerified: true, updated: iso(now()) }
    const same = and(eq(users._id, user), eq(users.emailKey, data.emailKey ?? ''))
    if (!(await tx.update(users).set(change).where(same).returning().get())) worthless()
  })
  return success
}

/** Refuses what is no token of ours, or not any more. */
export const worthless = (): never => {
  throw new Problem(400, 'INVALID_TOKEN', 'This is not valid, or not any more. Ask for another mail.')
}
