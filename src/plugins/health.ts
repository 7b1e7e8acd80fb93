import { and, eq, isNull, lt, ne, or } from 'drizzle-orm'
import { now, toIsoString } from '../core/clock'
import type { Db, Tx } from '../storage/port'
import type { Tenant } from '../tenancy/tenants'
import { plugins } from './tables'

const REPEAT_INTERVAL_MS = 60_000 // ms between two records of the same state

type Row = Pick<typeof plugins.$inferSelect, 'lastError' | 'failed' | 'succeeded'>

/** Returns the health of a plugin: the newer of its last failure and its last success decides. */
export function toHealth({ lastError, failed, succeeded }: Row) {
  const failing = !!failed && (!succeeded || succeeded < failed)
  const status = failing ? ('failing' as const) : succeeded ? ('ok' as const) : ('unknown' as const)
  return { status, lastError, lastErrorAt: failed, lastSuccessAt: succeeded }
}

/** Records a failure of a plugin. `lastError` is a message for admins. */
export const recordFailure = (tx: Tx, plugin: string, lastError: string) => {
  const { _id, failed, succeeded } = plugins
  const hasChanged = or(
    ...[
      isNull(failed),
      lt(failed, toIsoString(now() - REPEAT_INTERVAL_MS)),
      isNull(plugins.lastError),
      ne(plugins.lastError, lastError),
    ],
    lt(failed, succeeded),
  )
  return tx
    .update(plugins)
    .set({ lastError, failed: toIsoString(now()) })
    .where(and(eq(_id, plugin), hasChanged))
}

export const recordSuccess = (tx: Tx, plugin: string) => {
  const { _id, failed, succeeded } = plugins
  const hasChanged = or(
    isNull(succeeded),
    lt(succeeded, toIsoString(now() - REPEAT_INTERVAL_MS)),
    lt(succeeded, failed),
  )
  return tx
    .update(plugins)
    .set({ succeeded: toIsoString(now()) })
    .where(and(eq(_id, plugin), hasChanged))
}

const CHANGE_INTERVAL_MS = 1_000 // ms between two records of different states
const lastSamples = new WeakMap<Db, Map<string, { well: boolean; at: number }>>()

/** Records the result of a proxied request at most once per interval. The request does not wait for the write. */
export function recordSampled({ db, write }: Tenant, plugin: string, error?: string) {
  const samples = lastSamples.get(db) ?? new Map<string, { well: boolean; at: number }>()
  lastSamples.set(db, samples)
  const [last, isOk, time] = [samples.get(plugin), error === undefined, performance.now()]
  if (last && time - last.at < (last.well === isOk ? REPEAT_INTERVAL_MS : CHANGE_INTERVAL_MS)) return
  samples.set(plugin, { well: isOk, at: time })
  write((tx) => (error === undefined ? recordSuccess(tx, plugin) : recordFailure(tx, plugin, error))).catch(() =>
    samples.delete(plugin),
  )
}
