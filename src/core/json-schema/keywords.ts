import { findNearestKey } from '../nearest-key'
import type { FieldError } from '../problem'

export type SchemaObject = Record<string, unknown>
export type Dialect = 'draft-07' | '2019-09' | '2020-12'

const DIALECTS: Record<string, Dialect> = {
  'json-schema.org/draft-07/schema': 'draft-07',
  'json-schema.org/draft/2019-09/schema': '2019-09',
  'json-schema.org/draft/2020-12/schema': '2020-12',
}

/** Returns the dialect that `$schema` names, 2020-12 when it is absent, or undefined for an unknown one. */
export function dialectOf({ $schema }: SchemaObject): Dialect | undefined {
  if ($schema === undefined) return '2020-12'
  const name = typeof $schema === 'string' ? $schema.replace(/^https?:\/\//, '').replace(/#$/, '') : ''
  return Object.hasOwn(DIALECTS, name) ? DIALECTS[name] : undefined
}

const words = (text: string) => text.split(' ')

/** Keywords whose values have schemas: one, a list of them, or some by their names. */
const PARTS = new Map<string, 'one' | 'list' | 'map'>([
  ...words('not if then else items additionalItems unevaluatedItems contains contentSchema').map(
    (key) => [key, 'one'] as const,
  ),
  ...words('additionalProperties unevaluatedProperties propertyNames').map((key) => [key, 'one'] as const),
  ...words('allOf anyOf oneOf prefixItems').map((key) => [key, 'list'] as const),
  ...words('properties patternProperties dependentSchemas dependencies $defs definitions').map(
    (key) => [key, 'map'] as const,
  ),
])

export const isSchemaObject = (value: unknown): value is SchemaObject =>
  value !== null && typeof value === 'object' && !Array.isArray(value)

/** Returns the keywords of a schema, with the schemas in their values mapped by `map`, and other values by `mapOther`. */
export function mapKeywords(
  schema: SchemaObject,
  map: (part: SchemaObject, path: string) => unknown,
  mapOther: (value: unknown) => unknown = (value) => value,
  path = '',
): [key: string, value: unknown][] {
  const mapPart = (part: unknown, at: string) => (isSchemaObject(part) ? map(part, at) : mapOther(part))
  return Object.entries(schema).map(([key, value]) => {
    const at = `${path}/${escapePointer(key)}`
    const kind = PARTS.get(key)
    if (kind && Array.isArray(value)) return [key, value.map((part, index) => mapPart(part, `${at}/${index}`))]
    if (kind === 'map' && isSchemaObject(value))
      return [
        key,
        Object.fromEntries(
          Object.entries(value).map(([name, part]) => [name, mapPart(part, `${at}/${escapePointer(name)}`)]),
        ),
      ]
    return [key, kind === 'one' ? mapPart(value, at) : mapOther(value)]
  })
}

const SHARED_KEYWORDS = [
  ...words('$schema $id $ref $comment $defs definitions type enum const format nullable'),
  ...words('title description default examples deprecated readOnly writeOnly contentMediaType contentEncoding'),
  ...words('multipleOf maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength pattern'),
  ...words('items maxItems minItems uniqueItems contains maxProperties minProperties required properties'),
  ...words('patternProperties additionalProperties propertyNames dependencies allOf anyOf oneOf not if then else'),
  // Annotations of OpenAPI.
  ...words('example externalDocs xml discriminator'),
]
const KEYWORDS_SINCE_2019 = [
  ...words('$anchor $vocabulary unevaluatedItems unevaluatedProperties dependentRequired dependentSchemas'),
  ...words('minContains maxContains contentSchema'),
]
const KEYWORDS: Record<Dialect, string[]> = {
  'draft-07': [...SHARED_KEYWORDS, 'additionalItems'],
  '2019-09': [...SHARED_KEYWORDS, ...KEYWORDS_SINCE_2019, 'additionalItems', '$recursiveRef', '$recursiveAnchor'],
  '2020-12': [...SHARED_KEYWORDS, ...KEYWORDS_SINCE_2019, 'prefixItems', '$dynamicRef', '$dynamicAnchor'],
}

/** Returns an error for each keyword that the dialect does not have. Names that begin with `x-` are free. */
export function listUnknownKeywords(schema: SchemaObject, dialect: Dialect): FieldError[] {
  const errors: FieldError[] = []
  const visit = (part: SchemaObject, path: string) => {
    for (const key of Object.keys(part)) {
      if (KEYWORDS[dialect].includes(key) || key.startsWith('x-')) continue
      const meant = findNearestKey(key, KEYWORDS[dialect])
      const message = `"${key.slice(0, 100)}" is not a keyword of JSON Schema ${dialect}.`
      errors.push({
        path: `${path}/${escapePointer(key)}`,
        message: meant === undefined ? `${message}${hintOf(key)}` : `${message} Did you mean \`${meant}\`?`,
      })
    }
    mapKeywords(part, visit, undefined, path)
  }
  visit(schema, '')
  return errors
}

/** Where a keyword of another dialect went. */
const hintOf = (key: string) => {
  const dialects = Object.entries(KEYWORDS).flatMap(([dialect, known]) => (known.includes(key) ? [dialect] : []))
  return dialects.length ? ` It belongs to ${dialects.join(' and ')}, which $schema can name.` : ''
}

const escapePointer = (key: string) => key.replaceAll('~', '~0').replaceAll('/', '~1')
