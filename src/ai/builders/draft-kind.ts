import { type Static, type TSchema, t } from 'elysia'
import type { Ctx } from '../../accounts/context'
import type { ScopeArea } from '../../accounts/permissions'
import { badRequest, type FieldError, Problem } from '../../core/problem'
import { parseWithShape } from '../../core/shapes'

/** The maximum number of drafts in one call of a tool. */
export const MAX_DRAFTS_PER_CALL = 20

type Resource = { _id: string }

/** How a kind of resource is drafted by models, and created. */
type DraftKindDefinition<Shape extends TSchema, Created extends Resource> = {
  singular: string
  /** Also the key under which a model sends its drafts. */
  plural: string
  /** The body that creates one. */
  shape: Shape
  /** A more detailed shape for models, where they need it. */
  modelShape?: TSchema
  /** The area whose write scope an API token needs to create them. */
  area: ScopeArea
  /** Returns all errors of the drafts of one call. Each path begins with the index of its draft. */
  validate(ctx: Ctx, drafts: Static<Shape>[]): Promise<FieldError[]>
  /** @throws 403 FORBIDDEN when the caller may not create any */
  assertMayCreate(ctx: Ctx): Promise<void> | void
  /** Sorts drafts so that each one comes after those that it refers to. */
  sortForCreation?(drafts: Static<Shape>[]): Static<Shape>[]
  create(ctx: Ctx, draft: Static<Shape>): Promise<{ value: Created }>
}

/** A kind of resource that models draft. */
export type DraftKind<Draft = unknown, Created extends Resource = Resource> = {
  singular: string
  plural: string
  area: ScopeArea
  /** Returns the JSON Schema of the drafts of one call, for models. */
  toModelSchema(): Record<string, unknown>
  /** @throws 403 FORBIDDEN when the caller may not create any */
  assertMayCreate(ctx: Ctx): Promise<void> | void
  /** Returns the drafts of one call, without unknown keys. @throws 400 INVALID_INPUT with all their errors */
  parse(ctx: Ctx, input: unknown): Promise<ValidDrafts<Draft, Created>>
}

/** Drafts that can be created. */
export type ValidDrafts<Draft, Created extends Resource> = {
  drafts: Draft[]
  /** Creates them one after the other, with the caller's rights. @throws what creating one throws */
  create(): Promise<{ draft: Draft; created: Created }[]>
}

/** Returns a kind that accepts any input, which it validates with the shape of the definition. */
export const defineDraftKind = <Shape extends TSchema, Created extends Resource>({
  singular,
  plural,
  area,
  shape,
  ...definition
}: DraftKindDefinition<Shape, Created>): DraftKind<Static<Shape>, Created> => ({
  ...{ singular, plural, area, assertMayCreate: definition.assertMayCreate },
  toModelSchema() {
    const drafts = t.Array(definition.modelShape ?? shape, { minItems: 1, maxItems: MAX_DRAFTS_PER_CALL })
    return JSON.parse(JSON.stringify(t.Object({ [plural]: drafts })))
  },
  async parse(ctx, input) {
    const shapeOfCall = t.Object({ [plural]: t.Array(shape, { maxItems: MAX_DRAFTS_PER_CALL }) })
    const drafts = parseWithShape(shapeOfCall, input)[plural]!
    const errors = await definition.validate(ctx, drafts)
    if (errors.length) badRequest(...errors.map(({ path, message }) => ({ path: `/${plural}${path}`, message })))
    return {
      drafts,
      async create() {
        const createdDrafts: { draft: Static<Shape>; created: Created }[] = []
        for (const draft of definition.sortForCreation?.(drafts) ?? drafts)
          createdDrafts.push({ draft, created: (await definition.create(ctx, draft)).value })
        return createdDrafts
      },
    }
  },
})

/** Returns the errors that `check` throws for the n-th draft. @throws errors that are no Problem or have a status from 500 */
export async function collectErrors(n: number, check: () => unknown): Promise<FieldError[]> {
  try {
    await check()
    return []
  } catch (error) {
    if (!(error instanceof Problem) || error.status >= 500) throw error
    const { details } = error.more
    const fieldErrors =
      error.status === 400 && Array.isArray(details)
        ? (details as FieldError[])
        : [{ path: '', message: error.message }]
    return fieldErrors.map(({ path, message }) => ({ path: `/${n}${path}`, message }))
  }
}
