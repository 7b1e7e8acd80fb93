import type { Static } from 'elysia'
import type { Ctx } from '../accounts/context'
import { getModel } from './blueprints'
import type { FieldIndexShape } from './shapes'

/** Returns the indexes of a blueprint's fields, in the order of the fields. @throws 404 BLUEPRINT_NOT_FOUND */
export async function listIndexes(ctx: Ctx, key: string): Promise<Static<typeof FieldIndexShape>[]> {
  const { fields } = await getModel(ctx, key)
  return fields.flatMap(({ key, index }) => {
    if (!index) return []
    const { state, reason, since, used } = index
    return { field: key, state, reason, since, used }
  })
}
