import type { ExactSum } from './exact-sum'

/** One kind of field: what fits, how values are found and ordered, and how a query writes one. */
export type FieldType<Value = unknown> = {
  /** What a value is in TypeScript. */
  typescript: string
  /** What is wrong with a value, as the end of the sentence "price …"; undefined when it fits. */
  check(value: unknown): string | undefined
  /**
   * The value as text for the index: equal values have equal texts, and texts are ordered (by bytes) as values are.
   * Kinds without it can't be filtered or sorted by.
   */
  toIndexKey?(value: Value): string
  /** The value that a text in a query means; undefined when it means none. */
  parse?(text: string): Value | undefined
  /** The value behind its key, or what the key tells of it. */
  fromIndexKey?(key: string): Value
  /** Whether the value as it was written is more than its key tells. */
  isTruncated?(key: string): boolean
  /** For days and moments: milliseconds since 1970 behind a key. */
  toMillis?(key: string): number
  /** For times of day: the hour behind a key. */
  toHour?(key: string): number
  /** How values are added up, by their keys. */
  exactSum?: ExactSum
  /** What `min` and `max` bound: the value itself, or how long it is. */
  bounds?: 'value' | 'length'
  /** What a bound that is no value means as one. */
  parseBound?(written: unknown): unknown
  /** Whether patterns can be asked of it: its key is the text, or how it begins. */
  supportsPatterns?: true
  /** Whether its words can be searched for. */
  isSearchable?: true
}

/** For the map of all kinds, which forgets what each one's values are. */
export const fieldType = <Value>(type: FieldType<Value>) => type as FieldType

/** `min` or `max` of a field as one of its values. */
export const toBoundValue = ({ parseBound }: FieldType, written: unknown) => parseBound?.(written) ?? written
