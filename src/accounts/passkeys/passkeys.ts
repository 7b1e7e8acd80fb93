import { and, eq } from 'drizzle-orm'
import { notFound } from '../../core/problem'
import { success } from '../../core/shapes'
import { applyPage, type ListQuery, parsePage, toListPage } from '../../storage/pagination'
import type { Ctx } from '../context'
import { getSignInMethods } from '../email-signin/request'
import { assertNotApiToken } from '../permissions'
import { assertNotLastMethod } from '../signin-methods'
import { users } from '../tables'
import { emitMethodsChanged } from '../users/events'
import { passkeys } from './tables'

const sortable = { _id: passkeys._id, name: passkeys.name, created: passkeys.created, lastUsedAt: passkeys.used }

/** Returns a page of the caller's passkeys, latest first. */
export async function list(ctx: Ctx, query: ListQuery) {
  assertNotApiToken(ctx)
  const { db, actor } = ctx
  const mine = eq(passkeys.user, actor.user)
  const page = parsePage(query, sortable)
  const rows = await applyPage(page, db.select().from(passkeys).where(mine))
  return toListPage(page, rows.map(toPasskey), () => db.$count(passkeys, mine))
}

/**
 * Renames a passkey of the caller, and returns it.
 * @throws 404 PASSKEY_NOT_FOUND
 */
export async function rename(ctx: Ctx, id: string, name: string) {
  assertNotApiToken(ctx)
  const mine = isOwnPasskey(ctx, id)
  const renamed = await ctx.write((tx) => tx.update(passkeys).set({ name }).where(mine).returning().get())
  return toPasskey(renamed ?? notFound('passkey'))
}

/**
 * Deletes a passkey of the caller.
 * @throws 404 PASSKEY_NOT_FOUND, 409 LAST_SIGN_IN_METHOD
 */
export async function remove(ctx: Ctx, id: string) {
  assertNotApiToken(ctx)
  const methods = await getSignInMethods(ctx)
  await ctx.write(async (tx) => {
    if (!(await tx.delete(passkeys).where(isOwnPasskey(ctx, id)).returning().get())) notFound('passkey')
    await assertNotLastMethod(tx, ctx.actor.user, methods)
    await emitMethodsChanged(ctx, tx, ctx.actor.user, 'passkeys')
  })
  return success
}

/**
 * Deletes all passkeys of a user who has lost their devices.
 * @throws 404 USER_NOT_FOUND
 */
export async function removeAllForUser(ctx: Ctx, _id: string) {
  await ctx.write(async (tx) => {
    if (!(await tx.select({ _id: users._id }).from(users).where(eq(users._id, _id)).get())) notFound('user')
    const removed = await tx.delete(passkeys).where(eq(passkeys.user, _id)).returning({ _id: passkeys._id })
    if (removed.length) await emitMethodsChanged(ctx, tx, _id, 'passkeys')
  })
  return success
}

const isOwnPasskey = ({ actor }: Ctx, id: string) => and(eq(passkeys._id, id), eq(passkeys.user, actor.user))

/** Returns a passkey as its owner sees it. */
export const toPasskey = ({
  _id,
  name,
  host,
  transports,
  backedUp,
  created,
  used: lastUsedAt,
}: typeof passkeys.$inferSelect) => ({ _id, name, host, transports, backedUp, created, lastUsedAt })
