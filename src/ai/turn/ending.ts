import { eq, lt, max } from 'drizzle-orm'
import type { OpenCtx } from '../../accounts/guard'
import { keepableText } from '../../core/body'
import { DAY, iso, now } from '../../core/clock'
import { report } from '../../core/log'
import { Problem } from '../../core/problem'
import type { Lease } from '../../jobs/holding'
import { removeInSlices } from '../../jobs/removal'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import type { Answering } from '../agents'
import type { Asked, NewMessage } from '../shapes'
import { clientOf } from '../sources/sources'
import { messages, threads, toolResults } from '../tables'
import { keepFresh } from '../threads'
import { type Status, spend, usageRow } from '../usage/spending'
import type { How } from './beginning'
import { keptAs } from './conversation'
import { gone, problemOf } from './failures'
import type { Usage } from './model'
import type { Said, Turn } from './turn'

const TITLE = 80 // characters
const SUMMARIES = 20 // that a thread keeps

/**
 * Keeps what became of a turn, in one transaction: what was said, in its thread; what it took; and that it happened. Of one
 * that broke off before anything was said, the thread keeps nothing, so that it can be sent again.
 */
export async function keep(turn: Turn, status: Status, code?: string): Promise<void> {
  const { ctx, agent, source, thread } = turn.of
  const row = await usageRow(ctx, {
    kind: 'completion',
    ...{ integration: agent._id, source: source._id, model: turn.model, thread: thread?._id ?? null },
    ...{ usage: turn.usage, status, durationMs: Math.round(performance.now() - turn.began) },
  })
  await ctx.write(async (tx) => {
    if (thread && (status === 'completed' || turn.said.length)) await append(tx, turn)
    if (turn.pause && !thread) await keepResults(tx, turn)
    await spend(ctx, tx, row, code)
  })
}

async function append(tx: Tx, { of: { fresh, thread, begins, remembered }, said, started }: Turn) {
  const { _id, summaries } = thread!
  const updated = iso(now())
  const known = begins ? thread! : await tx.select().from(threads).where(eq(threads._id, _id)).get()
  // It was removed meanwhile, or whoever began it was.
  if (!known) return
  const first = fresh.find(({ role }) => role === 'user')?.content
  const changes = {
    title: known.title ?? titleOf(first ?? ''),
    summaries: remembered?.fresh ? [...summaries, remembered.summary!].slice(-SUMMARIES) : known.summaries,
    updated,
  }
  if (!begins) await tx.update(threads).set(changes).where(eq(threads._id, _id))
  else if (!(await keepFresh(tx, { ...known, ...changes }))) return
  const last = await tx
    .select({ number: max(messages.number) })
    .from(messages)
    .where(eq(messages.thread, _id))
    .get()
  const all = [
    ...fresh.map((one) => ({ ...theirs(one), created: started })),
    ...said.map((one) => ({ ...ours(one), created: updated })),
  ]
  const rows = all.map((one, n) => ({ thread: _id, number: (last?.number ?? 0) + n + 1, ...one }))
  if (rows.length) await tx.insert(messages).values(rows)
}

const theirs = ({ role, content, name, tool_calls: calls, tool_call_id: id }: NewMessage) => ({
  ...{ role, content: content ?? '', name: name ?? null, toolCalls: calls?.length ? calls : null },
  ...{ toolCallId: id ?? null, ours: false, incomplete: false },
})

const ours = ({ role, content, toolCalls, toolCallId, incomplete }: Said) => ({
  ...{ role, content: keepableText(content), name: null, toolCalls: toolCalls ?? null },
  ...{ toolCallId: toolCallId ?? null, ours: role === 'tool', incomplete: !!incomplete },
})

/** The first words of its first message. */
export function titleOf(text: string) {
  const line = text.trim().replace(/\s+/g, ' ')
  const cut = line.length <= TITLE ? line : `${line.slice(0, TITLE - 1).replace(/\s\S*$/, '')}…`
  return cut.toWellFormed() || null
}

async function keepResults(tx: Tx, { of: { ctx, agent }, pause, said }: Turn) {
  const created = iso(now())
  for (const { functionCall: call } of pause!.backendResults) {
    const { content } = said.find(({ toolCallId }) => toolCallId === call.id)!
    const row = { _id: keptAs(ctx, agent._id, call), content, created }
    await tx.insert(toolResults).values(row).onConflictDoUpdate({ target: toolResults._id, set: { content, created } })
  }
}

/** Keeps what was used for a turn that did not begin, such as to sum up its thread. */
export async function neverBegan(
  ctx: OpenCtx,
  { _id, target }: Answering,
  { model }: Asked,
  { how, usage, started, code }: { how: How; usage: Usage; started: number; code: string },
) {
  const row = await usageRow(ctx, {
    kind: 'completion',
    ...{ integration: _id, source: target.sourceId, thread: how.thread ?? null, usage },
    model: model || target.model || (await clientOf(ctx, target.sourceId)).model,
    status: how.ending.signal.aborted ? 'aborted' : 'failed',
    durationMs: Math.round(performance.now() - started),
  })
  await ctx.write((tx) => spend(ctx, tx, row, code))
}

/** Keeps what became of a turn that came to no end, as well as that goes. Gives what callers are told. */
export async function failed(turn: Turn, error: unknown): Promise<unknown> {
  const { aborted, reason } = turn.signal
  const problem = !aborted ? problemOf(error) : reason instanceof Problem ? reason : gone()
  const code = problem instanceof Problem ? problem.code : 'INTERNAL'
  const { tenant } = turn.of.ctx
  await keep(turn, aborted ? 'aborted' : 'failed', code).catch((cause) => report('TURN_NOT_KEPT', { tenant, cause }))
  return problem
}

/** Removes the results of tools whose turns no client has gone on with for a day. */
export const removeOld = (tenant: Tenant & Lease) =>
  removeInSlices(tenant, toolResults, toolResults._id, lt(toolResults.created, iso(now() - DAY)))
