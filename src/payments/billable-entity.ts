import { and, eq } from 'drizzle-orm'
import type { Ctx, PublicCtx } from '../accounts/context'
import { reauthorize } from '../accounts/guard'
import { workspaces } from '../accounts/memberships/tables'
import { users } from '../accounts/tables'
import { badRequest, type FieldError, notFound, Problem } from '../core/problem'
import { getSettings } from '../platform/settings/tenant-settings'
import type { Db } from '../storage/port'
import { paymentsSettings } from './payments-settings'
import { type EntityType, subscriptions } from './tables'

/** A user or a workspace that pays for subscriptions. */
export type Billable = { billableEntityType: EntityType; billableEntityId: string }

/** Returns the entity that pays for the caller: the caller's active workspace, or else the user. */
export const callerEntity = ({ actor }: Pick<Ctx, 'actor'>): Billable =>
  actor.workspace
    ? { billableEntityType: 'workspace', billableEntityId: actor.workspace._id }
    : { billableEntityType: 'user', billableEntityId: actor.user }

/** Returns the condition that a subscription belongs to an entity. */
export const subscriptionsOfEntity = ({ billableEntityType: type, billableEntityId: id }: Billable) =>
  and(eq(subscriptions.billableEntityType, type), eq(subscriptions.billableEntityId, id))

/** Returns `thing` if it belongs to the caller's entity, or the caller is an admin. @throws 403 FORBIDDEN otherwise */
export function requireOwn<Thing extends Billable>(ctx: Pick<Ctx, 'actor'>, thing: Thing): Thing {
  const { user, workspace, token, privileged } = ctx.actor
  const { billableEntityType: type, billableEntityId: id } = thing
  // Users reach their own things in every workspace, but not with a token that is bound to one.
  const own = type === 'user' ? id === user && !token?.bound : id === workspace?._id
  if (own || privileged) return thing
  throw new Problem(403, 'FORBIDDEN', 'You do not have access to this resource.')
}

/**
 * With the setting `workspaceAdminsOnly`, only admins of a workspace may buy or cancel for it.
 * @throws 403 FORBIDDEN when the caller is not one of them
 */
export async function requireBuyer(ctx: Ctx, { billableEntityType: type, billableEntityId: id }: Billable) {
  const { workspace, privileged } = ctx.actor
  if (type !== 'workspace' || privileged || (workspace?._id === id && workspace.roles.includes('admin'))) return
  if (!(await getSettings(ctx, paymentsSettings)).workspaceAdminsOnly) return
  throw new Problem(
    403,
    'FORBIDDEN',
    'Only admins of the workspace may subscribe, pay or cancel for it. Ask one of them.',
  )
}

/** Returns the filter that limits lists to the caller's entity, or undefined for admins. It overrides the query. */
export const callerEntityFilter = (ctx: Pick<Ctx, 'actor'>): Billable | undefined =>
  ctx.actor.privileged ? undefined : callerEntity(ctx)

/**
 * Returns the entity that an admin names, or undefined if there is none. The input of other callers is ignored.
 * @throws 400 INVALID_INPUT when the type or the id is missing or invalid
 */
export function entityFromInput(
  { actor }: Pick<Ctx, 'actor'>,
  { billableEntityType: type, billableEntityId: id }: { billableEntityType?: unknown; billableEntityId?: unknown },
): Billable | undefined {
  const absent = (value: unknown) => value === undefined || value === null
  if (!actor.privileged || (absent(type) && absent(id))) return
  const flaws: FieldError[] = []
  const isKnownType = type === 'user' || type === 'workspace'
  if (!isKnownType)
    flaws.push({ path: '/billableEntityType', message: 'billableEntityType must be user or workspace.' })
  if (typeof id !== 'string' || !id || id.length > 128)
    flaws.push({ path: '/billableEntityId', message: 'billableEntityId must be the id of a user or a workspace.' })
  if (flaws.length) badRequest(...flaws)
  return { billableEntityType: type as EntityType, billableEntityId: id as string }
}

/** @throws 404 USER_NOT_FOUND, WORKSPACE_NOT_FOUND */
export async function assertEntityExists(
  db: Pick<Db, 'select'>,
  { billableEntityType: type, billableEntityId: id }: Billable,
) {
  const table = type === 'user' ? users : workspaces
  const row = await db.select({ _id: table._id }).from(table).where(eq(table._id, id)).get()
  if (!row) notFound(type)
}

/** Returns the caller of an open route. A caller with an invalid credential counts as a guest. */
export const findActor = async (request: Request): Promise<PublicCtx['actor']> =>
  (await reauthorize(request, 'payments').catch(() => undefined))?.actor // an invalid credential counts as none
