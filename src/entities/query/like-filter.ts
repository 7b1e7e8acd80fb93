import type { Model } from '../../blueprints/model'
import { badRequest } from '../../core/problem'
import type { Db } from '../../storage/port'
import { and, fragment, type SqlFragment } from '../store/sql-fragments'
import { getFieldTexts } from './field-texts'
import { endOfPrefix, findPrefixes } from './like-pattern'
import { isMatch } from './pattern-match'
import type { Query } from './query-parser'
import { splitIntoRanges } from './ranges'
import { fullScan } from './scans'
import { valueSql } from './sql-conditions'
import { type Condition, type LikeCondition, type Target, targetName } from './target'

/** Up to this many matching texts become a list of values; with more, each entity is checked. */
const MAX_RESOLVED_TEXTS = 1_000
const INDEX_ROWS_PER_READ = 2_000 // rows of the index read by one statement

/**
 * Returns the query with its patterns replaced by the matching texts where these are few; the other patterns remain.
 * Yields to other requests in between.
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

/** Resolves all patterns, for callers that cannot check each entity. @throws 400 when too many different texts match */
export async function requireResolvedLikes(db: Db, model: Model, query: Query): Promise<Query> {
  const resolved = await resolveLikes(db, model, query)
  const [conditions, likes]: [Condition[], LikeCondition[]] = [[...resolved.conditions], []]
  for (const like of resolved.likes) {
    const condition = await findWithoutIndex(db, model, like)
    if (condition) conditions.push(condition)
    else likes.push(like)
  }
  const flaws = likes.map(({ target }) => ({
    path: `${targetName(target)}[$like]`,
    message: `More than ${MAX_RESOLVED_TEXTS} different texts match this pattern. Use a more specific pattern.`,
  }))
  if (flaws.length) badRequest(...flaws)
  return { ...resolved, conditions, likes }
}

/** Returns the condition that is equivalent to a pattern about a field without an index; reads all entities. */
async function findWithoutIndex(
  db: Db,
  model: Model,
  { target, pattern }: LikeCondition,
): Promise<Condition | undefined> {
  if (target.at !== 'field' || target.indexed) return
  const { from, where } = fullScan(model)
  const text = valueSql(target)
  const matching = new Set<string>()
  for await (const { conditions } of splitIntoRanges(db, { from, where, by: ['e.created', 'e.seq'] })) {
    const { sql, params } = and([...conditions, where])
    const rows = await db.query(`select ${text.sql}, e.seq from ${from} where ${sql}`, [...text.params, ...params])
    for (const [key, entity] of rows as [string | null, number][])
      if (key !== null && !matching.has(key) && (await isMatch(db, target, pattern, key, entity))) matching.add(key)
    if (matching.size > MAX_RESOLVED_TEXTS) return
  }
  return { target, is: 'in', values: [...matching] }
}

/**
 * Where the texts of a target are: in the column `of`, with the prefix `start`. An index has them in order, unless they
 * are `unsorted`.
 */
type TextSource = { of: string; from: string; where: SqlFragment; start: string; unsorted?: true }

function getTextSource(model: Model, target: Target): TextSource {
  if (target.at === 'column') {
    const of = valueSql(target).sql
    const source = { of, from: 'entities e', where: fragment('e.blueprint = ?', model.code), start: '' }
    return target.column === 'e._id' ? { ...source, unsorted: true } : source
  }
  const where = fragment('i.field = ? and i.path = ?', target.field.number, target.path)
  // The keys of texts in an object begin with this letter.
  return { of: 'i.value', from: 'entity_index i', where, start: target.path ? 's' : '' }
}

/** Returns the SQL for whether a text of the source begins like this. */
function prefixSql({ of, start }: TextSource, prefix: string): SqlFragment {
  const end = endOfPrefix(start + prefix)
  return and([fragment(`${of} >= ?`, start + prefix), ...(end === undefined ? [] : [fragment(`${of} < ?`, end)])])
}

async function hasPrefix(db: Db, source: TextSource, prefix: string): Promise<boolean> {
  // Ids are always in lower case. No index would find their beginnings within a blueprint.
  if (source.unsorted) return prefix === prefix.toLowerCase()
  const { sql, params } = and([source.where, prefixSql(source, prefix)])
  return (await db.query(`select 1 from ${source.from} where ${sql} limit 1`, params)).length > 0
}

/** Yields the different texts of a source that begin like this, in slices. */
async function* readTexts(db: Db, source: TextSource, prefix: string): AsyncGenerator<string[]> {
  const { of, from, where, unsorted } = source
  const isWanted = prefixSql(source, prefix)
  if (unsorted) {
    for await (const { conditions } of splitIntoRanges(db, { from, where, by: ['e.created', 'e.seq'] })) {
      const { sql, params } = and([...conditions, where, isWanted])
      yield (await db.query(`select ${of} from ${from} where ${sql}`, params)).flat() as string[]
    }
    return
  }
  for (let after: SqlFragment[] = []; ; ) {
    const { sql, params } = and([...after, where, isWanted])
    const rows = (await db.query(
      `select s.value, count(*) from (select ${of} as value from ${from} where ${sql} order by ${of} limit ?) as s
       group by s.value order by s.value`,
      [...params, INDEX_ROWS_PER_READ],
    )) as [string, number][]
    yield rows.map(([value]) => value)
    if (rows.reduce((sum, [, count]) => sum + Number(count), 0) < INDEX_ROWS_PER_READ) return
    after = [fragment(`${of} > ?`, rows.at(-1)![0])]
    await db.yieldToOthers()
  }
}

const CANDIDATES_PER_SLICE = 5_000

/** Yields the texts of a source that may match a pattern with any beginning, in slices. */
async function* findTexts(
  db: Db,
  model: Model,
  source: TextSource,
  { target, pattern }: LikeCondition,
): AsyncGenerator<string[]> {
  // The texts of an object begin with a letter that is not part of them.
  const isPlain = target.at === 'field' && !target.path
  const texts = isPlain && (await getFieldTexts(db, model, target, () => readTexts(db, source, '')))
  if (!texts) return yield* readTexts(db, source, '')
  let slice: string[] = []
  for (const text of texts.findCandidates(pattern)) {
    slice.push(text)
    if (slice.length < CANDIDATES_PER_SLICE) continue
    yield slice
    slice = []
    await db.yieldToOthers()
  }
  yield slice
}

/** Returns the condition that is equivalent to a pattern, or undefined when too many texts match or no index has them. */
async function toCondition(db: Db, model: Model, like: LikeCondition): Promise<Condition | undefined> {
  const { target, pattern } = like
  if (target.at === 'field' && !target.indexed) return
  const source = getTextSource(model, target)
  const { prefixes, areSufficient } = await findPrefixes(pattern, (text) => hasPrefix(db, source, text))
  const [prefix = '', ...others] = prefixes
  if (areSufficient && prefix && !others.length) {
    const end = endOfPrefix(source.start + prefix)
    const to = end === undefined ? undefined : { value: end, open: true }
    return { target, is: 'between', from: { value: source.start + prefix, open: false }, to }
  }
  const matching: string[] = []
  for (const text of prefixes)
    for await (const values of text ? readTexts(db, source, text) : findTexts(db, model, source, like)) {
      for (const value of values) {
        const match = isMatch(db, target, pattern, value)
        if (match && (match === true || (await match))) matching.push(value)
      }
      if (matching.length > MAX_RESOLVED_TEXTS) return
    }
  return { target, is: 'in', values: matching }
}
