import type { Tx } from '../../../src/storage/port'
import type { Tenant } from '../../../src/tenancy/tenants'

/** What becomes of a process in the middle of something. */
export class Killed extends Error {
  constructor() {
    super('The process was killed.')
  }
}

/** When a process dies: at its nth write, before that is committed or when it was and nobody knows of it yet. */
export type Death = { at: number; committed: boolean }

/** A process that may die; from then on it changes nothing more, whatever it would do to clean up. */
export class Mortal {
  dead = false
  /** The tenant as this process has it. */
  readonly tenant: Tenant

  constructor(
    tenant: Tenant,
    /** Looks on while something is written, and at what that leaves. */
    watched: (tx: Tx, work: (tx: Tx) => Promise<unknown>) => Promise<void>,
    death?: Death,
  ) {
    let left = death?.at ?? Number.POSITIVE_INFINITY
    const write: Tenant['write'] = async (work) => {
      if (this.dead) throw new Killed()
      const dies = left-- === 0
      let value: Awaited<ReturnType<typeof work>>
      await tenant.write(async (tx) => {
        await watched(tx, async (tx) => {
          value = await work(tx)
        })
        if (dies) this.dead = true
        if (dies && !death?.committed) throw new Killed()
      })
      if (dies) throw new Killed()
      return value!
    }
    this.tenant = { ...tenant, write }
  }
}
