import { and, eq, gt, inArray, isNull, max, or, type SQL } from 'drizzle-orm'
import type { Ctx } from '../../accounts/context'
import { DAY_MS, now, toIsoString } from '../../core/clock'
import { badRequest, notFound, Problem } from '../../core/problem'
import type { Db, Tx } from '../../storage/port'
import { type AgentRow, getUsableAgent } from '../agents'
import { getSource } from '../sources/sources'
import { threads } from '../tables'
import { assertMayWrite, ReadOnlyProblem } from './scope-access'
import type { NewVectorStore, VectorStore } from './shapes'
import { expireStores } from './store-removal'
import { type StoreScope, storeScopes, vectorStores } from './tables'

export type StoreRow = typeof vectorStores.$inferSelect

const { _id, integration, scope, subject, source, expires, created, seq } = vectorStores

/** Returns the condition that a store has not expired. */
export const isNotExpired = () => or(isNull(expires), gt(expires, toIsoString(now())))

/**
 * Returns the store of a source, an integration and a subject. Creates it if there is none.
 * @throws 400, 403 when the caller may not write to it, 404 when the source, the integration or the subject is unknown
 */
export async function create(ctx: Ctx, sourceId: string, input: NewVectorStore) {
  await getSource(ctx, sourceId)
  const agent = await getUsableAgent(ctx, input.integrationId)
  const subjectId = input.scope === 'tenant' ? '' : input.subjectId
  if (subjectId === undefined)
    return badRequest({ path: '/subjectId', message: `subjectId is required for the scope ${input.scope}.` })
  await assertMayWrite(ctx, input.scope, subjectId, agent._id)
  const key = { source: sourceId, integration: agent._id, scope: input.scope, subject: subjectId }
  const { row, isNew } = await ctx.write((tx) => findOrCreateStore(tx, key, input.expirationAfterDays))
  const message = isNew ? 'The vector store was created.' : 'The vector store already exists.'
  return { isNew, answer: { success: true as const, message, vectorStore: toVectorStore(ctx, row) } }
}

type StoreKey = Pick<StoreRow, 'source' | 'integration' | 'scope' | 'subject'>

/** Returns the store with this key, with a new expiry if `days` is given. Creates it if there is none. */
async function findOrCreateStore(tx: Tx, key: StoreKey, days?: number) {
  const time = now()
  const existing = await findStore(tx, key)
  if (existing && isExpired(existing)) await expireStores(tx, eq(seq, existing.seq))
  else if (existing) {
    if (days === undefined || days === existing.expirationAfterDays) return { row: existing, isNew: false }
    const expiry = { expirationAfterDays: days, expires: computeExpiry(Date.parse(existing.created), days) }
    await tx.update(vectorStores).set(expiry).where(eq(seq, existing.seq))
    return { row: { ...existing, ...expiry }, isNew: false }
  }
  // An expired store keeps its number until its words are removed, so numbers are not reused before.
  const [last] = await tx.select({ seq: max(seq) }).from(vectorStores)
  const row = await tx
    .insert(vectorStores)
    .values({
      seq: (last?.seq ?? 0) + 1,
      ...{ _id: Bun.randomUUIDv7(), ...key, model: null, dimension: null, version: 1, chunks: 0 },
      ...{ expirationAfterDays: days ?? null, created: toIsoString(time), expires: computeExpiry(time, days) },
    })
    .returning()
    .get()
  return { row, isNew: true }
}

const computeExpiry = (from: number, days?: number) => (days === undefined ? null : toIsoString(from + days * DAY_MS))
const isExpired = ({ expires }: StoreRow) => expires !== null && Date.parse(expires) <= now()

const findStore = (tx: Tx, key: StoreKey) =>
  tx
    .select()
    .from(vectorStores)
    .where(
      and(eq(integration, key.integration), eq(scope, key.scope), eq(subject, key.subject), eq(source, key.source)),
    )
    .get()

/** Names a store by its id, or by its integration, for which a store is created if there is none. */
export type StoreReference = { vectorStoreId?: string; integrationId?: string }

/** Returns a store that the caller may write to. @throws 400, 403, 404 */
export async function getWritableStore(ctx: Ctx, sourceId: string, reference: StoreReference) {
  const agent = reference.integrationId === undefined ? undefined : await getUsableAgent(ctx, reference.integrationId)
  if (reference.vectorStoreId !== undefined) return getWritableStoreById(ctx, sourceId, reference.vectorStoreId, agent)
  if (agent) return getOrCreateAgentStore(ctx, sourceId, agent)
  return badRequest({ path: '/vectorStoreId', message: 'vectorStoreId or integrationId is required.' })
}

async function getWritableStoreById(ctx: Ctx, sourceId: string, id: string, agent?: AgentRow) {
  const row = await ctx.db
    .select()
    .from(vectorStores)
    .where(and(eq(_id, id), eq(source, sourceId), isNotExpired()))
    .get()
  if (!row || (agent && row.integration !== agent._id)) return notFound(STORE_NOUN)
  await assertMayWrite(ctx, row.scope, row.subject, row.integration).catch(hideForbidden)
  await getUsableAgent(ctx, row.integration)
  return row
}

const STORE_NOUN = 'vector store'

/** Answers 404 instead of 403, so as not to reveal the stores of others. */
function hideForbidden(error: unknown): never {
  if (error instanceof Problem && !(error instanceof ReadOnlyProblem) && [403, 404].includes(error.status))
    notFound(STORE_NOUN)
  throw error
}

/**
 * Returns the narrowest store of an integration that the caller may write to. If there is none, creates one of a scope that
 * the integration reads, or of the user.
 */
async function getOrCreateAgentStore(ctx: Ctx, sourceId: string, { _id: agent, target }: AgentRow) {
  const subjects = subjectsByScope(ctx)
  const rows = await ctx.db
    .select({ row: vectorStores })
    .from(vectorStores)
    .leftJoin(threads, and(eq(scope, 'thread'), eq(threads._id, subject)))
    .where(
      and(
        and(eq(source, sourceId), eq(integration, agent), isNotExpired()),
        or(eq(threads.user, ctx.actor.user), isOfSubjects(subjects)),
      ),
    )
  const scopeRank = ({ scope }: StoreRow) => storeScopes.indexOf(scope)
  const candidates = rows
    .map(({ row }) => row)
    .sort((one, other) => scopeRank(one) - scopeRank(other) || (one._id < other._id ? 1 : -1))
  for (const row of candidates) if (await mayWrite(ctx, row)) return row
  const readable = storeScopes.filter((scope) => target.vectorStores?.includes(scope) && subjects.has(scope))
  const keyFor = (scope: StoreScope) => ({ source: sourceId, integration: agent, scope, subject: subjects.get(scope)! })
  for (const scope of readable)
    if (await mayWrite(ctx, keyFor(scope))) return (await ctx.write((tx) => findOrCreateStore(tx, keyFor(scope)))).row
  // The agent reads no other scopes, so a file elsewhere would be useless.
  const [chosenScope = 'user'] = readable
  await assertMayWrite(ctx, chosenScope, subjects.get(chosenScope)!, agent)
  return (await ctx.write((tx) => findOrCreateStore(tx, keyFor(chosenScope)))).row
}

const mayWrite = (ctx: Ctx, { scope, subject, integration }: StoreKey) =>
  assertMayWrite(ctx, scope, subject, integration).then(
    () => true,
    (error) => {
      if (error instanceof ReadOnlyProblem) return false
      throw error
    },
  )

/** Returns the subject of the caller for each scope. */
export function subjectsByScope({ actor }: { actor?: Ctx['actor'] }, thread?: string): Map<StoreScope, string> {
  const subjects = new Map<StoreScope, string>([['tenant', '']])
  if (thread !== undefined) subjects.set('thread', thread)
  if (actor) subjects.set('user', actor.user)
  if (actor?.workspace) subjects.set('workspace', actor.workspace._id)
  return subjects
}

/** Returns the condition that a store belongs to one of the subjects. */
const isOfSubjects = (own: Map<StoreScope, string>) =>
  or(...[...own].map(([ownScope, ownSubject]) => and(eq(scope, ownScope), eq(subject, ownSubject))))

/** Returns the condition that a store belongs to an agent and to one of the subjects. */
export const isOfAgent = (agent: string, own: Map<StoreScope, string>) => and(eq(integration, agent), isOfSubjects(own))

/** Returns the stores that match and have not expired, oldest first. */
export const listStores = (db: Db, where: SQL): Promise<StoreRow[]> =>
  db.select().from(vectorStores).where(and(where, isNotExpired())).orderBy(created, _id)

/** Returns the condition that a store has one of these ids. */
export const hasIdIn = (ids: string[]) => inArray(_id, ids)

/** Returns a store as the API shows it. */
export const toVectorStore = ({ tenant }: Ctx, row: StoreRow): VectorStore => ({
  _id: row._id,
  scope: row.scope,
  subjectId: row.subject || tenant,
  externalId: row._id,
  ...(row.expirationAfterDays !== null && { expirationAfterDays: row.expirationAfterDays }),
  created: row.created,
})
