import { exampleOfParameter } from './examples/parameter-examples'
import type { DocumentParts } from './operation'
import { toTypeName } from './part-names'
import { isSchema, type Schema } from './schema'

export type Parameter = {
  name: string
  in: string
  required?: boolean
  description?: string
  schema?: object
  example?: unknown
}

const PATH_PARAMETER_DESCRIPTIONS: Record<string, string> = {
  id: 'The `_id`',
  key: 'The key',
  identifier: 'The identifier, or the `_id`',
}

/** What parameters of a query mean wherever their shape does not say it. */
const QUERY_PARAMETER_DESCRIPTIONS: Record<string, string> = {
  active: 'true: only active ones; false: only inactive ones',
  contentType: 'Content format: editor blocks or HTML',
  dryRun: 'Reports the effects on entities without changing anything',
  exact: 'Match the whole username instead of a part of it',
  force: 'Also deletes the entities of the blueprint',
  groupBy: 'Grouping key',
  isActive: 'true: only active ones; false: only inactive ones',
  level: 'Minimum log level',
  name: 'File name',
  operation: 'Only this operation; default: all',
  period: 'Period up to now',
  raw: 'Returns the content as written; for callers who can write blocks',
  rt: 'The token passed to the return URL',
  spa: 'Serve `index.html` for unknown page paths',
  state: 'Only those in this state',
  subscriptionId: 'The `_id` of a subscription',
  threadId: 'The `_id` of a thread',
}

/** Returns the parameters of a route: those of its shapes, and other declared ones. */
export function parametersOf(
  path: string,
  { params, query, headers }: { params?: object; query?: object; headers?: object },
  declared: Parameter[],
  { name: operation, id: operationId }: { name: string; id: string },
  { components }: DocumentParts,
): (Parameter | Schema)[] {
  const pathParameters = [...path.matchAll(/:(\w+)/g)].map(([, name = '']) => ({
    ...{ name, in: 'path', required: true, description: PATH_PARAMETER_DESCRIPTIONS[name] ?? `The \`${name}\`` },
    schema: { type: 'string' },
    ...describeParameter(params, name),
  }))
  const parametersIn = (place: string, shape?: object): Parameter[] =>
    Object.entries(propertiesOf(shape)).flatMap(([name, property]) =>
      isAlias(property)
        ? []
        : [
            {
              ...{ name, in: place, required: requiredOf(shape).includes(name) || isDemanded(property) },
              ...(Object.hasOwn(QUERY_PARAMETER_DESCRIPTIONS, name) && {
                description: QUERY_PARAMETER_DESCRIPTIONS[name]!,
              }),
              ...describeParameter(shape, name),
            },
          ],
    )
  const ownParameters = [...pathParameters, ...parametersIn('query', query), ...parametersIn('header', headers)]
  const others = declared.filter(
    (one) => !ownParameters.some(({ name, in: place }) => name === one.name && place === one.in),
  )
  return [...ownParameters, ...others.map(describeDeclared)].map((parameter) => {
    const own = 'example' in parameter ? parameter.example : undefined
    const example = own ?? exampleOfParameter(parameter, operationId, path)
    return example === undefined ? parameter : { ...parameter, example }
  })

  function describeDeclared({ schema = { type: 'string' }, ...parameter }: Parameter) {
    return { ...parameter, schema: components.schemaFor(schema, `${operation}${toTypeName(parameter.name)}`) }
  }
  function describeParameter(shape: object | undefined, name: string) {
    const property = propertiesOf(shape)[name]
    if (!property) return {}
    const {
      description,
      'x-required': _,
      ...schema
    } = components.schemaFor(property, `${operation}${toTypeName(name)}`)
    return { ...(description ? { description: `${description}` } : {}), schema: simplifyTextChoices(schema) }
  }
}

/** A parameter that its verb asks for, with a message of its own. */
const isDemanded = (property: object) => 'x-required' in property

/** Two names of one parameter are one name in generated code, so only the first is described. */
const isAlias = (property: object) => 'x-alias-of' in property

const propertiesOf = (shape: object | undefined): Record<string, object> =>
  shape && 'properties' in shape && isSchema(shape.properties) ? (shape.properties as Record<string, object>) : {}
const requiredOf = (shape: object | undefined): unknown[] =>
  shape && 'required' in shape && Array.isArray(shape.required) ? shape.required : []

/**
 * Leaves out the empty text and `undefined`, which are accepted only because some clients send them for missing values.
 */
function simplifyTextChoices({ enum: choices, 'x-enum-varnames': names, ...schema }: Schema): Schema {
  if (!Array.isArray(choices)) return schema
  const isText = (choice: unknown) => choice !== '' && choice !== 'undefined'
  const texts = choices.filter(isText)
  const kept = Array.isArray(names) ? names.filter((_, index) => isText(choices[index])) : []
  return texts.includes('true') && texts.every((word) => ['true', 'false', '1', '0'].includes(word))
    ? { type: 'boolean' }
    : { ...schema, enum: texts, ...(kept.length && { 'x-enum-varnames': kept }) }
}

const toHeaderParameter = (name: string, description: string, schema: object = { type: 'string' }) => ({
  ...{ name, in: 'header', required: false, description, schema },
})

const SHARED_HEADERS: Record<string, object> = {
  AcceptVersion: toHeaderParameter('Accept-Version', 'The version of the API', { type: 'string', enum: ['v1'] }),
  IdempotencyKey: toHeaderParameter(
    'Idempotency-Key',
    'A unique key for this request. Within 24 hours, the same key and body return the first response again.',
    { type: 'string', minLength: 1, maxLength: 255 },
  ),
  IfMatch: toHeaderParameter(
    'If-Match',
    'The `ETag` of the version that you read. The write fails with 412 if the resource has changed since.',
  ),
  ImpersonateUser: toHeaderParameter('x-impersonate-user', 'Admins only: ID of the user to act as'),
  ImpersonateWorkspace: toHeaderParameter(
    'x-impersonate-workspace',
    'With `x-impersonate-user`: ID of the workspace to act in',
  ),
}

/** Returns references to the headers of a route that many routes share, and adds them to `parameters`. */
export function sharedHeadersOf(
  {
    method,
    access,
    ofTenant,
    conditional,
  }: { method: string; access: string; ofTenant: boolean; conditional: boolean },
  { parameters }: DocumentParts,
): Schema[] {
  const names: string[] = []
  if (conditional) names.push('IfMatch')
  if (ofTenant && method === 'POST') names.push('IdempotencyKey')
  if (ofTenant && !['open', 'oneself'].includes(access)) names.push('ImpersonateUser', 'ImpersonateWorkspace')
  if (ofTenant) names.push('AcceptVersion')
  return names.map((name) => {
    parameters[name] = SHARED_HEADERS[name]
    return { $ref: `#/components/parameters/${name}` }
  })
}
