export const OPERATION_TYPES = ['create', 'update', 'upsert', 'delete'] as const

/** An operation. `name` is empty for a new entity without a given identifier; `_id` is used only for a new entity. */
export type Operation = { op: (typeof OPERATION_TYPES)[number]; name: string; data: unknown; _id: string }

/**
 * Returns the data with the identifier of the operation. Data that is not an object is rejected later, by `parseBody`.
 */
export const withIdentifier = ({ data, name: identifier }: Pick<Operation, 'data' | 'name'>) =>
  identifier && data !== null && typeof data === 'object' && !Array.isArray(data) ? { ...data, identifier } : data
