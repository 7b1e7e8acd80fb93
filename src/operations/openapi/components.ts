import { toAlternativeName, toItemName, toTypeName, withDistinctGoNames } from './part-names'
import { isSchema, mapParts, mergeNullType, type Schema, toJsonSchema } from './schema'
import { isNameable, namedShapes } from './schema-names'
import { withSingleTypes } from './single-types'

/** The named schemas of a document, and the references to them. */
export class Components {
  /** The referenced schemas by name. */
  readonly schemas: Record<string, Schema> = {}
  private readonly cache = new Map<object, Schema>()
  private readonly definedKeys = new Map<string, string>()
  private readonly namedSchemas: NamedSchemas

  /** Where `isTaken` is given, the schemas are added to a document that has these names, and equal shapes stay apart. */
  constructor(private readonly isTaken?: (name: string) => boolean) {
    this.namedSchemas = isTaken ? new Map() : getNamedSchemas()
  }

  /**
   * Returns the schema of a shape, with references to named schemas. Objects and unions within it are named after where
   * they are, `name` being the name of the whole, because generators give parts without a name one that they cannot use.
   */
  schemaFor = (shape: object, name: string): Schema => {
    const referenced = this.cache.get(shape) ?? this.nameParts(toJsonSchema(shape), name)
    this.cache.set(shape, referenced)
    return referenced
  }

  /** Returns the schema of a form, whose own parts stay in their place, for generators make one of files and values. */
  formFor = (shape: object, name: string): Schema => this.resolveParts(toJsonSchema(shape), name)

  /** Returns a schema with references to its objects and unions. */
  nameParts = (schema: Schema, name: string): Schema =>
    mergeNullType(this.withReferences(withSingleTypes(schema), name))

  /** Returns a schema as a reference to a component of this name, or of the name of an equal shape. */
  define(schema: Schema, name: string): Schema {
    const key = identityKey({ ...schema, title: undefined })
    if (this.definedKeys.get(name) === key) return toReference(name)
    const free = this.freeName(name)
    this.definedKeys.set(free, key)
    this.schemas[free] = {} // for schemas that contain themselves
    // Some generators take the title for the name, whatever else has the same one.
    const { 'x-name': _, title, ...named } = schema
    const described = title && !named.description ? { description: title, ...named } : named
    this.schemas[free] = this.resolveParts(described, free)
    return toReference(free)
  }

  private withReferences(schema: Schema, name: string): Schema {
    const match = isNameable(schema) ? this.namedSchemas.get(identityKey(schema)) : undefined
    if (!match && needsName(schema)) return this.defineUnlessNull(schema, name)
    if (!match) return this.mapNamedParts(schema, name)
    if (!(match.name in this.schemas)) {
      this.schemas[match.name] = {}
      this.schemas[match.name] = this.resolveParts(match.schema, match.name)
    }
    const { description } = schema
    return toReference(match.name, description !== match.schema.description ? description : undefined)
  }

  /** What may also be null is a reference or null, so that what is not null has a name. */
  private defineUnlessNull({ anyOf, ...schema }: Schema, name: string): Schema {
    if (!isListWithNull(anyOf)) return this.define({ ...(anyOf ? { anyOf } : {}), ...schema }, name)
    const others = (anyOf as Schema[]).filter(({ type }) => type !== 'null')
    const { description, ...rest } = schema
    const reference = this.withReferences({ anyOf: others, ...rest }, name)
    return { anyOf: [reference, { type: 'null' }], ...(description ? { description } : {}) }
  }

  private resolveParts = (schema: Schema, name: string) => mergeNullType(this.mapNamedParts(schema, name))

  private mapNamedParts(whole: Schema, name: string): Schema {
    const schema = { ...whole }
    if (isSchema(whole.properties)) schema.properties = withDistinctGoNames(whole.properties as Record<string, Schema>)
    const isNullable = isListWithNull(schema.anyOf)
    return mapParts(schema, (part, word, key) => {
      const ownName = partName(name, schema, word, key)
      const isNullableEnum = isNullable && word === 'anyOf' && Array.isArray(part.enum)
      const referenced = this.withReferences(part, ownName)
      return isNullableEnum && !referencedName(referenced) ? this.define(part, ownName) : referenced
    })
  }

  private freeName(name: string): string {
    const isTaken =
      this.isTaken?.(name) || name in this.schemas || [...this.namedSchemas.values()].some((one) => one.name === name)
    return isTaken ? this.freeName(`${name}Part`) : name
  }
}

function partName(name: string, schema: Schema, word: string, key: string | number) {
  if (word === 'properties') return `${name}${toTypeName(`${key}`)}`
  if (word === 'items' || word === 'prefixItems') return toItemName(name)
  if (word === 'anyOf' || word === 'oneOf')
    return alternativesOf(schema).length > 1 ? toAlternativeName(name, schema[word] as Schema[], Number(key)) : name
  return `${name}Value`
}

const isListWithNull = (alternatives: unknown) =>
  Array.isArray(alternatives) && alternatives.some(({ type }) => type === 'null')

const alternativesOf = ({ anyOf, oneOf }: Schema): Schema[] =>
  ((anyOf ?? oneOf ?? []) as Schema[]).filter(({ type }) => type !== 'null')

/** Tells whether a schema is one for which generators make a type: an object with properties, or a union. */
const needsName = (schema: Schema) =>
  Object.keys((schema.properties ?? {}) as object).length > 0 || alternativesOf(schema).length > 1

const toReference = (name: string, description?: unknown): Schema => ({
  $ref: `#/components/schemas/${name}`,
  ...(description ? { description } : {}),
})

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
    const schema = withSingleTypes(toJsonSchema(shape))
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
