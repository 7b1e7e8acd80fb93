import { and, eq, inArray, sql } from 'drizzle-orm'
import type { Ctx } from '../../accounts/context'
import { notFound } from '../../core/problem'
import type { ListPage } from '../../core/response-headers'
import { parseOptional } from '../../core/shapes'
import { ECHO_SOURCE_ID } from '../../integrations/targets/ai'
import { applyPage, type ListQuery, parseNames, parsePage, toListPage } from '../../storage/pagination'
import { getUsableAgent } from '../agents'
import { getSource } from '../sources/sources'
import { getThreadRow } from '../threads'
import { estimateTokens } from '../token-estimate'
import { reserveBudget } from '../usage/budgets'
import { findExcerpts } from './retrieval'
import type { KnowledgeExcerpt, KnowledgeFile, KnowledgeSearch, StoredVectorStore } from './shapes'
import { isNotExpired, toVectorStore } from './stores'
import { knowledgeFiles, vectorStores } from './tables'

const { _id, source, integration, scope, created } = vectorStores
const sortable = { _id, scope, integration, created }
const files = knowledgeFiles
const sortableFiles = { _id: files._id, name: files.name, chunks: files.chunks, created: files.created }

/** Returns a page of the stores of a source, newest first, with the number of their files. @throws 404 */
export async function listStores(
  ctx: Ctx,
  sourceId: string,
  query: ListQuery & { integration?: string },
): Promise<ListPage<StoredVectorStore>> {
  // The stores of the built-in source are listed also when it is switched off.
  if (sourceId !== ECHO_SOURCE_ID) await getSource(ctx, sourceId)
  const page = parsePage(query, sortable)
  const named = parseNames(query.integration, 'integration')
  const where = and(eq(source, sourceId), isNotExpired(), named && inArray(integration, named))
  const rows = await applyPage(page, ctx.db.select().from(vectorStores).where(where))
  const counts = await countFiles(
    ctx,
    rows.map((row) => row._id),
  )
  const items = rows.map((row) => ({
    ...toVectorStore(ctx, row),
    ...{ integration: row.integration, embeddingModel: row.model, chunks: row.chunks },
    ...{ files: counts.get(row._id) ?? 0, expires: row.expires },
  }))
  return toListPage(page, items, () => ctx.db.$count(vectorStores, where))
}

async function countFiles({ db }: Ctx, ids: string[]): Promise<Map<string, number>> {
  if (!ids.length) return new Map()
  const rows = await db
    .select({ store: files.store, count: sql<number>`count(*)` })
    .from(files)
    .where(and(inArray(files.store, ids), eq(files.ready, true)))
    .groupBy(files.store)
  return new Map(rows.map(({ store, count }) => [store, Number(count)]))
}

/** Returns a page of the files of a store, newest first. @throws 404 */
export async function listFiles(
  ctx: Ctx,
  sourceId: string,
  id: string,
  query: ListQuery,
): Promise<ListPage<KnowledgeFile>> {
  const isNamed = and(eq(_id, id), eq(source, sourceId), isNotExpired())
  if (!(await ctx.db.select({ _id }).from(vectorStores).where(isNamed).get())) notFound('vector store')
  const page = parsePage(query, sortableFiles)
  const where = and(eq(files.store, id), eq(files.ready, true))
  const rows = await applyPage(page, ctx.db.select().from(files).where(where))
  const items = rows.map(({ _id, name, metadata, user, chunks, created }) => ({
    ...{ _id, fileName: name || null, metadata, user, chunks, created },
  }))
  return toListPage(page, items, () => ctx.db.$count(files, where))
}

/**
 * Returns the excerpts that an agent would get for a question of the caller, best first.
 * @throws 403, 404 AGENT_NOT_FOUND, THREAD_NOT_FOUND, 409 EMBEDDING_MISMATCH, 429 BUDGET_EXCEEDED, 502 to 504 for a source
 */
export async function searchKnowledge(
  ctx: Ctx,
  agentId: string,
  { question, threadId }: KnowledgeSearch,
  request: Request,
): Promise<KnowledgeExcerpt[]> {
  const agent = await getUsableAgent(ctx, agentId, 'agent')
  const thread = parseOptional(threadId ?? undefined)
  // Admins may read the threads of others, but a chat of theirs gets nothing from them.
  if (thread && (await getThreadRow(ctx, thread)).user !== ctx.actor.user) notFound('thread')
  const releaseBudget = await reserveBudget(ctx, { tokens: estimateTokens(question), cost: 0 })
  return findExcerpts(ctx, { ...{ integration: agent, thread, question, signal: request.signal } }).finally(
    releaseBudget,
  )
}
