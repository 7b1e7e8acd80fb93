import { dialectOf, isSchemaObject, mapKeywords, type SchemaObject } from './keywords'

const MAX_SCHEMA_NODES = 500
// By these Ajv would store the schema, or apply another dialect.
const ID_KEYWORDS = ['$id', '$schema', '$anchor', '$dynamicAnchor', '$recursiveAnchor', '$vocabulary']
const UNSUPPORTED_KEYWORDS = ['$async', '$dynamicRef', '$recursiveRef']
const CONTAINERS = ['definitions', '$defs']

/**
 * Returns a schema with its references resolved inline, so that its size reflects the work of a validation.
 * @throws Error when it is then too large, refers to itself, or has `$async`, `$dynamicRef` or `$recursiveRef`
 */
export function dereferenceSchema(schema: SchemaObject): SchemaObject {
  const referencesReplace = dialectOf(schema) === 'draft-07'
  let nodes = 0
  const count = (value: unknown): unknown => {
    if (++nodes > MAX_SCHEMA_NODES)
      throw new Error(`with its references resolved it has more than ${MAX_SCHEMA_NODES} nodes.`)
    if (typeof value === 'object' && value !== null) for (const part of Object.values(value)) count(part)
    return value
  }
  /** `resource` is the schema that pointers are relative to: the nearest one with an `$id`. */
  const unfold = (node: SchemaObject, outer: SchemaObject): unknown => {
    count(null)
    const resource = isResource(node) ? node : outer
    for (const key of UNSUPPORTED_KEYWORDS) if (Object.hasOwn(node, key)) throw new Error(`"${key}" is not supported.`)
    const { $ref, ...rest } = Object.fromEntries(
      Object.entries(node).filter(([key]) => !ID_KEYWORDS.includes(key) && !CONTAINERS.includes(key)),
    )
    const siblings = $ref === undefined || !referencesReplace ? rest : {}
    const unfolded = Object.fromEntries(mapKeywords(siblings, (part) => unfold(part, resource), count))
    if ($ref === undefined) return unfolded
    const target = resolvePointer(resource, `${$ref}`)
    const referenced = isSchemaObject(target.node) ? unfold(target.node, target.resource) : target.node
    const { allOf = [], ...others }: { allOf?: unknown[] } = unfolded
    return { ...others, allOf: [...allOf, referenced] }
  }
  return unfold(schema, schema) as SchemaObject
}

/** A fragment alone, such as `#address`, names a place and begins no resource. */
const isResource = ({ $id }: SchemaObject) => typeof $id === 'string' && !$id.startsWith('#')

function resolvePointer(schema: SchemaObject, reference: string): { node: unknown; resource: SchemaObject } {
  if (!/^#(\/|$)/.test(reference))
    throw new Error(`"$ref" can only point to a part of the same schema, not to "${reference}".`)
  const steps = reference
    .split('/')
    .slice(1)
    .map((step) => decodeStep(step).replaceAll('~1', '/').replaceAll('~0', '~'))
  let node: unknown = schema
  let resource = schema
  for (const step of steps) {
    if (node === null || typeof node !== 'object' || !Object.hasOwn(node, step))
      throw new Error(`"${reference}" does not exist in the schema.`)
    node = (node as SchemaObject)[step]
    if (isSchemaObject(node) && isResource(node)) resource = node
  }
  return { node, resource }
}

function decodeStep(step: string): string {
  try {
    return decodeURIComponent(step)
  } catch {
    return step
  }
}
