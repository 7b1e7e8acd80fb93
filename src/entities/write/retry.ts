import type { PublicCtx } from '../../accounts/context'
import { getModel } from '../../blueprints/blueprints'
import type { Model } from '../../blueprints/model'
import { MAX_BLUEPRINT_RETRIES } from '../../blueprints/references'
import { Problem } from '../../core/problem'
import { Conflict } from '../../storage/errors'
import { invalidate } from '../../tenancy/cache'
import { StaleBlueprint, StaleEntity } from './constraints'

// Every stale entity means that another write succeeded, so retries make progress.
const MAX_ENTITY_RETRIES = 200 // times

/**
 * Runs the work again when the blueprint or the entity has changed meanwhile. @throws 503 BUSY after too many retries
 */
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

/** Rethrows a conflict of keys as an existing identifier. @throws 409 IDENTIFIER_EXISTS */
export function rethrowConflict(error: unknown): never {
  if (error instanceof Conflict)
    throw new Problem(409, 'IDENTIFIER_EXISTS', 'An entity with this identifier already exists.', { cause: error })
  throw error
}
