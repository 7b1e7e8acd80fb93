import type { Field } from '../api/schema'
import type { FormField } from '../fields/field-form'
import { listObjectPaths } from '../fields/object-fields'
import { systemFields } from './system-fields'

/** The fields that lists can be filtered by: those of the blueprint, the parts of its objects, and the system's. */
export const listFilterFields = (fields: Field[]): FormField[] => [
  ...fields.flatMap((field) => (field.type === 'object' ? [field, ...listObjectPaths(field)] : [field])),
  ...systemFields,
]

/** Returns the field that a condition names; a part that no schema describes is taken as a text. */
export const findFilterField = (fields: FormField[], name: string): FormField | undefined =>
  fields.find(({ key }) => key === name) ??
  (fields.some(({ key, type }) => type === 'object' && name.startsWith(`${key}.`))
    ? { key: name, type: 'string' }
    : undefined)
