import type { Static, TSchema } from 'elysia'
import type { Ctx } from '../../accounts/context'
import type { HttpContext } from '../../core/etag'
import { type FieldError, Problem } from '../../core/problem'

/** A kind of resource that models draft. */
export type DraftKind<Shape extends TSchema> = {
  singular: string
  /** The body that creates one. */
  shape: Shape
  /** A more detailed shape for models, where they need it. */
  modelSchema?: TSchema
  /** The area whose write scope an API token needs to create them. */
  area: string
  /** Returns all errors of the drafts of one call. Each path begins with the index of its draft. */
  validate(ctx: Ctx, drafts: Static<Shape>[]): Promise<FieldError[]>
  /** @throws 403 FORBIDDEN when the caller may not create any */
  assertMayCreate(ctx: Ctx): Promise<void> | void
  /** Sorts drafts so that each one comes after those that it refers to. */
  sortForCreation?(drafts: Static<Shape>[]): Static<Shape>[]
  create(ctx: Ctx, draft: Static<Shape>, answer: HttpContext): Promise<{ _id: string }>
}

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
