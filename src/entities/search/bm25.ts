import type { SearchedWord } from './tokenizer'

/** The parameters k1 and b of BM25, as in SQLite. */
const [FREQUENCY_WEIGHT, LENGTH_WEIGHT] = [1.2, 0.75]
const MIN_WEIGHT = 1e-6 // of a word that more than half of the documents contain

/** An entity that contains the words, and its search terms. */
export type WordMatch = { seq: number; terms: string[] }

/**
 * Sorts matches by BM25, best first, then latest first. Frequencies and lengths come from the matches alone, not from the whole
 * index. `total` is the number of entities searched.
 */
export function sortByRank(matches: WordMatch[], words: SearchedWord[], total: number): WordMatch[] {
  const phrases = words.flatMap(({ word, isPrefix, fields }) =>
    fields.map((field) => {
      const term = `f${field}w${word}`
      return isPrefix ? (one: string) => one.startsWith(term) : (one: string) => one === term
    }),
  )
  const frequencies = matches.map(({ terms }) => phrases.map((has) => terms.filter(has).length))
  const weights = phrases.map((_, at) => {
    const having = frequencies.filter((row) => row[at]).length
    return Math.max(MIN_WEIGHT, Math.log((total - having + 0.5) / (having + 0.5)))
  })
  const mean = matches.reduce((sum, { terms }) => sum + terms.length, 0) / (matches.length || 1)
  const ranked = matches.map((match, n) => {
    const length = FREQUENCY_WEIGHT * (1 - LENGTH_WEIGHT + (LENGTH_WEIGHT * match.terms.length) / mean)
    const rank = weights.reduce((sum, weight, at) => {
      const frequency = frequencies[n]![at]!
      return sum + (weight * frequency * (FREQUENCY_WEIGHT + 1)) / (frequency + length)
    }, 0)
    return { match, rank }
  })
  return ranked.sort((one, other) => other.rank - one.rank || other.match.seq - one.match.seq).map(({ match }) => match)
}
