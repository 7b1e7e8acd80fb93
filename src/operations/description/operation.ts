import { type Components, nameIn } from './components'
import { examples } from './examples'
import { headersOf, type Parameter, parametersOf } from './parameters'
import { problem } from './problems'
import { isSchema, type Schema } from './schema'

/** A route as Elysia knows it, with what of its hooks is described. */
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

/** What an operation of the document is made of: the same for all operations. */
export type Parts = { components: Components; responses: Schema; parameters: Schema }

const schemes = ['bearer', 'apiKey', 'session']
const credentials = schemes.map((name) => ({ [name]: [] }))
const tenant = { tenant: [] }

const allowed: Record<string, string> = {
  open: 'No credentials are needed.',
  anyone: 'Guests may call it where the rules allow that.',
  user: 'Needs a signed-in user.',
  oneself: 'Needs a signed-in user, and is not available while impersonating.',
  editor: 'Needs the role admin or plugin.',
  privileged: 'Needs the role admin.',
  curator: 'Needs the role admin or editor.',
  teller: 'Needs the role admin, editor or plugin.',
  operator: 'Needs the token of the operator.',
}

/** An operation of OpenAPI, from what its route checks and answers. @see https://spec.openapis.org/oas/v3.1.0#operation-object */
export function operationOf({ method, path, hooks }: Route, parts: Parts) {
  const { detail = {}, body, response } = hooks
  const { 'x-access': access = 'open', operationId, summary, description, tags } = detail
  const declared = responsesOf(response, detail.responses)
  const requestBody = bodyOf(body, detail.requestBody, parts)
  const ofTenant = path.startsWith('/api/')
  const route = { method, path, access, ofTenant, conditional: '412' in declared }
  const parameters = [...parametersOf(path, hooks, detail.parameters ?? [], parts), ...headersOf(route, parts)]
  const isList = parameters.some((one) => 'name' in one && /^\$?(page)$/.test(`${one.name}`))
  const statuses = [...Object.keys(declared), ...errorsOf(route, !!requestBody, isJson(requestBody))]
  const responses = Object.fromEntries(
    [...new Set(statuses)].sort().map((status) => [status, answer(status, declared[status], isList, parts)]),
  )
  return {
    operationId,
    summary,
    description: [description, allowed[access]].filter(Boolean).join('\n\n'),
    tags,
    'x-access': access,
    security: securityOf(access, ofTenant),
    ...(parameters.length && { parameters }),
    ...(requestBody && { requestBody }),
    responses,
  }
}

function securityOf(access: string, ofTenant: boolean): object[] {
  if (access === 'operator') return [{ operator: [] }]
  if (!ofTenant) return []
  if (access === 'open') return [{}, tenant]
  return [
    ...(access === 'anyone' ? [{}, tenant] : []),
    ...credentials,
    ...credentials.map((one) => ({ ...one, ...tenant })),
  ]
}

/** The statuses of errors that follow from what a route is. */
function errorsOf(
  { method, access, ofTenant }: { method: string; access: string; ofTenant: boolean },
  hasBody: boolean,
  isRead: boolean,
) {
  const statuses = ['400', 'default'] // at least for Accept-Version
  if (ofTenant) statuses.push('403', '404', '503')
  if (access !== 'open') statuses.push('401')
  if (ofTenant && method === 'POST') statuses.push('409', '422')
  if (hasBody) statuses.push('413')
  if (isRead) statuses.push('415')
  return statuses
}

const isJson = (requestBody?: { content: object }) => !!requestBody && 'application/json' in requestBody.content

/** What a route says of its answers, by shape or in its detail, or both. */
function responsesOf(response: object | undefined, told: Record<string, Response> = {}): Record<string, Response> {
  const shapes: Record<string, object> = !response ? {} : isShape(response) ? { 200: response } : { ...response }
  const described = Object.entries(shapes).map(([status, schema]) => {
    const { description = '' } = schema as Schema
    return [
      status,
      { description: isProblem(schema) ? '' : `${description}`, content: { 'application/json': { schema } } },
    ]
  })
  return { ...Object.fromEntries(described), ...told }
}

const isShape = (response: object) => !Object.keys(response).every((key) => /^\d{3}$/.test(key))
const isProblem = (schema: object) =>
  'properties' in schema && isSchema(schema.properties) && 'code' in schema.properties && 'message' in schema.properties
const ok: Record<string, string> = { 200: 'OK', 201: 'Created', 202: 'Accepted', 302: 'Redirect' }

function answer(status: string, response: Response | undefined, isList: boolean, { components, responses }: Parts) {
  const shape = response?.content?.['application/json']?.schema
  const isError = status === 'default' || Number(status) >= 400
  if (isError) return problem(components, responses, status, response?.description)
  const description = response?.description || (ok[status] ?? 'OK')
  const content = response?.content && contentOf(response.content, components)
  const headers = isList && shape ? { headers: listHeaders } : {}
  return { ...response, description, ...headers, ...(content && { content }) }
}

const listHeaders = {
  Link: { $ref: '#/components/headers/Link' },
  'X-Total-Count': { $ref: '#/components/headers/TotalCount' },
}

/** Bodies of all types that a route reads; JSON, unless it says otherwise. */
function bodyOf(body: object | undefined, told: Detail['requestBody'], { components }: Parts) {
  if (told) return { ...told, required: told.required ?? true, content: contentOf(told.content, components) }
  if (!body) return
  return { required: !isOptional(body), content: contentOf({ 'application/json': { schema: body } }, components) }
}

/** TypeBox marks what may be left out by a symbol. */
const isOptional = (shape: object) =>
  Object.getOwnPropertySymbols(shape).some(({ description }) => description === 'TypeBox.Optional')

const contentOf = (content: Content, components: Components): Content =>
  Object.fromEntries(
    Object.entries(content).map(([type, { schema, ...media }]) => {
      const described = schema && components.of(schema)
      return [type, { ...(described && { schema: described, ...exampleOf(described) }), ...media }]
    }),
  )

/** The example of a named schema, or of a list of such. */
function exampleOf(schema: Schema): { example?: unknown } {
  const [one, each] = [nameIn(schema), nameIn(schema.items)]
  if (one && one in examples) return { example: examples[one] }
  if (each && each in examples) return { example: [examples[each]] }
  const choice = Array.isArray(schema.anyOf) && nameIn(schema.anyOf.find((part) => nameIn(part)))
  return choice && choice in examples ? { example: examples[choice] } : {}
}
