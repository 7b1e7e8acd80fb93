import { eq } from 'drizzle-orm'
import { invalid, missing, Problem } from '../core/problem'
import { keptNameOf } from '../core/request-name'
import { emit } from '../jobs/outbox'
import { recall } from '../tenancy/memory'
import type { Tenant } from '../tenancy/tenants'
import type { Actor } from './actors'
import { isPrivileged } from './permissions'
import { users } from './tables'
import { reach, refuseInactive } from './workspaces/reach'

/** As whom a caller asks, and in which workspace. */
export type Guise = { user: string; workspace: string }

/** What the headers of a request say of that; nothing for nearly all. An empty one says nothing. */
export function guiseOf({ headers }: Request): Guise | undefined {
  const [user, workspace] = [headers.get('x-impersonate-user'), headers.get('x-impersonate-workspace')]
  if (user || workspace) return { user: user ?? '', workspace: workspace ?? '' }
}

/**
 * The user whom a privileged caller stands in for, with that user's own roles, and no more than the caller's API token is
 * good for. Without a workspace they are in none. @throws 400, 401, 403, 404 USER_NOT_FOUND, WORKSPACE_NOT_FOUND
 */
export async function impersonated(tenant: Tenant, caller: Actor | undefined, guise: Guise): Promise<Actor> {
  if (!caller) throw new Problem(401, 'UNAUTHENTICATED', 'Sign in first: only admins may act as somebody else.')
  if (!caller.privileged) throw new Problem(403, 'FORBIDDEN', 'Only admins may act as somebody else.')
  if (!guise.user)
    return invalid({ path: 'x-impersonate-user', message: 'Say as whom you act, too: x-impersonate-user.' })
  const { token } = caller
  // A token that was made for one workspace is good for no other, whoever acts.
  const workspace = guise.workspace || (token?.bound ? caller.workspace!._id : '')
  if (token?.bound && workspace !== caller.workspace!._id) missing('workspace')
  const known = await recall(tenant, 'actors', `as ${JSON.stringify([guise.user, workspace])}`, () =>
    standingIn(tenant, guise.user, workspace),
  )
  const { via, scopes, user: impersonator } = caller
  return { ...(known ?? missing('user')), via, scopes, impersonator, ...(token?.bound && { token }) }
}

async function standingIn(tenant: Tenant, user: string, workspace: string) {
  const { db } = tenant
  const row = await db.select({ roles: users.roles }).from(users).where(eq(users._id, user)).get()
  if (!row) return
  const actor = { user, roles: row.roles, privileged: isPrivileged(row.roles), workspace: null }
  if (!workspace) return actor
  const found = await reach(db, actor, workspace)
  await refuseInactive(tenant)
  const { _id, name, labels } = found.workspace
  return { ...actor, workspace: { _id, name, labels, roles: found.roles } }
}

/** Has each write of a request tell who stands behind it, until one is kept that does. */
export function recording(request: Request, { tenant, write }: Tenant, actor: Actor): Tenant['write'] {
  let told = false
  const { method, url } = request
  const metadata = {
    impersonator: actor.impersonator,
    user: actor.user,
    method,
    path: URL.parse(url)?.pathname.slice(0, 500),
    requestId: keptNameOf(request),
  }
  const happened = { source: 'accounts', kind: 'impersonation', eventName: 'impersonation', metadata }
  const by = { user: actor.impersonator, workspace: actor.workspace?._id }
  return async (work, manner) => {
    const result = await write(async (tx) => {
      if (!told) await emit({ tenant }, tx, { ...happened, ...by })
      return work(tx)
    }, manner)
    told = true
    return result
  }
}
