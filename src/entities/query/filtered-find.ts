import type { Model } from '../../blueprints/model'
import type { RowScope } from '../../blueprints/permissions'
import type { Db } from '../../storage/port'
import { thresholds } from './cardinality'
import type { CursorPosition } from './cursor'
import { find } from './find'
import type { Query } from './query-parser'
import { createRowFilter } from './row-filter'
import type { FindResult } from './select-sql'

const MAX_ENTITIES_PER_READ = 2_000

/** Returns the results of `find` that pass the filter of the query's rows; reads on in the order until there are enough. */
export async function findFiltered<Row extends unknown[]>(
  db: Db,
  columns: string[],
  model: Model,
  rowScope: RowScope,
  query: Query,
  { limit = query.limit, after }: { limit?: number; after?: CursorPosition } = {},
): Promise<FindResult<Row>> {
  // A ranked search finds its words itself.
  const filter = createRowFilter(model, query.ranked ? { likes: query.likes } : query)
  if (!filter) return find(db, columns, model, rowScope, query, { limit, after })
  const selected = [...columns, ...filter.columns]
  const matches: { row: Row; passed: () => CursorPosition }[] = []
  let [from, toSkip, size, read] = [after, query.skip, Math.min(MAX_ENTITIES_PER_READ, limit + query.skip + 50), 0]
  while (matches.length < limit) {
    // If the first rows do not fill the page, one pass filters all remaining rows.
    const isDue = read >= thresholds.stretch
    const passage = { filter, limit: limit - matches.length, skip: Math.max(0, toSkip), isDue }
    const { rows, positionAfter, isFiltered } = await find(
      db,
      selected,
      model,
      rowScope,
      { ...query, skip: 0 },
      { limit: size, after: from, passage },
    )
    if (isFiltered) toSkip = 0
    const accepted = await filter.test(db, rows, columns.length)
    for (const [at, row] of rows.entries()) {
      if (!accepted[at]) continue
      if (toSkip-- > 0) continue
      matches.push({ row: row as Row, passed: () => positionAfter(at + 1) })
      if (matches.length === limit) break
    }
    if (rows.length < size || isFiltered) break
    from = positionAfter(rows.length)
    read += rows.length
    // The cursor of a ranked search holds all entities that were passed, so its slices stay small.
    if (!query.ranked) size = Math.min(MAX_ENTITIES_PER_READ, size * 2)
    await db.yieldToOthers()
  }
  return { rows: matches.map(({ row }) => row), positionAfter: (count) => matches[count - 1]!.passed() }
}
