import { Problem } from '../../core/problem'

const MAX_WRITTEN_CHARACTERS = 16 << 20 // characters

/**
 * Limits the total size of entities that are written together, as they appear in the response. A small body can produce
 * large entities by defaults and computed properties.
 */
export class SizeLimit {
  #remaining = MAX_WRITTEN_CHARACTERS

  /** @throws 413 */
  consume(characters: number) {
    this.#remaining -= characters
    if (this.#remaining >= 0) return
    const message = `These entities have more than ${MAX_WRITTEN_CHARACTERS} characters in total. Send fewer at a time.`
    throw new Problem(413, 'BATCH_TOO_LARGE', message)
  }
}
