import { and, eq } from 'drizzle-orm'
import type { Answer } from '../../core/etag'
import { missing } from '../../core/problem'
import { success } from '../../core/shapes'
import { answerPage, type Listing, paged, pageOf } from '../../storage/lists'
import type { Ctx } from '../guard'
import { refuseLastMethod } from '../signin-methods'
import { list as providersOf } from '../social/setup'
import { users } from '../tables'
import { refuseTokens } from '../tokens'
import { tellUser } from '../users/events'
import { passkeys } from './tables'

const sortable = { _id: passkeys._id, name: passkeys.name, created: passkeys.created, lastUsedAt: passkeys.used }

/** The caller's passkeys, the latest first. */
export async function list(ctx: Ctx, query: Listing, answer: Answer) {
  refuseTokens(ctx)
  const { db, actor } = ctx
  const mine = eq(passkeys.user, actor.user)
  const page = pageOf(query, sortable)
  const rows = await paged(page, db.select().from(passkeys).where(mine))
  return answerPage(answer, page, rows.map(shown), () => db.$count(passkeys, mine))
}

/** Gives one of the caller's another name. @throws 404 */
export async function rename(ctx: Ctx, id: string, name: string) {
  refuseTokens(ctx)
  const mine = own(ctx, id)
  const renamed = await ctx.write((tx) => tx.update(passkeys).set({ name }).where(mine).returning().get())
  return shown(renamed ?? missing('passkey'))
}

/** Takes one of the caller's away: it signs in no more. @throws 404, 409 LAST_SIGN_IN_METHOD */
export async function remove(ctx: Ctx, id: string) {
  refuseTokens(ctx)
  const providers = await providersOf(ctx)
  await ctx.write(async (tx) => {
    if (!(await tx.delete(passkeys).where(own(ctx, id)).returning().get())) missing('passkey')
    await refuseLastMethod(tx, ctx.actor.user, providers)
    const user = await tx.select().from(users).where(eq(users._id, ctx.actor.user)).get()
    await tellUser(ctx, tx, 'user-updated', user!, { changed: ['passkeys'] })
  })
  return success
}

/** Takes all of anybody's away, for who has lost what they are on. @throws 404 */
export async function removeAllOf(ctx: Ctx, _id: string) {
  await ctx.write(async (tx) => {
    const user = (await tx.select().from(users).where(eq(users._id, _id)).get()) ?? missing('user')
    const gone = await tx.delete(passkeys).where(eq(passkeys.user, _id)).returning({ _id: passkeys._id })
    if (gone.length) await tellUser(ctx, tx, 'user-updated', user, { changed: ['passkeys'] })
  })
  return success
}

const own = ({ actor }: Ctx, id: string) => and(eq(passkeys._id, id), eq(passkeys.user, actor.user))

/** A passkey as its owner sees it. */
export const shown = ({
  _id,
  name,
  host,
  transports,
  backedUp,
  created,
  used: lastUsedAt,
}: typeof passkeys.$inferSelect) => ({ _id, name, host, transports, backedUp, created, lastUsedAt })
