import type { Model } from '../../blueprints/model'
import type { Doc } from '../store/doc'

/** Letters that Unicode does not take apart, though people leave out what distinguishes them. */
const PLAIN_LETTERS: Record<string, string> = { ø: 'o', ł: 'l', đ: 'd', ð: 'd', þ: 'th', æ: 'ae', œ: 'oe', ı: 'i' }
// Scripts without spaces: each sign is a word.
const WORD_PATTERN =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]|[[\p{L}\p{N}]--[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]]+/gv
const MAX_WORD_LENGTH = 64 // characters; longer words are as good as their beginning

/** The words of a text as they are compared: without case and accents. */
export function tokenize(text: string): string[] {
  const folded = text
    .toUpperCase()
    .toLowerCase()
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .replace(/[øłđðþæœı]/g, (letter) => PLAIN_LETTERS[letter]!)
  return (folded.match(WORD_PATTERN) ?? []).map((word) => word.slice(0, MAX_WORD_LENGTH))
}

const MAX_TERMS_BYTES = 800_000 // bytes of the words of an entity; PostgreSQL keeps a megabyte

/** A word of a field, as it is kept: numbers of fields belong to one blueprint, so its words are its own. */
const toTerm = (field: number, word: string) => `f${field}${word}`

/** What is kept of an entity to be searched: every word of its texts once, with the field that it is in. */
export const toSearchTerms = (model: Model, doc: Doc): string => toJointTerms([model, doc])

/** The same of an entity that is found by two blueprints: as it is, and as it will be. */
export function toJointTerms(...entities: [Model, Doc][]): string {
  const terms = new Set<string>()
  let size = 0
  for (const [{ fields }, doc] of entities)
    for (const { key, number, kind } of fields) {
      if (!kind.isSearchable || doc[key] === undefined) continue
      for (const word of tokenize([doc[key]].flat().join(' '))) {
        const term = toTerm(number, word)
        if (terms.has(term)) continue
        size += Buffer.byteLength(term) + 1
        if (size > MAX_TERMS_BYTES) return [...terms].join(' ')
        terms.add(term)
      }
    }
  return [...terms].join(' ')
}

/** The question for entities that have all words, each in one of the fields, the last one perhaps only by its beginning; empty for none. */
export const toMatchQuery = (words: string[], fields: number[]) =>
  (fields.length ? words : [])
    .map((word, at) => {
      const prefix = at === words.length - 1 ? '*' : ''
      return `(${fields.map((field) => toTerm(field, word) + prefix).join(FIELD_SEPARATOR)})`
    })
    .join(TERM_SEPARATOR)

/** What stands between the words of such a question. */
export const TERM_SEPARATOR = ' AND '
/** What stands between the fields that one word is looked for in. */
const FIELD_SEPARATOR = ' OR '

/** Whether words that `toSearchTerms` made answer a question that `toMatchQuery` made. */
export function matchesWords(search: string, terms: string): boolean {
  const words = new Set(terms.split(' '))
  const hasTerm = (term: string) =>
    term.endsWith('*') ? words.values().some((word) => word.startsWith(term.slice(0, -1))) : words.has(term)
  return (
    !!search && search.split(TERM_SEPARATOR).every((part) => part.slice(1, -1).split(FIELD_SEPARATOR).some(hasTerm))
  )
}
