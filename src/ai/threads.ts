import { and, asc, eq, inArray } from 'drizzle-orm'
import type { Ctx } from '../accounts/guard'
import { users } from '../accounts/tables'
import { iso, now } from '../core/clock'
import type { Answer } from '../core/etag'
import { missing } from '../core/problem'
import { given, isOn, success } from '../core/shapes'
import { answerPage, type Listing, namesOf, paged, pageOf } from '../storage/lists'
import type { Tx } from '../storage/port'
import { agentFor } from './agents'
import { forgetThread } from './knowledge/removal'
import type { NewThread, Thread, ThreadMessage } from './shapes'
import { messages, threads } from './tables'

type Row = typeof threads.$inferSelect
export type MessageRow = typeof messages.$inferSelect
type Filters = { integration?: string; user?: string; workspace?: string; bypassAdmin?: string }

const { _id, integration, title, user, workspace, created, updated } = threads
const sortable = { _id, integration, title, user, workspace, created, updated }

/** A page of one's threads, newest first, without their messages; admins see those of all users, unless they say otherwise. */
export async function list({ db, actor }: Ctx, query: Listing & Filters, answer: Answer): Promise<Thread[]> {
  const page = pageOf(query, sortable)
  const anyOf = (column: typeof user, names: string[] | undefined) => names && inArray(column, names)
  const where = and(
    actor.privileged && !isOn(given(query.bypassAdmin)) ? undefined : eq(user, actor.user),
    anyOf(integration as never, namesOf(query.integration, 'integration')),
    anyOf(user, namesOf(query.user, 'user')),
    anyOf(workspace as never, namesOf(query.workspace, 'workspace')),
  )
  const rows = await paged(page, db.select().from(threads).where(where))
  const shown = rows.map((row) => told(row, []))
  return answerPage(answer, page, shown, () => db.$count(threads, where))
}

/** A thread with all that was said in it. @throws 404 */
export async function get(ctx: Ctx, id: string): Promise<Thread> {
  const row = await ownThread(ctx, id)
  const those = eq(messages.thread, id)
  return told(row, await ctx.db.select().from(messages).where(those).orderBy(asc(messages.number)))
}

/** A new thread with an integration that the caller may use. @throws 403, 404 INTEGRATION_NOT_FOUND */
export async function create(ctx: Ctx, { integration, title }: NewThread): Promise<Thread> {
  await agentFor(ctx, integration)
  const row = fresh(ctx, integration, title)
  if (!(await ctx.write((tx) => keepFresh(tx, row)))) missing('user')
  return told(row, [])
}

/** Keeps a thread that begins, unless its user was removed in this moment. */
export async function keepFresh(tx: Tx, row: Row): Promise<boolean> {
  const known = await tx.select({ _id: users._id }).from(users).where(eq(users._id, row.user)).get()
  if (known) await tx.insert(threads).values(row)
  return !!known
}

/** Removes a thread, and what only it knows. @throws 404 */
export async function remove(ctx: Ctx, id: string) {
  await ownThread(ctx, id)
  await ctx.write(async (tx) => {
    await forgetThread(tx, id)
    await tx.delete(threads).where(eq(_id, id))
  })
  return success
}

/** A thread of the caller's; an admin reaches those of all. @throws 404 THREAD_NOT_FOUND */
export async function ownThread({ db, actor }: Ctx, id: string): Promise<Row> {
  const row = await db.select().from(threads).where(eq(_id, id)).get()
  return row && (actor.privileged || row.user === actor.user) ? row : missing('thread')
}

/** What is kept of a thread that begins. */
export function fresh({ actor }: Ctx, integration: string, title?: string): Row {
  const time = iso(now())
  const whose = { user: actor.user, workspace: actor.workspace?._id ?? null }
  return {
    _id: Bun.randomUUIDv7(),
    integration,
    title: title || null,
    summaries: [],
    ...whose,
    created: time,
    updated: time,
  }
}

const told = ({ summaries: messageSummaries, ...row }: Row, rows: MessageRow[]): Thread => ({
  ...row,
  messages: rows.map(toldMessage),
  messageSummaries,
})

function toldMessage({ role, content, name, toolCalls, toolCallId, incomplete, created }: MessageRow): ThreadMessage {
  return {
    ...{ role, content, timestamp: created },
    ...(name !== null && { name }),
    ...(toolCalls && { tool_calls: toolCalls }),
    ...(toolCallId !== null && { tool_call_id: toolCallId }),
    ...(incomplete && { incomplete: true as const }),
  }
}
