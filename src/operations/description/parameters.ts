import type { Parts } from './operation'
import { isSchema, type Schema } from './schema'

export type Parameter = { name: string; in: string; required?: boolean; description?: string; schema?: object }

const paths: Record<string, string> = { id: 'The `_id`', key: 'The key', identifier: 'The identifier, or the `_id`' }

/** The parameters of a route: those that its shapes check, and what else it says of any. */
export function parametersOf(
  path: string,
  { params, query, headers }: { params?: object; query?: object; headers?: object },
  told: Parameter[],
  { components }: Parts,
): (Parameter | Schema)[] {
  const ofPath = [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => ({
    ...{ name, in: 'path', required: true, description: paths[name] ?? `The \`${name}\`` },
    schema: { type: 'string' },
    ...part(params, name),
  }))
  const named = (place: string, shape?: object): Parameter[] =>
    Object.keys(propertiesOf(shape)).map((name) => ({
      ...{ name, in: place, required: requiredOf(shape).includes(name), ...part(shape, name) },
    }))
  const all = [...ofPath, ...named('query', query), ...named('header', headers)]
  const others = told.filter((one) => !all.some(({ name, in: place }) => name === one.name && place === one.in))
  return [...all, ...others]

  function part(shape: object | undefined, name: string) {
    const property = propertiesOf(shape)[name]
    if (!property) return {}
    const { description, ...schema } = components.of(property)
    return { ...(description ? { description: `${description}` } : {}), schema: asText(schema) }
  }
}

const propertiesOf = (shape: object | undefined): Record<string, object> =>
  shape && 'properties' in shape && isSchema(shape.properties) ? (shape.properties as Record<string, object>) : {}
const requiredOf = (shape: object | undefined): unknown[] =>
  shape && 'required' in shape && Array.isArray(shape.required) ? shape.required : []

/** Clients send what they lack as nothing, or as `undefined`; that is taken, but nobody has to know. */
function asText({ enum: choices, ...schema }: Schema): Schema {
  if (!Array.isArray(choices)) return schema
  const words = choices.filter((choice) => choice !== '' && choice !== 'undefined')
  return words.includes('true') && words.every((word) => ['true', 'false', '1', '0'].includes(word))
    ? { type: 'boolean' }
    : { ...schema, enum: words }
}

const header = (name: string, description: string, schema: object = { type: 'string' }) => ({
  ...{ name, in: 'header', required: false, description, schema },
})

const known: Record<string, object> = {
  AcceptVersion: header('Accept-Version', 'The version of the API', { type: 'string', enum: ['v1'] }),
  IdempotencyKey: header(
    'Idempotency-Key',
    'Your own key for this request. Within 24 hours the same key and body get the first answer again.',
    { type: 'string', minLength: 1, maxLength: 255 },
  ),
  IfMatch: header('If-Match', 'The `ETag` that was read: the write is refused with 412 if it has changed since.'),
  ImpersonateUser: header('x-impersonate-user', 'Admins only: the id of the user to act as'),
  ImpersonateWorkspace: header(
    'x-impersonate-workspace',
    'With `x-impersonate-user`: the id of the workspace to act in',
  ),
}

/** The headers that count for many routes, as references to their description. */
export function headersOf(
  {
    method,
    access,
    ofTenant,
    conditional,
  }: { method: string; access: string; ofTenant: boolean; conditional: boolean },
  { parameters }: Parts,
): Schema[] {
  const names: string[] = []
  if (conditional) names.push('IfMatch')
  if (ofTenant && method === 'POST') names.push('IdempotencyKey')
  if (ofTenant && !['open', 'oneself'].includes(access)) names.push('ImpersonateUser', 'ImpersonateWorkspace')
  if (ofTenant) names.push('AcceptVersion')
  return names.map((name) => {
    parameters[name] = known[name]
    return { $ref: `#/components/parameters/${name}` }
  })
}
