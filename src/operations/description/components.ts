import { isNameable, namedShapes } from './names'
import { isSchema, mapParts, type Schema, schemaOf, withNullType } from './schema'

/** The schemas that a document names, and where it refers to them. */
export class Components {
  /** Those that were referred to, by name. */
  readonly schemas: Record<string, Schema> = {}
  private readonly described = new Map<object, Schema>()
  private readonly named = namedSchemas()

  /** The schema of a shape, with references to the schemas that have names. */
  of(shape: object): Schema {
    const known = this.described.get(shape) ?? withNullType(this.referring(schemaOf(shape)))
    this.described.set(shape, known)
    return known
  }

  private referring(schema: Schema): Schema {
    const found = isNameable(schema) ? this.named.get(identity(schema)) : undefined
    if (!found) return mapParts(schema, (part) => this.referring(part))
    const { name, schema: named } = found
    if (!(name in this.schemas)) {
      this.schemas[name] = {} // for schemas that contain themselves
      this.schemas[name] = withNullType(mapParts(named, (part) => this.referring(part)))
    }
    const $ref = `#/components/schemas/${name}`
    return schema.description && schema.description !== named.description
      ? { $ref, description: schema.description }
      : { $ref }
  }
}

type Named = Map<string, { name: string; schema: Schema }>
let known: Named | undefined
const namedSchemas = (): Named => {
  known ??= byIdentity()
  return known
}

/** The named schemas, by what they allow. */
function byIdentity(): Named {
  const named: Named = new Map()
  const names = new Set<string>()
  for (const [name, shape] of namedShapes) {
    const schema = schemaOf(shape)
    const text = identity(schema)
    if (names.has(name) || named.has(text)) continue
    names.add(name)
    named.set(text, { name, schema })
  }
  return named
}

/** Equal for schemas that name the same, whatever they are said to be for. What is not closed allows more anyway. */
function identity({ description: _, additionalProperties, ...schema }: Schema): string {
  return JSON.stringify(additionalProperties === true ? schema : { ...schema, additionalProperties })
}

/** The name that a schema is referred to by. */
export const nameIn = (schema: unknown): string | undefined =>
  isSchema(schema) && typeof schema.$ref === 'string' ? schema.$ref.split('/').at(-1) : undefined
