import { assertScope } from '../../accounts/permissions'
import { requireStorable } from '../../core/body'
import { badRequest } from '../../core/problem'
import * as entities from '../../entities/entities'
import * as pages from '../../entities/list'
import { linkOriginalRequest } from '../../tenancy/client-connection'
import type { CallContext, HostCall } from './host-api'

/** Returns the entities that match a query with the operators of the API: `{price: {$lt: 20}, $sort: '-created'}`. */
export const find: HostCall = async (context, blueprint, query) =>
  pages.list(requireScope(context, 'read'), requireName(blueprint), buildRequest(context, 'GET', query))

/** Returns one entity. @throws what `GET` at `/api/blueprints/:key/entities/:identifier` throws */
export const get: HostCall = async (context, blueprint, identifier, query) =>
  entities.get(
    requireScope(context, 'read'),
    requireName(blueprint),
    requireName(identifier),
    buildRequest(context, 'GET', query),
  )

/** Creates an entity and returns it. @throws what `POST` at `/api/blueprints/:key/entities` throws */
export const create: HostCall = async (context, blueprint, entity) =>
  entities.create(
    requireScope(context, 'write'),
    requireName(blueprint),
    requireStorable(entity),
    buildRequest(context, 'POST'),
  )

/** Changes the given fields of an entity and returns it. @throws what `PUT` throws */
export const update: HostCall = async (context, blueprint, identifier, changes) => {
  const ctx = requireScope(context, 'write')
  return entities.update(
    ctx,
    requireName(blueprint),
    requireName(identifier),
    requireStorable(changes),
    buildRequest(context, 'PUT'),
  )
}

/** Removes an entity. @throws what `DELETE` throws */
export const remove: HostCall = async (context, blueprint, identifier) =>
  entities.remove(
    requireScope(context, 'write'),
    requireName(blueprint),
    requireName(identifier),
    buildRequest(context, 'DELETE'),
  )

/** The scopes of an API token apply here as in the API. @throws 403 */
function requireScope({ ctx }: CallContext, mode: 'read' | 'write') {
  assertScope(ctx.actor, 'entities', mode)
  return ctx
}

function requireName(value: unknown): string {
  if (typeof value !== 'string' || !value || value.length > 1_000 || value.includes('\0') || !value.isWellFormed())
    return badRequest({ path: '', message: 'Blueprints and entities are identified by non-empty strings.' })
  return value
}

/** The functions of entities read the query and the caller's address from a request. */
function buildRequest({ request }: CallContext, method: string, query?: unknown): Request {
  const search = query === undefined || query === null ? '' : `?${toSearchParams(query)}`
  const synthetic = new Request(`http://lambda/${search}`, { method })
  if (request) linkOriginalRequest(synthetic, request)
  return synthetic
}

function toSearchParams(query: unknown): URLSearchParams {
  const params = new URLSearchParams()
  if (typeof query !== 'object' || Array.isArray(query))
    return badRequest({ path: 'query', message: 'A query must be an object: { price: { $lt: 20 } }' })
  for (const [key, value] of Object.entries(query as object)) {
    if (value === undefined) continue
    if (value !== null && typeof value === 'object' && !Array.isArray(value))
      for (const [operator, operand] of Object.entries(value))
        params.append(`${key}[${operator}]`, formatOperand(operand))
    else params.append(Array.isArray(value) && !key.startsWith('$') ? `${key}[$in]` : key, formatOperand(value))
  }
  return params
}

const formatOperand = (value: unknown): string => {
  if (Array.isArray(value)) return value.map(formatOperand).join(',')
  if (value !== null && typeof value === 'object')
    return badRequest({ path: 'query', message: 'A query is nested too deeply.' })
  return String(value)
}
