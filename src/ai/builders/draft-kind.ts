import type { Static, TSchema } from 'elysia'
import type { Ctx } from '../../accounts/context'
import type { HttpContext } from '../../core/etag'
import { type FieldError, Problem } from '../../core/problem'

/** A kind of things that models draft: what may be sent to make one of them, and by whom. */
export type DraftKind<Shape extends TSchema> = {
  /** What one of them is called. */
  singular: string
  shape: Shape
  /** The same in more detail, where models need it. */
  modelSchema?: TSchema
  /** What API tokens have to be good for to make them. */
  area: string
  /** All that is wrong with drafts that were made together; paths begin with the number of one. */
  validate(ctx: Ctx, drafts: Static<Shape>[]): Promise<FieldError[]>
  /** @throws 403 for who may make none */
  assertMayCreate(ctx: Ctx): Promise<void> | void
  /** Those that have to be there before others come first. */
  sortForCreation?(drafts: Static<Shape>[]): Static<Shape>[]
  create(ctx: Ctx, draft: Static<Shape>, answer: HttpContext): Promise<{ _id: string }>
}

/** What somebody finds wrong with one of several drafts. */
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
