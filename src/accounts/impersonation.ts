import { eq } from 'drizzle-orm'
import { badRequest, notFound, Problem } from '../core/problem'
import { pinRequestId } from '../core/request-id'
import { emit } from '../jobs/outbox'
import { wrapWrite } from '../storage/write-wrapper'
import { cached } from '../tenancy/cache'
import type { Tenant } from '../tenancy/tenants'
import type { Actor } from './actors'
import { assertWorkspacesActive, getWorkspaceAccess } from './memberships/workspace-access'
import { isPrivileged } from './permissions'
import { users } from './tables'

/** The user and the workspace that a caller impersonates; an empty string where a header is missing. */
export type ImpersonationTarget = { user: string; workspace: string }

/**
 * Returns what the impersonation headers of a request name, or undefined without any. An empty header counts as
 * missing.
 */
export function readImpersonationTarget({ headers }: Request): ImpersonationTarget | undefined {
  const [user, workspace] = [headers.get('x-impersonate-user'), headers.get('x-impersonate-workspace')]
  if (user || workspace) return { user: user ?? '', workspace: workspace ?? '' }
}

/**
 * Returns the user whom a privileged caller impersonates as an actor with that user's own roles, limited by the scopes
 * of the caller's API token. Without a workspace the actor has no active workspace, unless the token is bound to one.
 * @throws 400, 401, 403, 404 USER_NOT_FOUND, WORKSPACE_NOT_FOUND
 */
export async function impersonate(
  tenant: Tenant,
  caller: Actor | undefined,
  target: ImpersonationTarget,
): Promise<Actor> {
  if (!caller) throw new Problem(401, 'UNAUTHENTICATED', 'Sign in first. Only admins may impersonate users.')
  if (!caller.privileged) throw new Problem(403, 'FORBIDDEN', 'Only admins may impersonate users.')
  if (!target.user)
    return badRequest({ path: 'x-impersonate-user', message: 'The header x-impersonate-user is required.' })
  const { token } = caller
  // A bound token is only valid for its own workspace, also while it impersonates a user.
  const workspace = target.workspace || (token?.bound ? caller.workspace!._id : '')
  if (token?.bound && workspace !== caller.workspace!._id) notFound('workspace')
  const targetActor = await cached(tenant, 'actors', `as ${JSON.stringify([target.user, workspace])}`, () =>
    loadImpersonatedActor(tenant, target.user, workspace),
  )
  const { via, scopes, user: impersonator } = caller
  return { ...(targetActor ?? notFound('user')), via, scopes, impersonator, ...(token?.bound && { token }) }
}

async function loadImpersonatedActor(tenant: Tenant, user: string, workspace: string) {
  const { db } = tenant
  const row = await db.select({ roles: users.roles }).from(users).where(eq(users._id, user)).get()
  if (!row) return
  const actor = { user, roles: row.roles, privileged: isPrivileged(row.roles), workspace: null }
  if (!workspace) return actor
  const access = await getWorkspaceAccess(db, actor, workspace)
  await assertWorkspacesActive(tenant)
  const { _id, name, labels } = access.workspace
  return { ...actor, workspace: { _id, name, labels, roles: access.roles } }
}

/**
 * Returns a `write` that emits an event of the impersonation in each transaction of a request until one has committed.
 */
export function createAuditedWrite(request: Request, { tenant, write }: Tenant, actor: Actor): Tenant['write'] {
  let isRecorded = false
  const { method, url } = request
  const metadata = {
    impersonator: actor.impersonator,
    user: actor.user,
    method,
    path: URL.parse(url)?.pathname.slice(0, 500),
    requestId: pinRequestId(request),
  }
  const event = { source: 'accounts', kind: 'impersonation', eventName: 'impersonation', metadata }
  const by = { user: actor.impersonator, workspace: actor.workspace?._id }
  return wrapWrite(write, async (tx, work) => {
    if (!isRecorded) await emit({ tenant }, tx, { ...event, ...by })
    tx.afterCommit(() => {
      isRecorded = true
    })
    return work()
  })
}
