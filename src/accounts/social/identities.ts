import { and, eq } from 'drizzle-orm'
import type { Answer } from '../../core/etag'
import { missing } from '../../core/problem'
import { hashed } from '../../core/secret'
import { success } from '../../core/shapes'
import { answerPage, type Listing, paged, pageOf } from '../../storage/lists'
import type { Ctx } from '../guard'
import { refuseLastMethod } from '../signin-methods'
import { users } from '../tables'
import { refuseTokens } from '../tokens'
import { tellUser } from '../users/events'
import { list as providersOf } from './setup'
import { identities } from './tables'

type Identity = typeof identities.$inferSelect

const sortable = {
  _id: identities.subject,
  provider: identities.provider,
  created: identities.created,
  lastUsedAt: identities.used,
}

/** By which providers the caller signs in, and as whom, the latest first. */
export async function list(ctx: Ctx, query: Listing, answer: Answer) {
  refuseTokens(ctx)
  const { db, actor } = ctx
  const mine = eq(identities.user, actor.user)
  const page = pageOf(query, sortable)
  const rows = await paged(page, db.select().from(identities).where(mine))
  return answerPage(answer, page, rows.map(shown), () => db.$count(identities, mine))
}

/** Takes one of the caller's away: that provider signs them in no more. @throws 404, 409 LAST_SIGN_IN_METHOD */
export async function remove(ctx: Ctx, id: string) {
  refuseTokens(ctx)
  const { user: _id } = ctx.actor
  const providers = await providersOf(ctx)
  await ctx.write(async (tx) => {
    const mine = await tx.select().from(identities).where(eq(identities.user, _id))
    const { provider, subject } = mine.find((one) => idOf(one) === id) ?? missing('identity')
    const one = and(eq(identities.provider, provider), eq(identities.subject, subject))
    await tx.delete(identities).where(one)
    await refuseLastMethod(tx, _id, providers)
    const user = await tx.select().from(users).where(eq(users._id, _id)).get()
    await tellUser(ctx, tx, 'user-updated', user!, { changed: ['identities'] })
  })
  return success
}

/** What a provider calls somebody may be longer than a path should be. */
const idOf = ({ provider, subject }: Pick<Identity, 'provider' | 'subject'>) =>
  hashed(JSON.stringify([provider, subject])).slice(0, 32)

const shown = ({ provider, subject, email, created, used: lastUsedAt }: Identity) => ({
  _id: idOf({ provider, subject }),
  ...{ provider, email, created, lastUsedAt },
})
