import type { Static, TSchema } from 'elysia'
import type { Ctx } from '../../accounts/guard'
import type { Answer } from '../../core/etag'
import { type Flaw, Problem } from '../../core/problem'
import type { KindName } from './kinds'

/** A kind of things that models draft: what may be sent to make one of them, and by whom. */
export type DraftKind<Shape extends TSchema> = {
  /** What one of them is called. */
  one: string
  shape: Shape
  /** The same in more detail, where models need it. */
  told?: TSchema
  /** What API tokens have to be good for to make them. */
  area: string
  /** All that is wrong with drafts that were made together; paths begin with the number of one. */
  flaws(ctx: Ctx, drafts: Static<Shape>[]): Promise<Flaw[]>
  /** @throws 403 for who may make none */
  refuseUnlessMayMake(ctx: Ctx): Promise<void> | void
  /** Those that have to be there before others come first. */
  inOrder?(drafts: Static<Shape>[]): Static<Shape>[]
  make(ctx: Ctx, draft: Static<Shape>, answer: Answer): Promise<{ _id: string }>
}

/** Something that was drafted, as it can be sent to be made; with what it became where it was made. */
export type Draft = { kind: KindName; draft: unknown; created?: { _id: string } }

/** What somebody finds wrong with one of several drafts. */
export async function flawsOf(n: number, judging: () => unknown): Promise<Flaw[]> {
  try {
    await judging()
    return []
  } catch (error) {
    if (!(error instanceof Problem) || error.status >= 500) throw error
    const { details } = error.more
    const flaws =
      error.status === 400 && Array.isArray(details) ? (details as Flaw[]) : [{ path: '', message: error.message }]
    return flaws.map(({ path, message }) => ({ path: `/${n}${path}`, message }))
  }
}
