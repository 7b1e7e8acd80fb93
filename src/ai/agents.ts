import { and, eq } from 'drizzle-orm'
import type { Ctx, PublicCtx } from '../accounts/context'
import { connections } from '../connections/tables'
import type { HttpContext } from '../core/etag'
import { badRequest, type FieldError, notFound, Problem } from '../core/problem'
import { isTrue, parseOptional } from '../core/shapes'
import * as integrationStore from '../integrations/integrations'
import { assertMayRun, mayRun } from '../integrations/permission'
import { type IntegrationRow, integrations } from '../integrations/tables'
import { type AiTarget, ECHO_SOURCE_ID } from '../integrations/targets/ai'
import { type ListQuery, parsePage, respondWithFilteredPage } from '../storage/pagination'
import type { Db } from '../storage/port'
import type { Agent, AgentChange, NewAgent } from './shapes'

/** An integration that talks: somebody chats with it, and a model answers. */
export type AgentRow = Omit<IntegrationRow, 'target'> & { target: AiTarget }

/** What answers: an integration that talks, or a source that is asked directly, which has no id of an integration. */
export type ChatTarget = { _id: string | null; target: AiTarget }

const { _id, name, active, triggerKind, targetKind, created, updated } = integrations
const sortable = { _id, name, active, created, updated }
const agentCondition = and(eq(triggerKind, 'chat'), eq(targetKind, 'ai'))
const isAgent = (row: IntegrationRow) => row.triggerKind === 'chat' && row.targetKind === 'ai'

/** A page of the agents that the caller may use, newest first. */
export async function list(ctx: Ctx, query: ListQuery & { active?: string }, answer: HttpContext): Promise<Agent[]> {
  const page = parsePage(query, sortable)
  const where = and(agentCondition, parseOptional(query.active) ? eq(active, isTrue(query.active)) : undefined)
  const createQuery = () => ctx.db.select().from(integrations).where(where)
  const isUsable = (row: IntegrationRow) => mayRun(ctx, row)
  const rows = await respondWithFilteredPage(answer, page, createQuery, (batch) => batch.filter(isUsable))
  return rows.map((row) => toAgent(ctx, row as AgentRow))
}

/** An agent that the caller may use. @throws 403, 404 */
export async function get(ctx: Ctx, id: string): Promise<Agent> {
  const row = await getAgentRow(ctx.db, id)
  assertMayRun(ctx, row)
  return toAgent(ctx, row)
}

/** A new agent: an integration like others. @throws 400 also for what is not there */
export async function create(ctx: Ctx, { sourceId, ...input }: NewAgent, answer: HttpContext): Promise<Agent> {
  const { rest: integrationFields, target } = splitAgentInput({
    sourceId: sourceId ?? (await getDefaultSourceId(ctx.db)),
    ...input,
  })
  const integration = {
    ...integrationFields,
    trigger: { kind: 'chat' as const },
    target: { kind: 'ai' as const, ...target },
  }
  const integrationRow = await integrationStore.create(ctx, integration, answer).catch(rethrowWithAgentPaths)
  return toAgent(ctx, await getAgentRow(ctx.db, integrationRow._id))
}

/** Changes what it mentions. @throws 400, 404, 412 when stale */
export async function change(ctx: Ctx, id: string, input: AgentChange, answer: HttpContext): Promise<Agent> {
  await getAgentRow(ctx.db, id)
  const { rest: integrationFields, target } = splitAgentInput(input)
  const applyTo = (before: IntegrationRow) =>
    isAgent(before)
      ? { ...integrationFields, target: { ...before.target, kind: 'ai' as const, ...target } }
      : notFound('agent')
  await integrationStore.change(ctx, id, applyTo, answer).catch(rethrowWithAgentPaths)
  return toAgent(ctx, await getAgentRow(ctx.db, id))
}

/** Removes an agent; its threads stay readable. @throws 404, 412 when stale */
export async function remove(ctx: Ctx, id: string, answer: HttpContext) {
  await getAgentRow(ctx.db, id)
  return integrationStore.remove(ctx, id, answer)
}

/** An integration that talks, is switched on, and that the caller may use. @throws 401, 403, 404 */
export async function getUsableAgent(ctx: PublicCtx, id: string, noun = 'integration'): Promise<AgentRow> {
  const row = await getAgentRow(ctx.db, id, noun)
  if (!row.active) notFound(noun)
  assertMayRun(ctx, row)
  return row
}

async function getAgentRow(db: Pick<Db, 'select'>, id: string, noun = 'agent'): Promise<AgentRow> {
  const row = await db
    .select()
    .from(integrations)
    .where(and(eq(_id, id), agentCondition))
    .get()
  return (row as AgentRow | undefined) ?? notFound(noun)
}

/** The oldest connection to a server of models; without any, the source that is built in. */
async function getDefaultSourceId(db: Db) {
  const { _id, kind, created } = connections
  const row = await db.select({ _id }).from(connections).where(eq(kind, 'openai')).orderBy(created, _id).get()
  return row?._id ?? ECHO_SOURCE_ID
}

/** What is said of an agent, as an integration has it. */
function splitAgentInput({ name, active, roles, workspaceRoles, ...target }: AgentChange) {
  const integrationFields = { name, active, roles, workspaceRoles }
  const withoutUndefined = <Part extends object>(part: Part) =>
    Object.fromEntries(Object.entries(part).filter(([, value]) => value !== undefined)) as Part
  return { rest: withoutUndefined(integrationFields), target: withoutUndefined(target) }
}

/** An agent has at its top what an integration has in its target, and so have the paths of what is wrong. */
function rethrowWithAgentPaths(error: unknown): never {
  const fieldErrors =
    error instanceof Problem && error.code === 'INVALID_INPUT' ? (error.more.details as FieldError[]) : []
  if (!fieldErrors.length) throw error
  return badRequest(...fieldErrors.map(({ path, message }) => ({ path: path.replace(/^\/target/, ''), message })))
}

/** What it is told to do is for those who may tell it. */
function toAgent(
  { actor }: Ctx,
  { _id, name, active, roles, workspaceRoles, target, created, updated }: AgentRow,
): Agent {
  const { kind: _, description = '', tools = [], systemPrompt, ...more } = target as AiTarget & { kind: string }
  const { sourceId, model, temperature } = more
  const publicFields = { _id, name, description, sourceId, model, temperature, tools, active, created, updated }
  return actor.privileged ? { ...more, ...publicFields, systemPrompt, roles, workspaceRoles } : publicFields
}
