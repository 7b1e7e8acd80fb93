import { mapParts, type Schema } from './schema'

const KEYWORDS_BY_TYPE: Record<string, string[]> = {
  string: ['minLength', 'maxLength', 'pattern', 'format', 'contentEncoding', 'contentMediaType'],
  number: ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
  array: ['items', 'prefixItems', 'minItems', 'maxItems', 'uniqueItems', 'contains', 'minContains', 'maxContains'],
  object: [
    ...['properties', 'patternProperties', 'additionalProperties', 'propertyNames', 'required'],
    ...['minProperties', 'maxProperties', 'dependentRequired', 'dependentSchemas'],
  ],
  boolean: [],
  null: [],
}

/**
 * Returns a schema in which each part has one type, or one and null, because generators know no lists of types and no
 * enums of several types. A list of types becomes a union; what the types share stays beside it. A constant boolean becomes
 * any boolean, because generators for Java write no valid code for it.
 */
export function withSingleTypes(schema: Schema): Schema {
  const mapped = mapParts(schema, (part) => withSingleTypes(part))
  if (Array.isArray(mapped.enum)) return splitChoices(mapped, mapped.enum)
  if (typeof mapped.const === 'boolean') return toBoolean(mapped)
  const { type, anyOf } = mapped
  if (!Array.isArray(type)) return mapped
  if (type.length === 1) return { ...mapped, type: type[0] }
  if (anyOf || type.filter((name) => name !== 'null').length < 2) return mapped
  const typed = Object.values(KEYWORDS_BY_TYPE).flat()
  const shared = Object.entries(mapped).filter(([word]) => word !== 'type' && !typed.includes(word))
  const ownOf = (name: string) => KEYWORDS_BY_TYPE[name === 'integer' ? 'number' : name] ?? []
  return {
    ...Object.fromEntries(shared),
    anyOf: type.map((name) => ({
      type: name,
      ...Object.fromEntries(Object.entries(mapped).filter(([word]) => ownOf(name).includes(word))),
    })),
  }
}

const toBoolean = ({ const: _, ...schema }: Schema): Schema => ({ ...schema, type: 'boolean' })

/** Returns a schema of choices: an enum of texts or integers, constants, or a union of these. */
function splitChoices(schema: Schema, choices: unknown[]): Schema {
  const { enum: _, type: __, ...rest } = schema
  const byType = Map.groupBy(new Set(choices), typeOf)
  const parts = [...byType].flatMap(([type, values]): Schema[] => {
    if (type === 'null') return [{ type }]
    if (type === 'string' || type === 'integer') return [{ type, enum: values, ...variableNames(values) }]
    if (type === 'boolean') return [{ type }]
    return values.map((value) => ({ ...(type === 'number' && { type }), const: value }))
  })
  if (parts.length === 1) return { ...rest, ...parts[0] }
  return { ...rest, anyOf: parts }
}

function typeOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  return typeof value === 'number' && Number.isSafeInteger(value) ? 'integer' : typeof value
}

/**
 * Returns names for choices that are equal but for case and signs, or have no letter, because generators make names of
 * them. @see https://openapi-generator.tech/docs/templating/#enum
 */
function variableNames(values: unknown[]): Schema {
  const names = values.map((value, index) => {
    const word = `${value}`
      .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
      .replace(/[^A-Za-z0-9]+/g, '_')
      .replace(/^_|_$/g, '')
    return /^[A-Za-z]/.test(word) ? word.toUpperCase() : `VALUE_${word || index + 1}`
  })
  const isPlain = values.every(
    (value) => typeof value === 'number' || /^[a-z][a-z0-9]*([-_./][a-z0-9]+)*$/.test(`${value}`),
  )
  if (isPlain && new Set(names).size === names.length) return {}
  const unique = names.map((name, index) => (names.indexOf(name) === index ? name : `${name}_${index + 1}`))
  return { 'x-enum-varnames': unique }
}
