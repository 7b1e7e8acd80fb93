import { setTimeout as pause } from 'node:timers/promises'
import { getModel } from '../../blueprints/blueprints'
import { announceIndexChange, type FieldIndex } from '../../blueprints/field-indexes'
import type { Model } from '../../blueprints/model'
import { sharesData } from '../../config'
import { now } from '../../core/clock'
import type { Lease } from '../../jobs/with-lease'
import type { Tx } from '../../storage/port'
import { writeInBackground } from '../../tenancy/background-write'
import { PROPAGATION_MS, writeInvalidating } from '../../tenancy/cache'
import { SliceSize } from '../../tenancy/slice-size'
import type { Tenant } from '../../tenancy/tenants'
import { createBlueprintTask, createReadsWait, INDEXING_DELAY_MS } from '../blueprint-task'
import { areColumnsInUse } from '../columns/column-cache'
import { INSERT_INDEX_ROW } from '../store/rows'
import { fragment, oneOf, toChunks } from '../store/sql-fragments'
import { requireFreshBlueprint, StaleBlueprint } from '../write/constraints'
import { ChangedEntities } from './changed-entities'
import { compoundReader, type EntityRow, fieldReader, type ReadRows, STATE_SQL } from './index-rows'
import { SortedRows } from './sorted-rows'

const ENTITIES_PER_READ = 500
/** Queries that columns answer have the thread so many times as long as a slice took, but not longer than this (ms). */
const [PAUSE_FACTOR, MAX_PAUSE_MS] = [2, 50]
const READS_PER_PASS = 100 // whose rows are in memory together
const [MIN_ROWS_PER_WRITE, MAX_ROWS_PER_WRITE] = [64, 4_096] // rows that one write inserts or deletes
const MIN_ROWS_PER_REMOTE_WRITE = 1_024 // fewer rows take as long, because of the round trips

/**
 * Builds and removes the indexes of a blueprint's fields in the background, slice by slice, in one process at a time.
 * Queries read without an index that is not ready. After an interruption, the next use of the blueprint goes on.
 */
export const resumeIndexing = createBlueprintTask('indexing', 'INDEXING_INTERRUPTED', runSteps, {
  delayMs: INDEXING_DELAY_MS,
})

async function runSteps(tenant: Tenant, leased: Tenant & Lease, key: string) {
  for (;;) {
    leased.signal.throwIfAborted()
    const model = await getModel(tenant, key)
    const unready = findUnready(model)
    const [index] = unready
    if (!index) return
    const { number, state, read } = index
    if (state === 'building' && read) await build(leased, model, number, read)
    else if (state === 'removing') await remove(leased, model, number)
    else await retire(leased, model, unready.filter(isRetiring))
  }
}

const createSliceSize = ({ place }: Tenant) =>
  new SliceSize(place?.cluster ? MIN_ROWS_PER_REMOTE_WRITE : MIN_ROWS_PER_WRITE, MAX_ROWS_PER_WRITE)

type UnreadyIndex = { number: number; state: IndexState; read?: ReadRows }

/**
 * Returns the indexes that are not ready, compound ones first, in the order of their requests (descending numbers). An index of
 * removed fields cannot be built.
 */
const findUnready = (model: Model): UnreadyIndex[] =>
  [
    ...model.compoundIndexes
      .map((index) => ({ ...index, read: compoundReader(model, index) }))
      .sort((one, other) => other.number - one.number),
    ...model.fields.flatMap((field) =>
      field.index ? [{ number: field.number, state: field.index.state, read: fieldReader(model, field) }] : [],
    ),
  ].filter(({ state }) => state !== 'ready')

const isRetiring = ({ state, read }: UnreadyIndex) => state === 'retiring' || (state === 'building' && !read)

/** Adds the rows of all existing entities, and then marks the index as ready. Writers add the rows of later entities. */
async function build(leased: Tenant & Lease, model: Model, number: number, read: ReadRows) {
  const size = createSliceSize(leased)
  const waitForReads = createReadsWait(leased.tenant, leased)
  for (let hasMore = true; hasMore; ) hasMore = await buildNext(leased, model, { number, read, size, waitForReads })
  await changeState(leased, model, [{ number, state: 'building' }], 'ready')
}

type Build = { number: number; read: ReadRows; size: SliceSize; waitForReads(): Promise<void> }

/**
 * Indexes the next entities, from where the last process stopped. Rows are read without holding the writer, and sorted, so that
 * each write changes few pages. Returns whether more entities may follow.
 */
async function buildNext(
  leased: Tenant & Lease,
  model: Model,
  { number, read, size, waitForReads }: Build,
): Promise<boolean> {
  const { db } = leased
  const [progress] = await db.query('select done, upto from field_indexes where blueprint = ? and number = ?', [
    model.key,
    number,
  ])
  if (!progress) throw new StaleBlueprint()
  const [done, upto] = progress.map(Number) as [number, number]
  const changed = await ChangedEntities.sinceNow(db, model.key)
  const rows = new SortedRows()
  let end = done
  for (let reads = 0; reads < READS_PER_PASS; reads++) {
    leased.signal.throwIfAborted()
    await waitForReads()
    const next = await findSliceEnd(db, end, upto)
    if (next === undefined) break
    const began = performance.now()
    // `|| ''` keeps SQLite from scanning the blueprint's index for each slice.
    rows.add(await read(db, fragment("e.seq > ? and e.seq <= ? and e.blueprint || '' = ?", end, next, model.code)))
    end = next
    await pauseForColumns(leased, model, performance.now() - began)
  }
  if (end === done) return false
  for (let isLast = false; !isLast; ) {
    leased.signal.throwIfAborted()
    const taken = rows.take(size.rows)
    isLast = taken.length < size.rows
    let heldMs = 0
    await writeInBackground(
      leased,
      async (tx) => {
        await requireFreshBlueprint(tx, model)
        await insertRows(tx, number, await refreshRows(tx, taken, read, await changed?.read(tx)))
        if (isLast)
          await tx.query('update field_indexes set done = ? where blueprint = ? and number = ?', [
            end,
            model.key,
            number,
          ])
      },
      (ms) => {
        heldMs = ms
        size.record(taken.length, ms)
      },
    )
    await pauseForColumns(leased, model, heldMs)
  }
  return true
}

/** Gives the thread to others, and for longer while columns answer the queries that need the index. */
const pauseForColumns = ({ db }: Tenant, model: Model, sliceMs: number) =>
  areColumnsInUse(db, model) ? Bun.sleep(Math.min(MAX_PAUSE_MS, PAUSE_FACTOR * sliceMs)) : db.yieldToOthers()

/** A slice has entities of all blueprints, because SQLite would sort those of one blueprint for each slice. */
async function findSliceEnd(db: Tenant['db'], from: number, upto: number): Promise<number | undefined> {
  const slice = 'select max(s.seq) from (select seq from entities where seq > ? and seq <= ? order by seq limit ?) as s'
  const [row] = await db.query(slice, [from, upto, ENTITIES_PER_READ])
  return row?.[0] == null ? undefined : Number(row[0])
}

/**
 * Returns the current rows of the entities of these rows. A write meanwhile has added only the rows that its entity did not have
 * before. Without `changed`, the state of each entity is compared.
 */
async function refreshRows(
  tx: Tx,
  rows: EntityRow[],
  read: ReadRows,
  changed: ReadonlySet<number> | undefined,
): Promise<EntityRow[]> {
  if (changed) return replaceRows(tx, rows, read, ({ entity }) => changed.has(entity))
  const states = new Map<number, unknown>()
  for (const chunk of toChunks(rows.map(({ entity }) => entity))) {
    const { sql, params } = oneOf('e.seq', chunk)
    for (const [seq, state] of await tx.query(`select e.seq, ${STATE_SQL} from entities e where ${sql}`, params))
      states.set(Number(seq), state)
  }
  const existing = rows.filter(({ entity }) => states.has(entity))
  return replaceRows(tx, existing, read, ({ entity, state }) => states.get(entity) !== state)
}

async function replaceRows(tx: Tx, rows: EntityRow[], read: ReadRows, isOutdated: (row: EntityRow) => boolean) {
  const outdated = rows.filter(isOutdated)
  if (!outdated.length) return rows
  const numbers = outdated.map(({ entity }) => entity)
  return [...rows.filter((row) => !isOutdated(row)), ...(await read(tx, oneOf('e.seq', numbers)))]
}

const insertRows = (tx: Tx, number: number, rows: EntityRow[]) =>
  tx.executeMany(
    `${INSERT_INDEX_ROW} on conflict do nothing`,
    rows.map(({ path, value, created, entity }) => [number, path, value, created, entity]),
  )

/** Waits until no process uses these indexes, and then stops maintaining them. */
async function retire(leased: Tenant & Lease, model: Model, indexes: UnreadyIndex[]) {
  if (sharesData) await pause(PROPAGATION_MS, undefined, { signal: leased.signal })
  await changeState(leased, model, indexes, 'removing')
}

/** Deletes the rows of an index that nobody maintains, and then forgets the index. */
async function remove(leased: Tenant & Lease, { key }: Model, number: number) {
  const next = `select path, value, created, entity from entity_index where field = ?
    order by path, value, created, entity limit ?`
  const size = createSliceSize(leased)
  for (let hasMore = true; hasMore; ) {
    leased.signal.throwIfAborted()
    const count = size.rows
    hasMore = await writeInBackground(
      leased,
      async (tx) => {
        const rows = await tx.query(next, [number, count])
        const [last] = rows.slice(-1)
        if (last)
          await tx.query(
            'delete from entity_index where field = ? and (path, value, created, entity) <= (?, ?, ?, ?)',
            [number, ...last],
          )
        return rows.length === count
      },
      (ms) => size.record(count, ms),
    )
  }
  await writeInvalidating(leased, 'blueprints', async (tx) => {
    await tx.query("delete from field_indexes where blueprint = ? and number = ? and state = 'removing'", [key, number])
    await announceIndexChange(tx, key)
  })
}

type IndexState = FieldIndex['state']

/** Changes the state of indexes for all writers and readers. */
const changeState = (
  leased: Tenant & Lease,
  { key }: Model,
  indexes: Pick<UnreadyIndex, 'number' | 'state'>[],
  to: IndexState,
) =>
  writeInvalidating(leased, 'blueprints', async (tx) => {
    const time = now()
    const update =
      'update field_indexes set state = ?, since = ?, used = ? where blueprint = ? and number = ? and state = ?'
    for (const { number, state } of indexes) await tx.query(update, [to, time, time, key, number, state])
    await announceIndexChange(tx, key)
  })
