import { and, eq } from 'drizzle-orm'
import { sha256 } from '../../core/crypto'
import { notFound } from '../../core/problem'
import { success } from '../../core/shapes'
import { applyPage, type ListQuery, parsePage, toListPage } from '../../storage/pagination'
import type { Ctx } from '../context'
import { getSignInMethods } from '../email-signin/request'
import { assertNotApiToken } from '../permissions'
import { assertNotLastMethod } from '../signin-methods'
import { emitMethodsChanged } from '../users/events'
import { identities } from './tables'

type IdentityRow = typeof identities.$inferSelect

const sortable = {
  _id: identities.subject,
  provider: identities.provider,
  created: identities.created,
  lastUsedAt: identities.used,
}

/** Returns a page of the identities by which the caller signs in, latest first. */
export async function list(ctx: Ctx, query: ListQuery) {
  assertNotApiToken(ctx)
  const { db, actor } = ctx
  const mine = eq(identities.user, actor.user)
  const page = parsePage(query, sortable)
  const rows = await applyPage(page, db.select().from(identities).where(mine))
  return toListPage(page, rows.map(toIdentity), () => db.$count(identities, mine))
}

/**
 * Unlinks an identity of the caller.
 * @throws 404 IDENTITY_NOT_FOUND, 409 LAST_SIGN_IN_METHOD
 */
export async function remove(ctx: Ctx, id: string) {
  assertNotApiToken(ctx)
  const { user: _id } = ctx.actor
  const methods = await getSignInMethods(ctx)
  await ctx.write(async (tx) => {
    const mine = await tx.select().from(identities).where(eq(identities.user, _id))
    const { provider, subject } = mine.find((one) => toIdentityId(one) === id) ?? notFound('identity')
    const isIdentity = and(eq(identities.provider, provider), eq(identities.subject, subject))
    await tx.delete(identities).where(isIdentity)
    await assertNotLastMethod(tx, _id, methods)
    await emitMethodsChanged(ctx, tx, _id, 'identities')
  })
  return success
}

/** Returns the id of an identity: a hash, because the subject may be too long for a path. */
const toIdentityId = ({ provider, subject }: Pick<IdentityRow, 'provider' | 'subject'>) =>
  sha256(JSON.stringify([provider, subject])).slice(0, 32)

const toIdentity = ({ provider, subject, email, created, used: lastUsedAt }: IdentityRow) => ({
  _id: toIdentityId({ provider, subject }),
  ...{ provider, email, created, lastUsedAt },
})
