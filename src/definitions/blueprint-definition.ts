import type { Blueprint, BlueprintChange, Field, NewBlueprint } from '../blueprints/shapes'

/** What a file says of a blueprint: no ids, times or defaults. Its key is the name of the file. */
export type BlueprintDefinition = Omit<NewBlueprint, 'key'>

const DEFAULTS = {
  description: '',
  permissions: [],
  permissionScope: 'user' as const,
  limitations: [],
  computed: {},
  dispatchers: {},
}

/** Returns what a file says of this blueprint. */
export function toDefinition(blueprint: Blueprint | BlueprintDefinition): BlueprintDefinition {
  const { name, description, fields, permissions, permissionScope, limitations, computed, dispatchers } = blueprint
  const parts = { description, permissions, permissionScope, limitations, computed, dispatchers }
  const stated = Object.entries(parts).filter(
    ([part, value]) => value !== undefined && !Bun.deepEquals(value, DEFAULTS[part as keyof typeof DEFAULTS]),
  )
  return { name, fields: fields.map(toFieldDefinition), ...Object.fromEntries(stated) }
}

const toFieldDefinition = ({ required, ...field }: Field): Field => ({ ...field, ...(required && { required }) })

/** Returns the change that makes a blueprint what the definition says; what it leaves out gets its default. */
export const toChange = (definition: BlueprintDefinition): BlueprintChange => ({ ...DEFAULTS, ...definition })

/** Returns the definition without the previous keys of fields, except of those that `current` still has to rename. */
export function keepOpenRenames(definition: BlueprintDefinition, current?: BlueprintDefinition): BlueprintDefinition {
  const keys = new Set(current?.fields.map(({ key }) => key))
  const fields = definition.fields.map(({ renamedFrom, ...field }) => ({
    ...field,
    ...(renamedFrom && keys.has(renamedFrom) && !keys.has(field.key) && { renamedFrom }),
  }))
  return { ...definition, fields }
}

/** Returns the text of a definition's file. The same definition has the same text. */
export const formatDefinition = (definition: BlueprintDefinition) =>
  `${JSON.stringify(sortKeys(toDefinition(definition)), null, 2)}\n`

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys)
  if (!value || typeof value !== 'object') return value
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, part]) => [key, sortKeys(part)]),
  )
}
