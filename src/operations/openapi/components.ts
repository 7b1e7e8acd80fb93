import { isSchema, mapParts, mergeNullType, type Schema, toJsonSchema } from './schema'
import { isNameable, namedShapes } from './schema-names'

/** The named schemas of a document, and the references to them. */
export class Components {
  /** The referenced schemas by name. */
  readonly schemas: Record<string, Schema> = {}
  private readonly cache = new Map<object, Schema>()
  private readonly namedSchemas = getNamedSchemas()

  /** Returns the schema of a shape, with references to named schemas. */
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

/** Returns the named schemas by the values that they allow. */
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

/**
 * Returns a text that is equal for schemas with the same values, whatever their descriptions. `additionalProperties:
 * true` is the default, so it is left out.
 */
function identityKey({ description: _, additionalProperties, ...schema }: Schema): string {
  return JSON.stringify(additionalProperties === true ? schema : { ...schema, additionalProperties })
}

/** Returns the name of the referenced schema, or undefined when it is no reference. */
export const referencedName = (schema: unknown): string | undefined =>
  isSchema(schema) && typeof schema.$ref === 'string' ? schema.$ref.split('/').at(-1) : undefined
