import { and, desc, eq, or, type SQL } from 'drizzle-orm'
import type { Ctx, PublicCtx } from '../accounts/context'
import { connections } from '../connections/tables'
import { etagOf } from '../core/etag'
import { badRequest, type FieldError, notFound, Problem } from '../core/problem'
import type { IfMatch, ListPage, Versioned } from '../core/response-headers'
import { isTrue, parseOptional } from '../core/shapes'
import * as integrationStore from '../integrations/integrations'
import { assertMayRun, mayRun } from '../integrations/permission'
import { type IntegrationRow, integrations } from '../integrations/tables'
import { type AiTarget, ECHO_SOURCE_ID } from '../integrations/targets/ai'
import { type ListQuery, mapItems, parsePage, readFilteredPage } from '../storage/pagination'
import type { Db } from '../storage/port'
import { cached } from '../tenancy/cache'
import type { Tenant } from '../tenancy/tenants'
import type { Agent, AgentChange, NewAgent } from './shapes'

/** An integration with the trigger `chat` and the target `ai`. */
export type AgentRow = Omit<IntegrationRow, 'target'> & { target: AiTarget }

/** The target of a completion: an agent, or a source that is called directly and has no integration (`_id` is null). */
export type ChatTarget = { _id: string | null; target: AiTarget }

const { _id, name, active, triggerKind, targetKind, created, updated } = integrations
const sortable = { _id, name, active, created, updated }
const agentCondition = and(eq(triggerKind, 'chat'), eq(targetKind, 'ai'))
const isAgent = (row: IntegrationRow) => row.triggerKind === 'chat' && row.targetKind === 'ai'

/** Returns a page of the agents that the caller may use, newest first. */
export async function list(ctx: Ctx, query: ListQuery & { active?: string }): Promise<ListPage<Agent>> {
  const page = parsePage(query, sortable)
  const where = and(agentCondition, parseOptional(query.active) ? eq(active, isTrue(query.active)) : undefined)
  const createQuery = () => ctx.db.select().from(integrations).where(where)
  const isUsable = (row: IntegrationRow) => mayRun(ctx, row)
  const found = await readFilteredPage(page, createQuery, (batch) => batch.filter(isUsable))
  return mapItems(found, (row) => toAgent(ctx, row as AgentRow))
}

/** Returns an agent that the caller may use. @throws 403 FORBIDDEN, 404 AGENT_NOT_FOUND */
export async function get(ctx: Ctx, id: string): Promise<Versioned<Agent>> {
  const row = await getAgentRow(ctx.db, id)
  assertMayRun(ctx, row)
  return toVersioned(ctx, row)
}

/** Creates an agent, which is stored as an integration, and returns it. @throws 400, also for unknown references */
export async function create(ctx: Ctx, { sourceId, ...input }: NewAgent): Promise<Versioned<Agent>> {
  const { integrationFields, target } = splitAgentInput({
    sourceId: sourceId ?? (await getDefaultSourceId(ctx.db)),
    ...input,
  })
  const integration = {
    ...integrationFields,
    trigger: { kind: 'chat' as const },
    target: { kind: 'ai' as const, ...target },
  }
  const { value } = await integrationStore.create(ctx, integration).catch(rethrowWithAgentPaths)
  return toVersioned(ctx, await getAgentRow(ctx.db, value._id))
}

/** Changes the given fields, removes those that are null, and returns the agent. @throws 400, 404 AGENT_NOT_FOUND, 412 when the ETag is stale */
export async function change(ctx: Ctx, id: string, input: AgentChange, options: IfMatch): Promise<Versioned<Agent>> {
  await getAgentRow(ctx.db, id)
  const { integrationFields, target } = splitAgentInput(input)
  const applyTo = (before: IntegrationRow) =>
    isAgent(before)
      ? { ...integrationFields, target: { ...withoutNulls({ ...before.target, ...target }), kind: 'ai' as const } }
      : notFound('agent')
  await integrationStore.change(ctx, id, applyTo, options).catch(rethrowWithAgentPaths)
  return toVersioned(ctx, await getAgentRow(ctx.db, id))
}

/** Removes an agent. Its threads stay readable. @throws 404 AGENT_NOT_FOUND, 412 when the ETag is stale */
export async function remove(ctx: Ctx, id: string, options: IfMatch) {
  await getAgentRow(ctx.db, id)
  return integrationStore.remove(ctx, id, options)
}

/** Returns the active agents that the caller may use, newest first: all, or those with this id or name. */
export async function listUsableAgents(ctx: PublicCtx, idOrName?: string): Promise<AgentRow[]> {
  const rows = await (idOrName === undefined ? readActiveAgents(ctx.db) : findActiveAgents(ctx, idOrName))
  return rows.filter((row) => mayRun(ctx, row))
}

/** Returns an active agent that the caller may use. @throws 401, 403, 404, also when the agent is inactive */
export async function getUsableAgent(ctx: PublicCtx, id: string, noun = 'integration'): Promise<AgentRow> {
  const row = (await findActiveAgents(ctx, id)).find((row) => row._id === id) ?? notFound(noun)
  assertMayRun(ctx, row)
  return row
}

/** Returns the active agents with this id or name, newest first. Cached: each completion needs its agent. */
const findActiveAgents = async (tenant: Tenant, idOrName: string): Promise<AgentRow[]> =>
  (await cached(tenant, 'integrations', `agents ${idOrName}`, async () => {
    const rows = await readActiveAgents(tenant.db, or(eq(_id, idOrName), eq(name, idOrName)))
    return rows.length ? rows : undefined
  })) ?? []

const readActiveAgents = (db: Db, condition?: SQL) =>
  db
    .select()
    .from(integrations)
    .where(and(agentCondition, eq(active, true), condition))
    .orderBy(desc(created), desc(_id)) as unknown as Promise<AgentRow[]>

async function getAgentRow(db: Pick<Db, 'select'>, id: string, noun = 'agent'): Promise<AgentRow> {
  const row = await db
    .select()
    .from(integrations)
    .where(and(eq(_id, id), agentCondition))
    .get()
  return (row as AgentRow | undefined) ?? notFound(noun)
}

/** Returns the id of the oldest connection of the kind `openai`, or of the built-in source if there is none. */
async function getDefaultSourceId(db: Db) {
  const { _id, kind, created } = connections
  const row = await db.select({ _id }).from(connections).where(eq(kind, 'openai')).orderBy(created, _id).get()
  return row?._id ?? ECHO_SOURCE_ID
}

/** Splits the fields of an agent into those of the integration and those of its target, without undefined ones. */
function splitAgentInput({ name, active, roles, workspaceRoles, ...target }: AgentChange) {
  const withoutUndefined = <Part extends object>(part: Part) =>
    Object.fromEntries(Object.entries(part).filter(([, value]) => value !== undefined)) as Part
  return {
    integrationFields: withoutUndefined({ name, active, roles, workspaceRoles }),
    target: withoutUndefined(target),
  }
}

const withoutNulls = (target: object) =>
  Object.fromEntries(Object.entries(target).filter(([, value]) => value !== null)) as AiTarget

/** Removes `/target` from error paths: an agent has the fields of the target at its top level. */
function rethrowWithAgentPaths(error: unknown): never {
  const fieldErrors =
    error instanceof Problem && error.code === 'INVALID_INPUT' ? (error.more.details as FieldError[]) : []
  if (!fieldErrors.length) throw error
  return badRequest(...fieldErrors.map(({ path, message }) => ({ path: path.replace(/^\/target/, ''), message })))
}

const toVersioned = (ctx: Ctx, row: AgentRow): Versioned<Agent> => ({
  value: toAgent(ctx, row),
  version: etagOf(row.version, row.updated),
})

/** Serializes an agent. Only admins see its system prompt, its roles and its other settings. */
function toAgent(
  { actor }: Ctx,
  { _id, name, active, roles, workspaceRoles, target, created, updated }: AgentRow,
): Agent {
  const { kind: _, description = '', tools = [], systemPrompt, ...more } = target as AiTarget & { kind: string }
  const { sourceId, model, temperature } = more
  const publicFields = { _id, name, description, sourceId, model, temperature, tools, active, created, updated }
  return actor.privileged ? { ...more, ...publicFields, systemPrompt, roles, workspaceRoles } : publicFields
}
