import { isTruncated } from '../../blueprints/fields/index-key-codec'
import type { Db } from '../../storage/port'
import { knowsCommits, readUntilCommit } from './commit-cache'
import { foldText, type LikePattern, literalOf } from './like-pattern'

const MAX_CHARACTERS = 4 << 20 // of the texts of one field
const SEPARATOR = '\0' // no text contains it

/** The distinct texts of a field, joined to one string, which is searched faster than text by text. */
export class FieldTexts {
  #texts: string[] = []
  #folded = ''
  /** Where each text begins in `#folded`. */
  #starts: number[] = []
  /** Texts of which the index has only the beginning. */
  #truncated: string[] = []

  get characters() {
    return this.#folded.length
  }

  add(texts: string[]) {
    for (const text of texts) {
      if (isTruncated(text)) this.#truncated.push(text)
      else {
        this.#starts.push(this.#folded.length)
        this.#texts.push(text)
        this.#folded += foldText(text) + SEPARATOR
      }
    }
  }

  /** Yields the texts that may match a pattern. */
  *findCandidates(pattern: LikePattern): Generator<string> {
    const literal = literalOf(pattern)
    if (!literal) yield* this.#texts
    else
      for (let at = this.#folded.indexOf(literal); at >= 0; ) {
        const index = this.#indexAt(at)
        yield this.#texts[index]!
        const next = this.#starts[index + 1]
        if (next === undefined) break
        at = this.#folded.indexOf(literal, next)
      }
    yield* this.#truncated
  }

  /** Returns the index of the text at an offset of the string. */
  #indexAt(offset: number): number {
    let [low, high] = [0, this.#starts.length - 1]
    while (low < high) {
      const middle = (low + high + 1) >>> 1
      if (this.#starts[middle]! <= offset) low = middle
      else high = middle - 1
    }
    return low
  }
}

/**
 * Returns the distinct texts of a field, which `read` yields. A reader thread caches them until the tenant is written
 * to. Returns undefined on other threads, and when there are too many texts.
 */
export async function getFieldTexts(
  db: Db,
  field: string,
  read: () => AsyncIterable<string[]>,
): Promise<FieldTexts | undefined> {
  if (!knowsCommits(db)) return
  const load = async () => {
    const texts = new FieldTexts()
    for await (const some of read()) {
      texts.add(some)
      if (texts.characters > MAX_CHARACTERS) return
    }
    return texts
  }
  return readUntilCommit(db, `texts ${field}`, load, (texts) => texts?.characters ?? 0)
}
