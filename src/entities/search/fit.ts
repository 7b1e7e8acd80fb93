import type { SearchedWord } from './tokenizer'

/** How BM25 weighs the frequency of a word, and the length of a document; SQLite's index has the same. */
const [FREQUENCY_WEIGHT, LENGTH_WEIGHT] = [1.2, 0.75]
const LEAST_WEIGHT = 1e-6 // of a word that more than half of the documents have

/** An entity that contains the words, and its search terms. */
export type WordMatch = { seq: number; terms: string[] }

/**
 * Sorts matches by how well they fit, best first, and later entities first where they fit equally: by BM25, as the index
 * does, but what is frequent and long is judged by the matches alone. `total` is the number of entities searched.
 */
export function sortByFit(matches: WordMatch[], words: SearchedWord[], total: number): WordMatch[] {
  const phrases = words.flatMap(({ word, isPrefix, fields }) =>
    fields.map((field) => {
      const term = `f${field}w${word}`
      return isPrefix ? (one: string) => one.startsWith(term) : (one: string) => one === term
    }),
  )
  const frequencies = matches.map(({ terms }) => phrases.map((has) => terms.filter(has).length))
  const weights = phrases.map((_, at) => {
    const having = frequencies.filter((row) => row[at]).length
    return Math.max(LEAST_WEIGHT, Math.log((total - having + 0.5) / (having + 0.5)))
  })
  const mean = matches.reduce((sum, { terms }) => sum + terms.length, 0) / (matches.length || 1)
  const fits = matches.map((match, n) => {
    const length = FREQUENCY_WEIGHT * (1 - LENGTH_WEIGHT + (LENGTH_WEIGHT * match.terms.length) / mean)
    const fit = weights.reduce((sum, weight, at) => {
      const frequency = frequencies[n]![at]!
      return sum + (weight * frequency * (FREQUENCY_WEIGHT + 1)) / (frequency + length)
    }, 0)
    return { match, fit }
  })
  return fits.sort((one, other) => other.fit - one.fit || other.match.seq - one.match.seq).map(({ match }) => match)
}
