import { config } from '../../config'
import { HOUR_MS } from '../../core/clock'
import { FairShare } from '../../core/fair-share'
import { Problem } from '../../core/problem'
import type { WorkOwner } from '../../core/turn-queue'
import { SandboxProcess } from './sandbox-process'

const TURN_MS = 50 // a run that takes longer costs its tenant and caller more than a turn

const busyProblem = () =>
  new Problem(503, 'LAMBDA_BUSY', 'Too many lambdas are running. Try again in a moment.', {
    headers: { 'retry-after': '1' },
  })

/**
 * A pool of processes in which lambdas run. A process is started when it is first needed, is reused by later runs, and
 * ends after it has been idle for some time.
 */
export class SandboxPool {
  #share: FairShare
  #idle: { child: SandboxProcess; timer: Timer }[] = []

  constructor(
    private limits: {
      /** The maximum number of processes; one tenant gets at most half of them. */
      maxProcesses: number
      /** How many runs of one tenant may wait, and how long (ms). */
      maxWaiting: number
      waitTimeoutMs: number
      /** ms after which an idle process ends, and after which the last idle one does. */
      idleTimeoutMs: number
      lastIdleTimeoutMs: number
    },
  ) {
    const { maxProcesses, maxWaiting, waitTimeoutMs } = limits
    this.#share = new FairShare({
      running: { total: maxProcesses, perTenant: Math.ceil(maxProcesses / 2) },
      waiting: { perTenant: maxWaiting, timeoutMs: waitTimeoutMs },
      turnMs: TURN_MS,
      createRefusal: busyProblem,
    })
  }

  /** Runs `work` with a process of its own when it is the caller's turn. @throws 503 LAMBDA_BUSY */
  use<T>(owner: WorkOwner, work: (child: SandboxProcess) => Promise<T>): Promise<T> {
    return this.#share.run(owner, async () => {
      const child = this.#acquire()
      try {
        return await work(child)
      } finally {
        this.#release(child)
      }
    })
  }

  /** Ensures that an idle process is waiting for the next run, and restarts its idle time. */
  prewarm() {
    const [first, ...others] = this.#idle
    if (first) clearTimeout(first.timer)
    this.#idle = others
    const child = first?.child.isReusable ? first.child : tryStartProcess()
    if (child) this.#idle.unshift(this.#withIdleTimer(child, this.limits.lastIdleTimeoutMs))
  }

  #acquire(): SandboxProcess {
    // The process that was used last is the warmest.
    for (let resting = this.#idle.pop(); resting; resting = this.#idle.pop()) {
      clearTimeout(resting.timer)
      if (resting.child.isReusable) return resting.child
    }
    return new SandboxProcess()
  }

  /** A process that was killed is replaced at once, so that the next run need not wait for a start. */
  #release(used: SandboxProcess) {
    const child = used.isReusable ? used : tryStartProcess()
    const { idleTimeoutMs, lastIdleTimeoutMs } = this.limits
    if (child) this.#idle.push(this.#withIdleTimer(child, this.#idle.length ? idleTimeoutMs : lastIdleTimeoutMs))
  }

  #withIdleTimer(child: SandboxProcess, time: number) {
    return { child, timer: setTimeout(() => child.kill(), time).unref() }
  }
}

/** Ignores a failed start here: the next run that needs a process reports it. */
function tryStartProcess() {
  try {
    return new SandboxProcess()
  } catch {}
}

/** The pool of this server. */
export const sandboxPool = new SandboxPool({
  maxProcesses: config.ATOLL_LAMBDA_PROCESSES,
  maxWaiting: 100,
  waitTimeoutMs: 10_000,
  idleTimeoutMs: 300_000,
  lastIdleTimeoutMs: 2 * HOUR_MS,
})
