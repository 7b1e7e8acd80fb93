import { newId } from '../api/new-id'
import type { Blueprint, BlueprintChange, Field, Limitation, Rule } from '../api/schema'

/** A field while it is changed: its formula stands with it, and its id stays when it gets another key. */
export type DraftField = Field & {
  /** The key that the saved field has; something else for a new field. */
  id: string
  formula?: string
}

/** A blueprint while it is changed. */
export type DesignDraft = {
  name: string
  description: string
  fields: DraftField[]
  permissions: Rule[]
  permissionScope: 'user' | 'workspace' | 'tenant'
  limitations: Limitation[]
  dispatchers: { create?: boolean; update?: boolean; delete?: boolean }
  history: boolean | { versions?: number; days?: number }
}

/** All that can be changed of a blueprint, as the API takes it. */
export type Definition = Required<BlueprintChange>

/** Returns a key for a field that is not saved yet; no field can have it. */
export const newFieldId = () => `+${newId()}`

/** Returns whether a field is not saved yet. */
export const isNewField = ({ id }: DraftField) => id.startsWith('+')

const withoutUndefined = <Value extends object>(value: Value): Value =>
  Object.fromEntries(Object.entries(value).filter(([, part]) => part !== undefined)) as Value

/** Returns a draft of a definition. `keys` are those of the saved fields, from which fields may have been renamed. */
export function toDraft(definition: BlueprintChange, keys: readonly string[]): DesignDraft {
  const { name = '', description = '', fields = [], computed = {}, limitations = [], permissions = [] } = definition
  const renamed = new Set(fields.flatMap(({ renamedFrom }) => renamedFrom ?? []))
  const toId = ({ key, renamedFrom }: Field) => {
    if (renamedFrom && keys.includes(renamedFrom)) return renamedFrom
    return keys.includes(key) && !renamed.has(key) ? key : newFieldId()
  }
  return {
    ...{ name, description },
    fields: fields.map(({ required, renamedFrom: _, ...field }) => ({
      ...field,
      ...(required && { required }),
      ...(Object.hasOwn(computed, field.key) && { formula: computed[field.key] }),
      id: toId({ ...field, renamedFrom: _ }),
    })),
    permissions,
    permissionScope: definition.permissionScope ?? 'user',
    limitations,
    dispatchers: definition.dispatchers ?? {},
    history: definition.history ?? false,
  }
}

/** Returns a field as the API takes it. */
export const toField = ({ id, formula: _, ...field }: DraftField): Field =>
  withoutUndefined({ ...field, renamedFrom: id.startsWith('+') || id === field.key ? undefined : id })

/** Returns a draft as the API takes it. */
export function toDefinition({ name, description, fields, ...draft }: DesignDraft): Definition {
  const formulas = fields.flatMap(({ key, formula }) => (formula === undefined ? [] : [[key, formula] as const]))
  return { name, description, fields: fields.map(toField), computed: Object.fromEntries(formulas), ...draft }
}

const toSortedJson = (value: unknown) =>
  JSON.stringify(value, (_, part) =>
    part && typeof part === 'object' && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  )

/** Returns whether two values of JSON are the same, whatever the order of their keys is. */
export const isSame = (a: unknown, b: unknown) => toSortedJson(a) === toSortedJson(b)

/** Returns the parts of a definition that a draft changes. */
export function toChange(before: Blueprint, draft: DesignDraft): BlueprintChange {
  const keys = before.fields.map(({ key }) => key)
  const was = toDefinition(toDraft(before, keys))
  return Object.fromEntries(
    Object.entries(toDefinition(draft)).filter(([part, value]) => !isSame(value, was[part as keyof Definition])),
  )
}

/** Returns the draft with another key of a field, also where limits name it. */
export function renameField(draft: DesignDraft, id: string, key: string): DesignDraft {
  const was = draft.fields.find((field) => field.id === id)?.key
  const rename = (property: string) => (property === was && was !== '' ? key : property)
  return {
    ...draft,
    fields: draft.fields.map((field) => (field.id === id ? { ...field, key } : field)),
    limitations: draft.limitations.map((limitation) =>
      limitation.properties ? { ...limitation, properties: limitation.properties.map(rename) } : limitation,
    ),
  }
}
