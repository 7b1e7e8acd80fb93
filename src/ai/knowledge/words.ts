import { wordsIn } from '../../entities/words'
import type { Ask, Tx } from '../../storage/port'

/** A chunk's number, and its text. */
export type Numbered = readonly [number: number, text: string]

/** A word as it is kept: words of a store are its own, so that no other store's weigh on what is found in it. */
const termOf = (store: number, word: string) => `${store}x${word}`

/** The words of a text, each as often as it has it; of English plurals the singular. */
export const stemsIn = (text: string) => wordsIn(text).map(singular)

/** The rules of Harman, "How effective is suffixing?" (1991), which do no harm in other languages. */
function singular(word: string): string {
  if (!/^[a-z]{3,}s$/.test(word) || /(us|ss)$/.test(word)) return word
  if (/[^ea]ies$/.test(word)) return `${word.slice(0, -3)}y`
  return /[aeo]es$/.test(word) ? word : word.slice(0, -1)
}

const INSERT = 'insert into search_chunks (rowid, store, words) values (?, ?, ?)'

/** Keeps by which words chunks of a store are found. */
export const keepWords = (tx: Tx, store: number, chunks: Numbered[]) =>
  tx.each(
    INSERT,
    chunks.map(([number, text]) => [number, store, wordsOf(store, text)]),
  )

/** Those of a text without words are none of any question. */
const wordsOf = (store: number, text: string) =>
  stemsIn(text)
    .map((word) => termOf(store, word))
    .join(' ') || `${store}`

export const forgetWords = (tx: Tx, store: number, numbers: number[]) =>
  tx.each(
    'delete from search_chunks where store = ? and rowid = ?',
    numbers.map((number) => [store, number]),
  )

/** Numbers of the chunks that have some of the words, those that fit best first (BM25). */
export async function ranked(ask: Ask, asked: [store: number, words: string[]][], most: number): Promise<number[]> {
  const stores = asked.map(([store]) => store)
  const query = asked.flatMap(([store, words]) => words.map((word) => termOf(store, word))).join(' OR ')
  if (!query) return []
  const marks = stores.map(() => '?').join(', ')
  const rows = await ask(
    `select w.rowid from search_chunks w where w.words match ? and w.store in (${marks}) order by w.rank, w.rowid limit ?`,
    [query, ...stores, most],
  )
  return rows.map(([number]) => number as number)
}
