import type { Static } from 'elysia'
import type { Ctx } from '../accounts/context'
import { getModel } from './blueprints'
import { nameParts } from './compound-parts'
import type { FieldIndex } from './field-indexes'
import type { FieldIndexShape } from './shapes'

/** Returns the indexes of a blueprint: those of fields, in their order, then compound ones. @throws 404 BLUEPRINT_NOT_FOUND */
export async function listIndexes(ctx: Ctx, key: string): Promise<Static<typeof FieldIndexShape>[]> {
  const model = await getModel(ctx, key)
  const toShape = (fields: string[], { state, reason, since, used }: FieldIndex) => ({
    ...{ field: fields[0]!, fields, state, reason, since, used },
  })
  return [
    ...model.fields.flatMap(({ key, index }) => (index ? toShape([key], index) : [])),
    ...model.compoundIndexes.map((index) => toShape(nameParts(model, index), index)),
  ]
}
