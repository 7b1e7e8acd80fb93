import { and, eq } from 'drizzle-orm'
import { type Ctx, type PublicCtx, reauthorize } from '../accounts/guard'
import { workspaces } from '../accounts/memberships/tables'
import { users } from '../accounts/tables'
import { badRequest, type FieldError, notFound, Problem } from '../core/problem'
import { getSettings } from '../platform/settings/tenant-settings'
import type { Db } from '../storage/port'
import { paymentsSettings } from './payments-settings'
import { type EntityType, subscriptions } from './tables'

/** Who pays: a user, or a workspace. */
export type Billable = { billableEntityType: EntityType; billableEntityId: string }

/** Who pays for what the caller does: the workspace that they act in, else they themselves. */
export const callerEntity = ({ actor }: Pick<Ctx, 'actor'>): Billable =>
  actor.workspace
    ? { billableEntityType: 'workspace', billableEntityId: actor.workspace._id }
    : { billableEntityType: 'user', billableEntityId: actor.user }

/** The subscriptions of one that pays. */
export const subscriptionsOfEntity = ({ billableEntityType: type, billableEntityId: id }: Billable) =>
  and(eq(subscriptions.billableEntityType, type), eq(subscriptions.billableEntityId, id))

/** Refuses (403) what is of another entity than the caller's, unless they are an admin. */
export function requireOwn<Thing extends Billable>(ctx: Pick<Ctx, 'actor'>, thing: Thing): Thing {
  const { user, workspace, token, privileged } = ctx.actor
  const { billableEntityType: type, billableEntityId: id } = thing
  // What is a user's own stays theirs in every workspace, but not by a token that was made for one.
  const own = type === 'user' ? id === user && !token?.bound : id === workspace?._id
  if (own || privileged) return thing
  throw new Problem(403, 'FORBIDDEN', 'You do not have access to this resource.')
}

/**
 * Whoever buys or cancels for a workspace has to be an admin of it, where the tenant wants that (`workspaceAdminsOnly`).
 * @throws 403
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

/** The same as a condition on lists, whatever the query says: nothing for admins. */
export const callerEntityFilter = (ctx: Pick<Ctx, 'actor'>): Billable | undefined =>
  ctx.actor.privileged ? undefined : callerEntity(ctx)

/** For whom an admin says that something is; nobody else's word counts. @throws 400, where half of it is said, too */
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
  const row = !id.includes('\0') && (await db.select({ _id: table._id }).from(table).where(eq(table._id, id)).get())
  if (!row) notFound(type)
}

/** Who calls a route that is open: a credential that is no good makes a guest. */
export const findActor = async (request: Request): Promise<PublicCtx['actor']> =>
  (await reauthorize(request, 'payments').catch(() => undefined))?.actor
