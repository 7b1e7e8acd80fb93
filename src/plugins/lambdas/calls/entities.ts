import { refuseBeyond } from '../../../accounts/permissions'
import { keepable } from '../../../core/body'
import { invalid } from '../../../core/problem'
import * as entities from '../../../entities/entities'
import * as pages from '../../../entities/pages'
import { standsFor } from '../../../tenancy/caller'
import type { Asking, Call } from './calls'

/** The entities of a blueprint that match a query, which reads as in an address: `{price: {$lt: 20}, $sort: '-created'}`. */
export const find: Call = async (asking, blueprint, query) =>
  pages.list(allowed(asking, 'read'), name(blueprint), requestFor(asking, 'GET', query))

export const get: Call = async (asking, blueprint, identifier, query) =>
  entities.get(allowed(asking, 'read'), name(blueprint), name(identifier), requestFor(asking, 'GET', query))

export const create: Call = async (asking, blueprint, entity) =>
  entities.create(allowed(asking, 'write'), name(blueprint), keepable(entity), requestFor(asking, 'POST'))

export const update: Call = async (asking, blueprint, identifier, changes) => {
  const ctx = allowed(asking, 'write')
  return entities.change(ctx, name(blueprint), name(identifier), keepable(changes), requestFor(asking, 'PUT'))
}

export const remove: Call = async (asking, blueprint, identifier) =>
  entities.remove(allowed(asking, 'write'), name(blueprint), name(identifier), requestFor(asking, 'DELETE'))

/** An API token is good here for what it is good for elsewhere. */
function allowed({ ctx }: Asking, mode: 'read' | 'write') {
  refuseBeyond(ctx.actor, 'entities', mode)
  return ctx
}

function name(value: unknown): string {
  if (typeof value !== 'string' || !value || value.length > 1_000 || value.includes('\0') || !value.isWellFormed())
    return invalid({ path: '', message: 'Blueprints and entities are named by texts.' })
  return value
}

/** Verbs read queries and addresses of callers from a request. */
function requestFor({ request }: Asking, method: string, query?: unknown): Request {
  const search = query === undefined || query === null ? '' : `?${parameters(query)}`
  const made = new Request(`http://lambda/${search}`, { method })
  if (request) standsFor(made, request)
  return made
}

function parameters(query: unknown): URLSearchParams {
  const found = new URLSearchParams()
  if (typeof query !== 'object' || Array.isArray(query))
    return invalid({ path: 'query', message: 'A query is an object: { price: { $lt: 20 } }' })
  for (const [key, value] of Object.entries(query as object)) {
    if (value === undefined) continue
    if (value !== null && typeof value === 'object' && !Array.isArray(value))
      for (const [operator, operand] of Object.entries(value)) found.append(`${key}[${operator}]`, written(operand))
    else found.append(Array.isArray(value) && !key.startsWith('$') ? `${key}[$in]` : key, written(value))
  }
  return found
}

const written = (value: unknown): string => {
  if (Array.isArray(value)) return value.map(written).join(',')
  if (value !== null && typeof value === 'object')
    return invalid({ path: 'query', message: 'A query is nested too deeply.' })
  return String(value)
}
