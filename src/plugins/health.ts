import { and, eq, isNull, lt, ne, or } from 'drizzle-orm'
import { iso, now } from '../core/clock'
import type { Tx } from '../storage/port'
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
