import { config } from '../../../config'
import { Problem } from '../../../core/problem'
import { Busy } from '../../../storage/errors'
import type { Tenant } from '../../../tenancy/tenants'
import { Turns } from '../../../tenancy/turns'
import { Child } from './child'

const WAITING = 100 // runs of one tenant
const PATIENCE = 10_000 // ms that a run waits for its turn
const IDLE = 120_000 // ms after which a process that nobody needs ends

const most = config.ATOLL_LAMBDA_PROCESSES
const turns = new Turns(most, WAITING, { each: Math.ceil(most / 2), patience: PATIENCE })

type Resting = { child: Child; timer: Timer }
const resting: Resting[] = []

/**
 * Does work with a sandbox of its own, when it is the tenant's turn. Processes are started when they are first needed, and
 * end when nobody needed them for two minutes. @throws 503 LAMBDA_BUSY
 */
export async function withSandbox<T>(tenant: Pick<Tenant, 'tenant'>, work: (child: Child) => Promise<T>): Promise<T> {
  let begun = false
  try {
    return await turns.take(tenant, async () => {
      begun = true
      const child = taken()
      try {
        return await work(child)
      } finally {
        give(child)
      }
    })
  } catch (error) {
    if (begun || !(error instanceof Busy)) throw error
    throw new Problem(503, 'LAMBDA_BUSY', 'Too many lambdas are running. Try again in a moment.', {
      headers: { 'retry-after': '1' },
    })
  }
}

function taken(): Child {
  // The one that was used last is the warmest.
  for (let one = resting.pop(); one; one = resting.pop()) {
    clearTimeout(one.timer)
    if (one.child.good) return one.child
  }
  return new Child()
}

/** A process that had to be ended is replaced at once: whoever comes next need not wait for that. */
function give(used: Child) {
  const child = used.good ? used : started()
  if (!child) return
  const timer = setTimeout(() => child.end(), IDLE).unref()
  resting.push({ child, timer })
}

/** Where the system refuses another process, whoever needs one is told. */
function started() {
  try {
    return new Child()
  } catch {}
}
