import { setTimeout as pause } from 'node:timers/promises'
import { getModel } from '../../blueprints/blueprints'
import { announceIndexChange } from '../../blueprints/field-indexes'
import type { Model, ModelField } from '../../blueprints/model'
import { sharesData } from '../../config'
import { now } from '../../core/clock'
import type { Lease } from '../../jobs/with-lease'
import type { Tx } from '../../storage/port'
import { writeInBackground } from '../../tenancy/background-write'
import { PROPAGATION_MS, writeInvalidating } from '../../tenancy/cache'
import type { Tenant } from '../../tenancy/tenants'
import { createBlueprintTask } from '../blueprint-task'
import { valueSql } from '../query/sql-conditions'
import { toFieldTarget } from '../query/target'
import { requireFreshBlueprint, StaleBlueprint } from '../write/constraints'

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
    const field = model.fields.find(({ index }) => index && index.state !== 'ready')
    if (!field) return
    if (field.index!.state === 'building') await build(leased, model, field)
    else if (field.index!.state === 'retiring') await retire(leased, model, field)
    else await remove(leased, model, field)
  }
}

/** Adds the rows of all entities that exist, and then makes the index ready. Writers add those of later entities. */
async function build(leased: Tenant & Lease, model: Model, field: ModelField) {
  for (;;) {
    leased.signal.throwIfAborted()
    if (await writeInBackground(leased, (tx) => buildNext(tx, model, field))) break
  }
  await changeState(leased, model, field, 'building', 'ready')
}

/** Indexes the next slice of entities, from wherever any process left off. Returns whether none is left. */
async function buildNext(tx: Tx, model: Model, field: ModelField): Promise<boolean> {
  await requireFreshBlueprint(tx, model)
  const [state] = (await tx.query('select done, upto from field_indexes where blueprint = ? and number = ?', [
    model.key,
    field.number,
  ])) as [number, number][]
  if (!state) throw new StaleBlueprint()
  const [done, upto] = state.map(Number) as [number, number]
  // Entities of all blueprints, because SQLite would sort all entities of one blueprint again for each slice.
  const slice = 'select max(s.seq) from (select seq from entities where seq > ? and seq <= ? order by seq limit ?) as s'
  const [row] = await tx.query(slice, [done, upto, ENTITIES_PER_WRITE])
  if (row?.[0] == null) return true
  const [end, value] = [Number(row[0]), valueSql(toFieldTarget(model, field))]
  await tx.query(
    `insert into entity_index (field, path, value, created, entity)
     select ${field.number}, '', s.value, s.created, s.seq from (
       select ${value.sql} as value, e.created, e.seq from entities e
       where e.seq > ? and e.seq <= ? and e.blueprint = ?
     ) as s where s.value is not null order by 3 on conflict do nothing`,
    [...value.params, done, end, model.code],
  )
  await tx.query('update field_indexes set done = ? where blueprint = ? and number = ?', [end, model.key, field.number])
  return false
}

/** Waits until no process reads by an index any more, and then stops maintaining it. */
async function retire(leased: Tenant & Lease, model: Model, field: ModelField) {
  if (sharesData) await pause(PROPAGATION_MS, undefined, { signal: leased.signal })
  await changeState(leased, model, field, 'retiring', 'removing')
}

/** Deletes the rows of an index that nobody maintains, and then forgets the index. */
async function remove(leased: Tenant & Lease, { key }: Model, { number }: ModelField) {
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

type IndexState = NonNullable<ModelField['index']>['state']

/** Changes the state of an index, which every writer and reader notices. */
const changeState = (
  leased: Tenant & Lease,
  { key }: Model,
  { number }: ModelField,
  from: IndexState,
  to: IndexState,
) =>
  writeInvalidating(leased, 'blueprints', async (tx) => {
    const time = now()
    await tx.query(
      'update field_indexes set state = ?, since = ?, used = ? where blueprint = ? and number = ? and state = ?',
      [to, time, time, key, number, from],
    )
    await announceIndexChange(tx, key)
  })
