import { and, count, eq } from 'drizzle-orm'
import { now, parseIsoDateTime, toIsoString } from '../core/clock'
import { sha256 } from '../core/crypto'
import { badRequest, notFound, Problem } from '../core/problem'
import { success } from '../core/shapes'
import { applyPage, type ListQuery, parsePage, toListPage } from '../storage/pagination'
import type { Tx } from '../storage/port'
import { writeInvalidating } from '../tenancy/cache'
import type { Tenant } from '../tenancy/tenants'
import type { Ctx } from './context'
import { getWorkspaceAccess } from './memberships/workspace-access'
import { assertNotApiToken, findScopeError } from './permissions'
import { requireRecentAuth } from './reauthentication'
import { assertSignedIn } from './sessions'
import type { NewApiToken } from './shapes'
import { apiTokens } from './tables'

const MAX_API_TOKENS_PER_USER = 20

/**
 * Returns a page of the caller's API tokens, latest first. It does not contain the tokens themselves, of which only
 * hashes are stored.
 * @throws 403 FORBIDDEN when the caller uses an API token
 */
export async function list(ctx: Ctx, query: ListQuery) {
  assertNotApiToken(ctx)
  const { db, actor } = ctx
  const mine = eq(apiTokens.user, actor.user)
  const page = parsePage(query, sortable)
  const rows = await applyPage(page, db.select().from(apiTokens).where(mine))
  return toListPage(page, rows.map(toApiToken), () => db.$count(apiTokens, mine))
}

const sortable = {
  _id: apiTokens._id,
  nickname: apiTokens.nickname,
  created: apiTokens.created,
  lastUsedAt: apiTokens.used,
  expiresAt: apiTokens.expires,
}

/**
 * Creates an API token of the caller, who needs a recent sign-in or a proof. Only this response contains the token.
 * @throws 403 FORBIDDEN when the caller uses an API token, 404 WORKSPACE_NOT_FOUND when they cannot access the
 * workspace
 * @throws 400, 409 TOO_MANY_TOKENS, and the errors of `requireRecentAuth`
 */
export async function create(ctx: Ctx, { currentPassword, code, ...input }: NewApiToken, request: Request) {
  assertNotApiToken(ctx)
  const errors = (input.scopes ?? []).flatMap((scope, index) => {
    const message = findScopeError(scope)
    return message ? [{ path: `/scopes/${index}`, message }] : []
  })
  if (errors.length) badRequest(...errors)
  if (input.workspace) await getWorkspaceAccess(ctx.db, ctx.actor, input.workspace)
  await requireRecentAuth(ctx, { currentPassword, code }, request)
  return issueApiToken(ctx, ctx.actor.user, input, (tx) => assertSignedIn(tx, ctx.actor))
}

/**
 * Issues an API token for any user. `assert` runs in the same transaction and prevents it by throwing.
 * @throws 400 INVALID_INPUT when `expiresAt` is not in the future, 409 TOO_MANY_TOKENS
 */
export async function issueApiToken(
  { write }: Tenant,
  user: string,
  { nickname, scopes = [], expiresAt, workspace }: NewApiToken,
  assert?: (tx: Tx) => Promise<void>,
) {
  const expires = expiresAt ? parseIsoDateTime(expiresAt) : undefined
  if (expiresAt && !(expires && expires > now()))
    badRequest({ path: '/expiresAt', message: 'expiresAt must be a time in the future.' })
  const token = `atl_${Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('hex')}`
  const row = {
    _id: Bun.randomUUIDv7(),
    user,
    hash: sha256(token),
    prefix: token.slice(0, 12),
    nickname,
    scopes,
    workspace: workspace ?? null,
    created: toIsoString(now()),
    expires: expires === undefined ? null : toIsoString(expires),
  }
  const apiToken = await write(async (tx) => {
    await assert?.(tx)
    const [existing] = await tx.select({ count: count() }).from(apiTokens).where(eq(apiTokens.user, user))
    if (existing!.count >= MAX_API_TOKENS_PER_USER)
      throw new Problem(
        409,
        'TOO_MANY_TOKENS',
        `You have ${MAX_API_TOKENS_PER_USER} API tokens already. Delete one first.`,
      )
    return tx.insert(apiTokens).values(row).returning().get()
  })
  return { token, apiToken: toApiToken(apiToken) }
}

/**
 * Deletes an API token of the caller, which is invalid at once.
 * @throws 403 FORBIDDEN when the caller uses an API token, 404 API_TOKEN_NOT_FOUND
 */
export async function remove(ctx: Ctx, id: string) {
  assertNotApiToken(ctx)
  const removed = await writeInvalidating(ctx, 'actors', (tx) =>
    tx
      .delete(apiTokens)
      .where(and(eq(apiTokens._id, id), eq(apiTokens.user, ctx.actor.user)))
      .returning()
      .get(),
  )
  if (!removed) notFound('api token')
  return success
}

/** Returns a warning for each scope of a stored token that grants nothing. */
export async function listScopeWarnings({ db }: Pick<Tenant, 'db'>) {
  const rows = await db.select({ _id: apiTokens._id, scopes: apiTokens.scopes }).from(apiTokens)
  return rows.flatMap(({ _id, scopes }) =>
    scopes.flatMap((scope, index) => {
      const message = findScopeError(scope)
      return message ? [{ path: `/api-tokens/${_id}/scopes/${index}`, code: 'UNKNOWN_SCOPE', message }] : []
    }),
  )
}

const toApiToken = ({
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
