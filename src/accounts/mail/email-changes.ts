import { and, eq, gt, gte, lt } from 'drizzle-orm'
import { DAY, iso, now } from '../../core/clock'
import { Problem } from '../../core/problem'
import { success } from '../../core/shapes'
import type { Lease } from '../../jobs/holding'
import { removeInSlices } from '../../jobs/removal'
import type { Tx } from '../../storage/port'
import { changing } from '../../tenancy/memory'
import type { Tenant } from '../../tenancy/tenants'
import type { Ctx } from '../guard'
import { endSignIns } from '../handover'
import { giveOnce, takeAll, takeOnce } from '../one-time'
import { type UserRow, users } from '../tables'
import { keysOf, refuseTaken } from '../users'
import { tellUpdated } from '../users/events'
import { post } from './mails'
import { emailChanges } from './tables'
import { sendsMail } from './transport'
import { askToVerify } from './verification'

/** For how long (ms) whoever reads mail at the old address can take a change back. */
const REVERT_WINDOW = 7 * DAY

type EmailChange = Partial<Pick<UserRow, 'email' | 'emailKey' | 'emailVerified' | 'pendingEmail'>>

/**
 * What becomes of a user whose own wish is another e-mail address, or none: it waits for its confirmation code, unless no mail
 * is sent here. Mails are written to both addresses, after this transaction.
 */
export async function changeEmail(
  tenant: Pick<Tenant, 'tenant'>,
  tx: Tx,
  user: UserRow,
  email: string | null,
): Promise<EmailChange> {
  // The same mailbox in letters of another case.
  if (email && email.toLowerCase() === user.email?.toLowerCase()) return { email }
  await takeAll(tx, 'verification', user._id)
  const pending = email !== null && sendsMail()
  await noticeOldAddress(tenant, tx, user, pending)
  if (pending) {
    await askToVerify(tenant, tx, { ...user, pendingEmail: email })
    return { pendingEmail: email }
  }
  const change = { email, ...keysOf({ email }), emailVerified: false, pendingEmail: null }
  await askToVerify(tenant, tx, { ...user, ...change })
  return change
}

/** The same by an admin, who answers for the address: it counts at once, and what was changed before stays as it is. */
export async function changeEmailByAdmin(ctx: Ctx, tx: Tx, user: UserRow, email: string | null): Promise<EmailChange> {
  if (email && email.toLowerCase() === user.email?.toLowerCase()) return { email }
  await takeAll(tx, 'verification', user._id)
  if (ctx.actor.user === user._id) await noticeOldAddress(ctx, tx, user)
  else {
    await tx.delete(emailChanges).where(eq(emailChanges.user, user._id))
    const data = { time: iso(now()), byAdmin: 'true' }
    if (user.email) await post(ctx, tx, { to: user.email, template: 'emailChanged', data })
  }
  return { email, ...keysOf({ email }), emailVerified: !!email, pendingEmail: null }
}

/** Writes to the address that a user gives up, with a token to take that back if the address was verified. */
async function noticeOldAddress(tenant: Pick<Tenant, 'tenant'>, tx: Tx, user: UserRow, pending = false) {
  const { _id, email, emailKey, emailVerified } = user
  if (!email || !emailKey) return
  const time = now()
  const row = {
    ...{ _id: Bun.randomUUIDv7(), user: _id, email, emailKey },
    ...{ created: iso(time), expires: iso(time + REVERT_WINDOW) },
  }
  // An address that nobody verified may be a stranger's, who must not get the account by it.
  if (emailVerified) await tx.insert(emailChanges).values(row)
  const data: Record<string, string> = {
    time: iso(time),
    ...(pending && { pending: 'true' }),
    ...(emailVerified && { change: row._id }),
  }
  await post(tenant, tx, { to: email, template: 'emailChanged', data })
}

/**
 * Gives a user the address back that the token was sent to. Whoever takes a change back did not make it, so all sessions and
 * API tokens end, and later changes can't be taken back in turn.
 * @throws 400 INVALID_TOKEN, 409 EMAIL_EXISTS
 */
export async function revert(tenant: Tenant, token: string) {
  await changing(tenant, 'actors', async (tx) => {
    const taken = (await takeOnce(tx, 'emailRevert', token)) ?? invalidToken()
    const open = and(eq(emailChanges._id, taken.data.change ?? ''), gt(emailChanges.expires, iso(now())))
    const { email, emailKey, created } = (await tx.select().from(emailChanges).where(open).get()) ?? invalidToken()
    const user = (await tx.select().from(users).where(eq(users._id, taken.user)).get()) ?? invalidToken()
    await tx.delete(emailChanges).where(and(eq(emailChanges.user, user._id), gte(emailChanges.created, created)))
    await refuseTaken(tx, { _id: user._id, emailKey })
    await endSignIns(tx, user._id)
    const change = { email, emailKey, emailVerified: true, version: user.version + 1, updated: iso(now()) }
    const changed = await tx.update(users).set(change).where(eq(users._id, user._id)).returning().get()
    await tellUpdated(tenant, tx, user, changed)
    if (user.email && user.emailKey !== emailKey)
      await post(tenant, tx, { to: user.email, template: 'emailChanged', data: { time: changed.updated } })
  })
  return success
}

const invalidToken = (): never => {
  throw new Problem(400, 'INVALID_TOKEN', 'This link is invalid or has expired. The address was not changed back.')
}

/** A token by which a change is taken back; none for one that can't be any more. */
export const revertTokenFor = (tenant: Tenant, change: string): Promise<string> =>
  tenant.write(async (tx) => {
    const found = await tx.select().from(emailChanges).where(eq(emailChanges._id, change)).get()
    return found ? giveOnce(tx, 'emailRevert', found.user, { change }) : ''
  })

/** Removes changes that can't be taken back any more. */
export const removeExpired = (tenant: Tenant & Lease) =>
  removeInSlices(tenant, emailChanges, emailChanges._id, lt(emailChanges.expires, iso(now())))
