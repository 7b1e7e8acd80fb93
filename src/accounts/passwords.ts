import { availableParallelism } from 'node:os'
import type { Tenant } from '../tenancy/tenants'
import { Turns } from '../tenancy/turns'

/** How many are hashed at once: each takes a core and 19 MB for 30 ms, and one core is left to the event loop. */
export const AT_ONCE = Math.min(4, Math.max(1, availableParallelism() - 1))
const WAITING = 100 // of one tenant

const turns = new Turns(AT_ONCE, WAITING)

/**
 * How a password is hashed (RFC 9106): the first choice of OWASP's Password Storage Cheat Sheet, in KiB and passes. Bun always
 * uses one lane (p = 1) and tells that in the hash.
 */
export const PASSWORD_COST = { algorithm: 'argon2id', memoryCost: 19_456, timeCost: 2 } as const
const LEAST = 8 // KiB
const OURS = '$argon2id$v=19$m=19456,t=2,p=1$'

// Of a random text that nobody has kept.
const DECOY = `${OURS}aduKF6GQ1XnR6DdZOEHFT94sAlHK3CzpxC17T21umr0$yM25FqoNQ5LGDuGOPGfImkoHuZ1arV4BUEF0HbUxsL8`

/** argon2id, with a salt of its own. @throws 503 when too many wait. */
export const hashPassword = (tenant: Tenant, password: string) =>
  turns.take(tenant, () => Bun.password.hash(password, PASSWORD_COST))

/** The same for strangers who sign up: however many they are, nobody who signs in waits for them. */
export const hashNewcomersPassword = (tenant: Tenant, password: string) =>
  turns.takeLater(tenant, () => Bun.password.hash(password, PASSWORD_COST))

/** The KiB that are gone through to make a hash of argon2id; NaN for a hash of another kind. */
function workOf(hash: string) {
  const [, memory, times] = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=1\$/.exec(hash) ?? []
  return Number(memory) * Number(times)
}
const WORK = workOf(OURS)

/** With which passwords were hashed here before. */
const FORMER = '$argon2id$v=19$m=65536,t=2,p=1$'

/**
 * Whether a password is to be hashed anew at the next sign-in: one that took less work, or another way, and one of our former
 * hashes, whose time would tell who has an account. Other hashes that took more work stay as they are.
 */
export const isOutdated = (hash: string | null) => hash !== null && (!(workOf(hash) >= WORK) || hash.startsWith(FORMER))

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
    const memoryCost = Math.floor((WORK - workOf(hash ?? DECOY)) / PASSWORD_COST.timeCost)
    // Of nothing it makes no hash.
    if (memoryCost >= LEAST) await Bun.password.hash(password || ' ', { ...PASSWORD_COST, memoryCost })
    return fits && !!hash
  })
