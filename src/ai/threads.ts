import { and, asc, eq, inArray } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import type { Ctx } from '../accounts/context'
import { boundWorkspaceCondition } from '../accounts/memberships/workspace-access'
import { users } from '../accounts/tables'
import { now, toIsoString } from '../core/clock'
import { notFound } from '../core/problem'
import type { ListPage } from '../core/response-headers'
import { isTrue, parseOptional, success } from '../core/shapes'
import { type GrowingListQuery, parseNames, parsePage, readBoundedPage, toGrowingListPage } from '../storage/pagination'
import type { Tx } from '../storage/port'
import { getUsableAgent } from './agents'
import { expireThreadStores } from './knowledge/store-removal'
import type { NewThread, Thread, ThreadMessage } from './shapes'
import { messages, threads } from './tables'
import { toUnknownMembers } from './turn/provider-message'

type ThreadRow = typeof threads.$inferSelect
export type MessageRow = typeof messages.$inferSelect
type ThreadFilters = { integration?: string; user?: string; workspace?: string; bypassAdmin?: string }

const { _id, integration, title, user, workspace, created, updated } = threads
const sortable = { _id, integration, title, user, workspace, created, updated }

/**
 * Returns a page of the caller's threads, newest first, without their messages. Admins see the threads of all users,
 * unless they set `bypassAdmin`.
 */
export async function list({ db, actor }: Ctx, query: GrowingListQuery & ThreadFilters): Promise<ListPage<Thread>> {
  const requested = parsePage(query, sortable)
  const anyOf = (column: SQLiteColumn, names: string[] | undefined) => names && inArray(column, names)
  const where = and(
    actor.privileged && !isTrue(parseOptional(query.bypassAdmin)) ? undefined : eq(user, actor.user),
    boundWorkspaceCondition(actor, workspace),
    anyOf(integration, parseNames(query.integration, 'integration')),
    anyOf(user, parseNames(query.user, 'user')),
    anyOf(workspace, parseNames(query.workspace, 'workspace')),
  )
  const { page, rows } = await readBoundedPage(requested, () =>
    db.select().from(threads).where(and(where, requested.after)),
  )
  return toGrowingListPage(
    page,
    rows,
    () => db.$count(threads, where),
    (row) => toThread(row, []),
  )
}

/** Returns a thread with all its messages. @throws 404 THREAD_NOT_FOUND */
export async function get(ctx: Ctx, id: string): Promise<Thread> {
  const row = await getThreadRow(ctx, id)
  const ofThread = eq(messages.thread, id)
  return toThread(row, await ctx.db.select().from(messages).where(ofThread).orderBy(asc(messages.number)))
}

/** Creates a thread with an integration that the caller may use. @throws 403, 404 INTEGRATION_NOT_FOUND, USER_NOT_FOUND */
export async function create(ctx: Ctx, { integration, title }: NewThread): Promise<Thread> {
  await getUsableAgent(ctx, integration)
  const row = newThreadRow(ctx, integration, title)
  if (!(await ctx.write((tx) => insertThread(tx, row)))) notFound('user')
  return toThread(row, [])
}

/** Inserts a thread. Returns false, and inserts nothing, if its user was removed meanwhile. */
export async function insertThread(tx: Tx, row: ThreadRow): Promise<boolean> {
  const owner = await tx.select({ _id: users._id }).from(users).where(eq(users._id, row.user)).get()
  if (owner) await tx.insert(threads).values(row)
  return !!owner
}

/** Removes a thread with its messages, and expires its vector stores. @throws 404 THREAD_NOT_FOUND */
export async function remove(ctx: Ctx, id: string) {
  await getThreadRow(ctx, id)
  await ctx.write(async (tx) => {
    await expireThreadStores(tx, id)
    await tx.delete(threads).where(eq(_id, id))
  })
  return success
}

/** Returns a thread of the caller, or of any user for admins. @throws 404 THREAD_NOT_FOUND */
export async function getThreadRow({ db, actor }: Ctx, id: string): Promise<ThreadRow> {
  const row = await db.select().from(threads).where(eq(_id, id)).get()
  if (!row || !(actor.privileged || row.user === actor.user)) return notFound('thread')
  // A token that is bound to a workspace acts only there.
  return actor.token?.bound && row.workspace !== actor.workspace?._id ? notFound('thread') : row
}

/** Returns the row of a new thread of the caller, which is not inserted yet. */
export function newThreadRow({ actor }: Ctx, integration: string, title?: string): ThreadRow {
  const time = toIsoString(now())
  const owner = { user: actor.user, workspace: actor.workspace?._id ?? null }
  return {
    _id: Bun.randomUUIDv7(),
    integration,
    title: title || null,
    summaries: [],
    ...owner,
    created: time,
    updated: time,
  }
}

const toThread = ({ summaries: messageSummaries, ...row }: ThreadRow, rows: MessageRow[]): Thread => ({
  ...row,
  messages: rows.map(toThreadMessage),
  messageSummaries,
})

function toThreadMessage({
  role,
  content,
  name,
  toolCalls,
  toolCallId,
  incomplete,
  created,
  original,
}: MessageRow): ThreadMessage {
  const sentByClient = original?.fromClient && role === 'assistant' ? toUnknownMembers(original.messages[0]!) : {}
  return {
    ...sentByClient,
    ...{ role, content, timestamp: created },
    ...(name !== null && { name }),
    ...(toolCalls && { tool_calls: toolCalls, ...sentByClient }),
    ...(toolCallId !== null && { tool_call_id: toolCallId }),
    ...(incomplete && { incomplete: true as const }),
  }
}
