import type { PublicCtx } from '../../accounts/context'
import type { Model } from '../../blueprints/model'
import { type NamedFiles, resolveFileValues } from '../write/file-values'

export const OPERATION_TYPES = ['create', 'update', 'upsert', 'delete'] as const

/** An operation. `name` is empty for a new entity without a given identifier; `_id` is used only for a new entity. */
export type Operation = { op: (typeof OPERATION_TYPES)[number]; name: string; data: unknown; _id: string }

/**
 * Returns the data with the identifier of the operation. Data that is not an object is rejected later, by `parseBody`.
 */
export const withIdentifier = ({ data, name: identifier }: Pick<Operation, 'data' | 'name'>) =>
  identifier && data !== null && typeof data === 'object' && !Array.isArray(data) ? { ...data, identifier } : data

/** Gives the data of operations the URLs of the files that it names, and returns these files. */
export async function resolveFilesOf(ctx: PublicCtx, model: Model, operations: Operation[]): Promise<NamedFiles> {
  const data = operations.map((operation) => operation.data)
  const { bodies, files } = await resolveFileValues(ctx, model, data)
  if (bodies !== data) for (const [n, operation] of operations.entries()) operation.data = bodies[n]
  return files
}
