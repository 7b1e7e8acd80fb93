import { isAscii } from '../search/tokenizer'

/** A text with the wildcards of SQL's LIKE: `%` stands for any characters, `_` for one. */
export type LikePattern = {
  /** Code points in lower case, and wildcards. */
  parts: Int32Array
  /** The longest part without wildcards; empty when there is none. */
  literal: string
}

const [ANY_CHARACTER, ANY_CHARACTERS] = [-1, -2]

/** Parses a pattern. A backslash escapes `%`, `_` or a backslash. */
export function parsePattern(text: string): LikePattern {
  const parts: number[] = []
  for (const [part] of text.matchAll(/\\[%_\\]|./gsu)) {
    if (part === '%') {
      if (parts.at(-1) !== ANY_CHARACTERS) parts.push(ANY_CHARACTERS)
    } else if (part === '_') parts.push(ANY_CHARACTER)
    else parts.push(foldCase(part.codePointAt(part.length > 1 && part.startsWith('\\') ? 1 : 0)!))
  }
  return { parts: Int32Array.from(parts), literal: findLiteral(parts) }
}

/** Returns whether the whole text matches, ignoring case. The time is at most the product of both lengths. */
export function matchesPattern({ parts, literal }: LikePattern, text: string): boolean {
  // Most texts lack the literal, and a substring search costs a fraction of a comparison.
  if (literal && isAscii(text) && !text.toLowerCase().includes(literal)) return false
  const [length, characters] = [fillBuffer(text), characterBuffer]
  let [at, part, many, from] = [0, 0, -1, 0]
  while (at < length) {
    const wanted = parts[part]
    if (wanted === ANY_CHARACTERS) {
      many = part++
      from = at
    } else if (wanted === ANY_CHARACTER || wanted === characters[at]) {
      at++
      part++
    } else if (many < 0) return false
    else {
      // The match of the last `%` grows; earlier ones need no backtracking.
      part = many + 1
      at = ++from
    }
  }
  while (parts[part] === ANY_CHARACTERS) part++
  return part === parts.length
}

function findLiteral(parts: number[]): string {
  let [longest, current] = ['', '']
  for (const part of parts) {
    current = part < 0 ? '' : current + String.fromCodePoint(part)
    if (current.length > longest.length) longest = current
  }
  return longest
}

/** Returns a text in lower case, letter for letter as patterns are. */
export function foldText(text: string): string {
  if (isAscii(text)) return text.toLowerCase()
  let folded = ''
  for (const letter of text) folded += String.fromCodePoint(foldCase(letter.codePointAt(0)!))
  return folded
}

/** Returns whether every text that begins like this matches. */
export const matchesPrefix = (pattern: LikePattern, start: string) =>
  pattern.parts.at(-1) === ANY_CHARACTERS && matchesPattern(pattern, start)

const MAX_PREFIXES = 16

/**
 * Returns the beginnings of matching texts, in all existing variants of case as far as these are few. When they are
 * sufficient, every text with such a beginning matches.
 */
export async function findPrefixes({ parts }: LikePattern, exists: (start: string) => Promise<boolean>) {
  let [prefixes, read] = [[''], 0]
  for (const part of parts) {
    const variants = part < 0 ? [] : getCaseVariants(part)
    if (!variants.length || prefixes.length * variants.length > MAX_PREFIXES) break
    const longer: string[] = []
    for (const start of prefixes)
      for (const variant of variants) if (await exists(start + variant)) longer.push(start + variant)
    prefixes = longer
    read++
  }
  return { prefixes, areSufficient: read === parts.length - 1 && parts[read] === ANY_CHARACTERS }
}

/** Returns the first text, in byte order, after all texts with this beginning; undefined when there is none. */
export function endOfPrefix(start: string): string | undefined {
  const characters = [...start]
  for (let last = characters.pop(); last !== undefined; last = characters.pop()) {
    const next = last.codePointAt(0)! + 1
    if (next <= 0x10ffff) return characters.join('') + String.fromCodePoint(next === 0xd800 ? 0xe000 : next)
  }
}

/** The code points of the text being compared, in lower case. */
let characterBuffer = new Int32Array(1_024)

function fillBuffer(text: string): number {
  if (characterBuffer.length < text.length) characterBuffer = new Int32Array(text.length)
  let length = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.codePointAt(at)!
    if (code > 0xffff) at++
    characterBuffer[length++] = code < 0x80 ? (code > 0x40 && code < 0x5b ? code + 32 : code) : foldCase(code)
  }
  return length
}

const foldedLetters = new Map<number, number>()

/**
 * Returns a letter in lower case, one for one like the simple case folding of Unicode, because each database and locale
 * folds in its own way. A letter that would become several, such as ß in capitals, stays as it is. So does the dotless
 * i, which is a different letter.
 */
function foldCase(code: number): number {
  const cached = foldedLetters.get(code)
  if (cached !== undefined) return cached
  const letter = String.fromCodePoint(code)
  const [upper, low] = [letter.toUpperCase(), letter.toUpperCase().toLowerCase()]
  const lowered = letter === 'ı' || [...upper].length > 1 || [...low].length > 1 ? code : low.codePointAt(0)!
  foldedLetters.set(code, lowered)
  return lowered
}

// All variants of Latin, Greek and Cyrillic letters are among the first code points.
const hasListedVariants = (code: number) => code < 0x180 || (code >= 0x370 && code < 0x530)
const LISTED_CODE_POINTS = 0x2200
let variantsByLetter: Map<number, string[]> | undefined

/** Returns a letter in all its cases; empty when they are not known. */
function getCaseVariants(code: number): string[] {
  const letter = String.fromCodePoint(code)
  if (letter.toUpperCase() === letter.toLowerCase()) return [letter]
  if (!hasListedVariants(code)) return []
  variantsByLetter ??= Map.groupBy(
    Array.from({ length: LISTED_CODE_POINTS }, (_, code) => String.fromCodePoint(code)),
    (letter) => foldCase(letter.codePointAt(0)!),
  )
  return variantsByLetter.get(code) ?? [letter]
}
