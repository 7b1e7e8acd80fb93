import type { ComponentType } from 'react'
import type { Field } from '../api/schema'
import type { InputProps } from './field-kind'

/** The values of a form by the keys of its fields. */
export type FormValues = Record<string, unknown>

/** A field of a form: as blueprints describe fields, and what only forms need. */
export type FormField = Field & {
  /** An input of its own, instead of the one of its type. */
  Input?: ComponentType<InputProps>
  /** Whether the other values leave it without meaning. */
  isHidden?(values: FormValues): boolean
  /** Its value is shown, but not changed here. */
  isReadOnly?: boolean
  /** The browser does not keep what is typed. */
  isSecret?: boolean
}

const toComparable = (value: unknown) => JSON.stringify(value ?? null)
const isEqual = (a: unknown, b: unknown) => toComparable(a) === toComparable(b)

/** Returns what changed; a value that was removed is null. */
export const toChanges = (values: FormValues, before: FormValues): FormValues =>
  Object.fromEntries(
    Object.entries(values)
      .filter(([key, value]) => !isEqual(value, before[key]))
      .map(([key, value]) => [key, value ?? null]),
  )

/** Returns the values with which a form begins: those of the thing, or the defaults. */
export const toValues = (fields: readonly FormField[], before?: FormValues): FormValues =>
  Object.fromEntries(fields.map(({ key, default: initial }) => [key, before ? before[key] : initial]))

/** What was typed into a form, and the values that it replaces. */
export type Draft = { changes: FormValues; base: FormValues }

/** Returns what to keep of a form, or undefined when nothing was typed. */
export function toDraft(values: FormValues, base: FormValues): Draft | undefined {
  const changes = toChanges(values, base)
  const keys = Object.keys(changes)
  return keys.length ? { changes, base: Object.fromEntries(keys.map((key) => [key, base[key]])) } : undefined
}

/** Values after a change by somebody else: what was typed stays, and `conflicts` has what they saved in the same fields. */
type Merged = { values: FormValues; conflicts: FormValues; changedKeys: string[] }

/** Returns the values of a form whose thing was changed from `base` to `saved` while somebody typed `values`. */
export function mergeValues(values: FormValues, base: FormValues, saved: FormValues): Merged {
  const changedKeys = Object.keys(values).filter((key) => !isEqual(base[key], saved[key]))
  const isTyped = (key: string) => !isEqual(values[key], base[key])
  return {
    changedKeys,
    values: {
      ...values,
      ...Object.fromEntries(changedKeys.filter((key) => !isTyped(key)).map((key) => [key, saved[key]])),
    },
    conflicts: Object.fromEntries(
      changedKeys
        .filter((key) => isTyped(key) && !isEqual(values[key], saved[key]))
        .map((key) => [key, saved[key] ?? null]),
    ),
  }
}
