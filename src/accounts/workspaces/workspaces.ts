import { and, eq, inArray } from 'drizzle-orm'
import { iso, now } from '../../core/clock'
import type { Answer } from '../../core/etag'
import { invalid, Problem } from '../../core/problem'
import { success } from '../../core/shapes'
import { answerPage, type Listing, paged, pageOf } from '../../storage/lists'
import type { Db } from '../../storage/port'
import { changing } from '../../tenancy/memory'
import type { Tenant } from '../../tenancy/tenants'
import type { Ctx } from '../guard'
import { noteCreated } from '../idempotency/claim'
import { endWith } from '../leaving'
import { settingsOf } from '../settings'
import { apiTokens, sessions } from '../tables'
import { discardSealed } from '../vault/vault'
import { tell } from './events'
import { replaceInvites } from './invites'
import { administered, reach, refuseBound, refuseInactive, within } from './reach'
import { assertMayGiveRoles, assertMayLabel, restrictionsFor } from './restrictions'
import type { NewWorkspace, WorkspaceChange } from './shapes'
import { shown, whole } from './shown'
import { members, workspaces } from './tables'

/** The area that keeps entities, which this one does not know. */
let countEntities: (db: Db, workspace: string) => Promise<number>
export const entitiesAreCountedBy = (count: typeof countEntities) => {
  countEntities = count
}

export const sortable = {
  _id: workspaces._id,
  name: workspaces.name,
  created: workspaces.created,
  updated: workspaces.updated,
}

/** A page of the workspaces that the caller is a member of, newest first. */
export async function list({ db, actor }: Ctx, query: Listing, answer: Answer) {
  const page = pageOf(query, sortable)
  const those = and(eq(members.user, actor.user), within(actor, members.workspace))
  const rows = await paged(
    page,
    db
      .select({ workspace: workspaces, roles: members.roles })
      .from(members)
      .innerJoin(workspaces, eq(workspaces._id, members.workspace))
      .where(those),
  )
  return answerPage(answer, page, rows.map(shown), () => db.$count(members, those))
}

/** One workspace with its members, and for those who administer it, invites. @throws 404 */
export const get = async ({ db, actor }: Ctx, id: string) => whole(db, await reach(db, actor, id))

/** A new workspace, which its creator administers. @throws 400, 403 */
export async function create(ctx: Ctx, { name, logo, labels = [] }: NewWorkspace) {
  refuseBound(ctx)
  await refuseInactive(ctx)
  await refuseCreator(ctx)
  await refuseLabels(ctx, labels)
  const restricted = await restrictionsFor(ctx)
  assertMayLabel(restricted, labels)
  assertMayGiveRoles(restricted, ['admin'])
  const [_id, time] = [Bun.randomUUIDv7(), iso(now())]
  const workspace = { _id, name, logo: logo || null, labels: [...new Set(labels)], created: time, updated: time }
  await ctx.write(async (tx) => {
    await tx.insert(workspaces).values(workspace)
    await noteCreated(tx, `/api/workspaces/${_id}`)
    await tx.insert(members).values({ workspace: _id, user: ctx.actor.user, roles: ['admin'], created: time })
    await tell(ctx, tx, _id, { kind: 'workspace', eventName: 'workspace-created' }, { name })
  })
  return whole(ctx.db, { workspace, roles: ['admin'], administers: true })
}

/** Changes what it mentions. @throws 400, 403, 404 */
export async function change(ctx: Ctx, id: string, { name, logo, labels, invites }: WorkspaceChange) {
  const { workspace: before } = await administered(ctx.db, ctx.actor, id)
  if (labels) await refuseLabels(ctx, labels, before.labels)
  const restricted = await restrictionsFor(ctx)
  const changed = await changing(ctx, 'actors', async (tx) => {
    const found = await administered(tx, ctx.actor, id)
    if (labels) assertMayLabel(restricted, labels, found.workspace.labels)
    const fields = {
      ...(name !== undefined && { name }),
      ...(logo !== undefined && { logo: logo || null }),
      ...(labels && { labels: [...new Set(labels)] }),
      updated: iso(now()),
    }
    if (invites) await replaceInvites(ctx, tx, id, invites, restricted)
    const workspace = await tx.update(workspaces).set(fields).where(eq(workspaces._id, id)).returning().get()
    return { ...found, workspace }
  })
  return whole(ctx.db, changed)
}

/** Removes a workspace with its memberships, invites, tokens, secrets and what else ends with it. The entities that were made in it stay. */
export async function remove(ctx: Ctx, id: string) {
  await changing(ctx, 'actors', async (tx) => {
    const { workspace } = await administered(tx, ctx.actor, id)
    await tx.delete(apiTokens).where(eq(apiTokens.workspace, id))
    await discardSealed(tx, 'workspace', id)
    await endWith(ctx, tx, { type: 'workspace', id })
    await tx.delete(workspaces).where(eq(workspaces._id, id))
    await tell(ctx, tx, id, { kind: 'workspace', eventName: 'workspace-deleted' }, { name: workspace.name })
  })
  return { ...success, entities: await countEntities(ctx.db, id) }
}

/** Makes it the active workspace of the caller's session, or of their API token. @throws 403, 404 */
export async function activate(ctx: Ctx, id: string) {
  const { actor, db } = ctx
  await refuseInactive(ctx)
  const found = actor.workspace?._id === id ? await reach(db, actor, id) : await entered(ctx, id)
  return { ...shown(found), roles: found.roles }
}

const entered = (ctx: Ctx, workspace: string) =>
  changing(ctx, 'actors', async (tx) => {
    const { session = '', token } = ctx.actor
    const found = await reach(tx, ctx.actor, workspace)
    if (token) await tx.update(apiTokens).set({ activeWorkspace: workspace }).where(eq(apiTokens._id, token._id))
    else await tx.update(sessions).set({ workspace }).where(eq(sessions._id, session))
    return found
  })

/** Workspaces as those see them who see something that is theirs, by id. */
export async function workspaceCardsOf(db: Db, ids: string[]) {
  const { _id, name, logo } = workspaces
  const found = await db.select({ _id, name, logo }).from(workspaces).where(inArray(_id, ids))
  return new Map(found.map((card) => [card._id, card]))
}

async function refuseCreator(ctx: Ctx) {
  const { creationPrivilegedRoles: roles } = await settingsOf(ctx, 'workspace-configuration')
  if (roles.length && !ctx.actor.privileged && !ctx.actor.roles.some((role) => roles.includes(role)))
    throw new Problem(403, 'FORBIDDEN', 'Your roles do not allow you to make workspaces.')
}

/** Labels that it has already may stay, whatever the tenant has set since. */
async function refuseLabels(tenant: Tenant, labels: string[], before?: string[]) {
  const { labels: known, allowNonLabeledWorkspaces } = await settingsOf(tenant, 'workspace-configuration')
  const unknown = known.length ? labels.find((label) => !known.includes(label) && !before?.includes(label)) : undefined
  if (unknown !== undefined)
    invalid({ path: '/labels', message: `There is no label "${unknown}". Choose among ${known.join(', ')}.` })
  if (!labels.length && !allowNonLabeledWorkspaces && (!before || before.length))
    invalid({ path: '/labels', message: 'A workspace needs a label here.' })
}
