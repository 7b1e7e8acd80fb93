import type { Model } from '../../blueprints/model'
import type { Doc } from '../store/doc'

/** Letters that Unicode does not decompose, although people often type them without their distinguishing mark. */
const PLAIN_LETTERS: Record<string, string> = { ø: 'o', ł: 'l', đ: 'd', ð: 'd', þ: 'th', æ: 'ae', œ: 'oe', ı: 'i' }
/**
 * Accents, and marks such as vowel points that people leave out. Marks of other scripts are letters: without them, the
 * vowels of Hindi and Thai would be missing. So are the voicing marks of kana.
 */
const OPTIONAL_MARK =
  /[[\p{M}&&[\p{Script=Inherited}\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Cyrillic}]]--[\u3099\u309a]]/gv
const VOICED_KANA = /[\u3040-\u30ff][\u3099\u309a]/g
// In scripts without spaces, each character is a word.
const WORD_PATTERN =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]\p{M}*|[[\p{L}\p{N}\p{M}]--[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]]+/gv
const MAX_WORD_LENGTH = 64 // characters; longer words are truncated

const fold = (text: string) =>
  text
    .toUpperCase()
    .toLowerCase()
    .normalize('NFKD')
    .replace(/[øłđðþæœı]/g, (letter) => PLAIN_LETTERS[letter]!)

const splitWords = (folded: string) => (folded.match(WORD_PATTERN) ?? []).map((word) => word.slice(0, MAX_WORD_LENGTH))

/** ASCII texts, such as most in English, are folded and split much faster. */
export const isAscii = (text: string) => Buffer.byteLength(text) === text.length
const ASCII_WORD = /[a-z0-9]+/g

/** Returns a text without case and accents, in which words are compared. */
const foldText = (text: string) =>
  fold(text)
    .replace(OPTIONAL_MARK, '')
    .replace(VOICED_KANA, (kana) => kana.normalize('NFC'))

/** Returns the words of a text without case and accents. */
export function tokenize(text: string): string[] {
  if (!isAscii(text)) return splitWords(foldText(text))
  const words = text.toLowerCase().match(ASCII_WORD) ?? []
  return text.length > MAX_WORD_LENGTH ? words.map((word) => word.slice(0, MAX_WORD_LENGTH)) : words
}

/** Tells whether `tokenize` finds a word in a text, or with `isPrefix` one that begins with it. */
export function hasWord(text: string, word: string, isPrefix: boolean): boolean {
  if (!isAscii(text)) {
    const folded = foldText(text)
    // A substring search is cheaper than a split, and most texts lack the word.
    return folded.includes(word) && splitWords(folded).some((one) => (isPrefix ? one.startsWith(word) : one === word))
  }
  const lower = text.toLowerCase()
  // Longer words are truncated.
  const mayContinue = isPrefix || word.length === MAX_WORD_LENGTH
  for (let at = lower.indexOf(word); at >= 0; at = lower.indexOf(word, at + 1))
    if (!isWordCharacter(lower, at - 1) && (mayContinue || !isWordCharacter(lower, at + word.length))) return true
  return false
}

/** Tells whether the character at an index is an ASCII letter or digit. */
function isWordCharacter(text: string, at: number) {
  const code = text.charCodeAt(at)
  return (code >= 97 && code <= 122) || (code >= 48 && code <= 57)
}

/** Returns the words of a text without any marks, as they are stored of knowledge, whose answers are ranked. */
export const tokenizeLoosely = (text: string): string[] => splitWords(fold(text).replace(/\p{M}/gu, ''))

/** Returns whether the last word of a text is complete, because something other than a letter or a space follows. */
export const isLastWordComplete = (text: string) => !/[\p{L}\p{N}\p{M}]\s*$/v.test(text)

const MAX_TERMS_BYTES = 800_000 // bytes of an entity's words; PostgreSQL's limit is one megabyte

/**
 * Returns the stored term of a word. A field number belongs to one blueprint, so terms of blueprints do not mix. The
 * letter between number and word keeps field 1 with the word `2a` apart from field 12 with the word `a`.
 */
const toTerm = (field: number, word: string) => `f${field}w${word}`

/** Returns the search terms of an entity: each word of its texts once, with the field that contains it. */
export const toSearchTerms = (model: Model, doc: Doc): string => toJointTerms([model, doc])

/** Returns the search terms of an entity under several models, such as its current one and the one it is altered to. */
export function toJointTerms(...entities: [Model, Doc][]): string {
  let terms = ''
  let size = 0
  // Only models that share a field have terms in common.
  const known = entities.length > 1 ? new Set<string>() : undefined
  for (const [{ fields }, doc] of entities)
    for (const { key, number, kind } of fields) {
      if (!kind.isSearchable || doc[key] === undefined) continue
      const text = [doc[key]].flat().join(' ')
      const measure = isAscii(text) ? (term: string) => term.length : Buffer.byteLength
      for (const word of new Set(tokenize(text))) {
        const term = toTerm(number, word)
        if (known?.has(term)) continue
        size += measure(term) + 1
        if (size > MAX_TERMS_BYTES) return terms
        terms += terms ? ` ${term}` : term
        known?.add(term)
      }
    }
  return terms
}

/**
 * Returns the full-text expression for entities that contain all words, each in one of the fields; the last word also
 * matches as a prefix, unless it is complete. Returns an empty text, which nothing matches, without fields or words.
 */
export const toMatchQuery = (words: string[], fields: number[], isComplete: boolean) =>
  (fields.length ? words : [])
    .map((word, at) => {
      const prefix = at === words.length - 1 && !isComplete ? '*' : ''
      return `(${fields.map((field) => toTerm(field, word) + prefix).join(FIELD_SEPARATOR)})`
    })
    .join(TERM_SEPARATOR)

/** The separator between the words of a full-text expression. */
export const TERM_SEPARATOR = ' AND '
/** The separator between the fields of a word. */
export const FIELD_SEPARATOR = ' OR '

/** A word of an expression of `toMatchQuery`, and the numbers of the fields of which one has to have it. */
export type SearchedWord = { word: string; isPrefix: boolean; fields: number[] }

/** Returns the words of an expression of `toMatchQuery`. */
export const toSearchedWords = (search: string): SearchedWord[] =>
  search.split(TERM_SEPARATOR).map((part) => {
    const terms = part.slice(1, -1).split(FIELD_SEPARATOR)
    const [, word = '', prefix] = /^f\d+w(.*?)(\*?)$/s.exec(terms[0]!) ?? []
    return { word, isPrefix: !!prefix, fields: terms.map((term) => Number.parseInt(term.slice(1), 10)) }
  })

/** Returns whether an entity with these search terms matches an expression of `toMatchQuery`. */
export function matchesWords(search: string, terms: Set<string>): boolean {
  const hasTerm = (term: string) =>
    term.endsWith('*') ? terms.values().some((one) => one.startsWith(term.slice(0, -1))) : terms.has(term)
  return (
    !!search && search.split(TERM_SEPARATOR).every((part) => part.slice(1, -1).split(FIELD_SEPARATOR).some(hasTerm))
  )
}
