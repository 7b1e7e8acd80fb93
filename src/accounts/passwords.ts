import { availableParallelism } from 'node:os'
import type { Tenant } from '../tenancy/tenants'
import { Turns } from '../tenancy/turns'

/** How many are hashed at once: each takes a core and 64 MB for 100 ms, and one core is left to the event loop. */
export const AT_ONCE = Math.min(4, Math.max(1, availableParallelism() - 1))
const WAITING = 100 // of one tenant

const turns = new Turns(AT_ONCE, WAITING)

/** How a password is hashed (RFC 9106), and how that is told in the hash. */
const COST = { algorithm: 'argon2id', memoryCost: 65_536, timeCost: 2 } as const
const LEAST = 8 // KiB
const OURS = '$argon2id$v=19$m=65536,t=2,p=1$'

// Of a random text that nobody has kept.
const DECOY = `${OURS}K7f2rUOqgNJBTTgFOrdpIe+zkpmUJ6NxyyKo0csrzYE$hWBszCyQ4QfoSTPQC77vg0Sy52Sb9vK8mCHDigUgrqU`

/** argon2id, with a salt of its own. @throws 503 when too many wait. */
export const hashPassword = (tenant: Tenant, password: string) =>
  turns.take(tenant, () => Bun.password.hash(password, COST))

/** The same for strangers who sign up: however many they are, nobody who signs in waits for them. */
export const hashNewcomersPassword = (tenant: Tenant, password: string) =>
  turns.takeLater(tenant, () => Bun.password.hash(password, COST))

/** What a hash of argon2id lacks of the work of ours: the KiB that have to be gone through once more. */
function restOf(hash: string) {
  const [, memory, times] = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=1\$/.exec(hash) ?? []
  return COST.memoryCost - Math.ceil((Number(memory) * Number(times)) / COST.timeCost)
}

/** Whether a password was hashed in another way than it would be now. */
export const isOutdated = (hash: string | null) => hash !== null && !hash.startsWith(OURS)

/**
 * Takes as long for a user who doesn't exist (no hash), or whose hash costs less than ours, as for any other. `before` runs
 * when it is this attempt's turn, and may throw: of many attempts at once, each sees how those before it ended.
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
    const memoryCost = restOf(hash ?? DECOY)
    // Of nothing it makes no hash.
    if (memoryCost >= LEAST) await Bun.password.hash(password || ' ', { ...COST, memoryCost })
    return fits && !!hash
  })
