import type { Blueprint, Field } from '../api/schema'

/** A relation from a field of one blueprint to another. */
export type Relation = { from: Blueprint; field: Field; to: Blueprint }

/** Returns the relations between blueprints. */
export function listRelations(blueprints: readonly Blueprint[]): Relation[] {
  const byKey = new Map(blueprints.map((blueprint) => [blueprint.key, blueprint]))
  return blueprints.flatMap((from) =>
    from.fields.flatMap((field) => {
      const to = byKey.get(field.target ?? '')
      return to ? [{ from, field, to }] : []
    }),
  )
}
