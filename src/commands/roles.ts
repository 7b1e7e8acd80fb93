import { listRoles } from '../accounts/users/roles'
import { findNearestKey } from '../core/nearest-key'
import { badRequest } from '../core/problem'
import type { Tenant } from '../tenancy/tenants'

/**
 * Checks the names of roles. Any word can be a role, so a new one only prints a notice.
 * @throws 400 INVALID_INPUT for a name that looks like a misspelled role
 */
export async function requireKnownRoles(tenant: Tenant, names: string[]) {
  const knownRoles = [...(await listRoles(tenant)), 'editor']
  for (const name of names) {
    if (knownRoles.includes(name)) continue
    const nearest = findNearestKey(name, knownRoles, 1)
    if (nearest) badRequest({ path: '--roles', message: `There is no role "${name}". Did you mean "${nearest}"?` })
    console.error(`"${name}" is a new role in this tenant. It grants nothing until a rule or setting refers to it.`)
  }
}
