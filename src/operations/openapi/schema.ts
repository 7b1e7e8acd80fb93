/** A JSON Schema (2020-12), or a reference to one. */
export type Schema = { [word: string]: unknown }

/**
 * Returns a shape as JSON Schema 2020-12, which OpenAPI 3.1 uses. Where a shape accepts more than callers should rely
 * on, such as a number as text in a query, its `x-schema` is used instead.
 */
export const toJsonSchema = (shape: object): Schema => simplify(JSON.parse(JSON.stringify(shape)))

function simplify(schema: Schema): Schema {
  const { nullable: _, 'x-schema': override, ...rest } = mapParts(schema, (part) => simplify(part))
  // Elysia closes shapes when a route is first used, so only the shapes' own values may count.
  if (rest.additionalProperties === false) delete rest.additionalProperties
  if (isSchema(override)) return applyOverride(rest, override)
  if (rest.type === 'number' && rest.multipleOf === 1) {
    const { multipleOf: _, ...integer } = rest
    return { ...integer, type: 'integer' }
  }
  const { patternProperties, ...record } = rest
  if (isSchema(patternProperties) && '^(.*)$' in patternProperties)
    return { ...record, additionalProperties: patternProperties['^(.*)$'] }
  return Array.isArray(rest.anyOf) ? toEnum(simplifyUnion(rest)) : rest
}

/**
 * Makes a union of unions one union, and texts of which one alternative is empty one text: what may also be empty has no
 * format, pattern or shortest length.
 */
function simplifyUnion({ anyOf, ...schema }: Schema): Schema {
  const choices = (anyOf as Schema[]).flatMap((one) =>
    Array.isArray(one.anyOf) && Object.keys(one).length === 1 ? (one.anyOf as Schema[]) : [one],
  )
  const others = choices.filter((one) => one.const !== '')
  if (others.length === choices.length) return { anyOf: choices, ...schema }
  const orEmpty = others.map((one) => {
    const { format: _, pattern: __, minLength: ___, ...rest } = one
    return one.type === 'string' && !('const' in one) && !('enum' in one) ? rest : undefined
  })
  if (!orEmpty.some(Boolean)) return { anyOf: choices, ...schema }
  const merged = others.map((one, index) => orEmpty[index] ?? one)
  return merged.length === 1 ? { ...merged[0], ...schema } : { anyOf: merged, ...schema }
}

function applyOverride(schema: Schema, { anyOf, ...override }: Schema): Schema {
  const isWhole =
    !(anyOf || Object.keys(override).length) ||
    'type' in override ||
    (Array.isArray(anyOf) && anyOf.every((one) => 'type' in one || 'anyOf' in one))
  if (isWhole)
    return {
      ...(schema.description ? { description: schema.description } : {}),
      ...simplify({ ...(anyOf ? { anyOf } : {}), ...override }),
    }
  if (!Array.isArray(anyOf)) return { ...schema, ...override }
  // Complete alternatives, because code generators ignore those that only list required properties.
  const required = [schema.required, override.required].flatMap((names) => (Array.isArray(names) ? names : []))
  return { anyOf: anyOf.map((one) => ({ ...schema, ...override, ...one, required: [...required, ...one.required] })) }
}

/** Turns a union of constants of one type into an `enum`. */
function toEnum({ anyOf, ...schema }: Schema): Schema {
  const choices = (anyOf as Schema[]).flatMap((one) => (one.enum && one.type ? toConstants(one) : [one]))
  const types = new Set(choices.map(({ type }) => type))
  if (types.size !== 1 || !choices.every((one) => 'const' in one)) return { anyOf, ...schema }
  return { type: choices[0]?.type, enum: [...new Set(choices.map((one) => one.const))], ...schema }
}

const toConstants = ({ type, enum: values }: Schema) => (values as unknown[]).map((value) => ({ const: value, type }))

/** Turns a union with null into a type and null, where both mean the same. */
export function mergeNullType(schema: Schema): Schema {
  const { anyOf, ...rest } = mapParts(schema, (part) => mergeNullType(part))
  if (!Array.isArray(anyOf)) return rest
  const others = (anyOf as Schema[]).filter(({ type }) => type !== 'null')
  const [only] = others
  if (only && !Object.keys(only).length) return rest // any value, including null
  if (others.length !== 1 || anyOf.length !== 2 || typeof only?.type !== 'string') return { anyOf, ...rest }
  // Generators take null among the values of an enum for a text.
  if ('const' in only || 'enum' in only) return { anyOf, ...rest }
  return { ...only, ...rest, type: [only.type, 'null'] }
}

const SCHEMA_MAP_KEYWORDS = ['properties', 'patternProperties']
const SCHEMA_LIST_KEYWORDS = ['anyOf', 'allOf', 'oneOf', 'prefixItems']
const SINGLE_SCHEMA_KEYWORDS = ['items', 'additionalProperties', 'not']

/** Returns a schema whose parts are replaced by what `map` makes of them; it gets the keyword and the key of a part. */
export function mapParts(schema: Schema, map: (part: Schema, word: string, key: string | number) => Schema): Schema {
  const mapped = { ...schema }
  for (const [word, value] of Object.entries(schema)) {
    if (SCHEMA_MAP_KEYWORDS.includes(word) && isSchema(value))
      mapped[word] = Object.fromEntries(
        Object.entries(value).map(([name, part]) => [name, map(part as Schema, word, name)]),
      )
    else if (SCHEMA_LIST_KEYWORDS.includes(word) && Array.isArray(value))
      mapped[word] = value.map((part, index) => map(part, word, index))
    else if (SINGLE_SCHEMA_KEYWORDS.includes(word) && isSchema(value)) mapped[word] = map(value, word, 0)
  }
  return mapped
}

export const isSchema = (value: unknown): value is Schema =>
  value !== null && typeof value === 'object' && !Array.isArray(value)
