import { availableParallelism } from 'node:os'
import { FairSemaphore } from '../tenancy/fair-semaphore'
import type { Tenant } from '../tenancy/tenants'

/** How many are hashed at once: each takes a core and 19 MB for 30 ms, and one core is left to the event loop. */
export const HASH_CONCURRENCY = Math.min(4, Math.max(1, availableParallelism() - 1))
const MAX_WAITING_PER_TENANT = 100 // of one tenant

const hashQueue = new FairSemaphore(HASH_CONCURRENCY, MAX_WAITING_PER_TENANT)

/**
 * How a password is hashed (RFC 9106): the first choice of OWASP's Password Storage Cheat Sheet, in KiB and passes. Bun always
 * uses one lane (p = 1) and tells that in the hash.
 */
export const PASSWORD_COST = { algorithm: 'argon2id', memoryCost: 19_456, timeCost: 2 } as const
const MIN_MEMORY_COST_KIB = 8 // KiB
const CURRENT_HASH_PREFIX = '$argon2id$v=19$m=19456,t=2,p=1$'

// Of a random text that nobody has kept.
const DECOY_HASH = `${CURRENT_HASH_PREFIX}aduKF6GQ1XnR6DdZOEHFT94sAlHK3CzpxC17T21umr0$yM25FqoNQ5LGDuGOPGfImkoHuZ1arV4BUEF0HbUxsL8`

/** argon2id, with a salt of its own. @throws 503 when too many wait. */
export const hashPassword = (tenant: Tenant, password: string) =>
  hashQueue.run(tenant, () => Bun.password.hash(password, PASSWORD_COST))

/** The same for strangers who sign up: however many they are, nobody who signs in waits for them. */
export const hashSignupPassword = (tenant: Tenant, password: string) =>
  hashQueue.runLowPriority(tenant, () => Bun.password.hash(password, PASSWORD_COST))

/** The KiB that are gone through to make a hash of argon2id; NaN for a hash of another kind. */
function computeHashCost(hash: string) {
  const [, memory, times] = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=1\$/.exec(hash) ?? []
  return Number(memory) * Number(times)
}
const CURRENT_HASH_COST = computeHashCost(CURRENT_HASH_PREFIX)

/** With which passwords were hashed here before. */
const FORMER_HASH_PREFIX = '$argon2id$v=19$m=65536,t=2,p=1$'

/**
 * Whether a password is to be hashed anew at the next sign-in: one that took less work, or another way, and one of our former
 * hashes, whose time would tell who has an account. Other hashes that took more work stay as they are.
 */
export const needsRehash = (hash: string | null) =>
  hash !== null && (!(computeHashCost(hash) >= CURRENT_HASH_COST) || hash.startsWith(FORMER_HASH_PREFIX))

/**
 * Takes as long for a user who doesn't exist (no hash), or whose hash costs less than ours, as for any other. `before` runs
 * when it is this attempt's turn, and may throw: of many attempts at once, each sees how those before it ended.
 */
export const verifyPassword = (
  tenant: Tenant,
  password: string,
  hash: string | null | undefined,
  beforeVerify: () => Promise<void>,
) =>
  hashQueue.run(tenant, async () => {
    await beforeVerify()
    const isMatch = await Bun.password.verify(password, hash ?? DECOY_HASH)
    const memoryCost = Math.floor((CURRENT_HASH_COST - computeHashCost(hash ?? DECOY_HASH)) / PASSWORD_COST.timeCost)
    // Of nothing it makes no hash.
    if (memoryCost >= MIN_MEMORY_COST_KIB) await Bun.password.hash(password || ' ', { ...PASSWORD_COST, memoryCost })
    return isMatch && !!hash
  })
