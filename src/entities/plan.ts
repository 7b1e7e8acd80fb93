import type { Model } from '../blueprints/model'
import type { Reach } from '../blueprints/rules'
import type { Db } from '../storage/port'
import { best, type Fitting } from './best'
import { and, part } from './conditions'
import type { Passed } from './cursor'
import { isCreated, latest, type Place, termsOf } from './order'
import type { Condition, Order, Query } from './query'
import { everything, filter, searched } from './scans'
import { type Asked, type Statement, type Stretch, select } from './select'
import { isSiftable, sifted } from './sift'
import { TRUSTED } from './sizes'
import { type Group, type Walk, walk } from './walk'
import { wayOf } from './way'
import { shownIn } from './wire'

export type Found<Row> = {
  rows: Row[]
  /** Where a page ends that has so many of them, one at least. */
  passed(count: number): Passed
}

/**
 * Columns (of the table `e`) of the entities that a query asks for, of those within reach, in its order; at most `limit`,
 * from the beginning or after what was passed. The way to find them is remembered for as long as the estimates are that
 * it was chosen by.
 */
export async function find<Row extends unknown[]>(
  db: Db,
  columns: string[],
  model: Model,
  reach: Reach,
  query: Query,
  { limit = query.limit, after, first }: { limit?: number; after?: Passed; first?: Order } = {},
): Promise<Found<Row>> {
  const asked = { db, columns, model, reach, query, limit, first }
  if (query.ranked) return best(asked, after as Fitting | undefined)
  const ordered = (rows: unknown[][]): Found<Row> => ({
    rows: rows as Row[],
    passed: (count) => ({ place: rows[count - 1]!.slice(columns.length) as Place }),
  })
  const place = (after as { place: Place } | undefined)?.place
  const ways = waysOf(query)
  const name = JSON.stringify([columns, limit, reach])
  const known = place ? undefined : ways.get(name)
  if (known && known.until > performance.now()) return ordered(await db.ask(known.sql, known.params))

  const { scan, walked } = await wayOf(db, model, reach, query)
  const stretch = { limit, skip: query.skip, place }
  const rows =
    walked && ((await walkedOf(asked, walked, stretch)) ?? (isSiftable(asked) && (await sifted(asked, stretch))))
  if (rows) return ordered(rows)
  const statement = select(asked, scan, termsOf(query.order, scan.time, first), stretch)
  if (!place) ways.set(name, { ...statement, until: performance.now() + TRUSTED })
  return ordered(await db.ask(statement.sql, statement.params))
}

/** Where very many share what comes first, but more is to be ordered by, and a page is within that group, it is a list of its own. */
async function walkedOf(asked: Asked, way: Walk, stretch: Stretch): Promise<unknown[][] | undefined> {
  const found = await walk(asked, way, stretch)
  if (!isGroup(found)) return found
  const { db, columns, model, reach, query, limit } = asked
  const [first, ...order] = query.order as [Order, ...Order[]]
  if (!found.whole) return
  const { value } = found
  const conditions: Condition[] = [...query.conditions, { target: first.target, is: 'in', values: [found.value] }]
  const ties = latest((asked.first ?? first).descending)
  const alike: Query = { ...query, conditions, order: order.length ? order : [ties] }
  // Where time comes first, what agrees in everything else is told apart by it once more.
  const timed = isCreated(first.target) && !order.some(({ target }) => isCreated(target))
  const rest = stretch.place?.slice(1)
  const after =
    rest && stretch.place?.[0] === value ? { place: timed ? rest.toSpliced(-1, 0, value) : rest } : undefined
  const { rows } = await find<unknown[]>(db, columns, model, reach, alike, {
    limit,
    after,
    first: asked.first ?? first,
  })
  return rows.map((row) => (timed ? row.toSpliced(-2, 1) : row).toSpliced(columns.length, 0, value))
}

const isGroup = (found: unknown[][] | Group | undefined): found is Group => !!found && 'value' in found

type Known = Statement & { until: number }
const ways = new WeakMap<Query, Map<string, Known>>()
const WAYS = 100 // of one query: as many callers with a reach of their own

function waysOf(query: Query) {
  const known = ways.get(query)
  if (known && known.size < WAYS) return known
  const fresh = new Map<string, Known>()
  ways.set(query, fresh)
  return fresh
}

/** What is shown of those that were found, by their numbers; those that do not match any more are missing. */
export const shownAmong = async (db: Db, model: Model, reach: Reach, query: Query, found: number[]) =>
  new Map((await among(db, `e.seq, ${shownIn(model)}`, model, reach, query, found)) as [number, string][])

/** Columns of those of these entities that match. */
export function among(db: Db, columns: string, model: Model, reach: Reach, query: Query, found: number[]) {
  const scan = query.search === undefined ? everything(model) : searched(model, query.search)
  const numbers = part(`e.seq in (${found.map(() => '?').join(', ')})`, ...found)
  const { sql, params } = and([filter(scan, reach, query.conditions), numbers])
  return db.ask(`select ${columns} from ${scan.from} where ${sql}`, params)
}
