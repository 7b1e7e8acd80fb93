import type { Model } from '../blueprints/model'
import type { Doc } from './document'

/** Letters that Unicode does not take apart, though people leave out what distinguishes them. */
const PLAIN: Record<string, string> = { ø: 'o', ł: 'l', đ: 'd', ð: 'd', þ: 'th', æ: 'ae', œ: 'oe', ı: 'i' }
// Scripts without spaces: each sign is a word.
const WORD =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]|[[\p{L}\p{N}]--[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]]+/gv
const LONGEST = 64 // characters; longer words are as good as their beginning

/** The words of a text as they are compared: without case and accents. */
export function wordsIn(text: string): string[] {
  const folded = text
    .toUpperCase()
    .toLowerCase()
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .replace(/[øłđðþæœı]/g, (letter) => PLAIN[letter]!)
  return (folded.match(WORD) ?? []).map((word) => word.slice(0, LONGEST))
}

const MOST = 800_000 // bytes of the words of an entity; PostgreSQL keeps a megabyte

/** A word of a field, as it is kept: numbers of fields belong to one blueprint, so its words are its own. */
const termOf = (field: number, word: string) => `f${field}${word}`

/** What is kept of an entity to be searched: every word of its texts once, with the field that it is in. */
export const termsOf = (model: Model, doc: Doc): string => jointTerms([model, doc])

/** The same of an entity that is found by two blueprints: as it is, and as it will be. */
export function jointTerms(...all: [Model, Doc][]): string {
  const terms = new Set<string>()
  let size = 0
  for (const [{ fields }, doc] of all)
    for (const { key, number, kind } of fields) {
      if (!kind.searched || doc[key] === undefined) continue
      for (const word of wordsIn([doc[key]].flat().join(' '))) {
        const term = termOf(number, word)
        if (terms.has(term)) continue
        size += Buffer.byteLength(term) + 1
        if (size > MOST) return [...terms].join(' ')
        terms.add(term)
      }
    }
  return [...terms].join(' ')
}

/** The question for entities that have all words, each in one of the fields, the last one perhaps only by its beginning; empty for none. */
export const matchOf = (words: string[], fields: number[]) =>
  (fields.length ? words : [])
    .map((word, at) => {
      const prefix = at === words.length - 1 ? '*' : ''
      return `(${fields.map((field) => termOf(field, word) + prefix).join(' OR ')})`
    })
    .join(AND)

/** What stands between the words of such a question. */
export const AND = ' AND '
