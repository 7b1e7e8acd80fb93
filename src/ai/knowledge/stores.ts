import { and, eq, gt, inArray, isNull, max, or, type SQL } from 'drizzle-orm'
import type { Ctx } from '../../accounts/guard'
import { DAY, iso, now } from '../../core/clock'
import { invalid, missing, Problem } from '../../core/problem'
import type { Db, Tx } from '../../storage/port'
import { agentFor, type Talking } from '../agents'
import { clientOf } from '../sources/sources'
import { threads } from '../tables'
import { endStores } from './removal'
import type { NewStore, Store } from './shapes'
import { assertMayWrite, ReadOnly } from './subjects'
import { type Scope, scopes, vectorStores } from './tables'

export type StoreRow = typeof vectorStores.$inferSelect

const { _id, integration, scope, subject, source, expires, created, seq } = vectorStores

/** Whether a store's time has not come yet. */
export const isLiving = () => or(isNull(expires), gt(expires, iso(now())))

/**
 * The store of a source, an integration and a subject, which is made when there is none.
 * @throws 400, 403 for somebody else's, 404 for what is not there
 */
export async function create(ctx: Ctx, sourceId: string, input: NewStore) {
  await clientOf(ctx, sourceId)
  const agent = await agentFor(ctx, input.integrationId)
  const subjectId = input.scope === 'tenant' ? '' : input.subjectId
  if (subjectId === undefined)
    return invalid({ path: '/subjectId', message: `A store of the scope ${input.scope} needs its subjectId.` })
  await assertMayWrite(ctx, input.scope, subjectId, agent._id)
  const wanted = { source: sourceId, integration: agent._id, scope: input.scope, subject: subjectId }
  const { row, fresh } = await ctx.write((tx) => findOrCreateStore(tx, wanted, input.expirationAfterDays))
  const message = fresh ? 'The vector store was made.' : 'There is such a vector store already.'
  return { fresh, answer: { success: true as const, message, vectorStore: told(ctx, row) } }
}

type Wanted = Pick<StoreRow, 'source' | 'integration' | 'scope' | 'subject'>

/** The store that is wanted, in the transaction. One that is there may be told anew when it ends. */
async function findOrCreateStore(tx: Tx, wanted: Wanted, days?: number) {
  const time = now()
  const found = await findOne(tx, wanted)
  if (found && isPast(found)) await endStores(tx, eq(seq, found.seq))
  else if (found) {
    if (days === undefined || days === found.expirationAfterDays) return { row: found, fresh: false }
    const ends = { expirationAfterDays: days, expires: endOf(Date.parse(found.created), days) }
    await tx.update(vectorStores).set(ends).where(eq(seq, found.seq))
    return { row: { ...found, ...ends }, fresh: false }
  }
  // One that has ended keeps its number until its words are gone.
  const [last] = await tx.select({ seq: max(seq) }).from(vectorStores)
  const row = await tx
    .insert(vectorStores)
    .values({
      seq: (last?.seq ?? 0) + 1,
      ...{ _id: Bun.randomUUIDv7(), ...wanted, model: null, dimension: null, version: 1, chunks: 0 },
      ...{ expirationAfterDays: days ?? null, created: iso(time), expires: endOf(time, days) },
    })
    .returning()
    .get()
  return { row, fresh: true }
}

const endOf = (from: number, days?: number) => (days === undefined ? null : iso(from + days * DAY))
const isPast = ({ expires }: StoreRow) => expires !== null && Date.parse(expires) <= now()

const findOne = (tx: Tx, wanted: Wanted) =>
  tx
    .select()
    .from(vectorStores)
    .where(
      and(
        eq(integration, wanted.integration),
        eq(scope, wanted.scope),
        eq(subject, wanted.subject),
        eq(source, wanted.source),
      ),
    )
    .get()

/** A store as callers name it: by its id, or by its integration, for which one is made when there is none. */
export type Named = { vectorStoreId?: string; integrationId?: string }

/** A store that the caller may write to. @throws 400, 403, 404 */
export async function storeFor(ctx: Ctx, sourceId: string, named: Named) {
  const agent = named.integrationId === undefined ? undefined : await agentFor(ctx, named.integrationId)
  if (named.vectorStoreId !== undefined) return storeOfId(ctx, sourceId, named.vectorStoreId, agent)
  if (agent) return storeOfAgent(ctx, sourceId, agent)
  return invalid({ path: '/vectorStoreId', message: 'Say which store: by vectorStoreId, or by integrationId.' })
}

async function storeOfId(ctx: Ctx, sourceId: string, id: string, agent?: Talking) {
  const row = await ctx.db
    .select()
    .from(vectorStores)
    .where(and(eq(_id, id), eq(source, sourceId), isLiving()))
    .get()
  if (!row || (agent && row.integration !== agent._id)) return missing(NOUN)
  await assertMayWrite(ctx, row.scope, row.subject, row.integration).catch(hidden)
  await agentFor(ctx, row.integration)
  return row
}

const NOUN = 'vector store'

/** Whose it is, is not told. */
function hidden(error: unknown): never {
  if (error instanceof Problem && !(error instanceof ReadOnly) && [403, 404].includes(error.status)) missing(NOUN)
  throw error
}

/** The narrowest that the caller may write to with an integration; else one is made: of a scope that it reads, or of the caller. */
async function storeOfAgent(ctx: Ctx, sourceId: string, { _id: agent, target }: Talking) {
  const own = subjectsOf(ctx)
  const rows = await ctx.db
    .select({ row: vectorStores })
    .from(vectorStores)
    .leftJoin(threads, and(eq(scope, 'thread'), eq(threads._id, subject)))
    .where(
      and(
        and(eq(source, sourceId), eq(integration, agent), isLiving()),
        or(eq(threads.user, ctx.actor.user), ofSubjects(own)),
      ),
    )
  const place = ({ scope }: StoreRow) => scopes.indexOf(scope)
  const found = rows
    .map(({ row }) => row)
    .sort((one, other) => place(one) - place(other) || (one._id < other._id ? 1 : -1))
  for (const row of found) if (await mayWrite(ctx, row)) return row
  const readable = scopes.filter((scope) => target.vectorStores?.includes(scope) && own.has(scope))
  const wanted = (scope: Scope) => ({ source: sourceId, integration: agent, scope, subject: own.get(scope)! })
  for (const scope of readable)
    if (await mayWrite(ctx, wanted(scope))) return (await ctx.write((tx) => findOrCreateStore(tx, wanted(scope)))).row
  // What is written elsewhere the agent would not read.
  const [wide = 'user'] = readable
  await assertMayWrite(ctx, wide, own.get(wide)!, agent)
  return (await ctx.write((tx) => findOrCreateStore(tx, wanted(wide)))).row
}

const mayWrite = (ctx: Ctx, { scope, subject, integration }: Wanted) =>
  assertMayWrite(ctx, scope, subject, integration).then(
    () => true,
    (error) => {
      if (error instanceof ReadOnly) return false
      throw error
    },
  )

/** By which subject somebody has a store of each scope. */
export function subjectsOf({ actor }: { actor?: Ctx['actor'] }, thread?: string): Map<Scope, string> {
  const own = new Map<Scope, string>([['tenant', '']])
  if (thread !== undefined) own.set('thread', thread)
  if (actor) own.set('user', actor.user)
  if (actor?.workspace) own.set('workspace', actor.workspace._id)
  return own
}

/** The condition of stores of such subjects. */
const ofSubjects = (own: Map<Scope, string>) => or(...[...own].map(([one, of]) => and(eq(scope, one), eq(subject, of))))

export const ofAgent = (agent: string, own: Map<Scope, string>) => and(eq(integration, agent), ofSubjects(own))

/** What of these stores is there, the oldest first. */
export const living = (db: Db, where: SQL): Promise<StoreRow[]> =>
  db.select().from(vectorStores).where(and(where, isLiving())).orderBy(created, _id)

export const withIds = (ids: string[]) => inArray(_id, ids)

const told = ({ tenant }: Ctx, row: StoreRow): Store => ({
  _id: row._id,
  scope: row.scope,
  subjectId: row.subject || tenant,
  externalId: row._id,
  ...(row.expirationAfterDays !== null && { expirationAfterDays: row.expirationAfterDays }),
  created: row.created,
})
