import { MAX_FULL_TEXT_CHARACTERS } from '../../blueprints/fields/index-key-codec'
import type { Model } from '../../blueprints/model'
import type { Db } from '../../storage/port'
import { createWordTest, findWithWords, getWordColumns, getWordLiteral, type WordRow } from '../search/word-filter'
import type { IndexKeys } from '../store/index-keys'
import { withLiterals } from '../store/sql-fragments'
import type { Literal } from './literal-scan'
import { isMatch, matchesKey } from './pattern-match'
import type { Query } from './query-parser'
import { valueSql } from './sql-conditions'
import type { LikeCondition, Target } from './target'

/** The conditions that the database cannot check, tested on each row. */
export type RowFilter = {
  /** The columns of an entity (`e`) that `test` needs. */
  columns: string[]
  /** A literal that most other entities lack. */
  literal: Literal | undefined
  /** Tells for each row whether its entity passes; the values of `columns` begin at the index `at`. */
  test(db: Db, rows: unknown[][], at: number): Promise<boolean[]>
}

/** Returns the filter of a query's remaining patterns and of words without an index, or undefined when there are none. */
export function createRowFilter(model: Model, { likes, words }: Pick<Query, 'likes' | 'words'>): RowFilter | undefined {
  if (!likes.length && words === undefined) return
  const likeColumns = getLikeColumns(likes)
  const hasWords = words === undefined ? undefined : createWordTest(model, words)
  const width = likeColumns.length
  return {
    literal: [...likes.flatMap(getLiteral), ...(words === undefined ? [] : getWordLiteral(model, words))].sort(
      (one, other) => other.part.length - one.part.length,
    )[0],
    columns: hasWords ? [...likeColumns, ...getWordColumns(model)] : likeColumns,
    async test(db, rows, at) {
      const accepted: boolean[] = []
      for (const row of rows) {
        const matches = matchesLikes(db, likes, at ? row.slice(at, at + width) : row)
        accepted.push(typeof matches === 'boolean' ? matches : await matches)
      }
      if (!hasWords) return accepted
      const wordRows = rows.map((row) => row.slice(at + width, at + width + 3) as WordRow)
      const rest = wordRows.filter((_, n) => accepted[n])
      const found = await findWithWords(db, model, hasWords, rest)
      return accepted.map((isAccepted, n) => isAccepted && found.has(Number(wordRows[n]![0])))
    },
  }
}

/** Returns the columns of a filter for the rows of a scan, which may be of the index alone. */
export const toColumnsOf = (from: string, { columns }: RowFilter) =>
  from.startsWith('entity_index')
    ? columns.map((one) => `(select ${one} from entities e where e.seq = i.entity)`)
    : columns

/** Returns the columns that the patterns need: a text for each, the index keys of lists and objects, and the number. */
const getLikeColumns = (likes: LikeCondition[]): string[] => [
  ...likes.map(({ target }) => (isListed(target) ? 'null' : withLiterals(valueSql(target)))),
  likes.some(({ target }) => isListed(target)) ? 'e.keys' : 'null',
  'e.seq',
]

/** A longer index key may hold only the beginning of its text. */
const MAX_KEY_BYTES = MAX_FULL_TEXT_CHARACTERS

/** Returns the literal part of a pattern, which every matching text contains. */
const getLiteral = ({ target, pattern: { literal } }: LikeCondition): Literal[] =>
  literal && !isListed(target) ? [{ text: valueSql(target), part: literal, maxBytes: MAX_KEY_BYTES }] : []

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
