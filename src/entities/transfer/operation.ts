export const OPERATION_TYPES = ['create', 'update', 'upsert', 'delete'] as const

/** What is to be done; `name` is empty for a new entity that has no identifier of its own, and `_id` is for a new one. */
export type Operation = { op: (typeof OPERATION_TYPES)[number]; name: string; data: unknown; _id: string }

/** What is sent of an entity, under this name. What is no object is refused where it is read. */
export const withIdentifier = ({ data, name: identifier }: Pick<Operation, 'data' | 'name'>) =>
  identifier && data !== null && typeof data === 'object' && !Array.isArray(data) ? { ...data, identifier } : data
