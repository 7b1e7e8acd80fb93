import { availableParallelism } from 'node:os'
import { FairSemaphore } from '../tenancy/fair-semaphore'
import type { Tenant } from '../tenancy/tenants'
import { passwordCost } from './password-cost'

/** How many are hashed at once: each takes a core and 19 MB for 30 ms, and one core is left to the event loop. */
export const HASH_CONCURRENCY = Math.min(4, Math.max(1, availableParallelism() - 1))
const MAX_WAITING_PER_TENANT = 100 // of one tenant

const hashQueue = new FairSemaphore(HASH_CONCURRENCY, MAX_WAITING_PER_TENANT)

const MIN_MEMORY_COST_KIB = 8

const toHashOptions = ({ memoryCost, timeCost } = passwordCost) => ({
  algorithm: 'argon2id' as const,
  memoryCost,
  timeCost,
})

/** argon2id, with a salt of its own. @throws 503 when too many wait. */
export const hashPassword = (tenant: Tenant, password: string) =>
  hashQueue.run(tenant, () => Bun.password.hash(password, toHashOptions()))

/** The same for strangers who sign up: however many they are, nobody who signs in waits for them. */
export const hashSignupPassword = (tenant: Tenant, password: string) =>
  hashQueue.runLowPriority(tenant, () => Bun.password.hash(password, toHashOptions()))

/** The KiB that are gone through to make a hash of argon2id; NaN for a hash of another kind. */
function computeHashCost(hash: string) {
  const [, memory, times] = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=1\$/.exec(hash) ?? []
  return Number(memory) * Number(times)
}
const getStandardCost = () => passwordCost.memoryCost * passwordCost.timeCost

/** With which passwords were hashed here before. */
const FORMER_HASH_PREFIX = '$argon2id$v=19$m=65536,t=2,p=1$'

/**
 * Whether a password is to be hashed anew at the next sign-in: one that took less work, or another way, and one of our former
 * hashes, whose time would tell who has an account. Other hashes that took more work stay as they are.
 */
export const needsRehash = (hash: string | null) =>
  hash !== null && (!(computeHashCost(hash) >= getStandardCost()) || hash.startsWith(FORMER_HASH_PREFIX))

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
    const compared = hash ?? passwordCost.decoyHash
    const isMatch = await Bun.password.verify(password, compared)
    const memoryCost = Math.floor((getStandardCost() - computeHashCost(compared)) / passwordCost.timeCost)
    // Bun makes no hash of an empty text.
    if (memoryCost >= MIN_MEMORY_COST_KIB)
      await Bun.password.hash(password || ' ', toHashOptions({ ...passwordCost, memoryCost }))
    return isMatch && !!hash
  })
