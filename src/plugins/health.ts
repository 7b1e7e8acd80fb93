import { and, eq, isNull, lt, ne, or } from 'drizzle-orm'
import { iso, now } from '../core/clock'
import type { Db, Tx } from '../storage/port'
import type { Tenant } from '../tenancy/tenants'
import { plugins } from './tables'

const FRESH = 60_000 // ms in which the same is not written down once more

type Row = Pick<typeof plugins.$inferSelect, 'lastError' | 'failed' | 'succeeded'>

/** Whether the other side does what it should: what it did last. */
export function shownHealth({ lastError, failed, succeeded }: Row) {
  const failing = !!failed && (!succeeded || succeeded < failed)
  const status = failing ? ('failing' as const) : succeeded ? ('ok' as const) : ('unknown' as const)
  return { status, lastError, lastErrorAt: failed, lastSuccessAt: succeeded }
}

/** Writes down that a plugin did not do what it should, in words for its admins. */
export const noteFailure = (tx: Tx, plugin: string, lastError: string) => {
  const { _id, failed, succeeded } = plugins
  const news = or(
    ...[isNull(failed), lt(failed, iso(now() - FRESH)), isNull(plugins.lastError), ne(plugins.lastError, lastError)],
    lt(failed, succeeded),
  )
  return tx
    .update(plugins)
    .set({ lastError, failed: iso(now()) })
    .where(and(eq(_id, plugin), news))
}

export const noteSuccess = (tx: Tx, plugin: string) => {
  const { _id, failed, succeeded } = plugins
  const news = or(isNull(succeeded), lt(succeeded, iso(now() - FRESH)), lt(succeeded, failed))
  return tx
    .update(plugins)
    .set({ succeeded: iso(now()) })
    .where(and(eq(_id, plugin), news))
}

const CHANGE = 1_000 // ms between two notes that say different things
const noted = new WeakMap<Db, Map<string, { well: boolean; at: number }>>()

/** Writes down, now and then, how it went to ask a plugin, for requests, which don't wait for it. */
export function noteNowAndThen({ db, write }: Tenant, plugin: string, error?: string) {
  const notes = noted.get(db) ?? new Map<string, { well: boolean; at: number }>()
  noted.set(db, notes)
  const [last, well, at] = [notes.get(plugin), error === undefined, performance.now()]
  if (last && at - last.at < (last.well === well ? FRESH : CHANGE)) return
  notes.set(plugin, { well, at })
  write((tx) => (error === undefined ? noteSuccess(tx, plugin) : noteFailure(tx, plugin, error))).catch(() =>
    notes.delete(plugin),
  )
}
