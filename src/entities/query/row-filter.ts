import type { Model } from '../../blueprints/model'
import type { Db } from '../../storage/port'
import type { IndexKeys } from '../store/index-keys'
import { withLiterals } from '../store/sql-fragments'
import { isMatch, matchesKey } from './pattern-match'
import type { Query } from './query-parser'
import { valueSql } from './sql-conditions'
import type { LikeCondition, Target } from './target'

/** The conditions that are checked here on each row, because the database cannot. */
export type RowFilter = {
  /** What they need of an entity (`e`). */
  columns: string[]
  /** Returns whether an entity meets them, by the values of `columns`. */
  accepts(db: Db, values: unknown[]): boolean | Promise<boolean>
}

/** Returns the filter of a query's remaining patterns, or undefined when there are none. */
export function createRowFilter(_model: Model, { likes }: Pick<Query, 'likes'>): RowFilter | undefined {
  if (!likes.length) return
  return { columns: getLikeColumns(likes), accepts: (db, values) => matchesLikes(db, likes, values) }
}

/** Returns what the patterns need of each entity: a text for each, the index keys of lists and objects, and its number. */
const getLikeColumns = (likes: LikeCondition[]): string[] => [
  ...likes.map(({ target }) => (isListed(target) ? 'null' : withLiterals(valueSql(target)))),
  likes.some(({ target }) => isListed(target)) ? 'e.keys' : 'null',
  'e.seq',
]

/** Returns whether the texts of a target are in a list of index keys. */
const isListed = (target: Target) => target.at === 'field' && !target.single

/** Returns whether an entity matches all patterns, by the values of `getLikeColumns`. */
function matchesLikes(db: Db, likes: LikeCondition[], values: unknown[]): boolean | Promise<boolean> {
  const [keys, entity] = values.slice(likes.length) as [string | null, number]
  const lists = keys === null ? {} : (JSON.parse(keys) as IndexKeys)
  const unclear: { like: LikeCondition; texts: string[] }[] = []
  for (const [at, like] of likes.entries()) {
    const { target, pattern } = like
    const value = target.at === 'field' && isListed(target) ? lists[target.label] : values[at]
    const texts = [value ?? []].flat() as string[]
    const own = target.at === 'field' && target.path ? texts.filter((text) => text.startsWith('s')) : texts
    const matches = own.map((text) => matchesKey(target, pattern, text))
    if (matches.includes(true)) continue
    if (!matches.includes(undefined)) return false
    unclear.push({ like, texts: own.filter((_, n) => matches[n] === undefined) })
  }
  return unclear.length === 0 || matchesWholeTexts(db, unclear, Number(entity))
}

async function matchesWholeTexts(db: Db, unclear: { like: LikeCondition; texts: string[] }[], entity: number) {
  for (const { like, texts } of unclear) {
    let isLike = false
    for (const text of texts) isLike ||= await isMatch(db, like.target, like.pattern, text, entity)
    if (!isLike) return false
  }
  return true
}
