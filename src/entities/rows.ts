import { comingOf, isAltering, type Model } from '../blueprints/model'
import type { Caller } from '../blueprints/rules'
import { now } from '../core/clock'
import type { Db, Tx } from '../storage/port'
import { IS_LOGGED, type Kept, keep, keepRemovals } from './changes/log'
import { fitting } from './conditions'
import { dispatch } from './dispatch'
import type { Complete, Doc } from './document'
import { type IndexRow, type Keys, keysOf, rowsOf } from './keys'
import { refuseExcess } from './limits'
import { type Observed, refuseDangling, refuseDuplicates, refuseLarge, refuseOutdated, type Sight } from './refusals'
import { forgetTerms, IS_SEARCHED, keepTerms } from './search'
import { docOf, type System, shownIn, shownInForce, shownOf } from './wire'
import { termsOf } from './words'

/** What is read to show one entity, in the order of `SHOWN`. */
export type Shown = [shown: string, user: string | null, workspace: string | null, version: number, updated: number]

/** An entity as it is kept. */
export type Stored = System & { seq: number; shown: string; keys: string; version: number }

const byName = (columns: string) => ({
  byIdentifier: `select ${columns} from entities where blueprint = ? and identifier = ?`,
  byId: `select ${columns} from entities where blueprint = ? and _id = ?`,
})
const shownBy = (shown: string) => byName(`${shown}, "user", workspace, version, updated`)
const columnsWith = (shown: string) =>
  `seq, _id, identifier, "user", workspace, ${shown}, keys, version, created, updated`
const SHOWN = shownBy('shown')
const STORED = byName(columnsWith('shown'))
/** The columns of a row as it is kept, in the table `entities`. */
export const storedColumns = (model: Model) => columnsWith(shownIn(model, ''))
/** The same for whoever does not know the blueprint. */
export const storedInForce = columnsWith(shownInForce())

/** An entity's row by identifier or else by `_id`, to be shown. */
export const shown = (db: Db, model: Model, name: string) =>
  named<Shown>(db, isAltering(model) ? shownBy(shownIn(model, '')) : SHOWN, model.key, name)

/** The same, to be changed. */
export async function stored(tx: Db, model: Model, name: string): Promise<Stored | undefined> {
  const row = await named<unknown[]>(tx, isAltering(model) ? byName(storedColumns(model)) : STORED, model.key, name)
  return row && storedOf(row)
}

/** A row of `storedColumns`. */
export function storedOf(row: unknown[]): Stored {
  const [seq, _id, identifier, user, workspace, shown, keys, version, created, updated] = row
  return { seq, _id, identifier, user, workspace, shown, keys, version, created, updated } as Stored
}

async function named<Row>(db: Db, sql: typeof SHOWN, key: string, name: string): Promise<Row | undefined> {
  if (name.includes('\0')) return
  const [row] = await db.ask(sql.byIdentifier, [key, name])
  return (row ?? (await db.ask(sql.byId, [key, name]))[0]) as Row | undefined
}

const updating = (mark = '') =>
  `update entities set "user" = ?, workspace = ?, shown = ?, keys = ?, version = ?, updated = ?${mark} where seq = ?`
const UPDATE = updating()
// What is written while a change of its blueprint is being prepared has to be prepared for it.
const UPDATE_MARKED = updating(', altered = null, form = -1')
const UPDATE_CLEAN = updating(', altered = null, form = null')

const updateOf = (model: Model) => (comingOf(model) ? UPDATE_MARKED : isAltering(model) ? UPDATE_CLEAN : UPDATE)

/** A row of the index with its entity's time and number. */
export const INSERT_ROW = 'insert into entity_index (field, path, value, created, entity) values (?, ?, ?, ?, ?)'
export const DELETE_ROW =
  'delete from entity_index where field = ? and path = ? and value = ? and created = ? and entity = ?'

type Change = { doc: Complete; comparable: Doc; by: Caller | undefined } & Partial<Pick<System, 'user' | 'workspace'>>

/** Replaces an entity's document and owners, and such rows of the index as differ. */
export async function update(
  tx: Tx,
  model: Model,
  before: Stored,
  { doc, comparable, by, user = before.user, workspace = before.workspace }: Change,
  sight: Sight,
): Promise<Shown> {
  const [old, keys] = [JSON.parse(before.keys) as Keys, keysOf(model, doc)]
  const observed = await refuseOutdated(tx, model)
  await refuseExcess(tx, model, { user, workspace }, keys, by, old)
  await refuseDuplicates(tx, model, keys, by, old)
  await refuseDangling(tx, model, doc, comparable, sight)
  const [text, updated, version] = [JSON.stringify(doc), now(), before.version + 1]
  refuseLarge(text)
  const shown = shownOf({ ...before, user, workspace, updated }, text)
  const after = { ...before, user, workspace, shown, keys: JSON.stringify(keys), version, updated }
  await Promise.all([replace(tx, model, before, after, observed), told(tx, model, after, by)])
  return [shown, user, workspace, version, updated]
}

/** Keeps an entity that was there otherwise before. In order, but waited for together: one trip. */
export async function replace(tx: Tx, model: Model, before: Kept, row: Stored, { searched, logged }: Observed) {
  const { seq, user, workspace, shown, keys, version, updated } = row
  const old = JSON.parse(before.keys) as Keys
  // There may be rows of fields that are not in force yet, or not any more.
  const [gone, come] = difference(rowsOf(isAltering(model) ? undefined : model, old), rowsOf(model, JSON.parse(keys)))
  if (searched) keepTerms(tx, [[seq, termsOf(model, JSON.parse(docOf(shown)))]])
  await Promise.all([
    writeRows(tx, indexed(row, gone), indexed(row, come)),
    tx.ask(updateOf(model), [user, workspace, shown, keys, version, updated, seq]),
    logged && keep(tx, model.key, [{ before, after: { shown, keys } }]),
  ])
}

const told = async (tx: Tx, model: Model, row: Stored, actor?: Caller) =>
  model.dispatchers?.update && dispatch(tx, { tenant: model.tenant, actor }, 'update', model.key, [row])

/** Puts an entity back as it was, if it is still there. Nobody is asked: it is as if nothing had happened. */
export async function restore(tx: Tx, model: Model, before: Stored) {
  const select = `select shown, keys, ${IS_SEARCHED}, ${IS_LOGGED} from entities where seq = ?`
  const [row] = (await tx.ask(select, [model.key, model.key, before.seq])) as [string, string, unknown, unknown][]
  if (!row) return
  const [shown, keys, searched, logged] = row
  const observed = { searched: !!searched, logged: !!logged }
  await Promise.all([replace(tx, model, { shown, keys }, before, observed), told(tx, model, before)])
}

/** The first of these entities, as many as are good to be removed by one write, and at least one. */
export const portion = <Row extends Pick<Stored, 'keys'>>(entities: Row[]): Row[] =>
  fitting(entities, STATEMENTS, ({ keys }) => 1 + rowsOf(undefined, JSON.parse(keys)).length)

/** Removes entities with their rows of the index, whatever their blueprint says by now. */
export async function erase(tx: Tx, entities: Pick<Stored, 'seq' | 'keys' | 'created'>[]) {
  const rows = entities.flatMap(({ seq, keys, created }) =>
    rowsOf(undefined, JSON.parse(keys)).map((row) => [...row, created, seq]),
  )
  const gone = entities.map(({ seq }) => seq)
  await keepRemovals(tx, gone)
  await Promise.all([
    tx.each(DELETE_ROW, rows),
    forgetTerms(tx, gone),
    tx.each(
      'delete from entities where seq = ?',
      gone.map((seq) => [seq]),
    ),
  ])
}

/** Rows of the index with the entity that they lead to. */
export const indexed = ({ created, seq }: Pick<Stored, 'created' | 'seq'>, rows: IndexRow[]) =>
  rows.map((one) => [...one, created, seq])

/** Takes some rows out of the index, then puts others in. */
export const writeRows = (tx: Tx, gone: unknown[][], come: unknown[][]) =>
  Promise.all([tx.each(DELETE_ROW, gone), tx.each(INSERT_ROW, come)])

const STATEMENTS = 4_000 // in one write of many

/** The rows that only one of the two has. */
export function difference(one: IndexRow[], other: IndexRow[]): [IndexRow[], IndexRow[]] {
  const name = (row: IndexRow) => row.join('\u0000')
  const [left, right] = [new Set(one.map(name)), new Set(other.map(name))]
  return [one.filter((row) => !right.has(name(row))), other.filter((row) => !left.has(name(row)))]
}
