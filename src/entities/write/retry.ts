import type { PublicCtx } from '../../accounts/context'
import { getModel } from '../../blueprints/blueprints'
import type { Model } from '../../blueprints/model'
import { Problem } from '../../core/problem'
import { Conflict } from '../../storage/errors'
import { invalidate } from '../../tenancy/cache'
import { StaleBlueprint, StaleEntity } from './constraints'

// Whoever was overtaken was so by a change that went through, so it goes on for all. A blueprint changes a few times in a row.
const MAX_ENTITY_RETRIES = 200 // times
const MAX_BLUEPRINT_RETRIES = 10 // times

/** Does it again when what was read has changed meanwhile: the blueprint, or the entity. */
export async function retryOnStale<T>(
  ctx: PublicCtx,
  key: string,
  work: (model: Model, ctx: PublicCtx) => Promise<T>,
): Promise<T> {
  for (let tries = 0; ; tries++) {
    try {
      return await work(await getModel(ctx, key), ctx)
    } catch (error) {
      if (!(error instanceof StaleBlueprint)) throw error
      const isEntityStale = error instanceof StaleEntity
      if (tries >= (isEntityStale ? MAX_ENTITY_RETRIES : MAX_BLUEPRINT_RETRIES)) throw error
      if (!isEntityStale) invalidate(ctx, 'blueprints')
    }
  }
}

/** A key that exists is an identifier that does. */
export function rethrowConflict(error: unknown): never {
  if (error instanceof Conflict)
    throw new Problem(409, 'IDENTIFIER_EXISTS', 'An entity with this identifier already exists.', { cause: error })
  throw error
}
