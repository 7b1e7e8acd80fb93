/** A column of entities that a compound index can begin with. */
export type OwnerColumn = 'user' | 'workspace'

/**
 * What a compound index leads by: the entities that have certain values of the fields with the numbers `equal`, or certain
 * owners, in the order of a field, or without one in order of time.
 */
export type CompoundParts = { equal: (number | OwnerColumn)[]; order: number | null }

/** Returns the identity of the parts of a compound index. */
export const partsKey = ({ equal, order }: CompoundParts) => `${[...equal].sort().join()} ${order}`

/** Returns the numbers of the fields of a compound index. */
export const partNumbers = ({ equal, order }: CompoundParts): number[] =>
  [...equal, order].filter((part) => typeof part === 'number')

/** Returns the names of the parts of a compound index; the last one is the sort key. */
export const nameParts = (
  { fields }: { fields: { key: string; number: number }[] },
  { equal, order }: CompoundParts,
): string[] =>
  [...equal, order ?? 'created'].map((part) =>
    typeof part === 'string' ? part : (fields.find(({ number }) => number === part)?.key ?? ''),
  )
