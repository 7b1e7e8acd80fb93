import { isSchema, mapParts, mergeNullType, type Schema, toJsonSchema } from './schema'
import { isNameable, namedShapes } from './schema-names'

/** The schemas that a document names, and where it refers to them. */
export class Components {
  /** Those that were referred to, by name. */
  readonly schemas: Record<string, Schema> = {}
  private readonly cache = new Map<object, Schema>()
  private readonly namedSchemas = getNamedSchemas()

  /** The schema of a shape, with references to the schemas that have names. */
  schemaFor(shape: object): Schema {
    const referenced = this.cache.get(shape) ?? mergeNullType(this.withReferences(toJsonSchema(shape)))
    this.cache.set(shape, referenced)
    return referenced
  }

  private withReferences(schema: Schema): Schema {
    const match = isNameable(schema) ? this.namedSchemas.get(identityKey(schema)) : undefined
    if (!match) return mapParts(schema, (part) => this.withReferences(part))
    const { name, schema: namedSchema } = match
    if (!(name in this.schemas)) {
      this.schemas[name] = {} // for schemas that contain themselves
      this.schemas[name] = mergeNullType(mapParts(namedSchema, (part) => this.withReferences(part)))
    }
    const $ref = `#/components/schemas/${name}`
    return schema.description && schema.description !== namedSchema.description
      ? { $ref, description: schema.description }
      : { $ref }
  }
}

type NamedSchemas = Map<string, { name: string; schema: Schema }>
let cachedNamedSchemas: NamedSchemas | undefined
const getNamedSchemas = (): NamedSchemas => {
  cachedNamedSchemas ??= indexNamedShapes()
  return cachedNamedSchemas
}

/** The named schemas, by what they allow. */
function indexNamedShapes(): NamedSchemas {
  const named: NamedSchemas = new Map()
  const names = new Set<string>()
  for (const [name, shape] of namedShapes) {
    const schema = toJsonSchema(shape)
    const text = identityKey(schema)
    if (names.has(name) || named.has(text)) continue
    names.add(name)
    named.set(text, { name, schema })
  }
  return named
}

/** Equal for schemas that name the same, whatever they are said to be for. What is not closed allows more anyway. */
function identityKey({ description: _, additionalProperties, ...schema }: Schema): string {
  return JSON.stringify(additionalProperties === true ? schema : { ...schema, additionalProperties })
}

/** The name that a schema is referred to by. */
export const referencedName = (schema: unknown): string | undefined =>
  isSchema(schema) && typeof schema.$ref === 'string' ? schema.$ref.split('/').at(-1) : undefined
