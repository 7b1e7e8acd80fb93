import { isCut, startOf, textKey } from '../blueprints/fields/keys'
import type { Model } from '../blueprints/model'
import type { Reach } from '../blueprints/rules'
import { invalid } from '../core/problem'
import type { Db } from '../storage/port'
import { and, type FieldTarget, type Part, part } from './conditions'
import { count } from './counting'
import type { Passed } from './cursor'
import type { Keys } from './keys'
import { beginnings, endOf, fits, fitsAnyEnd, type Pattern } from './like'
import { latest } from './order'
import { type Found, find } from './plan'
import type { Condition, Like, Query, Target } from './query'
import { docOf, shownInForce } from './wire'

/** As many different texts are asked for by name; where more fit, each entity is looked at. */
const FEW = 1_000
const SLICE = 2_000 // rows of the index read by one statement

/**
 * The query with the texts that fit in the place of its patterns, wherever those are few; the other patterns are still
 * there. Others get their turn meanwhile.
 */
export async function narrowedBy(db: Db, model: Model, query: Query): Promise<Query> {
  if (!query.likes.length) return query
  const [conditions, likes]: [Condition[], Like[]] = [[...query.conditions], []]
  for (const like of query.likes) {
    const condition = await conditionOf(db, model, like)
    if (condition) conditions.push(condition)
    else likes.push(like)
  }
  return { ...query, conditions, likes }
}

/** The same for those who can't look at each. @throws 400 where too many different texts fit */
export async function narrowedWhole(db: Db, model: Model, query: Query): Promise<Query> {
  const narrowed = await narrowedBy(db, model, query)
  const flaws = narrowed.likes.map(({ target }) => ({
    path: `${nameOf(target)}[$like]`,
    message: `More than ${FEW} different texts fit this pattern. For this, name one that fewer do.`,
  }))
  if (flaws.length) invalid(...flaws)
  return narrowed
}

const nameOf = (target: Target) =>
  target.at === 'column'
    ? target.column.slice(2).replaceAll('"', '')
    : [target.field.key, target.path].join('.').replace(/\.$/, '')

type Source = { of: string; from: string; where: Part; start: string }

/** Where the different texts of a target are, in their order. */
function sourceOf(model: Model, target: Target): Source {
  if (target.at === 'column')
    return { of: target.column, from: 'entities e', where: part('e.blueprint = ?', model.key), start: '' }
  const where = part('i.field = ? and i.path = ?', target.field.number, target.path)
  // The texts among the parts of an object begin like this.
  return { of: 'i.value', from: 'entity_index i', where, start: target.path ? 's' : '' }
}

/** What is the same as fitting a pattern: to be one of the texts that do. Undefined when those are many. */
async function conditionOf(db: Db, model: Model, { target, pattern }: Like): Promise<Condition | undefined> {
  const { of, from, where, start } = sourceOf(model, target)
  const found: string[] = []
  const someIn = async (where: Part) =>
    (await db.ask(`select 1 from ${from} where ${where.sql} limit 1`, where.params)).length > 0
  const beginning = (text: string) => {
    const end = endOf(start + text)
    return and([where, part(`${of} >= ?`, start + text), ...(end === undefined ? [] : [part(`${of} < ?`, end)])])
  }
  const { starts, only } = await beginnings(pattern, (text) => someIn(beginning(text)))
  const [one = '', ...more] = starts
  if (only && one && !more.length) {
    const end = endOf(start + one)
    const to = end === undefined ? undefined : { value: end, open: true }
    return { target, is: 'between', from: { value: start + one, open: false }, to }
  }
  for (const text of starts) {
    for (let after: Part[] = []; ; ) {
      const { sql, params } = and([beginning(text), ...after])
      const rows = (await db.ask(
        `select s.value, count(*) from (select ${of} as value from ${from} where ${sql} order by ${of} limit ?) as s
         group by s.value order by s.value`,
        [...params, SLICE],
      )) as [string, number][]
      for (const [value] of rows) {
        const fitting = isFitting(db, target, pattern, value)
        if (fitting && (fitting === true || (await fitting))) found.push(value)
      }
      if (found.length > FEW) return
      if (rows.reduce((sum, [, count]) => sum + count, 0) < SLICE) break
      after = [part(`${of} > ?`, rows.at(-1)![0])]
      await db.pause()
    }
  }
  return { target, is: 'in', values: found }
}

/** Whether a text of the index fits; of a long one, which is not whole there, an entity that has it tells. */
function isFitting(db: Db, target: Target, pattern: Pattern, key: string): boolean | Promise<boolean> {
  const text = target.at === 'field' && target.path ? key.slice(1) : key
  if (target.at === 'column' || !isCut(text)) return fits(pattern, text)
  return fitsAnyEnd(pattern, startOf(text)) || fitsWhole(db, target, pattern, key, text)
}

async function fitsWhole(db: Db, { field, path }: FieldTarget, pattern: Pattern, key: string, text: string) {
  const [row] = await db.ask(
    `select ${shownInForce('e.')} from entity_index i join entities e on e.seq = i.entity
     where i.field = ? and i.path = ? and i.value = ? limit 1`,
    [field.number, path, key],
  )
  await db.pause()
  return !!row && fits(pattern, longText(JSON.parse(docOf(row[0] as string))[field.key], text))
}

/** The text with this key that is somewhere in a value. */
export function longText(value: unknown, key: string): string {
  const among = [value]
  for (const one of among) {
    if (typeof one === 'string' && textKey(one) === key) return one
    if (one !== null && typeof one === 'object') among.push(...Object.values(one))
  }
  return ''
}

/** What has to be read beside its keys to see whether an entity fits. */
export const columnsOf = (likes: Like[]) => likes.flatMap(({ target }) => (target.at === 'column' ? target.column : []))

/** Whether an entity fits all patterns, by its keys and what it has in these columns. */
export async function fitsAll(db: Db, likes: Like[], keys: Keys, columns: unknown[]): Promise<boolean> {
  let column = 0
  for (const { target, pattern } of likes) {
    const values = [(target.at === 'column' ? columns[column++] : keys[target.label]) ?? []].flat() as string[]
    const texts = target.at === 'field' && target.path ? values.filter((value) => value.startsWith('s')) : values
    let fitting = false
    for (const value of texts) fitting ||= await isFitting(db, target, pattern, value)
    if (!fitting) return false
  }
  return true
}

const MOST = 2_000 // entities looked at by one statement

/** What `find` finds, of those that fit the patterns that are left: goes on in the order until there are enough. */
export async function findFitting<Row extends unknown[]>(
  db: Db,
  columns: string[],
  model: Model,
  reach: Reach,
  query: Query,
  { limit = query.limit, after }: { limit?: number; after?: Passed } = {},
): Promise<Found<Row>> {
  const { likes } = query
  if (!likes.length) return find(db, columns, model, reach, query, { limit, after })
  const more = columnsOf(likes)
  const told = [...columns, 'e.keys', ...more]
  const found: { row: Row; passed: () => Passed }[] = []
  let [from, left, size] = [after, query.skip, Math.min(MOST, limit + query.skip + 50)]
  while (found.length < limit) {
    const { rows, passed } = await find(db, told, model, reach, { ...query, skip: 0 }, { limit: size, after: from })
    for (const [at, row] of rows.entries()) {
      const [keys, ...values] = row.slice(columns.length, told.length) as [string, ...unknown[]]
      if (!(await fitsAll(db, likes, JSON.parse(keys), values))) continue
      if (left-- > 0) continue
      found.push({ row: row as Row, passed: () => passed(at + 1) })
      if (found.length === limit) break
    }
    if (rows.length < size) break
    from = passed(rows.length)
    // A search keeps in mind all that was passed.
    if (!query.ranked) size = Math.min(MOST, size * 2)
    await db.pause()
  }
  return { rows: found.map(({ row }) => row), passed: (count) => found[count - 1]!.passed() }
}

/** How many entities match. */
export async function countFitting(db: Db, model: Model, reach: Reach, query: Query): Promise<number> {
  if (!query.likes.length) return count(db, model, reach, query)
  const all = { ...query, skip: 0, ranked: false, order: [latest(true)] }
  let counted = 0
  for (let after: Passed | undefined; ; ) {
    const { rows, passed } = await findFitting(db, ['e.seq'], model, reach, all, { limit: MOST, after })
    counted += rows.length
    if (rows.length < MOST) return counted
    after = passed(rows.length)
  }
}
