import { and, eq } from 'drizzle-orm'
import type { Ctx, OpenCtx } from '../accounts/guard'
import type { Answer } from '../core/etag'
import { type Flaw, invalid, missing, Problem } from '../core/problem'
import { given, isOn } from '../core/shapes'
import { connections } from '../plugins/connections/tables'
import * as stored from '../plugins/integrations/integrations'
import { mayRun, refuseUnlessMayRun } from '../plugins/integrations/permission'
import { integrations, type Row } from '../plugins/integrations/tables'
import { type AiTarget, ECHO } from '../plugins/integrations/targets/ai'
import { answerPage, judgedPage, type Listing, pageOf } from '../storage/lists'
import type { Db } from '../storage/port'
import type { Agent, AgentChange, NewAgent } from './shapes'

/** An integration that talks: somebody chats with it, and a model answers. */
export type Talking = Omit<Row, 'target'> & { target: AiTarget }

/** What answers: an integration that talks, or a source that is asked directly, which has no id of an integration. */
export type Answering = { _id: string | null; target: AiTarget }

const { _id, name, active, triggerKind, targetKind, created, updated } = integrations
const sortable = { _id, name, active, created, updated }
const talking = and(eq(triggerKind, 'chat'), eq(targetKind, 'ai'))

/** A page of the agents that the caller may use, newest first. */
export async function list(ctx: Ctx, query: Listing & { active?: string }, answer: Answer): Promise<Agent[]> {
  const page = pageOf(query, sortable)
  const where = and(talking, given(query.active) ? eq(active, isOn(query.active)) : undefined)
  const read = (limit: number, offset: number) =>
    ctx.db
      .select()
      .from(integrations)
      .where(where)
      .orderBy(...page.order)
      .limit(limit)
      .offset(offset)
  const { rows, total } = await judgedPage(page, read, (some) => some.filter((row) => mayRun(ctx, row)))
  const shown = rows.map((row) => told(ctx, row as Talking))
  return answerPage(answer, page, shown, async () => total)
}

/** An agent that the caller may use. @throws 403, 404 */
export async function get(ctx: Ctx, id: string): Promise<Agent> {
  const row = await found(ctx.db, id)
  refuseUnlessMayRun(ctx, row)
  return told(ctx, row)
}

/** A new agent: an integration like others. @throws 400 also for what is not there */
export async function create(ctx: Ctx, { sourceId, ...input }: NewAgent, answer: Answer): Promise<Agent> {
  const { rest, target } = parted({ sourceId: sourceId ?? (await firstSource(ctx.db)), ...input })
  const integration = { ...rest, trigger: { kind: 'chat' as const }, target: { kind: 'ai' as const, ...target } }
  const made = await stored.create(ctx, integration, answer).catch(refuseAsAgent)
  return told(ctx, await found(ctx.db, made._id))
}

/** Changes what it mentions. @throws 400, 404, 412 when stale */
export async function change(ctx: Ctx, id: string, input: AgentChange, answer: Answer): Promise<Agent> {
  const before = await found(ctx.db, id)
  const { rest, target } = parted(input)
  const integration = { ...rest, target: { ...before.target, kind: 'ai' as const, ...target } }
  await stored.change(ctx, id, integration, answer).catch(refuseAsAgent)
  return told(ctx, await found(ctx.db, id))
}

/** Removes an agent; its threads stay readable. @throws 404, 412 when stale */
export async function remove(ctx: Ctx, id: string, answer: Answer) {
  await found(ctx.db, id)
  return stored.remove(ctx, id, answer)
}

/** An integration that talks, is switched on, and that the caller may use. @throws 401, 403, 404 */
export async function agentFor(ctx: OpenCtx, id: string, noun = 'integration'): Promise<Talking> {
  const row = await found(ctx.db, id, noun)
  if (!row.active) missing(noun)
  refuseUnlessMayRun(ctx, row)
  return row
}

async function found(db: Pick<Db, 'select'>, id: string, noun = 'agent'): Promise<Talking> {
  const row = await db
    .select()
    .from(integrations)
    .where(and(eq(_id, id), talking))
    .get()
  return (row as Talking | undefined) ?? missing(noun)
}

/** The oldest connection to a server of models; without any, the source that is built in. */
async function firstSource(db: Db) {
  const { _id, kind, created } = connections
  const row = await db.select({ _id }).from(connections).where(eq(kind, 'openai')).orderBy(created, _id).get()
  return row?._id ?? ECHO
}

/** What is said of an agent, as an integration has it. */
function parted({ name, active, roles, workspaceRoles, ...target }: AgentChange) {
  const rest = { name, active, roles, workspaceRoles }
  const said = <Part extends object>(part: Part) =>
    Object.fromEntries(Object.entries(part).filter(([, value]) => value !== undefined)) as Part
  return { rest: said(rest), target: said(target) }
}

/** An agent has at its top what an integration has in its target, and so have the paths of what is wrong. */
function refuseAsAgent(error: unknown): never {
  const flaws = error instanceof Problem && error.code === 'INVALID_INPUT' ? (error.more.details as Flaw[]) : []
  if (!flaws.length) throw error
  return invalid(...flaws.map(({ path, message }) => ({ path: path.replace(/^\/target/, ''), message })))
}

/** What it is told to do is for those who may tell it. */
function told({ actor }: Ctx, { _id, name, active, roles, workspaceRoles, target, created, updated }: Talking): Agent {
  const { kind: _, description = '', tools = [], systemPrompt, ...more } = target as AiTarget & { kind: string }
  const { sourceId, model, temperature } = more
  const open = { _id, name, description, sourceId, model, temperature, tools, active, created, updated }
  return actor.privileged ? { ...more, ...open, systemPrompt, roles, workspaceRoles } : open
}
