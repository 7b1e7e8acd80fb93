import { PROCESS } from '../../accounts/idempotency/claim'
import { modelOf } from '../../blueprints/blueprints'
import type { Model } from '../../blueprints/model'
import { config } from '../../config'
import { now } from '../../core/clock'
import { report } from '../../core/log'
import { Problem } from '../../core/problem'
import type { Db, Store, Tx } from '../../storage/port'
import { changing } from '../../tenancy/memory'
import type { Tenant } from '../../tenancy/tenants'
import * as rows from '../rows'

const BUSY = 20_000 // ms; an import that says nothing for so long counts as interrupted
const SLICE = 200

/** An entity that was made, or changed from what it was before. */
export type Touched = { seq: number; before?: rows.Stored }

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
    const found = await tx.ask('update imports set busy = ? where _id = ? returning _id', [now() + BUSY, this.id])
    if (!found.length) throw new Problem(409, 'IMPORT_INTERRUPTED', 'This import took too long, and was undone.')
  }

  async note(tx: Tx, touched: Touched[]) {
    const insert = 'insert into import_undo (import, entity, before) values (?, ?, ?)'
    const [made, changed] = [touched.filter(({ before }) => !before), touched.filter(({ before }) => before)]
    await tx.each(
      insert,
      made.map(({ seq }) => [this.id, seq, null]),
    )
    // What was there before the import is what counts, not what it made of it first.
    await tx.each(
      `${insert} on conflict (import, entity) do nothing`,
      changed.map(({ seq, before }) => [this.id, seq, JSON.stringify(before)]),
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
      watch(this.tenant, this.key, BUSY)
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

function watch(tenant: Tenant, key: string, ms: number) {
  const keys = watched.get(tenant.db) ?? new Set()
  watched.set(tenant.db, keys)
  if (keys.has(key)) return
  keys.add(key)
  const look = async () => {
    keys.delete(key)
    await undoForsaken(tenant, await modelOf(tenant, key))
  }
  const failed = (error: unknown) => report('IMPORT_NOT_UNDONE', { cause: String(error) })
  setTimeout(() => look().catch(failed), ms).unref()
}

/** A slice at a time. Does no harm twice, nor by two at once. */
async function undo(tenant: Tenant, model: Model, id: string) {
  const select = `select u.entity, u.before, e.keys, e.created from import_undo u left join entities e on e.seq = u.entity
    where u.import = ? limit ?`
  for (let left = true; left; )
    left = await tenant.write(async (tx) => {
      const found = (await tx.ask(select, [id, SLICE])) as [number, string | null, string | null, number][]
      const made = found.flatMap(([seq, before, keys, created]) =>
        before === null && keys !== null ? [{ seq, keys, created }] : [],
      )
      const erased = rows.portion(made)
      await rows.erase(tx, erased)
      const later = new Set(made.slice(erased.length).map(({ seq }) => seq))
      for (const [, before] of found) if (before !== null) await rows.restore(tx, model, JSON.parse(before))
      await forget(
        tx,
        found.filter(([seq]) => !later.has(seq)).map(([seq]) => [id, seq]),
      )
      return found.length > 0
    })
  await tenant.write((tx) => tx.ask('delete from imports where _id = ?', [id]))
}

/** Removes what is kept of imports that are done for good. */
async function sweep({ write }: Tenant) {
  const select = `select u.import, u.entity from import_undo u left join imports i on i._id = u.import
    where i._id is null limit ?`
  for (let left = true; left; )
    left = await write(async (tx) => {
      const over = await tx.ask(select, [SLICE])
      await forget(tx, over)
      return over.length > 0
    })
}

const forget = (tx: Tx, undone: unknown[][]) =>
  tx.each('delete from import_undo where import = ? and entity = ?', undone)
