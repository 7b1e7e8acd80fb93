import type { Model } from '../../blueprints/model'
import type { Db } from '../../storage/port'
import { onCacheDrop } from '../../tenancy/cache'
import { BlueprintColumns } from './blueprint-columns'
import { columnLimits } from './column-limits'

/** How many lists and counts were answered from columns. */
export const columnStatistics = { reads: 0 }

const IDLE_MS = 5 * 60_000 // after which unused columns are dropped
const IN_USE_MS = 10_000 // after a use
const MAX_EMPTY = 500 // blueprints of a tenant without values, such as removed ones

const columnsByDb = new WeakMap<Db, Map<string, BlueprintColumns>>()
/** The columns that hold values with their databases, those that were used last at the end. */
const latest = new Map<BlueprintColumns, Db>()
let idleTimer: ReturnType<typeof setInterval> | undefined

/** Returns the columns of a blueprint, or undefined where a read cannot use any. */
export function findColumns(db: Db, { _id, version, form, alteration }: Model): BlueprintColumns | undefined {
  // Reader threads have large reads, and an entity has two forms during an alteration.
  if (db.isUncached || !db.queryAtOnce || !Bun.isMainThread || alteration || !columnLimits.bytes) return
  const all = columnsByDb.get(db) ?? new Map<string, BlueprintColumns>()
  columnsByDb.set(db, all)
  const existing = all.get(_id)
  if (existing?.isOf(version, form)) return existing
  // Requests that began before a change of the blueprint would drop what later ones read, and be dropped in turn.
  if (existing?.isAfter(version)) return
  if (existing) drop(existing)
  const columns = new BlueprintColumns(version, form)
  if (all.size >= MAX_EMPTY) for (const [id, one] of all) if (!one.bytes) all.delete(id)
  all.set(_id, columns)
  return columns
}

onCacheDrop((db) => {
  for (const columns of columnsByDb.get(db)?.values() ?? []) drop(columns)
  columnsByDb.delete(db)
})

/** Returns how much (bytes) all columns hold, as they estimate it. */
export const measureColumns = () => measure(() => true)

function measure(isCounted: (db: Db) => boolean): number {
  let bytes = 0
  for (const [one, db] of latest) if (isCounted(db)) bytes += one.bytes
  return bytes
}

/** Marks columns as used. */
export function noteColumnUse(db: Db, columns: BlueprintColumns) {
  columns.usedAt = performance.now()
  latest.delete(columns)
  latest.set(columns, db)
  idleTimer ??= setInterval(() => dropIdleColumns(), IDLE_MS).unref()
}

/**
 * Makes room for columns that have grown: drops those that were unused for longest, then those of another tenant that takes more
 * than half, or else these.
 */
export function keepWithinLimit(grown: BlueprintColumns) {
  // Columns in use would soon be read again.
  dropWhileFull((one) => one !== grown && performance.now() - one.usedAt >= IN_USE_MS)
  dropWhileFull((_, db) => db !== latest.get(grown) && measure((other) => other === db) > columnLimits.bytes / 2)
  if (measureColumns() > columnLimits.bytes) grown.refuse()
}

function dropWhileFull(mayDrop: (one: BlueprintColumns, db: Db) => boolean) {
  for (const [one, db] of latest)
    if (measureColumns() <= columnLimits.bytes) return
    else if (mayDrop(one, db)) drop(one)
}

function drop(columns: BlueprintColumns) {
  latest.delete(columns)
  columns.drop()
}

/** Drops the columns that were unused for so long (ms). */
export function dropIdleColumns(idleMs = IDLE_MS) {
  for (const columns of latest.keys()) if (performance.now() - columns.usedAt >= idleMs) drop(columns)
  if (latest.size) return
  clearInterval(idleTimer)
  idleTimer = undefined
}

/** Tells whether queries of a blueprint are being answered from memory. */
export const areColumnsInUse = (db: Db, { _id }: Model) => {
  const columns = columnsByDb.get(db)?.get(_id)
  return !!columns?.bytes && performance.now() - columns.usedAt < IN_USE_MS
}
