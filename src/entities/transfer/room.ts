import { Problem } from '../../core/problem'

const ROOM = 16 << 20 // characters

/**
 * How large entities that are written together may be, as they are answered. A few bytes can ask for much: each entity
 * gets its defaults, and what is computed.
 */
export class Room {
  #left = ROOM

  /** @throws 413 */
  take(characters: number) {
    this.#left -= characters
    if (this.#left >= 0) return
    const message = `Together these entities would have more than ${ROOM} characters. Send fewer at a time.`
    throw new Problem(413, 'BATCH_TOO_LARGE', message)
  }
}
