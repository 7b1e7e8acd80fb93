import { tokenizeLoosely } from '../../entities/search/tokenizer'
import { mergeIncrementally } from '../../storage/full-text-merges'
import type { RunQuery, Tx } from '../../storage/port'

/** A chunk's number, and its text. */
export type NumberedText = readonly [number: number, text: string]

/** Returns a word as it is indexed. The prefix keeps stores apart, so that other stores do not affect the ranking. */
const toTerm = (store: number, word: string) => `${store}x${word}`

/** Returns the words of a text, with repetitions. English plurals become singulars. */
export const toStems = (text: string) => tokenizeLoosely(text).map(toSingular)

/** Follows the rules of Harman, "How effective is suffixing?" (1991), which do no harm in other languages. */
function toSingular(word: string): string {
  if (!/^[a-z]{3,}s$/.test(word) || /(us|ss)$/.test(word)) return word
  if (/[^ea]ies$/.test(word)) return `${word.slice(0, -3)}y`
  return /[aeo]es$/.test(word) ? word : word.slice(0, -1)
}

const INSERT_WORDS_SQL = 'insert into search_chunks (rowid, store, words) values (?, ?, ?)'

/** Adds the words of chunks to the full-text index. */
export function indexChunks(tx: Tx, store: number, chunks: NumberedText[]) {
  const rows = chunks.map(([number, text]) => [number, store, toIndexText(store, text)] as [number, number, string])
  for (const [number, , words] of rows) mergeIncrementally(tx, 'search_chunks', number, words)
  return tx.executeMany(INSERT_WORDS_SQL, rows)
}

/** Returns the indexed text of a chunk. A text without words gets a term that no question contains. */
const toIndexText = (store: number, text: string) =>
  toStems(text)
    .map((word) => toTerm(store, word))
    .join(' ') || `${store}`

/** Removes the words of chunks from the full-text index. */
export function unindexChunks(tx: Tx, store: number, numbers: number[]) {
  for (const number of numbers) mergeIncrementally(tx, 'search_chunks', number, undefined)
  return tx.executeMany(
    'delete from search_chunks where store = ? and rowid = ?',
    numbers.map((number) => [store, number]),
  )
}

/** Returns the numbers of chunks that contain some of the words, best match first (BM25). */
export async function searchChunks(
  runQuery: RunQuery,
  termsByStore: [store: number, words: string[]][],
  limit: number,
): Promise<number[]> {
  const stores = termsByStore.map(([store]) => store)
  const match = termsByStore.flatMap(([store, words]) => words.map((word) => toTerm(store, word))).join(' OR ')
  if (!match) return []
  const marks = stores.map(() => '?').join(', ')
  const rows = await runQuery(
    `select w.rowid from search_chunks w where w.words match ? and w.store in (${marks}) order by w.rank, w.rowid limit ?`,
    [match, ...stores, limit],
  )
  return rows.map(([number]) => number as number)
}
