import type { Blueprint, Entity, Field } from '../api/schema'

const SAMPLES: Record<Field['type'], unknown> = {
  string: 'Example',
  text: 'An example of a longer text.',
  integer: 1,
  number: 1.5,
  decimal: '19.90',
  boolean: true,
  date: '2030-01-31',
  time: '12:30',
  datetime: '2030-01-31T12:30:00Z',
  object: {},
  file: 'https://example.com/file.pdf',
  email: 'ada@example.com',
  url: 'https://example.com',
  relation: 'IDENTIFIER',
}

/** Returns a value between the bounds of a field. */
function fitBounds(value: unknown, { min, max }: Field): unknown {
  if (typeof value === 'number') return Math.min(Number(max ?? Infinity), Math.max(Number(min ?? -Infinity), value))
  if (typeof value !== 'string' || (typeof min !== 'number' && typeof max !== 'number')) return value
  return value.padEnd(Number(min ?? 0), 'x').slice(0, Number(max ?? Infinity))
}

/** Returns a value that a field takes: a choice, its default, that of another entity, or an example. */
function toSample(field: Field, other: Entity | undefined): unknown {
  const { type, multi, unique, pattern, enum: choices } = field
  if (field.default !== undefined && field.default !== null && !unique) return field.default
  const otherValue = other?.[field.key]
  if (
    otherValue !== undefined &&
    otherValue !== null &&
    !unique &&
    (pattern || type === 'relation' || type === 'object')
  )
    return otherValue
  const single = choices?.[0] ?? (multi ? SAMPLES[type] : fitBounds(SAMPLES[type], field))
  return multi ? Array.from({ length: Math.max(1, Number(field.min ?? 1)) }, () => single) : single
}

const MAX_FIELDS_SHOWN = 4

/** Returns the properties of a new entity of a blueprint, as an example: those required, and some others. */
export function toSampleEntity(
  { fields, computed = {} }: Blueprint,
  other: Entity | undefined,
): Record<string, unknown> {
  const writable = fields.filter(({ key }) => !Object.hasOwn(computed, key))
  const required = writable.filter((field) => field.required)
  const simple = writable.filter(
    ({ required: isRequired, type, pattern }) => !isRequired && type !== 'relation' && !pattern,
  )
  const exampleFields = [...required, ...simple.slice(0, Math.max(0, MAX_FIELDS_SHOWN - required.length))]
  return Object.fromEntries(
    writable.filter((field) => exampleFields.includes(field)).map((field) => [field.key, toSample(field, other)]),
  )
}
