/** One kind of field: what fits, how values are found and ordered, and how a query writes one. */
export type FieldType<Value = unknown> = {
  /** What is wrong with a value, as the end of the sentence "price …"; undefined when it fits. */
  check(value: unknown): string | undefined
  /**
   * The value as text for the index: equal values have equal texts, and texts are ordered (by bytes) as values are.
   * Kinds without it can't be filtered or sorted by.
   */
  key?(value: Value): string
  /** The value that a text in a query means; undefined when it means none. */
  parse?(text: string): Value | undefined
  /** What `min` and `max` bound: the value itself, or how long it is. */
  bounds?: 'value' | 'length'
  /** Whether its words can be searched for. */
  searched?: true
}

/** For the map of all kinds, which forgets what each one's values are. */
export const fieldType = <Value>(type: FieldType<Value>) => type as FieldType
