import type { CellNotation } from './cell-notation'
import type { ExactSum } from './exact-sum'

/** A field type: how values are validated, indexed and ordered, and how queries write them. */
export type FieldType<Value = unknown> = {
  /** The TypeScript type of a value. */
  typescript: string
  /** The TypeScript type that filters of the typed client accept besides that of a value. */
  filterTypescript?: string
  /** The JSON Schema of a value, as far as JSON Schema can express `check`. */
  jsonSchema: JsonSchema
  /** Returns the error of a value as the end of the sentence "price …", or undefined when it is valid. */
  check(value: unknown): string | undefined
  /**
   * Returns the index key of a value: equal values have equal keys, and keys are ordered (by bytes) as values are. Types
   * without it cannot be filtered or sorted by. Types share a function only if their keys are interchangeable: a field
   * that changes from one to the other keeps its index (`schema-diff.ts`).
   */
  toIndexKey?(value: Value): string
  /** Returns the value of a text in a query, or undefined when it is invalid. */
  parse?(text: string): Value | undefined
  /**
   * Returns the value of an index key, or what the key contains of it. Charts name groups by it. It is missing when the
   * key is the value, and when charts group by `toMillis` or `toHour`.
   */
  fromIndexKey?(key: string): Value
  /** Returns whether `fromIndexKey` may differ from the value as it was written; charts then read it from an entity. */
  losesNotation?(key: string): boolean
  /** For dates and times: returns the milliseconds since 1970 of an index key. */
  toMillis?(key: string): number
  /** Whether it is a moment, which lies on different days in different time zones. */
  isMoment?: true
  /** For times of day: returns the hour of an index key. */
  toHour?(key: string): number
  /** Sums values by their index keys. */
  exactSum?: ExactSum
  /** What `min` and `max` limit: the value itself, or its length. */
  bounds?: 'value' | 'length'
  /** Converts a bound that is not a value of this type. */
  parseBound?(written: unknown): unknown
  /** Whether queries can use patterns: the index key is the text, or its beginning. */
  supportsPatterns?: true
  /** Whether full-text search finds its words. */
  isSearchable?: true
  /**
   * Returns the value of a cell of a table, as spreadsheets and other programs write it, or undefined when it is none.
   * Types without it have texts or JSON in cells; only texts are escaped, where a spreadsheet would read a formula.
   */
  fromCell?(cell: string, notation: CellNotation): Value | undefined
  /** Whether a cell has a decimal point, or a comma where the table is written so. */
  hasDecimalPoint?: true
}

type JsonSchema = {
  type: 'string' | 'number' | 'integer' | 'boolean' | 'object'
  format?: string
  pattern?: string
  additionalProperties?: true
}

/** Erases the type of the values, for the map of all field types. */
export const fieldType = <Value>(type: FieldType<Value>) => type as FieldType

/** Returns `min` or `max` of a field as a value of its type. */
export const toBoundValue = ({ parseBound }: Pick<FieldType, 'parseBound'>, written: unknown) =>
  parseBound?.(written) ?? written
