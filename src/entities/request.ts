import type { PublicCtx } from '../accounts/context'
import { getModel } from '../blueprints/blueprints'
import type { Model } from '../blueprints/model'
import { type Awaitable, andThen } from '../core/awaitable'
import { badRequest } from '../core/problem'
import { jsonHeaders } from '../core/response'
import { isFlag, isTrue, parseOptional } from '../core/shapes'
import type { PopulateOptions } from './query/populate-options'
import { parseQuery, type Query } from './query/query-parser'
import { isIndexed } from './store/index-keys'
import { FLAT_SHAPE, type ResponseShape } from './store/serializer'

/**
 * Reads with the current model of a blueprint, and again if the form of its entities changed meanwhile, because the
 * result may then be a mix of both forms, or if an index was given up that the read may have used. @throws 404
 */
export const readConsistently = <T>(ctx: PublicCtx, key: string, read: (model: Model) => Awaitable<T>): Awaitable<T> =>
  andThen(getModel(ctx, key), (model) =>
    andThen(read(model), (result) =>
      andThen(getModel(ctx, key), (latest) =>
        latest === model || (latest.form === model.form && hasIndexesOf(latest, model))
          ? result
          : readConsistently(ctx, key, read),
      ),
    ),
  )

/** Returns whether a newer model has all indexes that reads of an older one may use. */
const hasIndexesOf = (newer: Model, older: Model) =>
  older.compoundIndexes.every(
    ({ number, state }) =>
      state !== 'ready' || newer.compoundIndexes.some((one) => one.number === number && one.state === 'ready'),
  ) &&
  older.fields.every(
    (field) => !isIndexed(field) || newer.fields.some((one) => one.number === field.number && isIndexed(one)),
  )

/** The shape of a response, and the related entities that it embeds in place of references. */
export type RequestedShape = ResponseShape & { related?: PopulateOptions }

/**
 * Returns the shape that a request asks for. `Accept-Version: v1`, the only version, pins the flat shape. @throws 400
 */
export function parseResponseShape(
  model: Model,
  { actor }: PublicCtx,
  request: Request,
  query?: Query,
): RequestedShape {
  const search = getQueryString(request)
  if (!search) return FLAT_SHAPE
  const { flat, select, related } = query ?? parseQuery(model, actor, search)
  return { flat: flat || request.headers.has('accept-version'), select, related }
}

const WRAPPED_HEADERS = new Headers([
  ...jsonHeaders,
  ['deprecation', 'true'],
  ['link', '</openapi>; rel="deprecation"'],
])

/** Returns the headers of all responses in the flat or the wrapped shape, to be copied; the wrapped shape is deprecated. */
export const headersOf = ({ flat }: Pick<ResponseShape, 'flat'>) => (flat ? jsonHeaders : WRAPPED_HEADERS)

/** Returns a copy of `headersOf`. */
export const createHeaders = (shape: Pick<ResponseShape, 'flat'>) => new Headers(headersOf(shape))

/** Returns the query string of a request, without the question mark. */
export function getQueryString({ url }: Request) {
  const start = url.indexOf('?')
  return start < 0 ? '' : url.slice(start + 1)
}

/** With `bypassAdmin=true`, returns a context in which a privileged caller has only the rights of their roles. */
export function withoutPrivilege(ctx: PublicCtx, request: Request): PublicCtx {
  if (!ctx.actor?.privileged || !request.url.includes('bypassAdmin=')) return ctx
  const isBypassed = isTrue(new URLSearchParams(getQueryString(request)).get('bypassAdmin'))
  return isBypassed ? { ...ctx, actor: { ...ctx.actor, privileged: false } } : ctx
}

/**
 * Splits off the options of a single page, and the time as of which entities are read, from the query that the cursors
 * of a list belong to. @throws 400
 */
export function splitPageOptions(search: string): { search: string; cursor?: string; explain: boolean; asOf?: string } {
  if (!/after=|explain=|asOf=/.test(search)) return { search, explain: false }
  const rest = new URLSearchParams(search)
  const [cursor, explain, asOf] = ['$after', '$explain', '$asOf'].map((name) => {
    const value = rest.get(name)
    rest.delete(name)
    return parseOptional(value)
  })
  if (explain && !isFlag(explain)) badRequest({ path: '$explain', message: '$explain must be true or false.' })
  return { search: `${rest}`, cursor, explain: isTrue(explain), asOf }
}
