import type { Tx } from '../../../src/storage/port'
import type { Tenant } from '../../../src/tenancy/tenants'

/** The error that ends the work of a killed process. */
export class ProcessKilled extends Error {
  constructor() {
    super('The process was killed.')
  }
}

/** The write at which a process dies, before or just after the commit. */
export type CrashPoint = { at: number; committed: boolean }

/** No history needs so many writes of a process, unless a job is due again and again. */
const MOST_WRITES = 2_000

/** A process that may die; from then on all its writes fail, including those that would clean up. */
export class CrashingProcess {
  isDead = false
  /** Whether it writes without end. */
  isEndless = false
  /** The tenant whose writes fail once this process is dead. */
  readonly tenant: Tenant

  constructor(
    tenant: Tenant,
    /** Runs the work of a write and checks it. */
    checked: (tx: Tx, work: (tx: Tx) => Promise<unknown>) => Promise<void>,
    death?: CrashPoint,
  ) {
    let left = death?.at ?? Number.POSITIVE_INFINITY
    let writes = 0
    const write: Tenant['write'] = async (work) => {
      if (++writes > MOST_WRITES) this.isEndless = this.isDead = true
      if (this.isDead) throw new ProcessKilled()
      const dies = left-- === 0
      let value: Awaited<ReturnType<typeof work>>
      await tenant.write(async (tx) => {
        await checked(tx, async (tx) => {
          value = await work(tx)
        })
        if (dies) this.isDead = true
        if (dies && !death?.committed) throw new ProcessKilled()
      })
      if (dies) throw new ProcessKilled()
      return value!
    }
    this.tenant = { ...tenant, write }
  }
}
