import { Busy } from '../storage/errors'
import type { Tenant } from '../tenancy/tenants'

const AT_ONCE = 2 // each takes a core and 64 MB for 100 ms, beside the event loop
const WAITING = 100 // of one tenant

let running = 0
const queues = new Map<string, (() => void)[]>()

/** argon2id, with a salt of its own. @throws 503 when too many wait. */
export const hashPassword = (tenant: Tenant, password: string) =>
  inTurn(tenant, () => Bun.password.hash(password, 'argon2id'))

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
  inTurn(tenant, async () => {
    await before()
    const fits = await Bun.password.verify(password, hash ?? DECOY)
    return fits && !!hash
  })

// Of a random text that nobody has kept, with the same parameters as `hashPassword`.
const DECOY =
  '$argon2id$v=19$m=65536,t=2,p=1$K7f2rUOqgNJBTTgFOrdpIe+zkpmUJ6NxyyKo0csrzYE$hWBszCyQ4QfoSTPQC77vg0Sy52Sb9vK8mCHDigUgrqU'

/** Tenants take turns, so that a flood at one of them delays only its own. */
async function inTurn<T>(tenant: Tenant, work: () => Promise<T>): Promise<T> {
  const queue = queues.get(tenant.tenant) ?? []
  if (queue.length >= WAITING) throw new Busy()
  if (running >= AT_ONCE) {
    queues.set(tenant.tenant, queue)
    await new Promise<void>((resolve) => queue.push(resolve))
  } else running++
  try {
    return await work()
  } finally {
    // The place is handed on, or else somebody who comes just now would overtake.
    const [next] = queues
    if (next) {
      const [name, queue] = next
      queues.delete(name)
      const resolve = queue.shift()
      if (queue.length) queues.set(name, queue)
      resolve?.()
    } else running--
  }
}
