import type { Tenant } from '../tenancy/tenants'
import { Turns } from '../tenancy/turns'

const AT_ONCE = 2 // each takes a core and 64 MB for 100 ms, beside the event loop
const WAITING = 100 // of one tenant

const turns = new Turns(AT_ONCE, WAITING)

/** argon2id, with a salt of its own. @throws 503 when too many wait. */
export const hashPassword = (tenant: Tenant, password: string) =>
  turns.take(tenant, () => Bun.password.hash(password, 'argon2id'))

/**
 * Takes as long for a user who doesn't exist (no hash) as for one who does. `before` runs when it is this attempt's turn,
 * and may throw: of many attempts at once, each sees how those before it ended.
 */
export const verifyPassword = (
  tenant: Tenant,
  password: string,
  hash: string | null | undefined,
  before: () => Promise<void>,
) =>
  turns.take(tenant, async () => {
    await before()
    const fits = await Bun.password.verify(password, hash ?? DECOY)
    return fits && !!hash
  })

// Of a random text that nobody has kept, with the same parameters as `hashPassword`.
const DECOY =
  '$argon2id$v=19$m=65536,t=2,p=1$K7f2rUOqgNJBTTgFOrdpIe+zkpmUJ6NxyyKo0csrzYE$hWBszCyQ4QfoSTPQC77vg0Sy52Sb9vK8mCHDigUgrqU'
