import { tokenize } from '../../entities/search/tokenizer'
import type { RunQuery, Tx } from '../../storage/port'

/** A chunk's number, and its text. */
export type NumberedText = readonly [number: number, text: string]

/** A word as it is kept: words of a store are its own, so that no other store's weigh on what is found in it. */
const toTerm = (store: number, word: string) => `${store}x${word}`

/** The words of a text, each as often as it has it; of English plurals the singular. */
export const toStems = (text: string) => tokenize(text).map(toSingular)

/** The rules of Harman, "How effective is suffixing?" (1991), which do no harm in other languages. */
function toSingular(word: string): string {
  if (!/^[a-z]{3,}s$/.test(word) || /(us|ss)$/.test(word)) return word
  if (/[^ea]ies$/.test(word)) return `${word.slice(0, -3)}y`
  return /[aeo]es$/.test(word) ? word : word.slice(0, -1)
}

const INSERT_WORDS_SQL = 'insert into search_chunks (rowid, store, words) values (?, ?, ?)'

/** Keeps by which words chunks of a store are found. */
export const indexChunks = (tx: Tx, store: number, chunks: NumberedText[]) =>
  tx.executeMany(
    INSERT_WORDS_SQL,
    chunks.map(([number, text]) => [number, store, toIndexText(store, text)]),
  )

/** Those of a text without words are none of any question. */
const toIndexText = (store: number, text: string) =>
  toStems(text)
    .map((word) => toTerm(store, word))
    .join(' ') || `${store}`

export const unindexChunks = (tx: Tx, store: number, numbers: number[]) =>
  tx.executeMany(
    'delete from search_chunks where store = ? and rowid = ?',
    numbers.map((number) => [store, number]),
  )

/** Numbers of the chunks that have some of the words, those that fit best first (BM25). */
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
