import { and, count, eq } from 'drizzle-orm'
import { iso, now } from '../core/clock'
import { type Answer, forbidKeeping } from '../core/etag'
import { invalid, missing, Problem } from '../core/problem'
import { hashed } from '../core/secret'
import { success } from '../core/shapes'
import { answerPage, type Listing, paged, pageOf } from '../storage/lists'
import type { Tx } from '../storage/port'
import { changing } from '../tenancy/memory'
import type { Tenant } from '../tenancy/tenants'
import type { Ctx } from './guard'
import { prove } from './proof'
import { assertSignedIn } from './sessions'
import type { NewApiToken } from './shapes'
import { apiTokens } from './tables'
import { reach } from './workspaces/reach'

const MOST = 20

/** The caller's API tokens, the latest first; the tokens themselves nobody can read again. */
export async function list(ctx: Ctx, query: Listing, answer: Answer) {
  refuseTokens(ctx)
  const { db, actor } = ctx
  const mine = eq(apiTokens.user, actor.user)
  const page = pageOf(query, sortable)
  const rows = await paged(page, db.select().from(apiTokens).where(mine))
  return answerPage(answer, page, rows.map(shown), () => db.$count(apiTokens, mine))
}

const sortable = {
  _id: apiTokens._id,
  nickname: apiTokens.nickname,
  created: apiTokens.created,
  lastUsedAt: apiTokens.used,
  expiresAt: apiTokens.expires,
}

/**
 * A new token of the caller's, who proves who they are.
 * @throws 409 TOO_MANY_TOKENS, 403 for a caller who came by one and what `prove` throws, 404 for a workspace out of reach
 */
export async function create(ctx: Ctx, { currentPassword, code, ...input }: NewApiToken, answer: Answer) {
  refuseTokens(ctx)
  forbidKeeping(answer)
  if (input.workspace) await reach(ctx.db, ctx.actor, input.workspace)
  await prove(ctx, { currentPassword, code }, answer.request)
  return issue(ctx, ctx.actor.user, input, (tx) => assertSignedIn(tx, ctx.actor))
}

/** A new token of any user's, unless `assert` throws in that transaction. */
export async function issue(
  { write }: Tenant,
  user: string,
  { nickname, scopes = [], expiresAt, workspace }: NewApiToken,
  assert?: (tx: Tx) => Promise<void>,
) {
  const expires = expiresAt ? Date.parse(expiresAt) : undefined
  if (expires !== undefined && !(expires > now())) invalid({ path: '/expiresAt', message: 'Give a time to come.' })
  const token = `atl_${Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('hex')}`
  const row = {
    _id: Bun.randomUUIDv7(),
    user,
    hash: hashed(token),
    prefix: token.slice(0, 12),
    nickname,
    scopes,
    workspace: workspace ?? null,
    created: iso(now()),
    expires: expires === undefined ? null : iso(expires),
  }
  const apiToken = await write(async (tx) => {
    await assert?.(tx)
    const [have] = await tx.select({ count: count() }).from(apiTokens).where(eq(apiTokens.user, user))
    if (have!.count >= MOST)
      throw new Problem(409, 'TOO_MANY_TOKENS', `There are ${MOST} API tokens already. Remove one first.`)
    return tx.insert(apiTokens).values(row).returning().get()
  })
  return { token, apiToken: shown(apiToken) }
}

/** Ends a token of the caller's at once. */
export async function remove(ctx: Ctx, id: string) {
  refuseTokens(ctx)
  const gone = await changing(ctx, 'actors', (tx) =>
    tx
      .delete(apiTokens)
      .where(and(eq(apiTokens._id, id), eq(apiTokens.user, ctx.actor.user)))
      .returning()
      .get(),
  )
  if (!gone) missing('api token')
  return success
}

/** A token that leaked must not be able to make others, or to see or remove them. */
export function refuseTokens({ actor }: Ctx) {
  if (actor.via === 'api-key')
    throw new Problem(403, 'FORBIDDEN', 'Sign in for this: it is for the person, not for an API token of theirs.')
}

const shown = ({
  _id,
  nickname,
  prefix,
  scopes,
  expires,
  used,
  workspace,
  created,
}: typeof apiTokens.$inferSelect) => ({
  _id,
  nickname,
  tokenPrefix: prefix,
  scopes,
  expiresAt: expires,
  lastUsedAt: used,
  workspace,
  created,
})
