import type { Model } from '../../blueprints/model'
import { DAY_MS, HOUR_MS, now } from '../../core/clock'
import { logError } from '../../core/log'
import { Problem } from '../../core/problem'
import type { Lease } from '../../jobs/with-lease'
import { Busy } from '../../storage/errors'
import type { Db, DeferredWrite, Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import { fragment, oneOf, withLiterals } from '../store/sql-fragments'

/** So many of the latest changes of a blueprint are noted. */
export const MAX_TRACKED_CHANGES = 50_000
const CHANGES_PER_CLEANUP = 1_000 // changes between two removals of old ones
const ROWS_PER_READ = 100 // rows of changes that one statement reads
const ROWS_PER_REMOVAL = 1_000 // rows that one write of the housekeeping removes
const RETENTION_MS = DAY_MS // ms after which nobody needs the notes any more
const RENEWAL_MS = HOUR_MS

/** SQL for whether the changes of a blueprint are tracked; its parameter is the blueprint's key. */
export const IS_TRACKED = '(select 1 from tracked_blueprints t where t.blueprint = ?)'

/** Notes at the end of the transaction that entities of a tracked blueprint change. */
export function noteChanges(tx: Tx, blueprint: string, entities: number[]) {
  // A number can change its blueprint within a transaction, when an entity is removed and another one is created.
  for (const entity of entities) tx.defer(writeChanges, `${blueprint} ${entity}`, { blueprint, entity })
}

/** Notes changes of entities of any blueprints, for those blueprints that are tracked. */
export async function noteTrackedChanges(tx: Tx, entities: TrackedChange[]) {
  const { sql, params } = oneOf('blueprint', [...new Set(entities.map(({ blueprint }) => blueprint))])
  for (const [tracked] of await tx.query(`select blueprint from tracked_blueprints where ${sql}`, params))
    noteChanges(
      tx,
      tracked as string,
      entities.filter(({ blueprint }) => blueprint === tracked).map(({ entity }) => entity),
    )
}

type TrackedChange = { blueprint: string; entity: number }

/** Writes one row for each blueprint. Its number grows by the entities in it, so that numbers measure how much is kept. */
const writeChanges: DeferredWrite<string, TrackedChange> = async ({ query }, entries) => {
  const changes = entries.map(([, change]) => change)
  for (const [blueprint, group] of Map.groupBy(changes, (change) => change.blueprint)) {
    const entities = JSON.stringify(group.map(({ entity }) => entity))
    const [row] = await query(INSERT_CHANGES, [blueprint, blueprint, group.length, entities])
    const end = Number(row![0])
    if (Math.floor(end / CHANGES_PER_CLEANUP) > Math.floor((end - group.length) / CHANGES_PER_CLEANUP))
      await query('delete from tracked_changes where blueprint = ? and number <= ?', [
        blueprint,
        end - MAX_TRACKED_CHANGES,
      ])
  }
}

const LAST_NUMBER = 'select c.number from tracked_changes c where c.blueprint = ? order by c.number desc limit 1'
// Not "insert … select", for which SQLite makes a temporary table.
const INSERT_CHANGES = `insert into tracked_changes (blueprint, number, entities)
  values (?, coalesce((${LAST_NUMBER}), 0) + ?, ?) returning number`

/** Yields the numbers of the entities that changed between two positions, in slices, maybe more than once. */
export async function* readChangedEntities(db: Db, blueprint: string, from: number, to: number) {
  const select = `select number, entities from tracked_changes where blueprint = ? and number > ? and number <= ?
    order by number limit ?`
  for (let last = from; last < to; ) {
    const rows = (await db.query(select, [blueprint, last, to, ROWS_PER_READ])) as [number, string][]
    if (!rows.length) return
    last = Number(rows.at(-1)![0])
    yield rows.flatMap(([, entities]) => JSON.parse(entities) as number[])
  }
}

/** Up to where the changes of a blueprint are known. Positions with different starts cannot be compared. */
export type ChangePosition = { started: number; number: number }

/** Returns whether all changes between two positions are noted. */
export const isReachable = (since: ChangePosition, { started, number }: ChangePosition) =>
  since.started === started && number >= since.number && number - since.number <= MAX_TRACKED_CHANGES

/** Returns the position of the last change of a blueprint, or undefined when its changes are not tracked. */
export const readChangePosition = async (db: Db, blueprint: string): Promise<ChangePosition | undefined> =>
  toPosition(await db.query(SELECT_POSITION, [blueprint]))

type SnapshotPositions = { snapshot: number; positions: Map<string, ChangePosition | undefined> }
const latestPositions = new WeakMap<Db, SnapshotPositions>()

/** Returns the position without a promise, read once for each snapshot; undefined also where the engine cannot. */
export function readPositionAtOnce(db: Db, blueprint: string): ChangePosition | undefined {
  const snapshot = db.getSnapshot?.()
  const latest = latestPositions.get(db)
  if (latest && latest.snapshot === snapshot && latest.positions.has(blueprint)) return latest.positions.get(blueprint)
  const position = toPosition(db.queryAtOnce?.(SELECT_POSITION, [blueprint]))
  // A commit of another process may have ended the snapshot in between.
  if (snapshot === undefined || db.getSnapshot?.() !== snapshot) return position
  if (latest?.snapshot === snapshot) latest.positions.set(blueprint, position)
  else latestPositions.set(db, { snapshot, positions: new Map([[blueprint, position]]) })
  return position
}

const SELECT_POSITION = `select t.started, (select max(c.number) from tracked_changes c where c.blueprint = t.blueprint)
  from tracked_blueprints t where t.blueprint = ?`

const toPosition = ([row]: unknown[][] = []): ChangePosition | undefined =>
  row && { started: Number(row[0]), number: Number(row[1] ?? 0) }

/** Returns the numbers of the entities that changed after a position, without a promise; undefined where the engine cannot. */
export const readChangedAtOnce = ({ queryAtOnce }: Db, blueprint: string, after: number): number[] | undefined =>
  queryAtOnce?.('select entities from tracked_changes where blueprint = ? and number > ?', [blueprint, after])?.flatMap(
    ([entities]) => JSON.parse(entities as string) as number[],
  )

/**
 * Returns the SQL of the position of a blueprint, as a column of any statement: what else the statement reads is in the same
 * snapshot. It is null when the changes are not tracked.
 */
export const positionSql = (blueprint: string) => withLiterals(fragment(SELECT_POSITION_TEXT, blueprint))

const SELECT_POSITION_TEXT = `(select concat(t.started, ' ',
  (select max(c.number) from tracked_changes c where c.blueprint = t.blueprint)) from tracked_blueprints t where t.blueprint = ?)`

/** Returns the position in a column of `positionSql`. */
export function parsePosition(text: unknown): ChangePosition | undefined {
  if (typeof text !== 'string') return
  const [started, number] = text.split(' ')
  return { started: Number(started), number: Number(number) }
}

/** Returns the entities that changed after a position, and the position of the last of these changes. */
export async function readChangesAfter(db: Db, blueprint: string, { started, number }: ChangePosition) {
  const rows = (await db.query(SELECT_CHANGES_AFTER, [number, blueprint, started])) as [number, string][]
  return {
    position: { started, number: Number(rows.at(-1)?.[0] ?? number) },
    entities: rows.flatMap(([, entities]) => JSON.parse(entities) as number[]),
  }
}

const SELECT_CHANGES_AFTER = `select c.number, c.entities from tracked_blueprints t join tracked_changes c
  on c.blueprint = t.blueprint and c.number > ? where t.blueprint = ? and t.started = ? order by c.number`

/** Returns the entities of the first changes after a position, about so many, and the number of the last of these changes. */
export function readChangesAtOnce({ queryAtOnce }: Db, blueprint: string, after: number, count: number) {
  const rows = queryAtOnce?.(SELECT_FIRST_CHANGES, [blueprint, after, count]) as [number, string][] | undefined
  if (!rows) return
  const entities = new Set<number>()
  let number = after
  for (const [last, changed] of rows) {
    if (entities.size >= count) break
    number = Number(last)
    for (const entity of JSON.parse(changed) as number[]) entities.add(entity)
  }
  return { entities: [...entities], number }
}

const SELECT_FIRST_CHANGES =
  'select number, entities from tracked_changes where blueprint = ? and number > ? order by number limit ?'

type Renewal = { until: number; begun?: Promise<unknown> }
const renewals = new WeakMap<Db, Map<string, Renewal>>()

/** Waits until the changes of a blueprint are tracked, if that was asked for a moment ago. */
export const hasTrackingBegun = async (db: Db, { _id }: Model) => renewals.get(db)?.get(_id)?.begun

/**
 * Has the changes of a blueprint tracked from soon on, for at least a day, because something that was read of its
 * entities is kept in memory.
 */
export function trackChanges({ tenant, db, write }: Tenant, { key, _id }: Model) {
  // A reader thread cannot write. The main thread tries each read first.
  if (!Bun.isMainThread) return
  const ofTenant = renewals.get(db) ?? new Map<string, Renewal>()
  renewals.set(db, ofTenant)
  const time = now()
  if ((ofTenant.get(_id)?.until ?? 0) > time) return
  const renewal: Renewal = { until: time + RENEWAL_MS }
  ofTenant.set(_id, renewal)
  renewal.begun = write((tx) =>
    tx.query(
      `insert into tracked_blueprints (blueprint, started, until) select key, ?, ? from blueprints where key = ? and _id = ?
       on conflict ("blueprint") do update set until = excluded.until`,
      [time, time + RETENTION_MS, key, _id],
    ),
  ).catch((cause) => {
    ofTenant.delete(_id)
    if (!(cause instanceof Busy || cause instanceof Problem)) logError('CHANGE_TRACKING_FAILED', { tenant, cause })
  })
}

/** Ends the tracking of blueprints for which nobody has needed it for a day, and removes what was noted. */
export async function removeUnusedTracking({ db, write, signal }: Tenant & Lease) {
  await write((tx) => tx.query('delete from tracked_blueprints where until < ?', [now()]))
  const left = `select c.blueprint, c.number from tracked_changes c
    where c.blueprint not in (select t.blueprint from tracked_blueprints t) order by c.blueprint, c.number limit ?`
  for (let count = ROWS_PER_REMOVAL; count === ROWS_PER_REMOVAL && !signal.aborted; ) {
    const rows = await db.query(left, [ROWS_PER_REMOVAL])
    count = rows.length
    if (count)
      await write((tx) => tx.executeMany('delete from tracked_changes where blueprint = ? and number = ?', rows))
  }
}
