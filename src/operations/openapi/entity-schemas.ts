import type { Field } from '../../blueprints/shapes'
import type { Components } from './components'
import { toFieldSchema } from './field-schemas'
import { toItemName, toTypeName, withDistinctGoNames } from './part-names'
import { isSchema, type Schema } from './schema'

/** A field with the schema of its values, in which objects, unions and choices have names. */
export type DescribedField = Field & { described: Schema }

/** Returns the schema of a field's values, whose parts become components. */
export function describeField(field: Field, entity: string, components: Components): Schema {
  const name = `${entity}${toTypeName(field.key)}`
  const { title, description, default: value, ...schema } = components.nameParts(toFieldSchema(field), name)
  const annotations = { ...(title ? { title } : {}), ...(description ? { description } : {}) }
  const { items } = schema
  return {
    ...annotations,
    ...(hasChoices(schema) ? components.define(schema, name) : schema),
    ...(hasChoices(items) && { items: components.define(items, toItemName(name)) }),
    ...(value !== undefined && { default: value }),
  }
}

/** Choices have a name, because the same ones occur in entities, drafts and changes. */
const hasChoices = (schema: unknown): schema is Schema => isSchema(schema) && Array.isArray(schema.enum)

const SYSTEM_FIELDS = { _id: 'string', identifier: 'string', created: 'date-time', updated: 'date-time' }

/** Returns the schema of an entity. `properties` is that of what stands under `metadata`. */
export const entitySchema = (title: string, fields: DescribedField[], properties: Schema): Schema => {
  const { required, properties: own } = objectSchema(fields, (field) => !!field.required)
  return {
    ...{ description: title, type: 'object' },
    required: [...Object.keys(SYSTEM_FIELDS), 'user', 'workspace', 'metadata', ...(required as string[])],
    properties: {
      ...Object.fromEntries(
        Object.entries(SYSTEM_FIELDS).map(([key, format]) => [
          key,
          { type: 'string', ...(format !== 'string' && { format }) },
        ]),
      ),
      user: { type: ['string', 'null'] },
      workspace: { type: ['string', 'null'] },
      metadata: properties,
      ...(own as Schema),
    },
  }
}

/** Returns the schema of the properties of an entity. */
export const objectSchema = (fields: DescribedField[], isRequired: (field: DescribedField) => boolean): Schema => ({
  type: 'object',
  required: fields.filter(isRequired).map(({ key }) => key),
  properties: withDistinctGoNames(Object.fromEntries(fields.map((field) => [field.key, field.described]))),
})

/** Returns the schema of an input, in which fields that are not required may be null, which removes them. */
export function inputSchema(fields: DescribedField[], isRequired: (field: DescribedField) => boolean): Schema {
  const { properties, ...rest } = objectSchema(fields, isRequired)
  const own = Object.fromEntries(
    fields.map((field) => {
      const schema = (properties as Record<string, Schema>)[field.key] ?? {}
      return [field.key, field.required ? schema : toNullable(schema)]
    }),
  )
  const identifier = { type: ['string', 'null'], description: 'generated if omitted' }
  return { ...rest, properties: { identifier, ...own } }
}

function toNullable({ type, $ref, ...schema }: Schema): Schema {
  if ($ref !== undefined) return { anyOf: [{ $ref }, { type: 'null' }], ...schema }
  return { ...schema, ...(type !== undefined && { type: [...[type].flat(), 'null'] }) }
}
