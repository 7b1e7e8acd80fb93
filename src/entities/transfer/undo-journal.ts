import { getModel } from '../../blueprints/blueprints'
import { readHistories } from '../../blueprints/history'
import type { Model } from '../../blueprints/model'
import { now } from '../../core/clock'
import { logError } from '../../core/log'
import { Problem } from '../../core/problem'
import { PROCESS_ID } from '../../core/process-id'
import { addUse } from '../../limits/quota-use'
import { Busy } from '../../storage/errors'
import type { Db, Store, Tx } from '../../storage/port'
import { writeInvalidating } from '../../tenancy/cache'
import { claimProcess, isProcessAlive, renewProcessClaim } from '../../tenancy/live-processes'
import type { Tenant } from '../../tenancy/tenants'
import type { StoredEntity } from '../store/rows'
import { idSql } from '../store/serializer'
import { oneOf, takeWithinSize } from '../store/sql-fragments'
import {
  type DeletedEntityRow,
  deleteEntities,
  deleteRows,
  type ErasedHistory,
  takeBatch,
  toDeletedEntity,
  withReferenceGraph,
} from '../write/deletion'
import { emitDeleteEvents } from '../write/entity-events'
import type { ReferenceGraph } from '../write/recomputation'
import { RestrictedDelete } from '../write/restricted-delete'
import { restoreEntity } from '../write/update'

const IMPORT_TIMEOUT_MS = 20_000 // ms without a renewal after which an import counts as interrupted
const LIVENESS_CHECK_MS = 2_000 // ms between two looks whether the server of another import still lives
const ENTITIES_PER_WRITE = 200 // entities removed in one transaction
const MAX_BYTES_PER_WRITE = 1 << 16 // bytes restored in one transaction, unless a single entity is larger
const RETRY_FOR_MS = 30_000 // ms of retries while the database is busy; after that, a later attempt is scheduled
const ENTITIES_PER_READ = 2_000 // entries read at a time, to find those of changed entities
const ID_LENGTH = 36 // characters

const journaledIdSql = (column: string) => `substr(${column}, 1, ${ID_LENGTH})`
/** Joins the entity by number and `_id`, because another entity may have the number of a removed one. */
const FROM_EXISTING = `from import_undo u left join entities e on e.seq = u.entity and ${idSql('e.')} = ${journaledIdSql('u.before')}`

/** An entity that was created, or changed from the state `before`. */
export type TouchedEntity = { seq: number; _id: string; before?: StoredEntity }

/**
 * Records what an import does, in the same transactions, so that it can be undone. The import is committed when its row
 * in `imports` is removed. As long as the row exists, any process that finds the import abandoned undoes it.
 */
export class UndoJournal {
  #heartbeat: ReturnType<typeof setInterval>

  private constructor(
    private tenant: Tenant,
    private key: string,
    private id: string,
    private claim: AsyncDisposable,
  ) {
    const beat = () => Promise.all([renewProcessClaim(), tenant.write((tx) => this.renew(tx))])
    // The next heartbeat makes up for a failed one.
    this.#heartbeat = setInterval(() => beat().catch(() => {}), IMPORT_TIMEOUT_MS / 4)
    this.#heartbeat.unref()
  }

  /** Opens a journal. All servers reload the blueprint, and so notice the import. @throws 409 BLUEPRINT_CHANGING */
  static async open(tenant: Tenant, key: string): Promise<UndoJournal> {
    const claim = await claimProcess()
    try {
      return new UndoJournal(tenant, key, await UndoJournal.#insert(tenant, key), claim)
    } catch (error) {
      await claim[Symbol.asyncDispose]()
      throw error
    }
  }

  static async #insert(tenant: Tenant, key: string): Promise<string> {
    const id = `${PROCESS_ID} ${crypto.randomUUID()}`
    await removeFinished(tenant)
    for (const until = performance.now() + IMPORT_TIMEOUT_MS; performance.now() < until; await Bun.sleep(50))
      if (!(await isBeingAltered(tenant.db, key))) break
    await writeInvalidating(tenant, 'blueprints', async (tx) => {
      // An alteration would change the entities that the journal may have to restore.
      if (await isBeingAltered(tx, key))
        throw new Problem(409, 'BLUEPRINT_CHANGING', 'A schema change of this blueprint is in progress. Retry later.')
      await tx.query('insert into imports (_id, blueprint, busy) values (?, ?, ?)', [
        id,
        key,
        now() + IMPORT_TIMEOUT_MS,
      ])
    })
    return id
  }

  /** Renews the import; called in each of its transactions. @throws 409 IMPORT_INTERRUPTED when it has been undone */
  async renew(tx: Tx) {
    const renewed = 'update imports set busy = ? where _id = ? and busy > 0 returning _id'
    const renewedRows = await tx.query(renewed, [now() + IMPORT_TIMEOUT_MS, this.id])
    if (!renewedRows.length)
      throw new Problem(409, 'IMPORT_INTERRUPTED', 'This import was interrupted and rolled back. Send it again.')
  }

  async record(tx: Tx, touched: TouchedEntity[]) {
    const insert = 'insert into import_undo (import, entity, before) values (?, ?, ?)'
    const [created, changed] = [touched.filter(({ before }) => !before), touched.filter(({ before }) => before)]
    // The number of an entity that was removed meanwhile may be reused.
    await removeEntries(
      tx,
      this.id,
      created.map(({ seq }) => seq),
    )
    await tx.executeMany(
      insert,
      created.map(({ seq, _id }) => [this.id, seq, _id]),
    )
    // Only the state before the import counts, not later ones; PostgreSQL accepts each key only once per statement.
    const first = new Map(changed.toReversed().map((one) => [one.seq, one]))
    await tx.executeMany(
      `${insert} on conflict (import, entity) do update set before = excluded.before
       where ${journaledIdSql('import_undo.before')} <> ${journaledIdSql('excluded.before')}`,
      [...first.values()].map(({ seq, _id, before }) => [this.id, seq, _id + JSON.stringify(before)]),
    )
  }

  async commit() {
    await using _ = this.claim
    clearInterval(this.#heartbeat)
    await this.tenant.write(async (tx) => {
      await this.renew(tx)
      await tx.query('delete from imports where _id = ?', [this.id])
    })
    await removeFinished(this.tenant).catch(() => {}) // housekeeping removes them later
  }

  async undo() {
    await using _ = this.claim
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
 * Undoes the abandoned imports of a blueprint: those whose process has ended, or has not renewed them for a while.
 * Imports that are still running are checked again later.
 */
export async function undoAbandonedImports(tenant: Tenant, model: Model): Promise<void> {
  const imports = await tenant.db.query('select _id, busy from imports where blueprint = ?', [model.key])
  for (const [id, busy] of imports as [string, number][])
    if (busy > now() && (await isProcessAlive(id.slice(0, PROCESS_ID.length))))
      scheduleUndo(tenant, model.key, LIVENESS_CHECK_MS)
    else await undoImport(tenant, model, id)
}

/** Returns whether a blueprint has an import that is not committed. */
export const isImporting = async (db: Pick<Db, 'query'>, key: string) =>
  (await db.query('select 1 from imports where blueprint = ? limit 1', [key])).length > 0

const isBeingAltered = async (db: Pick<Db, 'query'>, key: string) =>
  (await db.query("select 1 from alterations where blueprint = ? and state <> 'failed'", [key])).length > 0

const watchedBlueprints = new WeakMap<Store['db'], Set<string>>()

/** Schedules an attempt to undo the abandoned imports, and repeats it until it succeeds. */
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
 * Undoes an import in slices; it is idempotent, and safe to run concurrently. Changed entities are restored first,
 * because they may refer to created ones and would be removed along with them. Then the created entities are removed,
 * latest first, because they may refer to earlier ones.
 */
async function undoImport(tenant: Tenant, model: Model, id: string) {
  // Stops the import if it is still running.
  await retryWhileBusy(() => tenant.write((tx) => tx.query('update imports set busy = 0 where _id = ?', [id])))
  const next =
    'select entity, octet_length(before) from import_undo where import = ? and entity > ? order by entity limit ?'
  for (let after = -1; ; ) {
    const entries = (await tenant.db.query(next, [id, after, ENTITIES_PER_READ])) as SizedEntity[]
    if (!entries.length) break
    after = entries.at(-1)![0]
    let changed = entries.filter(([, size]) => size > ID_LENGTH)
    while (changed.length) {
      const slice = takeWithinSize(changed, MAX_BYTES_PER_WRITE, ([, size]) => size).map(([seq]) => seq)
      await retryWhileBusy(() => tenant.write((tx) => restoreEntities(tx, model, id, slice)))
      changed = changed.slice(slice.length)
    }
  }
  const removeNext = (tx: Tx, references?: ReferenceGraph) => removeCreated(tx, model, id, references)
  const slice = () =>
    withReferenceGraph(tenant, removeNext).catch((error) => {
      // When too many entities refer to the removed ones, their references are left dangling.
      if (error instanceof RestrictedDelete) return tenant.write((tx) => removeNext(tx))
      throw error
    })
  while (await retryWhileBusy(slice));
}

/** Only the server can undo an import, so it retries for a long time while the database is busy. */
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

/** Removes the next created entities. Returns false when none was left and the import is undone. */
async function removeCreated(tx: Tx, model: Model, id: string, references?: ReferenceGraph): Promise<boolean> {
  const select = `select u.entity, e.keys, e.created, e.identifier ${FROM_EXISTING} where u.import = ?
    order by u.entity desc limit ?`
  const rowsToRemove = (await tx.query(select, [id, ENTITIES_PER_WRITE])) as (DeletedEntityRow | [number, null])[]
  if (!rowsToRemove.length) {
    await tx.query('delete from imports where _id = ?', [id])
    return false
  }
  const existing = rowsToRemove
    .filter((row): row is DeletedEntityRow => row[1] !== null)
    .map((row) => toDeletedEntity(model.key, row))
  const batch = takeBatch(existing)
  const imported = new Set(batch)
  const erased: ErasedHistory = { of: (entity) => imported.has(entity), extent: 'since creation' }
  if (references)
    await deleteEntities(tx, batch, {
      references: withoutRestrict(references, model.key),
      by: model,
      forced: model.key,
      erased,
    })
  else {
    await emitDeleteEvents(tx, model, { dispatchers: new Map([[model.key, model.dispatchers ?? {}]]) }, batch)
    await deleteRows(tx, batch, { histories: await readHistories(tx), erased })
  }
  // They count no more before the quota's use is measured again.
  tx.afterCommit(() => addUse(model, 'entities', -batch.length))
  const later = new Set(existing.slice(batch.length).map(({ seq }) => seq))
  await removeEntries(
    tx,
    id,
    rowsToRemove.map(([seq]) => seq).filter((seq) => !later.has(seq)),
  )
  return true
}

/** Returns the references with those that restrict the removal of the blueprint's entities turned into `nullify`. */
function withoutRestrict({ byTarget, ...rest }: ReferenceGraph, key: string): ReferenceGraph {
  const relaxed = byTarget
    .get(key)
    ?.map((one) => (one.onDelete === 'restrict' ? { ...one, onDelete: 'nullify' as const } : one))
  return { ...rest, byTarget: new Map([...byTarget, [key, relaxed ?? []]]) }
}

/** Undoes the abandoned imports of all blueprints of a tenant, including blueprints that are not in use. */
export async function undoAllAbandonedImports(tenant: Tenant): Promise<void> {
  const keys = await tenant.db.query('select distinct blueprint from imports order by blueprint')
  for (const [key] of keys as [string][]) await undoAbandonedImports(tenant, await getModel(tenant, key))
}

/** Removes the journal entries of committed imports. */
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
