import { comingOf, isAltering, type Model } from '../blueprints/model'
import { type Caller, mayRead, mayWrite, type Reach, reaches } from '../blueprints/rules'
import { config } from '../config'
import { now } from '../core/clock'
import { invalid, Problem } from '../core/problem'
import { Busy, Conflict } from '../storage/errors'
import type { Db, Tx } from '../storage/port'
import { IS_LOGGED, type Kept, keep, keepRemovals } from './changes/log'
import type { Known } from './computed'
import { fitting } from './conditions'
import { dispatch } from './dispatch'
import type { Complete, Doc } from './document'
import { type IndexRow, type Keys, keysOf, rowsOf } from './keys'
import { refuseExcess } from './limits'
import { forgetTerms, IS_SEARCHED, keepTerms } from './search'
import { docOf, type System, shownIn, shownInForce, shownOf } from './wire'
import { termsOf } from './words'

/** What is read to show one entity, in the order of `SHOWN`. */
export type Shown = [shown: string, user: string | null, workspace: string | null, version: number, updated: number]

/** An entity as it is kept. */
export type Stored = System & { seq: number; shown: string; keys: string; version: number }

/** A blueprint was changed while its entity was being checked against it. */
export class Outdated extends Busy {}

/** An entity was changed while another change of it was being worked out. */
export class Overtaken extends Outdated {}

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

// The entity goes in only while its blueprint is the one that it was checked against.
const inserting = (mark = '') => `insert into entities
  (_id, blueprint, identifier, "user", workspace, shown, keys, version, created, updated${mark && ', form'})
  select ?, key, ?, ?, ?, ?, ?, 1, ?, ?${mark} from blueprints where key = ? and _id = ? and version = ?
  returning seq, ${IS_SEARCHED}, ${IS_LOGGED}`
const updating = (mark = '') =>
  `update entities set "user" = ?, workspace = ?, shown = ?, keys = ?, version = ?, updated = ?${mark} where seq = ?`
const [INSERT, UPDATE] = [inserting(), updating()]
// What is written while a change of its blueprint is being prepared has to be prepared for it.
const [INSERT_MARKED, UPDATE_MARKED] = [inserting(', -1'), updating(', altered = null, form = -1')]
const UPDATE_CLEAN = updating(', altered = null, form = null')

const insertOf = (model: Model) => (comingOf(model) ? INSERT_MARKED : INSERT)
const updateOf = (model: Model) => (comingOf(model) ? UPDATE_MARKED : isAltering(model) ? UPDATE_CLEAN : UPDATE)

const INSERT_ROW = 'insert into entity_index (field, path, value, created, entity) values (?, ?, ?, ?, ?)'
export const DELETE_ROW =
  'delete from entity_index where field = ? and path = ? and value = ? and created = ? and entity = ?'

/** Which rows of other blueprints the writer may see, by the key of the blueprint. */
export type Sight = Map<string, Reach | undefined>

/** An entity that is to be, and who makes it. */
export type Draft = Known & { doc: Complete; keys: Keys; by: Caller | undefined }

export const drafted = (model: Model, known: Known, doc: Complete, by: Caller | undefined): Draft => ({
  ...known,
  doc,
  keys: keysOf(model, doc),
  by,
})

/** Adds an entity with its rows of the index. @throws Outdated, Conflict, 403 LIMIT_REACHED, 409 UNIQUE_VIOLATION, 400 */
export const insert = async (tx: Tx, model: Model, draft: Draft, sight: Sight): Promise<Shown> =>
  (await insertOne(tx, model, draft, sight)).row

/** The same, with its number. */
export async function insertOne(tx: Tx, model: Model, draft: Draft, sight: Sight): Promise<Added> {
  const ready = readied(model, draft)
  const { doc, keys, by } = draft
  await refuseUsurper(tx, model, draft)
  await refuseExcess(tx, model, draft, keys, by)
  await refuseDuplicates(tx, model, keys, by)
  await refuseDangling(tx, model, doc, {}, sight)
  const [added] = await add(tx, model, [ready])
  return added!
}

export type Added = { seq: number; row: Shown }

/** An entity as it goes in, with its rows of the index. */
export type Ready = { time: number; shown: string; draft: Draft; index: IndexRow[] }

/** @throws 400 for an entity that is too large */
export function readied(model: Model, draft: Draft): Ready {
  const { _id, identifier, user, workspace, doc, keys } = draft
  const [time, text, index] = [now(), JSON.stringify(doc), rowsOf(model, keys)]
  refuseLarge(text)
  const shown = shownOf({ _id, identifier, user, workspace, created: time, updated: time }, text)
  return { time, shown, draft, index }
}

/** Adds what nothing stands in the way of; asked one after the other, but not waited for in between. @throws Outdated */
export async function add(tx: Tx, model: Model, all: Ready[]): Promise<Added[]> {
  const added = await Promise.all(
    all.map(({ time, shown, draft: { _id, identifier, user, workspace, keys } }) => {
      const params = [_id, identifier, user, workspace, shown, JSON.stringify(keys), time, time]
      return tx.ask(insertOf(model), [...params, model.key, model._id, model.version, model.key, model.key])
    }),
  )
  if (added.some((rows) => !rows.length)) throw new Outdated()
  const seqs = added.map(([row]) => row![0] as number)
  await tx.each(
    INSERT_ROW,
    all.flatMap(({ time, index }, n) => index.map((row) => [...row, time, seqs[n]])),
  )
  const [, searched, logged] = added[0]?.[0] ?? []
  if (searched)
    await keepTerms(
      tx,
      all.map(({ draft }, n) => [seqs[n]!, termsOf(model, draft.doc)]),
    )
  if (logged)
    await keep(
      tx,
      model.key,
      all.map(({ shown, draft }) => ({ after: { shown, keys: JSON.stringify(draft.keys) } })),
    )
  if (model.dispatchers?.create) {
    const actor = all[0]?.draft.by
    const told = all.map(({ draft }) => ({ ...draft, version: 1 }))
    await dispatch(tx, { tenant: model.tenant, actor }, 'create', model.key, told)
  }
  return all.map(({ time, shown, draft: { user, workspace } }, n) => ({
    seq: seqs[n]!,
    row: [shown, user, workspace, 1, time],
  }))
}

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
  await replace(tx, model, before, after, observed, by)
  return [shown, user, workspace, version, updated]
}

/** Keeps an entity that was there otherwise before. In order, but waited for together: one trip. */
async function replace(
  tx: Tx,
  model: Model,
  before: Kept,
  row: Stored,
  { searched, logged }: Observed,
  actor?: Caller,
) {
  const { seq, user, workspace, shown, keys, version, updated } = row
  const old = JSON.parse(before.keys) as Keys
  // There may be rows of fields that are not in force yet, or not any more.
  const [gone, come] = difference(rowsOf(isAltering(model) ? undefined : model, old), rowsOf(model, JSON.parse(keys)))
  await Promise.all([
    writeRows(tx, indexed(row, gone), indexed(row, come)),
    tx.ask(updateOf(model), [user, workspace, shown, keys, version, updated, seq]),
    searched && keepTerms(tx, [[seq, termsOf(model, JSON.parse(docOf(shown)))]]),
    logged && keep(tx, model.key, [{ before, after: { shown, keys } }]),
    model.dispatchers?.update && dispatch(tx, { tenant: model.tenant, actor }, 'update', model.key, [row]),
  ])
}

/** Puts an entity back as it was, if it is still there. Nobody is asked: it is as if nothing had happened. */
export async function restore(tx: Tx, model: Model, before: Stored) {
  const select = `select shown, keys, ${IS_SEARCHED}, ${IS_LOGGED} from entities where seq = ?`
  const [row] = (await tx.ask(select, [model.key, model.key, before.seq])) as [string, string, unknown, unknown][]
  if (!row) return
  const [shown, keys, searched, logged] = row
  await replace(tx, model, { shown, keys }, before, { searched: !!searched, logged: !!logged })
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

/** For what was worked out from an entity before the write. @throws Overtaken */
export async function refuseOvertaken(tx: Tx, { seq, _id, version }: Stored) {
  const [row] = await tx.ask('select version from entities where seq = ? and _id = ?', [seq, _id])
  if (row?.[0] !== version) throw new Overtaken()
}

/** Whether the words of the entities are kept, and their changes. */
type Observed = { searched: boolean; logged: boolean }

async function refuseOutdated(tx: Tx, { key, _id, version }: Model): Promise<Observed> {
  const select = `select version, ${IS_SEARCHED}, ${IS_LOGGED} from blueprints where key = ? and _id = ?`
  const [row] = await tx.ask(select, [key, key, key, _id])
  if (row?.[0] !== version) throw new Outdated()
  return { searched: !!row[1], logged: !!row[2] }
}

/** Many small changes must not make what no single one may. */
function refuseLarge({ length }: string) {
  if (length > config.ATOLL_BODY_LIMIT)
    invalid({ path: '', message: `The entity would be larger than ${config.ATOLL_BODY_LIMIT} characters.` })
}

/** In the writing transaction, where nobody can come in between. */
async function refuseDuplicates(tx: Tx, model: Model, keys: Keys, by: Caller | undefined, old: Keys = {}) {
  for (const field of model.fields) {
    const label = `f${field.number}`
    const key = keys[label]
    if (!field.unique || key === undefined || key === old[label]) continue
    const where = 'where field = ? and path = ? and value = ? limit 1'
    const rows = await tx.ask(`select 1 from entity_index ${where}`, [field.number, '', key])
    if (!rows.length) continue
    // It came by a default or a formula, so the name would help nobody who may not know it.
    if (!mayRead(field, by) && !mayWrite(field, by))
      throw new Problem(409, 'UNIQUE_VIOLATION', 'Another entity has a value already that must be unique.')
    throw new Problem(409, 'UNIQUE_VIOLATION', `Another entity has this ${field.key} already.`, {
      details: [{ path: `/${field.key}`, message: `${field.key} must be unique.` }],
    })
  }
}

/** An entity answers to its `_id`, too, so no other one may be called by it. */
async function refuseUsurper(tx: Tx, { key }: Model, { _id, identifier }: Pick<Draft, '_id' | 'identifier'>) {
  if (identifier === _id) return
  const rows = await tx.ask('select 1 from entities where _id = ? and blueprint = ?', [identifier, key])
  if (rows.length) throw new Conflict()
}

/** Relations lead to what the writer may see. */
async function refuseDangling(tx: Tx, model: Model, doc: Doc, stored: Doc, sight: Sight) {
  for (const { key, target } of model.fields) {
    if (!target || doc[key] === undefined || Bun.deepEquals(doc[key], stored[key])) continue
    const reach = sight.get(target)
    for (const identifier of [doc[key]].flat() as string[]) {
      const [row] = await tx.ask('select "user", workspace from entities where blueprint = ? and identifier = ?', [
        target,
        identifier,
      ])
      const [user, workspace] = (row ?? []) as [string | null, string | null]
      if (!row || !reach || !reaches(reach, { user, workspace }))
        invalid({ path: `/${key}`, message: `There is no entity "${identifier}" of "${target}".` })
    }
  }
}
