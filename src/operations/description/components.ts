import { isNameable, namedShapes } from './names'
import { isSchema, mapParts, type Schema, schemaOf, withNullType } from './schema'

/** The schemas that a document names, and where it refers to them. */
export class Components {
  /** Those that were referred to, by name. */
  readonly schemas: Record<string, Schema> = {}
  private readonly described = new Map<object, Schema>()
  private readonly named = new Map<string, { name: string; schema: Schema }>()

  constructor(shapes: [name: string, shape: object][] = namedShapes) {
    const names = new Set<string>()
    for (const [name, shape] of shapes) {
      const schema = schemaOf(shape)
      const text = identity(schema)
      if (names.has(name) || this.named.has(text)) continue
      names.add(name)
      this.named.set(text, { name, schema })
    }
  }

  /** The schema of a shape, with references to the schemas that have names. */
  of(shape: object): Schema {
    const known = this.described.get(shape) ?? withNullType(this.referring(schemaOf(shape)))
    this.described.set(shape, known)
    return known
  }

  /** Adds a schema under a name of its own, and refers to it. */
  add(name: string, schema: Schema): Schema {
    this.schemas[name] = schema
    return { $ref: `#/components/schemas/${name}` }
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

/** Equal for schemas that name the same, whatever they are said to be for. What is not closed allows more anyway. */
function identity({ description: _, additionalProperties, ...schema }: Schema): string {
  return JSON.stringify(additionalProperties === true ? schema : { ...schema, additionalProperties })
}

/** The name that a schema is referred to by. */
export const nameIn = (schema: unknown): string | undefined =>
  isSchema(schema) && typeof schema.$ref === 'string' ? schema.$ref.split('/').at(-1) : undefined
