import type { Model } from '../../blueprints/model'
import { reaches } from '../../blueprints/rules'
import { now } from '../../core/clock'
import type { Tx } from '../../storage/port'
import { type Added, add, type Draft, readied } from '../adding'
import type { Sight } from '../refusals'
import { type LeavingRow, leavingOf } from '../removal'
import * as rows from '../rows'
import type { Room } from './room'

/**
 * Adds entities of which it is certain that nothing stands in their way, in a few statements instead of several for each;
 * answers nothing, and has added nothing, when that is not certain. Then they go in one by one, which tells what is wrong.
 */
export async function addTogether(
  tx: Tx,
  model: Model,
  drafts: Draft[],
  sight: Sight,
  room: Room,
): Promise<Added[] | undefined> {
  // What a limitation counts must be there already.
  if (drafts.length < 2 || model.limitations?.length) return
  if (await anyNameTaken(tx, model, drafts)) return
  for (const field of model.fields.filter(({ unique }) => unique))
    if (await anyValueTaken(tx, `f${field.number}`, field.number, drafts)) return
  for (const { key, target } of model.fields)
    if (
      target &&
      !(await allSeen(
        tx,
        target,
        sight,
        drafts.flatMap(({ doc }) => (doc[key] ?? []) as string[]),
      ))
    )
      return
  const time = now()
  return add(
    tx,
    model,
    drafts.map((draft) => {
      const ready = readied(model, draft, time)
      room.take(ready.shown.length)
      return ready
    }),
  )
}

async function anyNameTaken(tx: Tx, model: Model, drafts: Draft[]) {
  const chosen = drafts.filter(({ _id, identifier }) => identifier !== _id).map(({ identifier }) => identifier)
  return new Set(chosen).size < chosen.length || (await namesThere(tx, model, chosen)).size > 0
}

async function anyValueTaken(tx: Tx, label: string, field: number, drafts: Draft[]) {
  const values = drafts.flatMap(({ keys }) => keys[label] ?? [])
  if (new Set(values).size < values.length) return true
  const select = 'select 1 from entity_index where field = ? and path = ? and value in'
  return (await among(tx, select, [field, ''], values)).length > 0
}

async function allSeen(tx: Tx, target: string, sight: Sight, identifiers: string[]) {
  const [reach, wanted] = [sight.get(target), [...new Set(identifiers)]]
  const select = 'select "user", workspace from entities where blueprint = ? and identifier in'
  const found = (await among(tx, select, [target], wanted)) as [string | null, string | null][]
  return (
    found.length === wanted.length &&
    (!wanted.length || (!!reach && found.every(([user, workspace]) => reaches(reach, { user, workspace }))))
  )
}

/** Which of these names entities answer to. */
export async function namesThere(tx: Tx, model: Model, names: string[]): Promise<Set<string>> {
  const wanted = [...new Set(names)]
  const found = await Promise.all([
    byIdentifier(tx, model, 'identifier, blueprint', wanted),
    byId(tx, model, '_id, blueprint', wanted),
  ])
  return new Set(found.flat().map(([name]) => name as string))
}

/** The entities of these names, by identifier or else by `_id`, to be changed. */
export async function storedAmong(tx: Tx, model: Model, names: string[]): Promise<Map<string, rows.Stored>> {
  return answering(tx, model, rows.storedColumns(model), names, rows.storedOf)
}

/** The same, to be removed: without what they are shown by, for they may be many. */
export async function leavingAmong(tx: Tx, model: Model, names: string[]) {
  const columns = '_id, "user", workspace, seq, keys, created, blueprint, identifier'
  return answering(tx, model, columns, names, ([_id, user, workspace, ...row]) => ({
    ...leavingOf(row as LeavingRow),
    ...({ _id, user, workspace } as Pick<rows.Stored, '_id' | 'user' | 'workspace'>),
  }))
}

async function answering<Row extends { _id: string; identifier: string }>(
  tx: Tx,
  model: Model,
  columns: string,
  names: string[],
  rowOf: (row: unknown[]) => Row,
): Promise<Map<string, Row>> {
  const found = new Map<string, Row>()
  const all = `${columns}, blueprint`
  for (const row of (await byIdentifier(tx, model, all, names)).map(rowOf)) found.set(row.identifier, row)
  const left = names.filter((name) => !found.has(name))
  for (const row of (await byId(tx, model, all, left)).map(rowOf)) found.set(row._id, row)
  return found
}

const byIdentifier = (tx: Tx, { key }: Model, columns: string, names: string[]) =>
  among(tx, `select ${columns} from entities where blueprint = ? and identifier in`, [key], names)

/** The blueprint, as the last column, is looked at here: SQLite would go through all of it rather than look for many ids. */
const byId = async (tx: Tx, { key }: Model, columns: string, ids: string[]) =>
  (await among(tx, `select ${columns} from entities where _id in`, [], ids)).filter((row) => row.at(-1) === key)

const AT_ONCE = 200 // values of one statement, which is the same text for fewer

async function among(tx: Tx, sql: string, params: unknown[], values: string[]): Promise<unknown[][]> {
  const slices = Array.from({ length: Math.ceil(values.length / AT_ONCE) }, (_, n) =>
    values.slice(n * AT_ONCE, (n + 1) * AT_ONCE),
  )
  const list = `(${Array(AT_ONCE).fill('?').join(', ')})`
  const found = await Promise.all(
    slices.map((some) => {
      const filled = [...some, ...Array(AT_ONCE - some.length).fill(some[0])]
      return tx.ask(`${sql} ${list}`, [...params, ...filled])
    }),
  )
  return found.flat()
}
