import { roles } from '../accounts/users/roles'
import { nearestKey } from '../core/nearest-key'
import { invalid } from '../core/problem'
import type { Tenant } from '../tenancy/tenants'

/** Any word can be a role, so only what looks like a misspelled one is refused; a new one is pointed out. */
export async function requireKnownRoles(tenant: Tenant, names: string[]) {
  const known = [...(await roles(tenant)), 'editor']
  for (const name of names) {
    if (known.includes(name)) continue
    const nearest = nearestKey(name, known, 1)
    if (nearest) invalid({ path: '--roles', message: `There is no role "${name}". Did you mean "${nearest}"?` })
    console.error(`"${name}" is a new role in this tenant: it opens only what a rule or setting grants to it.`)
  }
}
