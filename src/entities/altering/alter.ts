import { setTimeout as pause } from 'node:timers/promises'
import { modelOf } from '../../blueprints/blueprints'
import { comingOf, isAltering } from '../../blueprints/model'
import { config } from '../../config'
import { report } from '../../core/log'
import { Problem } from '../../core/problem'
import { holding, type Lease } from '../../jobs/holding'
import { Busy } from '../../storage/errors'
import type { Db } from '../../storage/port'
import { forget } from '../../tenancy/memory'
import { type Tenant, tenantNamed } from '../../tenancy/tenants'
import { clean } from './clean'
import { prepare } from './prepare'

const LENGTH = 10_000 // ms; this long nobody goes on after a process that died
const AGAIN = 1_000 // ms until the next attempt, whatever went wrong
const HEARD = 1_500 // ms; longer than another server relies on what it remembers

const working = new WeakMap<Db, Set<string>>()

/**
 * Goes on with the alteration of a blueprint's entities until nothing is left to do, slice by slice; one process at a time.
 * Wherever it is interrupted, all that is asked is answered by what is in force, and whoever uses the blueprint goes on.
 */
export function alter(tenant: Tenant, key: string): void {
  const keys = working.get(tenant.db) ?? new Set()
  working.set(tenant.db, keys)
  if (keys.has(key)) return
  keys.add(key)
  const over = (again?: number) => {
    keys.delete(key)
    if (again !== undefined) setTimeout(() => alter(tenant, key), Math.min(again, AGAIN)).unref()
  }
  attempt(tenant, key).then(over, (error) => {
    // The blueprint was removed meanwhile, or nobody may use the tenant now.
    const isGone = error instanceof Problem && [403, 404].includes(error.status)
    if (!isGone && !(error instanceof Busy))
      report('ALTERATION_INTERRUPTED', { tenant: tenant.tenant, cause: innermost(error) })
    over(isGone ? undefined : AGAIN)
  })
}

/** What is wrapped around it may quote what entities hold. */
const innermost = (error: unknown): string =>
  error instanceof Error && error.cause ? innermost(error.cause) : String(error)

/** Answers after how many ms there is to be another one, if any. */
async function attempt({ tenant: id }: Tenant, key: string): Promise<number | undefined> {
  // Not what a request has of it, whose writes may have to do with its answer.
  const tenant = await tenantNamed(id)
  const outcome = await holding(tenant, `alteration ${key}`, (held) => work(tenant, held, key), { length: LENGTH })
  return outcome.state === 'done' ? undefined : outcome.state === 'taken' ? outcome.left : AGAIN
}

async function work(tenant: Tenant, held: Tenant & Lease, key: string) {
  for (let rested = 0; ; ) {
    held.signal.throwIfAborted()
    const model = await modelOf(tenant, key)
    const { alteration } = model
    if (!alteration || !isAltering(model)) return
    const coming = comingOf(model)
    if (!coming && rested !== alteration.form && config.ATOLL_DATABASE_URL) {
      // Other servers may read by what was in force before until they have heard.
      await pause(HEARD, undefined, { signal: held.signal }).catch(() => {})
      rested = alteration.form
      continue
    }
    const goesOn = await (coming ? prepare(held, model, coming) : clean(held, model, alteration.form))
    if (!goesOn) forget(tenant, 'blueprints')
    await new Promise(setImmediate)
  }
}
