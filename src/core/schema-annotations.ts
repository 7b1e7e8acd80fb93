/** Notes on shapes that are for this server only: as symbols, they never reach the description of the API. */

/** The sentence for a value that a pattern, or the names of a record, refuse. */
export const ERROR_MESSAGE = Symbol('message')

/** How the keys of an object are judged. */
export const KEY_POLICY = Symbol('keys')

export type KeyPolicy = {
  /** Refuses every key that the shape does not name, and not only those that look misspelled. */
  strict?: boolean
  /** Keys that are not looked at, though the shape does not name them. */
  ignored?: readonly string[]
  /** Keys that are known, where the shape itself takes any object. */
  known?: readonly string[]
}
