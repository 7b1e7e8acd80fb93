import type { Model, ModelField } from '../../blueprints/model'
import type { RowScope } from '../../blueprints/permissions'
import type { IndexReason } from '../../blueprints/shapes'
import type { Db } from '../../storage/port'
import { lacksIndex, noteFieldUse, requestCompoundIndex, requestIndex } from '../indexing/index-demand'
import { and } from '../store/sql-fragments'
import { estimateRows, thresholds } from './cardinality'
import { adviseCompoundIndex, adviseCountedIndex } from './compound-index'
import type { Query } from './query-parser'
import { fullScan } from './scans'
import { scopeSql } from './sql-conditions'
import type { Target } from './target'

/**
 * Notes which indexes a query uses, and asks for those that it lacks, unless it reads few rows. `bounded` is about the
 * conditions and the order; a pattern is compared with each row until the page is full, unless a condition leaves `few`.
 * A list that reads hardly more rows than it shows, as `isShort` says, needs no compound index.
 */
export async function requestMissingIndexes(
  db: Db,
  model: Model,
  rowScope: RowScope,
  query: Query,
  { bounded, few, isShort }: { bounded: boolean; few: boolean; isShort: boolean },
) {
  const { conditions, likes, order } = query
  const compared = likes.flatMap(({ target }) => toField(target))
  const filtered = conditions.flatMap(({ target }) => toField(target))
  const sorted = order.flatMap(({ target }) => toField(target))
  for (const field of [...compared, ...filtered, ...sorted]) noteFieldUse(model, field)
  const lackingFilter = [...(few ? [] : compared), ...(bounded ? [] : filtered)].filter(lacksIndex)
  const lackingSort = (bounded ? [] : sorted).filter(lacksIndex)
  const parts = isShort ? undefined : adviseCompoundIndex(rowScope, query)
  if (!parts && !(lackingFilter.length + lackingSort.length)) return
  if (!(await hasManyRows(db, model, rowScope))) return
  if (parts && !requestCompoundIndex(model, parts)) return
  for (const field of lackingFilter) requestIndex(model, field, 'filter')
  for (const field of lackingSort) requestIndex(model, field, 'sort')
}

/** Notes that all values of a field are read, and asks for its index if it lacks one, unless there are few rows. */
export async function requestMissingIndex(db: Db, model: Model, field: ModelField, reason: IndexReason) {
  noteFieldUse(model, field)
  if (lacksIndex(field) && (await hasManyRows(db, model, { all: true }))) requestIndex(model, field, reason)
}

/** Asks for the compound index that tells how many entities match, unless there are few. */
export async function requestCountedIndex(db: Db, model: Model, rowScope: RowScope, query: Query) {
  const parts = query.search === undefined ? adviseCountedIndex(rowScope, query) : undefined
  if (parts && (await hasManyRows(db, model, rowScope, thresholds.few))) requestCompoundIndex(model, parts)
}

const toField = (target: Target) => (target.at === 'field' ? [target.field] : [])

async function hasManyRows(db: Db, model: Model, rowScope: RowScope, limit = thresholds.unindexed) {
  return (await estimateRows(db, 'entities e', and([fullScan(model).where, ...scopeSql(rowScope)]), limit)) >= limit
}
