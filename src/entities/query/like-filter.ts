import { isTruncated, textKey, truncatedPrefix } from '../../blueprints/fields/sort-keys'
import type { Model } from '../../blueprints/model'
import type { RowScope } from '../../blueprints/permissions'
import { badRequest } from '../../core/problem'
import type { Db } from '../../storage/port'
import type { IndexKeys } from '../store/index-keys'
import { extractDocumentJson, shownInForceSql } from '../store/serializer'
import { and, fragment, type SqlFragment } from '../store/sql-fragments'
import { count } from './count'
import type { CursorPosition } from './cursor'
import { find } from './find'
import { endOfPrefix, findPrefixes, type LikePattern, matchesPattern, matchesPrefix } from './like-pattern'
import { byCreated } from './order'
import type { Query } from './query-parser'
import type { FindResult } from './select-sql'
import type { FieldTarget } from './sql-conditions'
import { type Condition, type LikeCondition, type Target, targetName } from './target'

/** As many different texts are asked for by name; where more fit, each entity is looked at. */
const MAX_RESOLVED_TEXTS = 1_000
const INDEX_ROWS_PER_READ = 2_000 // rows of the index read by one statement

/**
 * The query with the texts that fit in the place of its patterns, wherever those are few; the other patterns are still
 * there. Others get their turn meanwhile.
 */
export async function resolveLikes(db: Db, model: Model, query: Query): Promise<Query> {
  if (!query.likes.length) return query
  const [conditions, likes]: [Condition[], LikeCondition[]] = [[...query.conditions], []]
  for (const like of query.likes) {
    const condition = await toCondition(db, model, like)
    if (condition) conditions.push(condition)
    else likes.push(like)
  }
  return { ...query, conditions, likes }
}

/** The same for those who can't look at each. @throws 400 where too many different texts fit */
export async function requireResolvedLikes(db: Db, model: Model, query: Query): Promise<Query> {
  const resolved = await resolveLikes(db, model, query)
  const flaws = resolved.likes.map(({ target }) => ({
    path: `${targetName(target)}[$like]`,
    message: `More than ${MAX_RESOLVED_TEXTS} different texts match this pattern. Use a more specific pattern.`,
  }))
  if (flaws.length) badRequest(...flaws)
  return resolved
}

type TextSource = { of: string; from: string; where: SqlFragment; start: string }

/** Where the different texts of a target are, in their order. */
function getTextSource(model: Model, target: Target): TextSource {
  if (target.at === 'column')
    return { of: target.column, from: 'entities e', where: fragment('e.blueprint = ?', model.key), start: '' }
  const where = fragment('i.field = ? and i.path = ?', target.field.number, target.path)
  // The texts among the parts of an object begin like this.
  return { of: 'i.value', from: 'entity_index i', where, start: target.path ? 's' : '' }
}

/** What is the same as fitting a pattern: to be one of the texts that do. Undefined when those are many. */
async function toCondition(db: Db, model: Model, { target, pattern }: LikeCondition): Promise<Condition | undefined> {
  const { of, from, where, start } = getTextSource(model, target)
  const texts: string[] = []
  const hasRows = async (where: SqlFragment) =>
    (await db.query(`select 1 from ${from} where ${where.sql} limit 1`, where.params)).length > 0
  const prefixSql = (text: string) => {
    const end = endOfPrefix(start + text)
    return and([
      where,
      fragment(`${of} >= ?`, start + text),
      ...(end === undefined ? [] : [fragment(`${of} < ?`, end)]),
    ])
  }
  const { starts: prefixes, only } = await findPrefixes(pattern, (text) => hasRows(prefixSql(text)))
  const [prefix = '', ...others] = prefixes
  if (only && prefix && !others.length) {
    const end = endOfPrefix(start + prefix)
    const to = end === undefined ? undefined : { value: end, open: true }
    return { target, is: 'between', from: { value: start + prefix, open: false }, to }
  }
  for (const text of prefixes) {
    for (let after: SqlFragment[] = []; ; ) {
      const { sql, params } = and([prefixSql(text), ...after])
      const rows = (await db.query(
        `select s.value, count(*) from (select ${of} as value from ${from} where ${sql} order by ${of} limit ?) as s
         group by s.value order by s.value`,
        [...params, INDEX_ROWS_PER_READ],
      )) as [string, number][]
      for (const [value] of rows) {
        const match = isMatch(db, target, pattern, value)
        if (match && (match === true || (await match))) texts.push(value)
      }
      if (texts.length > MAX_RESOLVED_TEXTS) return
      if (rows.reduce((sum, [, count]) => sum + count, 0) < INDEX_ROWS_PER_READ) break
      after = [fragment(`${of} > ?`, rows.at(-1)![0])]
      await db.yieldToOthers()
    }
  }
  return { target, is: 'in', values: texts }
}

/** Whether a text of the index fits; of a long one, which is not whole there, an entity that has it tells. */
function isMatch(db: Db, target: Target, pattern: LikePattern, key: string): boolean | Promise<boolean> {
  const text = target.at === 'field' && target.path ? key.slice(1) : key
  if (target.at === 'column' || !isTruncated(text)) return matchesPattern(pattern, text)
  return matchesPrefix(pattern, truncatedPrefix(text)) || matchesWholeText(db, target, pattern, key, text)
}

async function matchesWholeText(db: Db, { field, path }: FieldTarget, pattern: LikePattern, key: string, text: string) {
  const [row] = await db.query(
    `select ${shownInForceSql('e.')} from entity_index i join entities e on e.seq = i.entity
     where i.field = ? and i.path = ? and i.value = ? limit 1`,
    [field.number, path, key],
  )
  await db.yieldToOthers()
  return (
    !!row && matchesPattern(pattern, findLongText(JSON.parse(extractDocumentJson(row[0] as string))[field.key], text))
  )
}

/** The text with this key that is somewhere in a value. */
export function findLongText(value: unknown, key: string): string {
  const queue = [value]
  for (const item of queue) {
    if (typeof item === 'string' && textKey(item) === key) return item
    if (item !== null && typeof item === 'object') queue.push(...Object.values(item))
  }
  return ''
}

/** What has to be read beside its keys to see whether an entity fits. */
export const getLikeColumns = (likes: LikeCondition[]) =>
  likes.flatMap(({ target }) => (target.at === 'column' ? target.column : []))

/** Whether an entity fits all patterns, by its keys and what it has in these columns. */
export async function matchesLikes(
  db: Db,
  likes: LikeCondition[],
  keys: IndexKeys,
  columns: unknown[],
): Promise<boolean> {
  let column = 0
  for (const { target, pattern } of likes) {
    const values = [(target.at === 'column' ? columns[column++] : keys[target.label]) ?? []].flat() as string[]
    const texts = target.at === 'field' && target.path ? values.filter((value) => value.startsWith('s')) : values
    let isLike = false
    for (const value of texts) isLike ||= await isMatch(db, target, pattern, value)
    if (!isLike) return false
  }
  return true
}

const MAX_ENTITIES_PER_READ = 2_000 // entities looked at by one statement

/** What `find` finds, of those that fit the patterns that are left: goes on in the order until there are enough. */
export async function findFiltered<Row extends unknown[]>(
  db: Db,
  columns: string[],
  model: Model,
  rowScope: RowScope,
  query: Query,
  { limit = query.limit, after }: { limit?: number; after?: CursorPosition } = {},
): Promise<FindResult<Row>> {
  const { likes } = query
  if (!likes.length) return find(db, columns, model, rowScope, query, { limit, after })
  const likeColumns = getLikeColumns(likes)
  const selected = [...columns, 'e.keys', ...likeColumns]
  const matches: { row: Row; passed: () => CursorPosition }[] = []
  let [from, toSkip, size] = [after, query.skip, Math.min(MAX_ENTITIES_PER_READ, limit + query.skip + 50)]
  while (matches.length < limit) {
    const { rows, positionAfter } = await find(
      db,
      selected,
      model,
      rowScope,
      { ...query, skip: 0 },
      { limit: size, after: from },
    )
    for (const [at, row] of rows.entries()) {
      const [keys, ...values] = row.slice(columns.length, selected.length) as [string, ...unknown[]]
      if (!(await matchesLikes(db, likes, JSON.parse(keys), values))) continue
      if (toSkip-- > 0) continue
      matches.push({ row: row as Row, passed: () => positionAfter(at + 1) })
      if (matches.length === limit) break
    }
    if (rows.length < size) break
    from = positionAfter(rows.length)
    // A search keeps in mind all that was passed.
    if (!query.ranked) size = Math.min(MAX_ENTITIES_PER_READ, size * 2)
    await db.yieldToOthers()
  }
  return { rows: matches.map(({ row }) => row), positionAfter: (count) => matches[count - 1]!.passed() }
}

/** How many entities match. */
export async function countFiltered(db: Db, model: Model, rowScope: RowScope, query: Query): Promise<number> {
  if (!query.likes.length) return count(db, model, rowScope, query)
  const unpaged = { ...query, skip: 0, ranked: false, order: [byCreated(true)] }
  let counted = 0
  for (let after: CursorPosition | undefined; ; ) {
    const { rows, positionAfter } = await findFiltered(db, ['e.seq'], model, rowScope, unpaged, {
      limit: MAX_ENTITIES_PER_READ,
      after,
    })
    counted += rows.length
    if (rows.length < MAX_ENTITIES_PER_READ) return counted
    after = positionAfter(rows.length)
  }
}
