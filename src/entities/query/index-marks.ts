import type { Model } from '../../blueprints/model'
import type { Db } from '../../storage/port'
import { and, fragment, type SqlFragment } from '../store/sql-fragments'
import { thresholds } from './cardinality'
import { VALUE_ORDER } from './id-set'
import { readUntilChange } from './read-cache'
import { compareValues } from './value-order'

/** A row of an index: its value, and the time and the number of its entity. */
type IndexRow = [value: string, created: number, entity: number]

const COLUMNS = VALUE_ORDER.join(', ')
const orderBy = (direction: 'asc' | 'desc') => VALUE_ORDER.map((column) => `${column} ${direction}`).join(', ')

const UNMARKED_COUNTS = 2 // of rows at one place, until a change
const MARK_CHARACTERS = 100 // what a mark takes in memory, about
const MAX_MARKS = 10_000

/**
 * Returns how many of the rows of an index (`i`) at one place meet a condition that holds for consecutive rows. Those that
 * ask again before an entity changes get it from marks in memory, which are some of the rows at the place with equally many
 * others between them: only the rows from a mark to the first and the last one are counted. Returns undefined when it would
 * take as long as to count all.
 */
export async function countByMarks(db: Db, model: Model, at: SqlFragment, where: SqlFragment) {
  const name = `${thresholds.marked} ${at.sql} ${JSON.stringify(at.params)}`
  const readAsks = () => readUntilChange(db, model, `asks ${name}`, async () => ({ count: 0 }))
  const asks = await readAsks()
  if (++asks.count <= UNMARKED_COUNTS) return
  const sizeOf = (marks: IndexRow[] = []) => MARK_CHARACTERS * marks.length
  const marks = await readUntilChange(db, model, `marks ${name}`, () => readMarks(db, at), sizeOf)
  if (!marks) return
  const first = await findRow(db, where, 'asc')
  const last = first && (await findRow(db, where, 'desc'))
  const count = last ? (await countUpTo(db, at, marks, last)) - (await countUpTo(db, at, marks, first)) + 1 : 0
  return (await readAsks()) === asks ? count : undefined
}

async function readMarks(db: Db, at: SqlFragment): Promise<IndexRow[] | undefined> {
  const marks: IndexRow[] = []
  for (let after: SqlFragment[] = []; marks.length <= MAX_MARKS; ) {
    const { sql, params } = and([at, ...after])
    const skipped = marks.length ? thresholds.marked - 1 : 0
    const next = `select ${COLUMNS} from entity_index i where ${sql} order by ${orderBy('asc')} limit 1 offset ${skipped}`
    const [row] = await db.query(next, params)
    if (!row) return marks
    marks.push(toIndexRow(row))
    after = [compareRow('>', toIndexRow(row))]
    await db.yieldToOthers()
  }
}

async function findRow(db: Db, { sql, params }: SqlFragment, direction: 'asc' | 'desc') {
  const select = `select ${COLUMNS} from entity_index i where ${sql} order by ${orderBy(direction)} limit 1`
  const [row] = await db.query(select, params)
  return row && toIndexRow(row)
}

/** Returns how many rows come up to a row, including it. */
async function countUpTo(db: Db, at: SqlFragment, marks: IndexRow[], row: IndexRow): Promise<number> {
  let [low, high] = [0, marks.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (compareRows(marks[middle]!, row) <= 0) low = middle + 1
    else high = middle
  }
  const { sql, params } = and([at, ...(low ? [compareRow('>=', marks[low - 1]!)] : []), compareRow('<=', row)])
  const [counted] = await db.query(`select count(*) from entity_index i where ${sql}`, params)
  return Math.max(0, low - 1) * thresholds.marked + Number(counted![0])
}

function compareRows(one: IndexRow, other: IndexRow): number {
  return compareValues(one[0], other[0]) || one[1] - other[1] || one[2] - other[2]
}

const compareRow = (sign: '>' | '>=' | '<=', row: IndexRow) => fragment(`(${COLUMNS}) ${sign} (?, ?, ?)`, ...row)

const toIndexRow = ([value, created, entity]: unknown[]): IndexRow => [value as string, Number(created), Number(entity)]
