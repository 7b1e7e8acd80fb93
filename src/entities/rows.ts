import type { Model } from '../blueprints/model'
import { type Caller, mayRead, mayWrite, type Reach, reaches } from '../blueprints/rules'
import { config } from '../config'
import { now } from '../core/clock'
import { invalid, Problem } from '../core/problem'
import { Busy, Conflict } from '../storage/errors'
import type { Db, Tx } from '../storage/port'
import type { Complete, Doc } from './document'
import { type IndexRow, type Keys, keysOf, rowsOf } from './keys'
import { refuseExcess } from './limits'
import { forgetTerms, IS_SEARCHED, keepTerms } from './search'
import { type System, shownOf } from './wire'
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
const SHOWN = byName('shown, "user", workspace, version, updated')
export const STORED_COLUMNS = 'seq, _id, identifier, "user", workspace, shown, keys, version, created, updated'
const STORED = byName(STORED_COLUMNS)

/** An entity's row by identifier or else by `_id`, to be shown. */
export const shown = (db: Db, { key }: Model, name: string) => named<Shown>(db, SHOWN, key, name)

/** The same, to be changed. */
export async function stored(tx: Db, { key }: Model, name: string): Promise<Stored | undefined> {
  const row = await named<unknown[]>(tx, STORED, key, name)
  return row && storedOf(row)
}

/** A row of the columns `STORED_COLUMNS`. */
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
const INSERT = `insert into entities (_id, blueprint, identifier, "user", workspace, shown, keys, version, created, updated)
  select ?, key, ?, ?, ?, ?, ?, 1, ?, ? from blueprints where key = ? and _id = ? and version = ?
  returning seq, ${IS_SEARCHED}`
const UPDATE =
  'update entities set "user" = ?, workspace = ?, shown = ?, keys = ?, version = ?, updated = ? where seq = ?'
const INSERT_ROW = 'insert into entity_index (field, path, value, created, entity) values (?, ?, ?, ?, ?)'
export const DELETE_ROW =
  'delete from entity_index where field = ? and path = ? and value = ? and created = ? and entity = ?'

/** Which rows of other blueprints the writer may see, by the key of the blueprint. */
export type Sight = Map<string, Reach | undefined>

type Draft = Pick<System, '_id' | 'identifier' | 'user' | 'workspace'> & {
  doc: Complete
  keys: Keys
  by: Caller | undefined
}

/** Adds an entity with its rows of the index. @throws Outdated, Conflict, 403 LIMIT_REACHED, 409 UNIQUE_VIOLATION, 400 */
export async function insert(tx: Tx, model: Model, { doc, keys, by, ...draft }: Draft, sight: Sight): Promise<Shown> {
  const [time, text, rows] = [now(), JSON.stringify(doc), rowsOf(model, keys)]
  const { _id, identifier, user, workspace } = draft
  refuseLarge(text)
  const shown = shownOf({ ...draft, created: time, updated: time }, text)
  await refuseUsurper(tx, model, draft)
  await refuseExcess(tx, model, draft, keys, by)
  await refuseDuplicates(tx, model, keys, by)
  await refuseDangling(tx, model, doc, {}, sight)
  const params = [_id, identifier, user, workspace, shown, JSON.stringify(keys), time, time]
  const [added] = await tx.ask(INSERT, [...params, model.key, model._id, model.version, model.key])
  if (!added) throw new Outdated()
  const [seq, searched] = added as [number, unknown]
  await tx.each(
    INSERT_ROW,
    rows.map((row) => [...row, time, seq]),
  )
  if (searched) await keepTerms(tx, [[seq, termsOf(model, doc)]])
  return [shown, user, workspace, 1, time]
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
  const searched = await refuseOutdated(tx, model)
  await refuseExcess(tx, model, { user, workspace }, keys, by, old)
  await refuseDuplicates(tx, model, keys, by, old)
  await refuseDangling(tx, model, doc, comparable, sight)
  const [gone, come] = difference(rowsOf(model, old), rowsOf(model, keys))
  await tx.each(
    DELETE_ROW,
    gone.map((row) => [...row, before.created, before.seq]),
  )
  await tx.each(
    INSERT_ROW,
    come.map((row) => [...row, before.created, before.seq]),
  )
  const [text, updated, version] = [JSON.stringify(doc), now(), before.version + 1]
  refuseLarge(text)
  const shown = shownOf({ ...before, user, workspace, updated }, text)
  await tx.ask(UPDATE, [user, workspace, shown, JSON.stringify(keys), version, updated, before.seq])
  if (searched) await keepTerms(tx, [[before.seq, termsOf(model, doc)]])
  return [shown, user, workspace, version, updated]
}

/** The first of these entities, as many as are good to be removed by one write, and at least one. */
export function portion<Row extends Pick<Stored, 'keys'>>(entities: Row[]): Row[] {
  let statements = 0
  const end = entities.findIndex(({ keys }, index) => {
    statements += 1 + rowsOf(undefined, JSON.parse(keys)).length
    return index > 0 && statements > STATEMENTS
  })
  return end < 0 ? entities : entities.slice(0, end)
}

/** Removes entities with their rows of the index, whatever their blueprint says by now. */
export async function erase(tx: Tx, entities: Pick<Stored, 'seq' | 'keys' | 'created'>[]) {
  const rows = entities.flatMap(({ seq, keys, created }) =>
    rowsOf(undefined, JSON.parse(keys)).map((row) => [...row, created, seq]),
  )
  await tx.each(DELETE_ROW, rows)
  const gone = entities.map(({ seq }) => seq)
  await forgetTerms(tx, gone)
  await tx.each(
    'delete from entities where seq = ?',
    gone.map((seq) => [seq]),
  )
}

const STATEMENTS = 4_000 // in one write of many

/** The rows that only one of the two has. */
function difference(one: IndexRow[], other: IndexRow[]): [IndexRow[], IndexRow[]] {
  const name = (row: IndexRow) => row.join('\u0000')
  const [left, right] = [new Set(one.map(name)), new Set(other.map(name))]
  return [one.filter((row) => !right.has(name(row))), other.filter((row) => !left.has(name(row)))]
}

/** For what was worked out from an entity before the write. @throws Overtaken */
export async function refuseOvertaken(tx: Tx, { seq, _id, version }: Stored) {
  const [row] = await tx.ask('select version from entities where seq = ? and _id = ?', [seq, _id])
  if (row?.[0] !== version) throw new Overtaken()
}

/** Tells whether the words of the entities are kept. */
async function refuseOutdated(tx: Tx, { key, _id, version }: Model): Promise<boolean> {
  const [row] = await tx.ask(`select version, ${IS_SEARCHED} from blueprints where key = ? and _id = ?`, [
    key,
    key,
    _id,
  ])
  if (row?.[0] !== version) throw new Outdated()
  return !!row[1]
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
