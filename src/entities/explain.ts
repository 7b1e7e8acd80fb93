import type { OpenCtx } from '../accounts/guard'
import type { Model } from '../blueprints/model'
import type { Reach } from '../blueprints/rules'
import type { Db } from '../storage/port'
import { narrowedBy } from './fitting'
import { wayOf } from './plan'
import type { Condition, Query, Target } from './query'
import { FEW } from './sizes'

type Asked = { sql: string; rows: number; ms: number }

/**
 * How a query is answered, for those who may see everything: which rows are gone through and why these, what is asked of
 * each, and all statements that a page takes, with the rows that they answered. It is worked out anew: nothing that was
 * remembered is used. Statements are shown without their values.
 */
export async function explained(
  { db }: OpenCtx,
  model: Model,
  reach: Reach,
  query: Query,
  read: (db: Db) => Promise<{ shown: number; more: boolean }>,
): Promise<Response> {
  const statements: Asked[] = []
  const recording: Db = {
    ...db,
    ask: async (sql, params) => {
      const began = performance.now()
      const rows = await db.ask(sql, params)
      statements.push({ sql, rows: rows.length, ms: Math.round((performance.now() - began) * 1_000) / 1_000 })
      return rows
    },
  }
  const began = performance.now()
  const { shown, more } = await read(recording)
  const ms = Math.round((performance.now() - began) * 1_000) / 1_000
  const narrowed = await narrowedBy(db, model, query)
  const { scan, walked, considered } = await wayOf(db, model, reach, narrowed)
  const chosen = considered.find((one) => one.scan === scan)
  const [covered] = scan.covered
  const driver = walked ? nameOf(walked) : chosen ? told(chosen.condition) : covered ? told(covered) : undefined
  const plan = {
    driver: { by: scan.by, ...(driver && { of: driver }) },
    considered: considered.map(({ condition, rows }) => ({
      of: told(condition),
      rows,
      // Counting stops where there are too many to collect.
      ...(rows >= FEW && { more: true }),
    })),
    left: [
      ...narrowed.conditions.filter((one) => !scan.covered.includes(one)).map(told),
      ...narrowed.likes.map(({ target }) => `${nameOf(target)} like`),
    ],
    reach: reach.all ? 'all' : [reach.user && 'user', reach.workspace && 'workspace'].filter(Boolean).join(', '),
    order: query.ranked
      ? ['fit']
      : query.order.map(({ target, descending }) => (descending ? '-' : '') + nameOf(target)),
    statements,
    rowsRead: statements.reduce((sum, { rows }) => sum + rows, 0),
    shown,
    more,
    ms,
  }
  return Response.json(plan, { headers: { 'cache-control': 'no-store' } })
}

const nameOf = (target: Target) =>
  target.at === 'column'
    ? target.column.slice(2).replaceAll('"', '')
    : target.field.key + (target.path && `.${target.path}`)

const told = (condition: Condition | 'reach') =>
  condition === 'reach' ? 'reach' : `${nameOf(condition.target)} ${condition.is}`
