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

/** A range of an index: the number of its counts since the last change, and its marks once they are read. */
type Place = { counts: number; marks?: IndexRow[] }

const UNMARKED_COUNTS = 2
const PLACE_CHARACTERS = 8_000 // the usual size of a range's marks in memory
const MAX_MARKS = 4_096
const MARKS_PER_TURN = 32

/**
 * Counts consecutive rows of an index (`i`). Repeated counts use marks in memory, which are rows at equal distances, until an
 * entity changes. They read only the rows between a mark and each end. Returns undefined while there are no marks.
 */
export async function countByMarks(db: Db, model: Model, at: SqlFragment, where: SqlFragment) {
  const name = `marks ${thresholds.marked} ${at.sql} ${JSON.stringify(at.params)}`
  const readPlace = (db: Db) =>
    readUntilChange(
      db,
      model,
      name,
      async (): Promise<Place> => ({ counts: 0 }),
      () => PLACE_CHARACTERS,
    )
  const [place, origin] = [await readPlace(db), db.origin ?? db]
  const isCurrent = async () => (await readPlace(origin)) === place
  // In the background, because it would make this read costly.
  if (++place.counts === UNMARKED_COUNTS) readMarks(origin, at, place, isCurrent).catch(() => {})
  const { marks } = place
  if (!marks) return
  const [first, last] = await Promise.all([findRow(db, where, 'asc'), findRow(db, where, 'desc')])
  const countRowsUpTo = (row: IndexRow | undefined) => row && countUpTo(db, at, marks, row)
  const [before = 1, upTo = 0] = await Promise.all([countRowsUpTo(first), countRowsUpTo(last)])
  const count = upTo - before + 1
  return (await isCurrent()) ? count : undefined
}

/** Reads the marks of a place, unless an entity changes meanwhile, which ends their use. */
async function readMarks(db: Db, at: SqlFragment, place: Place, isCurrent: () => Promise<boolean>) {
  const marks: IndexRow[] = []
  for (let after: SqlFragment[] = []; marks.length <= MAX_MARKS; ) {
    if (marks.length % MARKS_PER_TURN === 0) {
      await db.yieldToOthers()
      if (!(await isCurrent())) return
    }
    const { sql, params } = and([at, ...after])
    const skipped = marks.length ? thresholds.marked - 1 : 0
    const next = `select ${COLUMNS} from entity_index i where ${sql} order by ${orderBy('asc')} limit 1 offset ${skipped}`
    const [row] = await db.query(next, params)
    if (!row) {
      place.marks = marks
      return
    }
    marks.push(toIndexRow(row))
    after = [compareRow('>', toIndexRow(row))]
  }
}

async function findRow(db: Db, { sql, params }: SqlFragment, direction: 'asc' | 'desc') {
  const select = `select ${COLUMNS} from entity_index i where ${sql} order by ${orderBy(direction)} limit 1`
  const [row] = await db.query(select, params)
  return row && toIndexRow(row)
}

/** Returns the number of rows up to and including a row. */
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
