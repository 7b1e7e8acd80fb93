import { PROCESS } from '../../accounts/idempotency/claim'
import { modelOf } from '../../blueprints/blueprints'
import type { Model } from '../../blueprints/model'
import { config } from '../../config'
import { now } from '../../core/clock'
import { report } from '../../core/log'
import { Problem } from '../../core/problem'
import { Busy } from '../../storage/errors'
import type { Db, Store, Tx } from '../../storage/port'
import { changing } from '../../tenancy/memory'
import type { Tenant } from '../../tenancy/tenants'
import { fitting, oneOf } from '../conditions'
import { dispatchRemovals } from '../dispatch'
import { Held } from '../held'
import * as removal from '../removal'
import { type LeavingRow, leavingOf } from '../removal'
import * as rows from '../rows'

const BUSY = 20_000 // ms; an import that says nothing for so long counts as interrupted
const SLICE = 200 // entities removed by one write
const SIZE = 1 << 16 // bytes of those that are put back by one, unless a single one is larger
const PATIENCE = 30_000 // ms, when the database is busy; after that it is tried again later

const LOOKED_AT = 2_000 // entities, for those of them that were changed
const ID = 36 // characters

const idIn = (column: string) => `substr(${column}, 1, ${ID})`
/** Nothing of the entity where it is gone, though another one may have its number. */
const STILL_THERE = `from import_undo u left join entities e on e.seq = u.entity and e._id = ${idIn('u.before')}`

/** An entity that was made, or changed from what it was before. */
export type Touched = { seq: number; _id: string; before?: rows.Stored }

/**
 * What an import has done, kept in the transactions that do it, so that it can be undone. It is done for good when its row
 * in `imports` is removed: as long as that is there, whoever finds it forsaken undoes the import.
 */
export class Journal {
  #pulse: ReturnType<typeof setInterval>

  private constructor(
    private tenant: Tenant,
    private key: string,
    private id: string,
  ) {
    this.#pulse = setInterval(() => tenant.write((tx) => this.renew(tx)).catch(() => {}), BUSY / 4)
    this.#pulse.unref()
  }

  /** All servers read the blueprint anew, and so learn of the import. */
  static async begin(tenant: Tenant, key: string): Promise<Journal> {
    const id = `${PROCESS} ${crypto.randomUUID()}`
    await sweep(tenant)
    for (const until = performance.now() + BUSY; performance.now() < until; await Bun.sleep(50))
      if (!(await altering(tenant.db, key))) break
    await changing(tenant, 'blueprints', async (tx) => {
      // What it would put back must be what it has read.
      if (await altering(tx, key))
        throw new Problem(
          409,
          'BLUEPRINT_CHANGING',
          'The entities of this blueprint are being altered. Try again soon.',
        )
      await tx.ask('insert into imports (_id, blueprint, busy) values (?, ?, ?)', [id, key, now() + BUSY])
    })
    return new Journal(tenant, key, id)
  }

  /** In each transaction of the import. @throws 409 when somebody has undone it meanwhile */
  async renew(tx: Tx) {
    const renewed = 'update imports set busy = ? where _id = ? and busy > 0 returning _id'
    const found = await tx.ask(renewed, [now() + BUSY, this.id])
    if (!found.length) throw new Problem(409, 'IMPORT_INTERRUPTED', 'This import took too long, and was undone.')
  }

  async note(tx: Tx, touched: Touched[]) {
    const insert = 'insert into import_undo (import, entity, before) values (?, ?, ?)'
    const [made, changed] = [touched.filter(({ before }) => !before), touched.filter(({ before }) => before)]
    // Numbers of entities that others have removed meanwhile come again.
    await forget(
      tx,
      this.id,
      made.map(({ seq }) => seq),
    )
    await tx.each(
      insert,
      made.map(({ seq, _id }) => [this.id, seq, _id]),
    )
    // What was there before the import is what counts, not what it made of it first; PostgreSQL takes each only once.
    const first = new Map(changed.toReversed().map((one) => [one.seq, one]))
    await tx.each(
      `${insert} on conflict (import, entity) do update set before = excluded.before
       where ${idIn('import_undo.before')} <> ${idIn('excluded.before')}`,
      [...first.values()].map(({ seq, _id, before }) => [this.id, seq, _id + JSON.stringify(before)]),
    )
  }

  async commit() {
    clearInterval(this.#pulse)
    await this.tenant.write(async (tx) => {
      await this.renew(tx)
      await tx.ask('delete from imports where _id = ?', [this.id])
    })
    await sweep(this.tenant).catch(() => {})
  }

  async undo() {
    clearInterval(this.#pulse)
    try {
      await undo(this.tenant, await modelOf(this.tenant, this.key), this.id)
    } catch (error) {
      watch(this.tenant, this.key)
      throw error
    }
  }
}

/**
 * Undoes what forsaken imports have left in a blueprint. Where somebody is still at it, it is looked at again later; a
 * folder has one server, so there only this process can be.
 */
export async function undoForsaken(tenant: Tenant, model: Model): Promise<void> {
  const imports = await tenant.db.ask('select _id, busy from imports where blueprint = ?', [model.key])
  for (const [id, busy] of imports as [string, number][]) {
    const alive = busy > now() && (id.startsWith(PROCESS) || config.ATOLL_DATABASE_URL !== '')
    if (alive) watch(tenant, model.key, busy - now() + 1_000)
    else await undo(tenant, model, id)
  }
}

/** Whether there is one that is not done for good. */
export const importing = async (db: Pick<Db, 'ask'>, key: string) =>
  (await db.ask('select 1 from imports where blueprint = ? limit 1', [key])).length > 0

const altering = async (db: Pick<Db, 'ask'>, key: string) =>
  (await db.ask("select 1 from alterations where blueprint = ? and state <> 'failed'", [key])).length > 0

const watched = new WeakMap<Store['db'], Set<string>>()

/** Looks until nothing is left to be undone. */
function watch(tenant: Tenant, key: string, ms = BUSY) {
  const keys = watched.get(tenant.db) ?? new Set()
  watched.set(tenant.db, keys)
  if (keys.has(key)) return
  keys.add(key)
  const look = async () => {
    keys.delete(key)
    await undoForsaken(tenant, await modelOf(tenant, key))
  }
  const failed = (error: unknown) => {
    const gone = error instanceof Problem && error.status === 404
    if (gone) return
    report('IMPORT_NOT_UNDONE', { tenant: tenant.tenant, blueprint: key, cause: error })
    watch(tenant, key)
  }
  setTimeout(() => look().catch(failed), ms).unref()
}

/**
 * A slice at a time; does no harm twice, nor by two at once. First what was changed is put back, for it may lead to what was
 * made, and would go along. Then that goes, the latest first, for it leads to what is earlier.
 */
async function undo(tenant: Tenant, model: Model, id: string) {
  // Whoever is still at it goes no further.
  await patiently(() => tenant.write((tx) => tx.ask('update imports set busy = 0 where _id = ?', [id])))
  const next =
    'select entity, octet_length(before) from import_undo where import = ? and entity > ? order by entity limit ?'
  for (let after = -1; ; ) {
    const some = (await tenant.db.ask(next, [id, after, LOOKED_AT])) as Sized[]
    if (!some.length) break
    after = some.at(-1)![0]
    let changed = some.filter(([, size]) => size > ID)
    while (changed.length) {
      const slice = fitting(changed, SIZE, ([, size]) => size).map(([seq]) => seq)
      await patiently(() => tenant.write((tx) => putBack(tx, model, id, slice)))
      changed = changed.slice(slice.length)
    }
  }
  const remove = (tx: Tx, references?: removal.Ties) => removeMade(tx, model, id, references)
  const slice = () =>
    removal.withReferences(tenant, remove).catch((error) => {
      // Where too many lead to what goes, they lead nowhere from then on.
      if (error instanceof Held) return tenant.write((tx) => remove(tx))
      throw error
    })
  while (await patiently(slice));
}

/** Nobody can undo an import but us, so a database that is busy is asked again for long. */
async function patiently<T>(work: () => Promise<T>): Promise<T> {
  for (const until = performance.now() + PATIENCE; ; )
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof Busy) || performance.now() > until) throw error
      await Bun.sleep(200)
    }
}

type Sized = [seq: number, size: number]

async function putBack(tx: Tx, model: Model, id: string, entities: number[]) {
  const { sql, params } = oneOf('u.entity', entities)
  const select = `select substr(u.before, ${ID + 1}) ${STILL_THERE} where u.import = ? and ${sql} and e.seq is not null`
  for (const [before] of await tx.ask(select, [id, ...params]))
    await rows.restore(tx, model, JSON.parse(before as string))
  await forget(tx, id, entities)
}

/** Whether anything was left. */
async function removeMade(tx: Tx, model: Model, id: string, references?: removal.Ties): Promise<boolean> {
  const select = `select u.entity, e.keys, e.created, e.blueprint, e.identifier ${STILL_THERE} where u.import = ?
    order by u.entity desc limit ?`
  const found = (await tx.ask(select, [id, SLICE])) as (LeavingRow | [number, null])[]
  if (!found.length) {
    await tx.ask('delete from imports where _id = ?', [id])
    return false
  }
  const there = found.filter((row): row is LeavingRow => row[1] !== null).map(leavingOf)
  const made = rows.portion(there)
  if (references)
    await removal.remove(tx, made, { references: yielding(references, model.key), by: model, forced: model.key })
  else {
    await dispatchRemovals(tx, model, { dispatchers: new Map([[model.key, model.dispatchers ?? {}]]) }, made)
    await rows.erase(tx, made)
  }
  const later = new Set(there.slice(made.length).map(({ seq }) => seq))
  await forget(
    tx,
    id,
    found.map(([seq]) => seq).filter((seq) => !later.has(seq)),
  )
  return true
}

/** The same references, none of which holds what is of this blueprint: they lose it. */
function yielding({ to, ...rest }: removal.Ties, key: string): removal.Ties {
  const own = to.get(key)?.map((one) => (one.onDelete === 'restrict' ? { ...one, onDelete: 'nullify' as const } : one))
  return { ...rest, to: new Map([...to, [key, own ?? []]]) }
}

/** Undoes what is left in any blueprint of a tenant, also where nobody comes. */
export async function undoAllForsaken(tenant: Tenant): Promise<void> {
  const keys = await tenant.db.ask('select distinct blueprint from imports order by blueprint')
  for (const [key] of keys as [string][]) await undoForsaken(tenant, await modelOf(tenant, key))
}

/** Removes what is kept of imports that are done for good. */
async function sweep({ write }: Tenant) {
  const select = `select u.import, u.entity from import_undo u left join imports i on i._id = u.import
    where i._id is null limit ?`
  for (let left = true; left; )
    left = await write(async (tx) => {
      const over = (await tx.ask(select, [SLICE])) as [string, number][]
      for (const [id, some] of Map.groupBy(over, ([id]) => id))
        await forget(
          tx,
          id,
          some.map(([, seq]) => seq),
        )
      return over.length > 0
    })
}

const forget = (tx: Tx, id: string, entities: number[]) =>
  tx.each(
    'delete from import_undo where import = ? and entity = ?',
    entities.map((seq) => [id, seq]),
  )
