import type { RE2JS } from 're2js'
import { loadRe2 } from '../../core/re2'
import { weakCached } from '../../core/weak-cache'
import { FormulaError, type Meter } from './meter'

const MAX_TEXT_CHARACTERS = 1_000 // characters
const MAX_PROGRAM_SIZE = 250 // steps of the compiled pattern

/** Compiles a pattern of a formula with RE2. @throws what RE2 says about a pattern that it does not support */
export const compilePattern = weakCached((literal: RegExp): RE2JS => {
  const engine = loadRe2()
  const flags = (literal.ignoreCase ? engine.CASE_INSENSITIVE : 0) | (literal.multiline ? engine.MULTILINE : 0)
  const compiled = engine.compile(literal.source, flags)
  if (compiled.programSize() > MAX_PROGRAM_SIZE)
    throw new FormulaError('a pattern is too complex: use fewer or smaller repetitions')
  return compiled
})

/** What the interpreter takes for `RegExp`, by RE2, whose time is in proportion to the text, and paid for. */
export class MeteredRegExp {
  lastIndex = 0
  #pattern: RE2JS

  constructor(
    private meter: Meter,
    literal: RegExp,
  ) {
    this.#pattern = compilePattern(literal)
  }

  exec(text: string) {
    if (text.length > MAX_TEXT_CHARACTERS)
      throw new FormulaError(`patterns are tried on texts of at most ${MAX_TEXT_CHARACTERS} characters`)
    // A match may be short, and found only by looking at all that follows.
    this.meter.spend(100 + (text.length - this.lastIndex) * this.#pattern.programSize())
    const matcher = this.#pattern.matcher(text)
    if (!matcher.find(this.lastIndex)) {
      this.lastIndex = 0
      return null
    }
    this.lastIndex = matcher.end()
    const groups = Array.from({ length: matcher.groupCount() + 1 }, (_, index) => matcher.group(index) ?? undefined)
    return Object.assign(groups, { index: matcher.start() })
  }
}
