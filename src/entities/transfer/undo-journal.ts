import { getModel } from '../../blueprints/blueprints'
import type { Model } from '../../blueprints/model'
import { config } from '../../config'
import { now } from '../../core/clock'
import { logError } from '../../core/log'
import { Problem } from '../../core/problem'
import { PROCESS_ID } from '../../core/process-id'
import { Busy } from '../../storage/errors'
import type { Db, Store, Tx } from '../../storage/port'
import { writeInvalidating } from '../../tenancy/cache'
import type { Tenant } from '../../tenancy/tenants'
import type { StoredEntity } from '../store/rows'
import { oneOf, takeWithinSize } from '../store/sql-fragments'
import {
  type DeletedEntityRow,
  deleteEntities,
  deleteRows,
  takeBatch,
  toDeletedEntity,
  withReferenceGraph,
} from '../write/deletion'
import { emitDeleteEvents } from '../write/entity-events'
import type { ReferenceGraph } from '../write/recomputation'
import { RestrictedDelete } from '../write/restricted-delete'
import { restoreEntity } from '../write/update'

const IMPORT_TIMEOUT_MS = 20_000 // ms; an import that says nothing for so long counts as interrupted
const ENTITIES_PER_WRITE = 200 // entities removed by one write
const MAX_BYTES_PER_WRITE = 1 << 16 // bytes of those that are put back by one, unless a single one is larger
const RETRY_FOR_MS = 30_000 // ms, when the database is busy; after that it is tried again later

const ENTITIES_PER_READ = 2_000 // entities, for those of them that were changed
const ID_LENGTH = 36 // characters

const idSql = (column: string) => `substr(${column}, 1, ${ID_LENGTH})`
/** Nothing of the entity where it is gone, though another one may have its number. */
const FROM_EXISTING = `from import_undo u left join entities e on e.seq = u.entity and e._id = ${idSql('u.before')}`

/** An entity that was made, or changed from what it was before. */
export type TouchedEntity = { seq: number; _id: string; before?: StoredEntity }

/**
 * What an import has done, kept in the transactions that do it, so that it can be undone. It is done for good when its row
 * in `imports` is removed: as long as that is there, whoever finds it forsaken undoes the import.
 */
export class UndoJournal {
  #heartbeat: ReturnType<typeof setInterval>

  private constructor(
    private tenant: Tenant,
    private key: string,
    private id: string,
  ) {
    this.#heartbeat = setInterval(() => tenant.write((tx) => this.renew(tx)).catch(() => {}), IMPORT_TIMEOUT_MS / 4)
    this.#heartbeat.unref()
  }

  /** All servers read the blueprint anew, and so learn of the import. */
  static async open(tenant: Tenant, key: string): Promise<UndoJournal> {
    const id = `${PROCESS_ID} ${crypto.randomUUID()}`
    await removeFinished(tenant)
    for (const until = performance.now() + IMPORT_TIMEOUT_MS; performance.now() < until; await Bun.sleep(50))
      if (!(await isBeingAltered(tenant.db, key))) break
    await writeInvalidating(tenant, 'blueprints', async (tx) => {
      // What it would put back must be what it has read.
      if (await isBeingAltered(tx, key))
        throw new Problem(409, 'BLUEPRINT_CHANGING', 'A schema change of this blueprint is in progress. Retry later.')
      await tx.query('insert into imports (_id, blueprint, busy) values (?, ?, ?)', [
        id,
        key,
        now() + IMPORT_TIMEOUT_MS,
      ])
    })
    return new UndoJournal(tenant, key, id)
  }

  /** In each transaction of the import. @throws 409 when somebody has undone it meanwhile */
  async renew(tx: Tx) {
    const renewed = 'update imports set busy = ? where _id = ? and busy > 0 returning _id'
    const renewedRows = await tx.query(renewed, [now() + IMPORT_TIMEOUT_MS, this.id])
    if (!renewedRows.length)
      throw new Problem(409, 'IMPORT_INTERRUPTED', 'This import took too long and was rolled back.')
  }

  async record(tx: Tx, touched: TouchedEntity[]) {
    const insert = 'insert into import_undo (import, entity, before) values (?, ?, ?)'
    const [created, changed] = [touched.filter(({ before }) => !before), touched.filter(({ before }) => before)]
    // Numbers of entities that others have removed meanwhile come again.
    await removeEntries(
      tx,
      this.id,
      created.map(({ seq }) => seq),
    )
    await tx.executeMany(
      insert,
      created.map(({ seq, _id }) => [this.id, seq, _id]),
    )
    // What was there before the import is what counts, not what it made of it first; PostgreSQL takes each only once.
    const first = new Map(changed.toReversed().map((one) => [one.seq, one]))
    await tx.executeMany(
      `${insert} on conflict (import, entity) do update set before = excluded.before
       where ${idSql('import_undo.before')} <> ${idSql('excluded.before')}`,
      [...first.values()].map(({ seq, _id, before }) => [this.id, seq, _id + JSON.stringify(before)]),
    )
  }

  async commit() {
    clearInterval(this.#heartbeat)
    await this.tenant.write(async (tx) => {
      await this.renew(tx)
      await tx.query('delete from imports where _id = ?', [this.id])
    })
    await removeFinished(this.tenant).catch(() => {})
  }

  async undo() {
    clearInterval(this.#heartbeat)
    try {
      await undoImport(this.tenant, await getModel(this.tenant, this.key), this.id)
    } catch (error) {
      scheduleUndo(this.tenant, this.key)
      throw error
    }
  }
}

/**
 * Undoes what forsaken imports have left in a blueprint. Where somebody is still at it, it is looked at again later; a
 * folder has one server, so there only this process can be.
 */
export async function undoAbandonedImports(tenant: Tenant, model: Model): Promise<void> {
  const imports = await tenant.db.query('select _id, busy from imports where blueprint = ?', [model.key])
  for (const [id, busy] of imports as [string, number][]) {
    const isAlive = busy > now() && (id.startsWith(PROCESS_ID) || config.ATOLL_DATABASE_URL !== '')
    if (isAlive) scheduleUndo(tenant, model.key, busy - now() + 1_000)
    else await undoImport(tenant, model, id)
  }
}

/** Whether there is one that is not done for good. */
export const isImporting = async (db: Pick<Db, 'query'>, key: string) =>
  (await db.query('select 1 from imports where blueprint = ? limit 1', [key])).length > 0

const isBeingAltered = async (db: Pick<Db, 'query'>, key: string) =>
  (await db.query("select 1 from alterations where blueprint = ? and state <> 'failed'", [key])).length > 0

const watchedBlueprints = new WeakMap<Store['db'], Set<string>>()

/** Looks until nothing is left to be undone. */
function scheduleUndo(tenant: Tenant, key: string, ms = IMPORT_TIMEOUT_MS) {
  const keys = watchedBlueprints.get(tenant.db) ?? new Set()
  watchedBlueprints.set(tenant.db, keys)
  if (keys.has(key)) return
  keys.add(key)
  const undoNow = async () => {
    keys.delete(key)
    await undoAbandonedImports(tenant, await getModel(tenant, key))
  }
  const handleError = (error: unknown) => {
    const isGone = error instanceof Problem && error.status === 404
    if (isGone) return
    logError('IMPORT_NOT_UNDONE', { tenant: tenant.tenant, blueprint: key, cause: error })
    scheduleUndo(tenant, key)
  }
  setTimeout(() => undoNow().catch(handleError), ms).unref()
}

/**
 * A slice at a time; does no harm twice, nor by two at once. First what was changed is put back, for it may lead to what was
 * made, and would go along. Then that goes, the latest first, for it leads to what is earlier.
 */
async function undoImport(tenant: Tenant, model: Model, id: string) {
  // Whoever is still at it goes no further.
  await retryWhileBusy(() => tenant.write((tx) => tx.query('update imports set busy = 0 where _id = ?', [id])))
  const next =
    'select entity, octet_length(before) from import_undo where import = ? and entity > ? order by entity limit ?'
  for (let after = -1; ; ) {
    const some = (await tenant.db.query(next, [id, after, ENTITIES_PER_READ])) as SizedEntity[]
    if (!some.length) break
    after = some.at(-1)![0]
    let changed = some.filter(([, size]) => size > ID_LENGTH)
    while (changed.length) {
      const slice = takeWithinSize(changed, MAX_BYTES_PER_WRITE, ([, size]) => size).map(([seq]) => seq)
      await retryWhileBusy(() => tenant.write((tx) => restoreEntities(tx, model, id, slice)))
      changed = changed.slice(slice.length)
    }
  }
  const removeNext = (tx: Tx, references?: ReferenceGraph) => removeCreated(tx, model, id, references)
  const slice = () =>
    withReferenceGraph(tenant, removeNext).catch((error) => {
      // Where too many lead to what goes, they lead nowhere from then on.
      if (error instanceof RestrictedDelete) return tenant.write((tx) => removeNext(tx))
      throw error
    })
  while (await retryWhileBusy(slice));
}

/** Nobody can undo an import but us, so a database that is busy is asked again for long. */
async function retryWhileBusy<T>(work: () => Promise<T>): Promise<T> {
  for (const until = performance.now() + RETRY_FOR_MS; ; )
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof Busy) || performance.now() > until) throw error
      await Bun.sleep(200)
    }
}

type SizedEntity = [seq: number, size: number]

async function restoreEntities(tx: Tx, model: Model, id: string, entities: number[]) {
  const { sql, params } = oneOf('u.entity', entities)
  const select = `select substr(u.before, ${ID_LENGTH + 1}) ${FROM_EXISTING} where u.import = ? and ${sql} and e.seq is not null`
  for (const [before] of await tx.query(select, [id, ...params]))
    await restoreEntity(tx, model, JSON.parse(before as string))
  await removeEntries(tx, id, entities)
}

/** Whether anything was left. */
async function removeCreated(tx: Tx, model: Model, id: string, references?: ReferenceGraph): Promise<boolean> {
  const select = `select u.entity, e.keys, e.created, e.blueprint, e.identifier ${FROM_EXISTING} where u.import = ?
    order by u.entity desc limit ?`
  const rowsToRemove = (await tx.query(select, [id, ENTITIES_PER_WRITE])) as (DeletedEntityRow | [number, null])[]
  if (!rowsToRemove.length) {
    await tx.query('delete from imports where _id = ?', [id])
    return false
  }
  const existing = rowsToRemove.filter((row): row is DeletedEntityRow => row[1] !== null).map(toDeletedEntity)
  const batch = takeBatch(existing)
  if (references)
    await deleteEntities(tx, batch, {
      references: withoutRestrict(references, model.key),
      by: model,
      forced: model.key,
    })
  else {
    await emitDeleteEvents(tx, model, { dispatchers: new Map([[model.key, model.dispatchers ?? {}]]) }, batch)
    await deleteRows(tx, batch)
  }
  const later = new Set(existing.slice(batch.length).map(({ seq }) => seq))
  await removeEntries(
    tx,
    id,
    rowsToRemove.map(([seq]) => seq).filter((seq) => !later.has(seq)),
  )
  return true
}

/** The same references, none of which holds what is of this blueprint: they lose it. */
function withoutRestrict({ byTarget, ...rest }: ReferenceGraph, key: string): ReferenceGraph {
  const relaxed = byTarget
    .get(key)
    ?.map((one) => (one.onDelete === 'restrict' ? { ...one, onDelete: 'nullify' as const } : one))
  return { ...rest, byTarget: new Map([...byTarget, [key, relaxed ?? []]]) }
}

/** Undoes what is left in any blueprint of a tenant, also where nobody comes. */
export async function undoAllAbandonedImports(tenant: Tenant): Promise<void> {
  const keys = await tenant.db.query('select distinct blueprint from imports order by blueprint')
  for (const [key] of keys as [string][]) await undoAbandonedImports(tenant, await getModel(tenant, key))
}

/** Removes what is kept of imports that are done for good. */
async function removeFinished({ write }: Tenant) {
  const select = `select u.import, u.entity from import_undo u left join imports i on i._id = u.import
    where i._id is null limit ?`
  for (let hasMore = true; hasMore; )
    hasMore = await write(async (tx) => {
      const finished = (await tx.query(select, [ENTITIES_PER_WRITE])) as [string, number][]
      for (const [id, group] of Map.groupBy(finished, ([id]) => id))
        await removeEntries(
          tx,
          id,
          group.map(([, seq]) => seq),
        )
      return finished.length > 0
    })
}

const removeEntries = (tx: Tx, id: string, entities: number[]) =>
  tx.executeMany(
    'delete from import_undo where import = ? and entity = ?',
    entities.map((seq) => [id, seq]),
  )
