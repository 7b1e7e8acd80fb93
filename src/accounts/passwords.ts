import { availableParallelism } from 'node:os'
import { FairShare } from '../core/fair-share'
import type { WorkOwner } from '../core/turn-queue'
import { passwordCost } from './password-cost'

/**
 * How many passwords are hashed at once. Each takes a core and 19 MB for 30 ms, and one core is left to the event loop.
 */
export const HASH_CONCURRENCY = Math.min(4, Math.max(1, availableParallelism() - 1))

const hashShare = new FairShare({ running: { total: HASH_CONCURRENCY }, waiting: { perTenant: 100 } })

const MIN_MEMORY_COST_KIB = 8

const toHashOptions = ({ memoryCost, timeCost } = passwordCost) => ({
  algorithm: 'argon2id' as const,
  memoryCost,
  timeCost,
})

/**
 * Returns the argon2id hash of a password, with a salt of its own.
 * @throws 503 BUSY when too many passwords of the tenant wait
 */
export const hashPassword = (owner: WorkOwner, password: string) =>
  hashShare.run(owner, () => Bun.password.hash(password, toHashOptions()))

/**
 * Returns the hash of a password for a sign-up. It never delays a sign-in, however many users sign up at once.
 * @throws 503 BUSY when too many passwords of the tenant wait
 */
export const hashSignupPassword = (owner: WorkOwner, password: string) =>
  hashShare.run(owner, () => Bun.password.hash(password, toHashOptions()), { isLowPriority: true })

/** Returns the cost of an argon2id hash: its memory (KiB) times its passes. Returns NaN for a hash of another kind. */
function computeHashCost(hash: string) {
  const [, memory, times] = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=1\$/.exec(hash) ?? []
  return Number(memory) * Number(times)
}
const getStandardCost = () => passwordCost.memoryCost * passwordCost.timeCost

/** The prefix of the hashes that earlier versions made. */
const FORMER_HASH_PREFIX = '$argon2id$v=19$m=65536,t=2,p=1$'

/**
 * Returns whether a password must be hashed again at the next sign-in: when its hash took less work, is of another
 * kind, or has the former cost, whose timing would reveal who has an account. Other hashes that took more work stay as
 * they are.
 */
export const needsRehash = (hash: string | null) =>
  hash !== null && (!(computeHashCost(hash) >= getStandardCost()) || hash.startsWith(FORMER_HASH_PREFIX))

/**
 * Returns whether a password matches a hash. This takes equally long for a user who does not exist (no hash) and for a
 * hash that costs less than the current ones. `beforeVerify` runs when it is this attempt's turn, and may throw: each
 * of several concurrent attempts sees the outcome of those before it.
 * @throws 503 BUSY when too many passwords of the tenant wait
 */
export const verifyPassword = (
  owner: WorkOwner,
  password: string,
  hash: string | null | undefined,
  beforeVerify: () => Promise<void>,
) =>
  hashShare.run(owner, async () => {
    await beforeVerify()
    const compared = hash ?? passwordCost.decoyHash
    const isMatch = await Bun.password.verify(password, compared)
    const memoryCost = Math.floor((getStandardCost() - computeHashCost(compared)) / passwordCost.timeCost)
    // Bun does not hash an empty password.
    if (memoryCost >= MIN_MEMORY_COST_KIB)
      await Bun.password.hash(password || ' ', toHashOptions({ ...passwordCost, memoryCost }))
    return isMatch && !!hash
  })
