import { type Components, referencedName } from './components'
import { errorResponse } from './error-responses'
import { examples } from './examples'
import { type Parameter, parametersOf, sharedHeadersOf } from './parameters'
import { toTypeName } from './part-names'
import { describeAnswer } from './response-descriptions'
import { isSchema, type Schema } from './schema'

/** A route of Elysia, with the hooks that are described. */
export type Route = { method: string; path: string; hooks: Hooks }
type Content = Record<string, { schema?: object; example?: unknown; examples?: object }>
type Response = { description: string; headers?: object; content?: Content }
type Detail = {
  'x-access'?: string
  operationId?: string
  summary?: string
  description?: string
  tags?: string[]
  hide?: boolean
  parameters?: Parameter[]
  requestBody?: { description?: string; required?: boolean; content: Content }
  responses?: Record<string, Response>
}
type Hooks = { detail?: Detail; params?: object; query?: object; headers?: object; body?: object; response?: object }

/** The parts of the document that its operations share. */
export type DocumentParts = { components: Components; responses: Schema; parameters: Schema }

const CREDENTIAL_SCHEMES = ['bearer', 'apiKey', 'session']
const CREDENTIALS = CREDENTIAL_SCHEMES.map((name) => ({ [name]: [] }))
const TENANT_REQUIREMENT = { tenant: [] }

const ACCESS_DESCRIPTIONS: Record<string, string> = {
  open: 'No credentials are needed.',
  anyone: 'Available to guests where permissions allow.',
  user: 'Requires a signed-in user.',
  oneself: 'Requires a signed-in user. Not available while impersonating.',
  editor: 'Requires the role admin or plugin.',
  privileged: 'Requires the role admin.',
  curator: 'Requires the role admin or editor.',
  teller: 'Requires the role admin, editor or plugin.',
  operator: 'Requires the operator token.',
  local: "Requires the operator token, except from the server's own machine.",
}

/** Returns the OpenAPI operation of a route. @see https://spec.openapis.org/oas/v3.1.0#operation-object */
export function operationOf({ method, path, hooks }: Route, parts: DocumentParts) {
  const { detail = {}, body, response } = hooks
  const { 'x-access': access = 'open', operationId, summary, description, tags } = detail
  const declared = responsesOf(response, detail.responses)
  const typeName = toTypeName(operationId ?? `${method} ${path}`)
  const requestBody = requestBodyOf(body, detail.requestBody, `${typeName}Input`, parts)
  const ofTenant = path.startsWith('/api/')
  const route = { method, path, access, ofTenant, conditional: '412' in declared }
  const parameters = [
    ...parametersOf(path, hooks, detail.parameters ?? [], { name: typeName, id: operationId ?? '' }, parts),
    ...sharedHeadersOf(route, parts),
  ]
  const isList = parameters.some((parameter) => 'name' in parameter && ['page', '$page'].includes(`${parameter.name}`))
  const named = { operationId: operationId ?? '', summary: summary ?? '' }
  const statuses = [...Object.keys(declared), ...errorStatusesOf(route, !!requestBody, isJson(requestBody))]
  const responses = Object.fromEntries(
    [...new Set(statuses)]
      .sort()
      .map((status) => [
        status,
        toResponse(status, declared[status], { ...named, isList, name: `${typeName}Result` }, parts),
      ]),
  )
  return {
    operationId,
    summary,
    description: [description, ACCESS_DESCRIPTIONS[access]].filter(Boolean).join('\n\n'),
    tags,
    'x-access': access,
    security: securityOf(access, ofTenant),
    ...(parameters.length && { parameters }),
    ...(requestBody && { requestBody }),
    responses,
  }
}

function securityOf(access: string, ofTenant: boolean): object[] {
  if (access === 'local') return [{}, { operator: [] }]
  if (access === 'operator') return [{ operator: [] }]
  if (!ofTenant) return []
  if (access === 'open') return [{}, TENANT_REQUIREMENT]
  return [
    ...(access === 'anyone' ? [{}, TENANT_REQUIREMENT] : []),
    ...CREDENTIALS,
    ...CREDENTIALS.map((one) => ({ ...one, ...TENANT_REQUIREMENT })),
  ]
}

/** Returns the error statuses that follow from the kind of the route. */
function errorStatusesOf(
  { method, access, ofTenant }: { method: string; access: string; ofTenant: boolean },
  hasBody: boolean,
  isJsonBody: boolean,
) {
  const statuses = ['400', 'default'] // 400 at least for Accept-Version
  if (ofTenant) statuses.push('403', '404', '429', '503')
  if (access !== 'open') statuses.push('401')
  if (ofTenant && method === 'POST') statuses.push('409', '422')
  if (hasBody) statuses.push('413')
  if (isJsonBody) statuses.push('415')
  return statuses
}

const isJson = (requestBody?: { content: object }) => !!requestBody && 'application/json' in requestBody.content

/** Returns the responses that a route declares by its shapes, its detail, or both. */
function responsesOf(
  response: object | undefined,
  documented: Record<string, Response> = {},
): Record<string, Response> {
  const shapes: Record<string, object> = !response ? {} : isShape(response) ? { 200: response } : { ...response }
  const described = Object.entries(shapes).map(([status, schema]) => {
    const { description = '' } = schema as Schema
    return [
      status,
      { description: isProblem(schema) ? '' : `${description}`, content: { 'application/json': { schema } } },
    ]
  })
  return { ...Object.fromEntries(described), ...documented }
}

const isShape = (response: object) => !Object.keys(response).every((key) => /^\d{3}$/.test(key))
const isProblem = (schema: object) =>
  'properties' in schema && isSchema(schema.properties) && 'code' in schema.properties && 'message' in schema.properties

function toResponse(
  status: string,
  response: Response | undefined,
  { name, ...operation }: { name: string; operationId: string; summary: string; isList: boolean },
  { components, responses }: DocumentParts,
) {
  const shape = response?.content?.['application/json']?.schema
  const isError = status === 'default' || Number(status) >= 400
  if (isError) return errorResponse(components, responses, status, response?.description)
  const description =
    response?.description || (describeAnswer({ ...operation, status, schema: shape }) ?? operation.summary)
  const content = response?.content && contentOf(response.content, name, components)
  const headers = operation.isList && shape ? { headers: { ...LIST_HEADERS, ...response?.headers } } : {}
  return { ...response, description, ...headers, ...(content && { content }) }
}

const LIST_HEADERS = {
  Link: { $ref: '#/components/headers/Link' },
  'X-Total-Count': { $ref: '#/components/headers/TotalCount' },
}

/** Returns the description of the request body: its declared types, or JSON by default. */
function requestBodyOf(
  body: object | undefined,
  documented: Detail['requestBody'],
  name: string,
  { components }: DocumentParts,
) {
  if (documented)
    return {
      ...documented,
      required: documented.required ?? true,
      content: contentOf(documented.content, name, components),
    }
  if (!body) return
  return {
    required: !isOptional(body),
    content: contentOf({ 'application/json': { schema: withoutNull(body as Schema) } }, name, components),
  }
}

/** Tells whether a shape is optional, which TypeBox marks with a symbol. */
const isOptional = (shape: object) =>
  Object.getOwnPropertySymbols(shape).some(({ description }) => description === 'TypeBox.Optional')

/** A body that may be omitted may also be null, which no client needs to know. */
const withoutNull = (body: Schema): object =>
  Array.isArray(body.anyOf) ? (body.anyOf.find(({ type }) => isOptional(body) && type !== 'null') ?? body) : body

const contentOf = (content: Content, name: string, components: Components): Content =>
  Object.fromEntries(
    Object.entries(content).map(([type, { schema, ...media }]) => {
      const describe = type === 'multipart/form-data' ? components.formFor : components.schemaFor
      const described = schema && describe(schema, name)
      return [
        type,
        {
          ...(described && {
            schema: described,
            ...exampleOf(described, type === 'application/json' ? name : `${name} ${type}`),
          }),
          ...media,
        },
      ]
    }),
  )

/** Returns the example of what has this name, of its schema, or of a list or choice of one. */
function exampleOf(schema: Schema, name: string): { example?: unknown } {
  const choice = Array.isArray(schema.anyOf)
    ? schema.anyOf.map(referencedName).find((one) => one && one in examples)
    : ''
  const known = [name, referencedName(schema), choice].find((one) => one && one in examples)
  if (known) return { example: examples[known] }
  const itemName = referencedName(schema.items)
  return itemName && itemName in examples ? { example: [examples[itemName]] } : {}
}
