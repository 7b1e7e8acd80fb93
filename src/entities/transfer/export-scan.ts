import type { Model } from '../../blueprints/model'
import type { RowScope } from '../../blueprints/permissions'
import type { Db } from '../../storage/port'
import { readNextSlice, type TimePosition } from '../query/entity-slices'
import { matchesCondition } from '../query/matches'
import type { Query } from '../query/query-parser'
import { createRowFilter } from '../query/row-filter'
import { entityHasWordsSql } from '../query/scans'
import { conditionSql, scopeSql } from '../query/sql-conditions'
import type { Condition } from '../query/target'
import type { IndexKeys } from '../store/index-keys'
import { shownColumnSql } from '../store/serializer'
import { and, fragment } from '../store/sql-fragments'

/**
 * Yields the stored JSON of the entities in the row scope that match the query, oldest first, a slice at a time. Each
 * slice is a bounded amount of work and memory, however many match; no entity comes twice.
 */
export async function* scanMatching(db: Db, model: Model, rowScope: RowScope, query: Query): AsyncGenerator<string[]> {
  const { conditions, search } = query
  const filter = createRowFilter(model, query)
  const tested = conditions.filter(isTestedHere)
  const scopeParts = [fragment('e.blueprint = ?', model.code), ...scopeSql(rowScope)]
  const filters = conditions.filter((one) => !tested.includes(one)).map(conditionSql)
  for (let from: TimePosition = [-1, -1]; ; ) {
    const slice = await readNextSlice(db, scopeParts, from)
    if (!slice) return
    const { to, seqs } = slice
    const between = fragment('(e.created, e.seq) > (?, ?) and (e.created, e.seq) <= (?, ?)', ...from, ...to)
    const words = search === undefined ? [] : [entityHasWordsSql(search, Math.min(...seqs), Math.max(...seqs))]
    const { sql, params } = and([...scopeParts, between, ...filters, ...words])
    const columns = [shownColumnSql(model), tested.length ? 'e.keys' : 'null', ...(filter?.columns ?? [])]
    const rows = await db.query(
      `select ${columns.join(', ')} from entities e where ${sql} order by e.created asc, e.seq asc`,
      params,
    )
    const met = rows.filter(([, keys]) => meetsConditions(keys === null ? {} : JSON.parse(keys as string), tested))
    const accepted = await filter?.test(db, met, 2)
    const matching = met.filter((_, n) => !accepted || accepted[n]).map(([shown]) => shown as string)
    yield matching
    from = to
  }
}

/**
 * For these conditions on lists and object paths, SQL collects all entities with such a value. A list does this once,
 * but an export would do it for each slice, so they are tested in memory.
 */
const isTestedHere = ({ target, is }: Condition) =>
  target.at === 'field' && !target.single && (is === 'between' || is === 'present' || is === 'absent')

const meetsConditions = (keys: IndexKeys, conditions: Condition[]) =>
  conditions.every((one) => matchesCondition(one, { keys }))
