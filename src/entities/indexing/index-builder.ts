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
import type { Tenant } from '../../tenancy/tenants'
import { createBlueprintTask } from '../blueprint-task'
import { fragment } from '../store/sql-fragments'
import { requireFreshBlueprint, StaleBlueprint } from '../write/constraints'
import { compoundInserter, fieldInserter, type InsertRows } from './index-rows'

const ENTITIES_PER_WRITE = 1_000 // entities that one write indexes
const ROWS_PER_WRITE = 1_000 // rows of an index that one write deletes

/**
 * Builds and removes the indexes of a blueprint's fields in the background, slice by slice, in one process at a time.
 * Queries read without an index that is not ready. After an interruption, the next use of the blueprint goes on.
 */
export const resumeIndexing = createBlueprintTask('indexing', 'INDEXING_INTERRUPTED', runSteps)

async function runSteps(tenant: Tenant, leased: Tenant & Lease, key: string) {
  for (;;) {
    leased.signal.throwIfAborted()
    const model = await getModel(tenant, key)
    const index = findUnready(model)
    if (!index) return
    const { number, state, insert } = index
    if (state === 'building' && insert) await build(leased, model, number, insert)
    else if (state === 'removing') await remove(leased, model, number)
    else await retire(leased, model, number, state)
  }
}

/** Returns an index that is not ready; one with fields that are gone cannot be built. */
function findUnready(model: Model): { number: number; state: IndexState; insert?: InsertRows } | undefined {
  const compound = model.compoundIndexes.find(({ state }) => state !== 'ready')
  if (compound) return { ...compound, insert: compoundInserter(model, compound) }
  const field = model.fields.find(({ index }) => index && index.state !== 'ready')
  return field && { number: field.number, state: field.index!.state, insert: fieldInserter(model, field) }
}

/** Adds the rows of all entities that exist, and then makes the index ready. Writers add those of later entities. */
async function build(leased: Tenant & Lease, model: Model, number: number, insert: InsertRows) {
  for (;;) {
    leased.signal.throwIfAborted()
    if (await writeInBackground(leased, (tx) => buildNext(tx, model, number, insert))) break
  }
  await changeState(leased, model, number, 'building', 'ready')
}

/** Indexes the next slice of entities, from wherever any process left off. Returns whether none is left. */
async function buildNext(tx: Tx, model: Model, number: number, insert: InsertRows): Promise<boolean> {
  await requireFreshBlueprint(tx, model)
  const [state] = (await tx.query('select done, upto from field_indexes where blueprint = ? and number = ?', [
    model.key,
    number,
  ])) as [number, number][]
  if (!state) throw new StaleBlueprint()
  const [done, upto] = state.map(Number) as [number, number]
  // Entities of all blueprints, because SQLite would sort all entities of one blueprint again for each slice.
  const slice = 'select max(s.seq) from (select seq from entities where seq > ? and seq <= ? order by seq limit ?) as s'
  const [row] = await tx.query(slice, [done, upto, ENTITIES_PER_WRITE])
  if (row?.[0] == null) return true
  const end = Number(row[0])
  await insert(tx, number, fragment('e.seq > ? and e.seq <= ? and e.blueprint = ?', done, end, model.code))
  await tx.query('update field_indexes set done = ? where blueprint = ? and number = ?', [end, model.key, number])
  return false
}

/** Waits until no process reads by an index any more, and then stops maintaining it. */
async function retire(leased: Tenant & Lease, model: Model, number: number, state: IndexState) {
  if (sharesData) await pause(PROPAGATION_MS, undefined, { signal: leased.signal })
  await changeState(leased, model, number, state, 'removing')
}

/** Deletes the rows of an index that nobody maintains, and then forgets the index. */
async function remove(leased: Tenant & Lease, { key }: Model, number: number) {
  const next = `select path, value, created, entity from entity_index where field = ?
    order by path, value, created, entity limit ${ROWS_PER_WRITE}`
  for (let hasMore = true; hasMore; ) {
    leased.signal.throwIfAborted()
    hasMore = await writeInBackground(leased, async (tx) => {
      const rows = await tx.query(next, [number])
      const [last] = rows.slice(-1)
      if (last)
        await tx.query('delete from entity_index where field = ? and (path, value, created, entity) <= (?, ?, ?, ?)', [
          number,
          ...last,
        ])
      return rows.length === ROWS_PER_WRITE
    })
  }
  await writeInvalidating(leased, 'blueprints', async (tx) => {
    await tx.query("delete from field_indexes where blueprint = ? and number = ? and state = 'removing'", [key, number])
    await announceIndexChange(tx, key)
  })
}

type IndexState = FieldIndex['state']

/** Changes the state of an index, which every writer and reader notices. */
const changeState = (leased: Tenant & Lease, { key }: Model, number: number, from: IndexState, to: IndexState) =>
  writeInvalidating(leased, 'blueprints', async (tx) => {
    const time = now()
    await tx.query(
      'update field_indexes set state = ?, since = ?, used = ? where blueprint = ? and number = ? and state = ?',
      [to, time, time, key, number, from],
    )
    await announceIndexChange(tx, key)
  })
