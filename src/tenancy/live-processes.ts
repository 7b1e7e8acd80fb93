import { config } from '../config'
import { PROCESS_ID, SERVER_RUN } from '../core/process-id'
import { Busy } from '../storage/errors'
import type { NameClaim } from '../storage/port'
import { isClaimed, tryClaim } from './databases'

const CLAIM_TIMEOUT_MS = 2_000
const CLAIM_RETRY_MS = 20

const claimNameOf = (processId: string) => `process ${processId}`

let claim: Promise<NameClaim> | undefined
let claimUsers = 0

/**
 * Lets other servers of the same database see that this process lives, until the result is disposed of. All users of a
 * process share one connection. Without PostgreSQL nothing is claimed.
 * @throws 503 BUSY when the database cannot be reached
 */
export async function claimProcess(): Promise<AsyncDisposable> {
  if (!config.ATOLL_DATABASE_URL) return { [Symbol.asyncDispose]: async () => {} }
  claimUsers++
  let isReleased = false
  const release = async () => {
    if (isReleased) return
    isReleased = true
    if (--claimUsers) return
    const last = claim
    claim = undefined
    await last?.then((held) => held[Symbol.asyncDispose]()).catch(() => {}) // the connection may be broken already
  }
  try {
    await renewProcessClaim()
  } catch (error) {
    await release()
    throw error
  }
  return { [Symbol.asyncDispose]: release }
}

/** Claims this process once more if its connection broke. @throws 503 BUSY when the database cannot be reached */
export async function renewProcessClaim() {
  const current = claim
  if (!claimUsers) return
  try {
    if (current) return await (await current).assertHeld()
  } catch {
    // The claim was lost with its connection.
  }
  // Another user may have renewed it meanwhile.
  if (claim === current) claim = claimNow()
  await claim
}

/**
 * Returns whether a process may be alive. The present process is. With PostgreSQL others are while they claim it. Of
 * the processes that share files, those of this run of the server may be: the leases of their work decide.
 */
export async function isProcessAlive(processId: string): Promise<boolean> {
  if (processId === PROCESS_ID) return true
  return config.ATOLL_DATABASE_URL ? isClaimed(claimNameOf(processId)) : processId.startsWith(SERVER_RUN)
}

async function claimNow(): Promise<NameClaim> {
  for (const until = performance.now() + CLAIM_TIMEOUT_MS; ; await Bun.sleep(CLAIM_RETRY_MS)) {
    // The database may not have noticed yet that the connection of a former claim has ended.
    const held = await tryClaim(claimNameOf(PROCESS_ID))
    if (held) return held
    if (performance.now() > until) throw new Busy()
  }
}
