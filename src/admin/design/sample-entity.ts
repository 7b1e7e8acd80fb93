import * as samples from '../../blueprints/sample-entity'
import type { Blueprint, Entity, Field } from '../api/schema'

/** What stands for a value that the reader has to fill in. */
const UNKNOWN = '…'

/** Returns a value of a field: that of another entity where an invented one might not fit. */
function toValue(field: Field, other: Entity | undefined): unknown {
  const known = other?.[field.key] ?? undefined
  const isBetter = !field.unique && (field.pattern || field.type === 'relation' || field.type === 'object')
  return (isBetter ? known : undefined) ?? samples.toSample(field) ?? (field.required ? UNKNOWN : undefined)
}

/** Returns the properties of a new entity of a blueprint, as an example: those required, and some others. */
export function toSampleEntity(
  { fields, computed = {} }: Blueprint,
  other: Entity | undefined,
): Record<string, unknown> {
  const writable = fields.filter(({ key }) => !Object.hasOwn(computed, key))
  return samples.toSampleEntity(writable, (field) => toValue(field, other)) ?? {}
}
