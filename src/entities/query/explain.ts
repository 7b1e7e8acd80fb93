import { nameParts, partsKey } from '../../blueprints/compound-parts'
import type { Model } from '../../blueprints/model'
import type { RowScope } from '../../blueprints/permissions'
import type { Db } from '../../storage/port'
import { chooseAccessPath } from './access-path'
import { thresholds } from './cardinality'
import { adviseCompoundIndex, findCompoundRows, findRowsToSort } from './compound-index'
import { resolveLikes } from './like-filter'
import type { Query } from './query-parser'
import { type Condition, targetName } from './target'

type ExplainedStatement = { sql: string; rows: number; ms: number }

/**
 * Returns the plan of a query, for privileged callers: which rows are scanned and why, which conditions are checked on
 * each row, and all statements of a page with the number of their rows. The page is read without cached estimates.
 * Statements are shown without their values; their time includes waiting for others.
 */
export async function explainQuery(
  db: Db,
  model: Model,
  rowScope: RowScope,
  query: Query,
  read: (db: Db) => Promise<{ shown: number; more: boolean }>,
): Promise<Response> {
  const statements: ExplainedStatement[] = []
  const recording: Db = {
    ...db,
    // Estimates are cached by the origin.
    origin: undefined,
    isUncached: true,
    query: async (sql, params) => {
      const began = performance.now()
      const rows = await db.query(sql, params)
      statements.push({ sql, rows: rows.length, ms: Math.round((performance.now() - began) * 1_000) / 1_000 })
      return rows
    },
  }
  const began = performance.now()
  const { shown, more } = await read(recording)
  const ms = Math.round((performance.now() - began) * 1_000) / 1_000
  const plan = {
    ...(await describePlan(db, model, rowScope, query)),
    statements,
    rowsRead: statements.reduce((sum, { rows }) => sum + rows, 0),
    shown,
    more,
    ms,
  }
  return Response.json(plan, { headers: { 'cache-control': 'no-store' } })
}

/** Returns which rows a query scans and why, and which conditions are checked on each row. It names no values. */
export async function describePlan(db: Db, model: Model, rowScope: RowScope, query: Query) {
  const resolvedQuery = await resolveLikes(db, model, query)
  const { scan, indexWalk, candidates } = await chooseAccessPath(db, model, rowScope, resolvedQuery)
  const chosen = candidates.find((one) => one.scan === scan)
  const [covered] = scan.covered
  const rows = findCompoundRows(model, rowScope, resolvedQuery) ?? findRowsToSort(model, rowScope, resolvedQuery)
  // The scan tells of the index of a field.
  const compound = rows && rows.index.number < 0 ? rows : undefined
  const driver = indexWalk?.target
    ? targetName(indexWalk.target)
    : chosen
      ? describeCondition(chosen.condition)
      : covered
        ? describeCondition(covered)
        : undefined
  return {
    driver: compound
      ? { by: 'compound', of: nameParts(model, compound.index).join() }
      : { by: indexWalk?.target ? 'order' : scan.by, ...(driver && { of: driver }) },
    considered: candidates.map(({ condition, rows }) => ({
      of: describeCondition(condition),
      rows,
      // Counting stops when there are too many rows to collect.
      ...(rows >= thresholds.few && { more: true }),
    })),
    left: [
      ...(compound?.left ?? resolvedQuery.conditions.filter((one) => !scan.covered.includes(one))).map(
        describeCondition,
      ),
      ...resolvedQuery.likes.map(({ target }) => `${targetName(target)} like`),
      ...(resolvedQuery.words === undefined ? [] : ['words']),
    ],
    indexes: [
      ...describeIndexes(resolvedQuery),
      ...describeWordIndex(resolvedQuery),
      ...describeCompoundIndexes(model, rowScope, resolvedQuery),
    ],
    reach: rowScope.all
      ? 'all'
      : [rowScope.user && 'user', rowScope.workspace && 'workspace'].filter(Boolean).join(', '),
    order: query.ranked
      ? ['fit']
      : query.order.map(({ target, descending }) => (descending ? '-' : '') + targetName(target)),
  }
}

/** Returns the state of the index of each field that a query filters or sorts by, and what it was built for. */
function describeIndexes({ conditions, likes, order }: Query) {
  const targets = [...conditions, ...likes, ...order].map(({ target }) => target)
  const fields = new Set(targets.flatMap((target) => (target.at === 'field' ? [target.field] : [])))
  return [...fields].map(({ key, index }) => ({
    field: key,
    state: index?.state ?? 'none',
    ...(index && { reason: index.reason }),
  }))
}

/** Returns the compound index that serves a query, and the one that would serve it best. */
function describeCompoundIndexes(model: Model, rowScope: RowScope, query: Query) {
  const number = findCompoundRows(model, rowScope, query)?.index.number
  const serving = model.compoundIndexes.find((index) => index.number === number)
  const best = adviseCompoundIndex(rowScope, query)
  const advised = best && model.compoundIndexes.find((index) => partsKey(index) === partsKey(best))
  return [...new Set([serving, advised])].flatMap((index) =>
    index
      ? { fields: nameParts(model, index), state: index.state, reason: index.reason, serves: index === serving }
      : [],
  )
}

/** Returns the state of the index of a blueprint's words, when a query needs it. */
const describeWordIndex = ({ search, words }: Query) =>
  search === undefined && words === undefined
    ? []
    : [{ field: '$q', state: search === undefined ? 'building' : 'ready' }]

const describeCondition = (condition: Condition | 'reach') =>
  condition === 'reach' ? 'reach' : `${targetName(condition.target)} ${condition.is}`
