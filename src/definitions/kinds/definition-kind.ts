import type { Static, TObject } from '@sinclair/typebox'
import type { Ctx } from '../../accounts/context'
import { Problem } from '../../core/problem'
import type { IfMatch, ListPage } from '../../core/response-headers'
import { parseWithShape } from '../../core/shapes'
import type { ListQuery } from '../../storage/pagination'

const PAGE_SIZE = 1_000

export type KindName =
  | 'blueprint'
  | 'connection'
  | 'lambda'
  | 'plugin'
  | 'integration'
  | 'agent'
  | 'block'
  | 'component'
  | 'plan'
  | 'coupon'
  | 'configuration'
  | 'mail'

/** The properties of a resource without ids of its own, times and its name. */
export type Definition = Record<string, unknown>

/** A resource as a tenant has it: its references are ids, and its secrets are values. */
export type StoredResource = {
  id: string
  /** Null for a resource without a name; `fallback` is what its file is called then. */
  name: string | null
  fallback?: string
  definition: Definition
}

/** Translates a reference; undefined leaves it out. */
export type MapReference = (kind: KindName, reference: string) => string | undefined
/** Translates a secret; undefined leaves it out. `path` are the keys that lead to it. */
export type MapSecret = (path: string[], value: string) => string | undefined

/** A resource as a push will leave it, with labels in place of ids. */
export type PlannedResource = { kind: KindName; label: string; name: string | null; definition: Definition }

/** The resource before a change that is validated, and all resources after the push. */
export type ValidationOptions = {
  before?: PlannedResource & { id: string; stored: Definition }
  planned: PlannedResource[]
}

/** What a change does to the entities of a blueprint. */
export type EntityImpact = { entities: number; details: string[] }

type KindRules = {
  /** The folder of its files. */
  folder: string
  /** The property that names a resource. */
  nameKey: 'key' | 'name' | 'code' | 'identifier'
  /** Whether two resources of a tenant may have the same name. */
  sharesNames?: boolean
  /** The property that has a file of its own beside the JSON. */
  source?: { key: string; extension: 'ts' | 'tsx' }
  /** Values that a file leaves out. */
  defaults: Definition
  /** Returns the definition as the API stores it, such as currencies in upper case. */
  normalize?(definition: Definition): Definition
  /** Returns the definition of a file as it is compared with the current one, and pushed. */
  prepare?(definition: Definition, current: { name: string | null; before?: Definition }): Definition
  mapReferences?(definition: Definition, map: MapReference): Definition
  mapSecrets?(definition: Definition, map: MapSecret): Definition
  /** Whether a secret without a value may stay as it is when the definition changes; default: true. */
  mayKeepSecret?(path: string[], before: Definition, after: Definition): boolean
  /** Whether a removed resource stays in an archive, so that others may refer to it. */
  isArchived?: boolean
  /** Whether a resource that has no file stays when others are pruned. */
  isKept?(resource: StoredResource): boolean
  /** Returns what a change says of itself, and whether it only renames. */
  describe?(before: Definition, after: Definition): { details: string[]; isRename?: boolean }
  /** Returns what a change, or a removal without a definition, does to entities. */
  assessImpact?(ctx: Ctx, id: string, after: Definition | undefined): Promise<EntityImpact>
  /**
   * Checks whether a resource can be removed, before any change of a push. `remaining` are all resources that are there
   * after the removal. @throws what `remove` throws
   */
  validateRemoval?(ctx: Ctx, id: string, options: { pruneData: boolean; remaining: PlannedResource[] }): Promise<void>
  /** @throws 412 when the resource has another version */
  remove(ctx: Ctx, id: string, options: { pruneData: boolean } & IfMatch): Promise<unknown>
}

/** A resource, and its version if changes of it can be conditional. */
type Read<Item> = { value: Item; version?: string }

type KindOperations<Shape extends TObject, Item> = {
  /** What the API accepts for a new resource. */
  shape: Shape
  list(ctx: Ctx, query: ListQuery): Promise<Pick<ListPage<Item>, 'items' | 'next'>>
  get(ctx: Ctx, id: string): Promise<Read<Item>>
  /** Returns undefined for an item that is not of this kind. */
  toStored(item: Item, ctx: Ctx): StoredResource | undefined | Promise<StoredResource | undefined>
  /**
   * Checks what can be known of a resource before any change of a push, such as addresses, secrets and code. References
   * are labels instead of ids.
   * @throws what `create` and `change` throw
   */
  validate?(ctx: Ctx, input: Static<Shape>, options: ValidationOptions): unknown
  create(ctx: Ctx, input: Static<Shape>): Promise<Read<Item>>
  /** Makes the resource what `after` says. Returns whether entities are still being changed. */
  change(
    ctx: Ctx,
    id: string,
    after: Static<Shape>,
    options: { before: Definition } & IfMatch,
  ): Promise<{ isUnderWay: boolean } | unknown>
}

/** A kind of definition: how its resources are read, written and compared. */
export type DefinitionKind = KindRules & {
  shape: TObject
  /** Returns all resources of this kind, oldest first. */
  listAll(ctx: Ctx): Promise<StoredResource[]>
  /** Returns a resource and its version. @throws 404 */
  read(ctx: Ctx, id: string): Promise<Read<StoredResource | undefined>>
  /** Checks a resource as it will be created or changed. @throws what the API does */
  validate(ctx: Ctx, input: Definition, options: ValidationOptions): Promise<void>
  /** Creates a resource and returns it. `input` has its name. @throws what the API does */
  create(ctx: Ctx, input: Definition): Promise<StoredResource | undefined>
  /** Changes a resource. Returns whether its entities are still being changed. @throws what the API does */
  change(ctx: Ctx, id: string, input: Definition, options: { before: Definition } & IfMatch): Promise<boolean>
}

/** Returns a kind whose operations take any definition; its shape checks it first. */
export const defineKind = <Shape extends TObject, Item>({
  shape,
  list,
  get,
  toStored,
  validate,
  create,
  change,
  ...rules
}: KindRules & KindOperations<Shape, Item>): DefinitionKind => ({
  ...rules,
  shape,
  async listAll(ctx) {
    const resources: StoredResource[] = []
    let query: ListQuery = { limit: `${PAGE_SIZE}`, sort: 'created' }
    for (;;) {
      const { items, next } = await list(ctx, query)
      for (const item of items) {
        const resource = await toStored(item, ctx)
        if (resource) resources.push(resource)
      }
      // A page of large resources ends before it is full.
      if (!next) return resources
      query = { ...query, ...next }
    }
  },
  async read(ctx, id) {
    const { value, version } = await get(ctx, id)
    return { value: await toStored(value, ctx), version }
  },
  async validate(ctx, input, options) {
    await validate?.(ctx, parseWithShape(shape, input), options)
  },
  create: async (ctx, input) => toStored((await create(ctx, parseWithShape(shape, input))).value, ctx),
  async change(ctx, id, input, options) {
    const result = await change(ctx, id, parseWithShape(shape, input), options)
    return !!(result as { isUnderWay?: boolean } | undefined)?.isUnderWay
  },
})

/** Handles the failure to read secrets that no key decrypts any more: they are as given. Others are thrown. */
export const ifUnreadable =
  <Value>(value: Value) =>
  (error: unknown): Value => {
    if (!(error instanceof Problem) || error.code !== 'SEALED_UNREADABLE') throw error
    return value
  }

/** Returns an empty text for each name. */
export const toEmptyTexts = (names: string[]): Record<string, string> =>
  Object.fromEntries(names.map((name) => [name, '']))

/** Returns the values after a change that replaces all keys: those that are left out become null. */
export const replaceKeys = (before: Definition = {}, after: Definition = {}): Definition => ({
  ...Object.fromEntries(Object.keys(before).map((key) => [key, null])),
  ...after,
})

/** Translates every text in a value. Texts that become undefined are left out. */
export function mapTexts(value: unknown, map: MapSecret, path: string[] = []): unknown {
  if (typeof value === 'string') return map(path, value)
  if (Array.isArray(value)) return value.map((item, n) => mapTexts(item, map, [...path, `${n + 1}`]))
  if (!value || typeof value !== 'object') return value
  const entries = Object.entries(value).map(([key, part]) => [key, mapTexts(part, map, [...path, key])] as const)
  return Object.fromEntries(entries.filter(([, part]) => part !== undefined))
}
