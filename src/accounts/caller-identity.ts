import type { Caller } from '../http/idempotency/execution'
import { clientNetwork } from '../tenancy/client-connection'
import type { Tenant } from '../tenancy/tenants'
import type { Actor } from './actors'
import { authenticate } from './authentication'
import { readSessionCookie } from './cookies'
import { readImpersonationTarget } from './impersonation'

/** The caller to whom an Idempotency-Key belongs. An invalid credential makes a guest here; the guard refuses it later. */
export async function identifyCaller(request: Request, tenant: Tenant): Promise<Caller> {
  const actor = await findActor(request, tenant).catch(() => undefined)
  return { name: toCallerName(request, tenant, actor), rights: toRights(actor), isGuest: !actor }
}

async function findActor(request: Request, tenant: Tenant): Promise<Actor | undefined> {
  const authentication = await authenticate(request, tenant)
  return authentication && ('actor' in authentication ? authentication.actor : authentication.session?.actor)
}

/**
 * A caller in another workspace or with fewer scopes is another caller. A guest may come with a credential of another kind,
 * such as a refresh token, so neighbours in one network have a name each.
 */
function toCallerName(request: Request, tenant: Tenant, actor: Actor | undefined) {
  const impersonation = readImpersonationTarget(request)
  const as = impersonation ? ` ${actor?.privileged} as ${JSON.stringify(impersonation)}` : ''
  if (actor) {
    const kind = actor.session ? 'user' : actor.token?.bound ? 'bound' : 'program'
    return `${kind} ${actor.user} ${actor.workspace?._id} ${actor.scopes.join()}${as}`
  }
  const { headers } = request
  const credentials = [headers.get('x-api-key'), headers.get('authorization'), readSessionCookie(request, tenant)]
  return `guest ${clientNetwork(request)} ${JSON.stringify(credentials)}`
}

/** The roles of an actor, and those in the active workspace with its labels. */
const toRights = (actor: Actor | undefined): string[] => [
  ...(actor?.roles ?? []).map((role) => `role ${role}`),
  ...(actor?.workspace?.roles ?? []).map((role) => `workspace role ${role}`),
  ...(actor?.workspace?.labels ?? []).map((label) => `label ${label}`),
]
