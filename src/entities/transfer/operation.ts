import type { PublicCtx } from '../../accounts/context'
import type { Model } from '../../blueprints/model'
import type { Doc } from '../store/doc'
import type { StoredEntity } from '../store/rows'
import { extractDocumentJson } from '../store/serializer'
import { type NamedFiles, NO_FILES, resolveFileValues } from '../write/file-values'
import type { EntityTexts } from '../write/insert'

export const OPERATION_TYPES = ['create', 'update', 'upsert', 'delete'] as const

/** An operation. `name` is empty for a new entity without a given identifier; `_id` is used only for a new entity. */
export type Operation = {
  op: (typeof OPERATION_TYPES)[number]
  name: string
  data: unknown
  _id: string
  /** Paths into objects of which the data may have only some parts: an update keeps the others. */
  parts?: string[][]
  /** The texts of a new entity, where they are known without its data. */
  texts?: EntityTexts
}

/** An operation of a row of a table, whose data is read when something asks for it. */
export class RowOperation implements Operation {
  readonly _id = Bun.randomUUIDv7()
  #data: unknown

  constructor(
    readonly op: 'create' | 'upsert',
    readonly name: string,
    private row: { readProperties(): Doc },
    readonly texts: EntityTexts,
  ) {}

  get data() {
    this.#data ??= this.row.readProperties()
    return this.#data
  }

  set data(data: unknown) {
    this.#data = data
  }
}

/**
 * Returns the data with the identifier of the operation. Data that is not an object is rejected later, by `parseBody`.
 */
export const withIdentifier = ({ data, name: identifier }: Pick<Operation, 'data' | 'name'>) =>
  identifier && data !== null && typeof data === 'object' && !Array.isArray(data) ? { ...data, identifier } : data

/** Gives the data of operations the URLs of the files that it names, and returns these files. */
export async function resolveFilesOf(ctx: PublicCtx, model: Model, operations: Operation[]): Promise<NamedFiles> {
  if (!model.fileFields.length) return NO_FILES
  const data = operations.map((operation) => operation.data)
  const { bodies, files } = await resolveFileValues(ctx, model, data)
  if (bodies !== data) for (const [n, operation] of operations.entries()) operation.data = bodies[n]
  return files
}

/** Returns the data of an update, with the stored parts of the objects of which it has only some. */
export function withStoredParts({ data, parts = [] }: Operation, { shown }: StoredEntity): unknown {
  const sent = data as Doc
  const given = parts.filter(([key]) => Object.hasOwn(sent, key!))
  if (!given.length) return data
  const stored = JSON.parse(extractDocumentJson(shown)) as Doc
  const merged = Object.fromEntries(given.map(([key]) => [key!, stored[key!]]))
  for (const path of given) {
    const value = getPart(sent, path)
    if (value !== undefined) setPart(merged, path, value)
  }
  return { ...sent, ...merged }
}

const isObject = (value: unknown): value is Doc => value !== null && typeof value === 'object' && !Array.isArray(value)

const getPart = (doc: Doc, path: string[]) =>
  path.reduce<unknown>((here, step) => (isObject(here) && Object.hasOwn(here, step) ? here[step] : undefined), doc)

/** Sets a part of a document; what is on the way and no object becomes one. */
export function setPart(doc: Doc, path: string[], value: unknown) {
  let node = doc
  for (const step of path.slice(0, -1)) {
    if (!Object.hasOwn(node, step) || !isObject(node[step])) node[step] = {}
    node = node[step] as Doc
  }
  node[path.at(-1)!] = value
}
