import { and, eq, inArray } from 'drizzle-orm'
import type { Ctx } from '../accounts/context'
import { members, workspaces } from '../accounts/memberships/tables'
import {
  assertNotBound,
  assertWorkspacesActive,
  boundWorkspaceCondition,
  getWorkspaceAccess,
  requireWorkspaceAdmin,
} from '../accounts/memberships/workspace-access'
import { workspaceSettings } from '../accounts/memberships/workspace-settings'
import { runOwnerDeletedHandlers } from '../accounts/owner-deleted'
import { apiTokens, sessions } from '../accounts/tables'
import { now, toIsoString } from '../core/clock'
import { slot } from '../core/extension'
import { badRequest, Problem } from '../core/problem'
import { success } from '../core/shapes'
import { recordCreatedPath } from '../http/idempotency/claim'
import { getSettings } from '../platform/settings/tenant-settings'
import { deleteSecrets } from '../platform/vault/vault'
import { applyPage, type ListQuery, parsePage, toListPage } from '../storage/pagination'
import type { Db } from '../storage/port'
import { writeInvalidating } from '../tenancy/cache'
import type { Tenant } from '../tenancy/tenants'
import { emitWorkspaceEvent } from './events'
import { replaceInvites } from './invites'
import { assertMayGiveRoles, assertMayLabel, getCallerRestrictions } from './restrictions'
import { loadWorkspaceDetails, toWorkspace } from './serializers'
import type { NewWorkspace, WorkspaceChange } from './shapes'

/** Returns the number of entities that belong to a workspace. */
export const entityCounter = slot<(db: Db, workspace: string) => Promise<number>>('entity counter')

/** The columns by which lists of workspaces can be sorted. */
export const sortable = {
  _id: workspaces._id,
  name: workspaces.name,
  created: workspaces.created,
  updated: workspaces.updated,
}

/** Returns a page of the workspaces that the caller is a member of, newest first. */
export async function list({ db, actor }: Ctx, query: ListQuery) {
  const page = parsePage(query, sortable)
  const condition = and(eq(members.user, actor.user), boundWorkspaceCondition(actor, members.workspace))
  const rows = await applyPage(
    page,
    db
      .select({ workspace: workspaces, roles: members.roles })
      .from(members)
      .innerJoin(workspaces, eq(workspaces._id, members.workspace))
      .where(condition),
  )
  return toListPage(page, rows.map(toWorkspace), () => db.$count(members, condition))
}

/**
 * Returns a workspace with its members, and with its invites for callers who administer it.
 * @throws 404 WORKSPACE_NOT_FOUND
 */
export const get = async ({ db, actor }: Ctx, id: string) =>
  loadWorkspaceDetails(db, await getWorkspaceAccess(db, actor, id))

/**
 * Creates a workspace, whose creator becomes its admin.
 * @throws 400 INVALID_INPUT for a label that is not allowed, 403 FORBIDDEN, WORKSPACES_INACTIVE, RESTRICTED_LABEL,
 * RESTRICTED_ROLE
 */
export async function create(ctx: Ctx, { name, logo, labels = [] }: NewWorkspace) {
  assertNotBound(ctx)
  await assertWorkspacesActive(ctx)
  await assertMayCreate(ctx)
  await assertAllowedLabels(ctx, labels)
  const restricted = await getCallerRestrictions(ctx)
  assertMayLabel(restricted, labels)
  assertMayGiveRoles(restricted, ['admin'])
  const [_id, time] = [Bun.randomUUIDv7(), toIsoString(now())]
  const workspace = { _id, name, logo: logo || null, labels: [...new Set(labels)], created: time, updated: time }
  await ctx.write(async (tx) => {
    await tx.insert(workspaces).values(workspace)
    await recordCreatedPath(tx, `/api/workspaces/${_id}`)
    await tx.insert(members).values({ workspace: _id, user: ctx.actor.user, roles: ['admin'], created: time })
    await emitWorkspaceEvent(ctx, tx, _id, { kind: 'workspace', eventName: 'workspace-created' }, { name })
  })
  return loadWorkspaceDetails(ctx.db, { workspace, roles: ['admin'], administers: true })
}

/**
 * Changes the sent fields. `invites` replaces all invites.
 * @throws 400 INVALID_INPUT, 403 FORBIDDEN, RESTRICTED_LABEL, RESTRICTED_ROLE, 404 WORKSPACE_NOT_FOUND
 * @throws 429 RATE_LIMITED
 */
export async function change(ctx: Ctx, id: string, { name, logo, labels, invites }: WorkspaceChange) {
  const { workspace: before } = await requireWorkspaceAdmin(ctx.db, ctx.actor, id)
  if (labels) await assertAllowedLabels(ctx, labels, before.labels)
  const restricted = await getCallerRestrictions(ctx)
  const changed = await writeInvalidating(ctx, 'actors', async (tx) => {
    const access = await requireWorkspaceAdmin(tx, ctx.actor, id)
    if (labels) assertMayLabel(restricted, labels, access.workspace.labels)
    const fields = {
      ...(name !== undefined && { name }),
      ...(logo !== undefined && { logo: logo || null }),
      ...(labels && { labels: [...new Set(labels)] }),
      updated: toIsoString(now()),
    }
    if (invites) await replaceInvites(ctx, tx, id, invites, restricted)
    const workspace = await tx.update(workspaces).set(fields).where(eq(workspaces._id, id)).returning().get()
    return { ...access, workspace }
  })
  return loadWorkspaceDetails(ctx.db, changed)
}

/**
 * Removes a workspace with its memberships, invites, API tokens, secrets and other data. Its entities are kept, and
 * their number is returned.
 * @throws 403 FORBIDDEN, 404 WORKSPACE_NOT_FOUND
 */
export async function remove(ctx: Ctx, id: string) {
  await writeInvalidating(ctx, 'actors', async (tx) => {
    const { workspace } = await requireWorkspaceAdmin(tx, ctx.actor, id)
    await tx.delete(apiTokens).where(eq(apiTokens.workspace, id))
    await deleteSecrets(tx, 'workspace', id)
    await runOwnerDeletedHandlers(ctx, tx, { type: 'workspace', id })
    await tx.delete(workspaces).where(eq(workspaces._id, id))
    await emitWorkspaceEvent(
      ctx,
      tx,
      id,
      { kind: 'workspace', eventName: 'workspace-deleted' },
      { name: workspace.name },
    )
  })
  return { ...success, entities: await entityCounter()(ctx.db, id) }
}

/**
 * Makes this the active workspace of the caller's session or API token.
 * @throws 403 WORKSPACES_INACTIVE, 404 WORKSPACE_NOT_FOUND
 */
export async function activate(ctx: Ctx, id: string) {
  const { actor, db } = ctx
  await assertWorkspacesActive(ctx)
  const access = actor.workspace?._id === id ? await getWorkspaceAccess(db, actor, id) : await switchWorkspace(ctx, id)
  return { ...toWorkspace(access), roles: access.roles }
}

const switchWorkspace = (ctx: Ctx, workspace: string) =>
  writeInvalidating(ctx, 'actors', async (tx) => {
    const { session = '', token } = ctx.actor
    const access = await getWorkspaceAccess(tx, ctx.actor, workspace)
    if (token) await tx.update(apiTokens).set({ activeWorkspace: workspace }).where(eq(apiTokens._id, token._id))
    else await tx.update(sessions).set({ workspace }).where(eq(sessions._id, session))
    return access
  })

/** Returns the names and logos of workspaces by id, for callers who see an object that belongs to them. */
export async function findWorkspaceSummaries(db: Db, ids: string[]) {
  const { _id, name, logo } = workspaces
  const rows = await db.select({ _id, name, logo }).from(workspaces).where(inArray(_id, ids))
  return new Map(rows.map((summary) => [summary._id, summary]))
}

async function assertMayCreate(ctx: Ctx) {
  const { creationPrivilegedRoles: roles } = await getSettings(ctx, workspaceSettings)
  if (roles.length && !ctx.actor.privileged && !ctx.actor.roles.some((role) => roles.includes(role)))
    throw new Problem(403, 'FORBIDDEN', 'Your roles do not allow you to create workspaces.')
}

/**
 * Requires that the tenant allows the labels. Those in `before` may stay when it no longer does.
 * @throws 400 INVALID_INPUT
 */
async function assertAllowedLabels(tenant: Tenant, labels: string[], before?: string[]) {
  const { labels: allowedLabels, allowNonLabeledWorkspaces } = await getSettings(tenant, workspaceSettings)
  const unknownLabel = allowedLabels.length
    ? labels.find((label) => !allowedLabels.includes(label) && !before?.includes(label))
    : undefined
  if (unknownLabel !== undefined)
    badRequest({
      path: '/labels',
      message: `Unknown label "${unknownLabel}". Use one of: ${allowedLabels.join(', ')}.`,
    })
  if (!labels.length && !allowNonLabeledWorkspaces && (!before || before.length))
    badRequest({ path: '/labels', message: 'A workspace must have at least one label.' })
}
