import { isRejection } from '../core/problem'
import type { Caller } from '../http/idempotency/execution'
import { clientNetwork } from '../tenancy/client-connection'
import type { Tenant } from '../tenancy/tenants'
import type { Actor } from './actors'
import { authenticate } from './authentication'
import { readSessionCookie } from './cookies'
import { readImpersonationTarget } from './impersonation'

/**
 * Returns the caller to whom an Idempotency-Key belongs. An invalid credential counts as a guest here; the guard
 * rejects it later.
 * @throws 503 BUSY when the credential cannot be read: as a guest, the caller would not find the stored answer
 */
export async function identifyCaller(request: Request, tenant: Tenant): Promise<Caller> {
  const actor = await findActor(request, tenant).catch(ignoreRejection)
  return { name: toCallerName(request, tenant, actor), rights: toRights(actor), isGuest: !actor }
}

async function findActor(request: Request, tenant: Tenant): Promise<Actor | undefined> {
  const authentication = await authenticate(request, tenant)
  return authentication && ('actor' in authentication ? authentication.actor : authentication.session?.actor)
}

function ignoreRejection(error: unknown): undefined {
  if (!isRejection(error)) throw error
}

/**
 * The same user in another workspace or with other scopes is another caller. A guest may send a credential of another
 * kind, such as a refresh token, so guests of one network have different names.
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

/** Returns the roles of an actor, and the roles and labels of their active workspace. */
const toRights = (actor: Actor | undefined): string[] => [
  ...(actor?.roles ?? []).map((role) => `role ${role}`),
  ...(actor?.workspace?.roles ?? []).map((role) => `workspace role ${role}`),
  ...(actor?.workspace?.labels ?? []).map((label) => `label ${label}`),
]
