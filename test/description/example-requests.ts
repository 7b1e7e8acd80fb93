import { standIns } from '../../src/operations/openapi/examples'
import type { RouteRequest } from '../accounts/access/tenant-fixture'

type Parameter = { name: string; in: string; required: boolean; example?: unknown }
type Content = Record<string, { schema?: object; example?: unknown }>
export type DescribedOperation = {
  operationId: string
  summary: string
  parameters?: Parameter[]
  requestBody?: { required: boolean; content: Content }
  responses: Record<string, { $ref?: string; description: string; content?: Content }>
}

/** Tells whether an example only stands for a value of the reader’s tenant: an id, a token or a code. */
export const isStandIn = (value: unknown) =>
  typeof value === 'string' && (standIns.includes(value) || value.includes('…'))

/** Returns the example with the values of `own` in the place of what only stands for them. */
export function fillExample(example: unknown, own: unknown, path = ''): unknown {
  if (isStandIn(example)) {
    if (own === undefined) throw new Error(`route-requests.ts has no ${path} for this route.`)
    return own
  }
  const part = (key: string | number) => (own as Record<string, unknown> | undefined)?.[key]
  if (Array.isArray(example)) return example.map((item, index) => fillExample(item, part(index), `${path}/${index}`))
  if (typeof example !== 'object' || example === null) return example
  return Object.fromEntries(
    Object.entries(example).map(([key, value]) => [key, fillExample(value, part(key), `${path}/${key}`)]),
  )
}

/** The optional parameters of an operation whose example can be sent as it is. */
export const optionalParameters = ({ parameters = [] }: DescribedOperation) =>
  parameters.filter(
    (one) => one.in === 'query' && !one.required && one.example !== undefined && !isStandIn(one.example),
  )

/**
 * Returns the example request of an operation, with the required parameters and this optional one. `own` has what only
 * stands for a value of the tenant, and content that is not JSON.
 */
export function exampleRequest(operation: DescribedOperation, own: RouteRequest, optional?: Parameter): RouteRequest {
  const { parameters = [], requestBody } = operation
  const query = new URLSearchParams()
  for (const { name, example } of parameters.filter((one) => one.in === 'query' && one.required))
    query.set(name, `${isStandIn(example) ? new URLSearchParams(own.query).get(name) : example}`)
  if (optional) query.set(optional.name, `${optional.example}`)
  const path: Record<string, string> = {}
  for (const { name, example } of parameters.filter((one) => one.in === 'path'))
    path[name] = own.path?.[name] ?? `${example}`
  const media = requestBody?.content['application/json']
  const headers = own.headers && { headers: own.headers }
  if (media?.example !== undefined)
    return { path, query: `${query}`, body: fillExample(media.example, own.body), ...headers }
  const text = Object.values(requestBody?.content ?? {}).find(({ example }) => typeof example === 'string')?.example
  const raw = typeof text === 'string' ? text : own.raw
  return { path, query: `${query}`, ...(raw !== undefined && { raw }), ...headers }
}
