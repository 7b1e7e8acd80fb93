/** A text with wildcards, as SQL's LIKE has them: `%` is any characters, `_` is one. */
export type Pattern = {
  /** Characters by their numbers, in lower case, and wildcards. */
  parts: Int32Array
}

const [ANY, MANY] = [-1, -2]

/** Reads a pattern. With a backslash before it, `%`, `_` or a backslash means itself. */
export function readPattern(text: string): Pattern {
  const parts: number[] = []
  for (const [part] of text.matchAll(/\\[%_\\]|./gsu)) {
    if (part === '%') {
      if (parts.at(-1) !== MANY) parts.push(MANY)
    } else if (part === '_') parts.push(ANY)
    else parts.push(folded(part.codePointAt(part.length > 1 && part.startsWith('\\') ? 1 : 0)!))
  }
  return { parts: Int32Array.from(parts) }
}

/** Whether all of a text fits, whatever its case. It takes no longer than their lengths multiplied. */
export function fits({ parts }: Pattern, text: string): boolean {
  const [length, characters] = [read(text), buffer]
  let [at, part, many, from] = [0, 0, -1, 0]
  while (at < length) {
    const wanted = parts[part]
    if (wanted === MANY) {
      many = part++
      from = at
    } else if (wanted === ANY || wanted === characters[at]) {
      at++
      part++
    } else if (many < 0) return false
    else {
      // What the last `%` stands for gets longer; those before it need not.
      part = many + 1
      at = ++from
    }
  }
  while (parts[part] === MANY) part++
  return part === parts.length
}

/** Whether it fits however the text goes on. */
export const fitsAnyEnd = (pattern: Pattern, start: string) => pattern.parts.at(-1) === MANY && fits(pattern, start)

const BEGINNINGS = 16

/**
 * How texts begin that fit, in every case that there is, as far as those are few; and whether whatever begins like this
 * fits.
 */
export async function beginnings({ parts }: Pattern, exists: (start: string) => Promise<boolean>) {
  let [starts, read] = [[''], 0]
  for (const part of parts) {
    const variants = part < 0 ? [] : variantsOf(part)
    if (!variants.length || starts.length * variants.length > BEGINNINGS) break
    const longer: string[] = []
    for (const start of starts)
      for (const variant of variants) if (await exists(start + variant)) longer.push(start + variant)
    starts = longer
    read++
  }
  return { starts, only: read === parts.length - 1 && parts[read] === MANY }
}

/** The first text in the order of bytes that comes after all that begin like this; none when there is none. */
export function endOf(start: string): string | undefined {
  const characters = [...start]
  for (let last = characters.pop(); last !== undefined; last = characters.pop()) {
    const next = last.codePointAt(0)! + 1
    if (next <= 0x10ffff) return characters.join('') + String.fromCodePoint(next === 0xd800 ? 0xe000 : next)
  }
}

/** The characters of the text that is being compared, in lower case. */
let buffer = new Int32Array(1_024)

function read(text: string): number {
  if (buffer.length < text.length) buffer = new Int32Array(text.length)
  let length = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.codePointAt(at)!
    if (code > 0xffff) at++
    buffer[length++] = code < 0x80 ? (code > 0x40 && code < 0x5b ? code + 32 : code) : folded(code)
  }
  return length
}

const lower = new Map<number, number>()

/**
 * A letter in lower case: one for one, as simple case folding of Unicode, because engines and languages would each do it in
 * their own way. What would become several, as ß in capitals, stays; so does the i without a dot, which is another letter.
 */
function folded(code: number): number {
  const known = lower.get(code)
  if (known !== undefined) return known
  const one = String.fromCodePoint(code)
  const [upper, low] = [one.toUpperCase(), one.toUpperCase().toLowerCase()]
  const found = one === 'ı' || [...upper].length > 1 || [...low].length > 1 ? code : low.codePointAt(0)!
  lower.set(code, found)
  return found
}

// Of Latin, Greek and Cyrillic letters, all variants are among the first.
const isNear = (code: number) => code < 0x180 || (code >= 0x370 && code < 0x530)
const ALL = 0x2200
let variants: Map<number, string[]> | undefined

/** A letter in every case; nothing when that is not known. */
function variantsOf(code: number): string[] {
  const one = String.fromCodePoint(code)
  if (one.toUpperCase() === one.toLowerCase()) return [one]
  if (!isNear(code)) return []
  variants ??= Map.groupBy(
    Array.from({ length: ALL }, (_, code) => String.fromCodePoint(code)),
    (one) => folded(one.codePointAt(0)!),
  )
  return variants.get(code) ?? [one]
}
