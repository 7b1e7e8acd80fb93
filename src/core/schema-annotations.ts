/** Annotations of shapes for this server only: as symbols, they never appear in the OpenAPI document. */

/** The error message for a value that the pattern of a string, or of a record's names, does not match. */
export const ERROR_MESSAGE = Symbol('message')

/** The policy for the keys of an object. */
export const KEY_POLICY = Symbol('keys')

export type KeyPolicy = {
  /** Refuses every key that the shape does not name, and not only those that look misspelled. */
  strict?: boolean
  /** Keys that are accepted, though the shape does not name them. */
  ignored?: readonly string[]
  /** Keys that are refused by name, because other servers know them and a caller would rely on them. */
  unsupported?: readonly string[]
  /** The known keys, where the shape itself accepts any object. */
  known?: readonly string[]
}

/** Marks a query parameter that takes several values. */
export const LIST_PARAMETER = Symbol('list')
