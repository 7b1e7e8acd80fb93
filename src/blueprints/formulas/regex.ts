import type { RE2JS } from 're2js'
import { re2 } from '../../core/re2'
import { type Meter, Unfit } from './meter'

const TEXT = 1_000 // characters
const PROGRAM = 250 // steps of the compiled pattern
const known = new WeakMap<RegExp, RE2JS>()

/** Makes a literal of an expression ready. @throws what RE2 says of one that it can't have */
export function prepare(literal: RegExp): RE2JS {
  const found = known.get(literal)
  if (found) return found
  const engine = re2()
  const flags = (literal.ignoreCase ? engine.CASE_INSENSITIVE : 0) | (literal.multiline ? engine.MULTILINE : 0)
  const compiled = engine.compile(literal.source, flags)
  if (compiled.programSize() > PROGRAM) throw new Unfit('a pattern is too large: repeat fewer things, or less often')
  known.set(literal, compiled)
  return compiled
}

/** What the interpreter takes for `RegExp`, by RE2, whose time is in proportion to the text, and paid for. */
export class Engine {
  lastIndex = 0
  #pattern: RE2JS

  constructor(
    private meter: Meter,
    literal: RegExp,
  ) {
    this.#pattern = prepare(literal)
  }

  exec(text: string) {
    if (text.length > TEXT) throw new Unfit(`patterns are tried on texts of at most ${TEXT} characters`)
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
