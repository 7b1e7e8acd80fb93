import { and, eq, gt, gte, lt } from 'drizzle-orm'
import { DAY_MS, now, toIsoString } from '../../core/clock'
import { Problem } from '../../core/problem'
import { success } from '../../core/shapes'
import { deleteInBatches } from '../../jobs/batch-delete'
import type { Lease } from '../../jobs/with-lease'
import { isMailEnabled } from '../../platform/mail/smtp'
import type { Tx } from '../../storage/port'
import { writeInvalidating } from '../../tenancy/cache'
import type { Tenant } from '../../tenancy/tenants'
import type { Ctx } from '../context'
import { revokeSignIns } from '../credential-revocation'
import { consumeOneTimeToken, issueOneTimeToken, revokeOneTimeTokens } from '../one-time-tokens'
import { type UserRow, users } from '../tables'
import { emitUserUpdated } from '../users/events'
import { assertLoginAvailable, toLoginKeys } from '../users/users'
import { queueMail } from './mails'
import { emailChanges } from './tables'
import { sendVerification } from './verification'

/** How long (ms) a change can be reverted from the old address. */
const REVERT_WINDOW_MS = 7 * DAY_MS

/** The new values of a user's columns after a change of their e-mail address. */
export type EmailChange = Partial<Pick<UserRow, 'email' | 'emailKey' | 'emailVerified' | 'pendingEmail'>>

/**
 * Changes a user's e-mail address on their own request, and returns the new columns. A new address stays pending until
 * it is verified, unless mail delivery is disabled. Mails to both addresses are sent after this transaction.
 */
export async function changeEmail(
  tenant: Pick<Tenant, 'tenant'>,
  tx: Tx,
  user: UserRow,
  email: string | null,
): Promise<EmailChange> {
  // It is the same mailbox in letters of another case.
  if (email && email.toLowerCase() === user.email?.toLowerCase()) return { email }
  await revokeOneTimeTokens(tx, 'verification', user._id)
  const pending = email !== null && isMailEnabled()
  await notifyOldAddress(tenant, tx, user, pending)
  if (pending) {
    await sendVerification(tenant, tx, { ...user, pendingEmail: email })
    return { pendingEmail: email }
  }
  const change = { email, ...toLoginKeys({ email }), emailVerified: false, pendingEmail: null }
  await sendVerification(tenant, tx, { ...user, ...change })
  return change
}

/**
 * Changes a user's e-mail address as an admin, and returns the new columns. The admin is responsible for the address,
 * so it counts as verified at once. Earlier changes of another user can no longer be reverted.
 */
export async function changeEmailByAdmin(ctx: Ctx, tx: Tx, user: UserRow, email: string | null): Promise<EmailChange> {
  if (email && email.toLowerCase() === user.email?.toLowerCase()) return { email }
  await revokeOneTimeTokens(tx, 'verification', user._id)
  if (ctx.actor.user === user._id) await notifyOldAddress(ctx, tx, user)
  else {
    await tx.delete(emailChanges).where(eq(emailChanges.user, user._id))
    const data = { time: toIsoString(now()), byAdmin: 'true' }
    if (user.email) await queueMail(ctx, tx, { to: user.email, template: 'emailChanged', data })
  }
  return { email, ...toLoginKeys({ email }), emailVerified: !!email, pendingEmail: null }
}

/** Queues a mail to the old address of a user, with a way to revert the change if the address was verified. */
async function notifyOldAddress(tenant: Pick<Tenant, 'tenant'>, tx: Tx, user: UserRow, pending = false) {
  const { _id, email, emailKey, emailVerified } = user
  if (!email || !emailKey) return
  const time = now()
  const row = {
    ...{ _id: Bun.randomUUIDv7(), user: _id, email, emailKey },
    ...{ created: toIsoString(time), expires: toIsoString(time + REVERT_WINDOW_MS) },
  }
  // An unverified address may belong to a stranger, who must not get the account.
  if (emailVerified) await tx.insert(emailChanges).values(row)
  const data: Record<string, string> = {
    time: toIsoString(time),
    ...(pending && { pending: 'true' }),
    ...(emailVerified && { change: row._id }),
  }
  await queueMail(tenant, tx, { to: email, template: 'emailChanged', data })
}

/**
 * Restores the e-mail address to which the token was sent. A user who reverts a change did not make it, so all sessions
 * and API tokens end, and later changes can no longer be reverted.
 * @throws 400 INVALID_TOKEN, 409 EMAIL_EXISTS
 */
export async function revertEmailChange(tenant: Tenant, token: string) {
  await writeInvalidating(tenant, 'actors', async (tx) => {
    const consumed = (await consumeOneTimeToken(tx, 'emailRevert', token)) ?? throwInvalidRevertToken()
    const isOpen = and(eq(emailChanges._id, consumed.data.change ?? ''), gt(emailChanges.expires, toIsoString(now())))
    const { email, emailKey, created } =
      (await tx.select().from(emailChanges).where(isOpen).get()) ?? throwInvalidRevertToken()
    const user = (await tx.select().from(users).where(eq(users._id, consumed.user)).get()) ?? throwInvalidRevertToken()
    await tx.delete(emailChanges).where(and(eq(emailChanges.user, user._id), gte(emailChanges.created, created)))
    await assertLoginAvailable(tx, { _id: user._id, emailKey })
    await revokeSignIns(tx, user._id)
    const change = { email, emailKey, emailVerified: true, version: user.version + 1, updated: toIsoString(now()) }
    const changed = await tx.update(users).set(change).where(eq(users._id, user._id)).returning().get()
    await emitUserUpdated(tenant, tx, user, changed)
    if (user.email && user.emailKey !== emailKey)
      await queueMail(tenant, tx, { to: user.email, template: 'emailChanged', data: { time: changed.updated } })
  })
  return success
}

const throwInvalidRevertToken = (): never => {
  throw new Problem(400, 'INVALID_TOKEN', 'This link is invalid or has expired. The address was not changed back.')
}

/** Returns a token that reverts a change, or an empty string when it can no longer be reverted. */
export const issueRevertToken = (tenant: Tenant, change: string): Promise<string> =>
  tenant.write(async (tx) => {
    const row = await tx.select().from(emailChanges).where(eq(emailChanges._id, change)).get()
    return row ? issueOneTimeToken(tx, 'emailRevert', row.user, { change }) : ''
  })

/** Removes changes that can no longer be reverted. */
export const removeExpired = (tenant: Tenant & Lease) =>
  deleteInBatches(tenant, emailChanges, emailChanges._id, lt(emailChanges.expires, toIsoString(now())))
