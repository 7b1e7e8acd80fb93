import type { Tx } from '../../../src/storage/port'
import type { Tenant } from '../../../src/tenancy/tenants'

/** What becomes of a process in the middle of something. */
export class ProcessKilled extends Error {
  constructor() {
    super('The process was killed.')
  }
}

/** When a process dies: at its nth write, before that is committed or when it was and nobody knows of it yet. */
export type CrashPoint = { at: number; committed: boolean }

/** A process that may die; from then on it changes nothing more, whatever it would do to clean up. */
export class CrashingProcess {
  isDead = false
  /** The tenant as this process has it. */
  readonly tenant: Tenant

  constructor(
    tenant: Tenant,
    /** Looks on while something is written, and at what that leaves. */
    watched: (tx: Tx, work: (tx: Tx) => Promise<unknown>) => Promise<void>,
    death?: CrashPoint,
  ) {
    let left = death?.at ?? Number.POSITIVE_INFINITY
    const write: Tenant['write'] = async (work) => {
      if (this.isDead) throw new ProcessKilled()
      const dies = left-- === 0
      let value: Awaited<ReturnType<typeof work>>
      await tenant.write(async (tx) => {
        await watched(tx, async (tx) => {
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
