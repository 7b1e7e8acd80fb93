import type { Awaitable } from './awaitable'

/** The part of a route's context that its answer's headers depend on. */
export type HttpContext = { request: Request; set: { headers: ResponseHeaders } }
type ResponseHeaders = Record<string, string | number | string[] | undefined>

/** A value and the version of its resource, which is its ETag. */
export type Versioned<Value> = { value: Value; version: string }
/** The versions that a change is meant for, as in `If-Match`; without them, any. */
export type IfMatch = { ifMatch?: string | null }

/** A page of a list. */
export type ListPage<Item> = {
  items: Item[]
  /** How many items the whole list has, if the caller asked for it. */
  total?: number
  /** The query parameters of the next page, if there is one; undefined ones are left out. */
  next?: Record<string, string | undefined>
  /** The largest page, if the caller asked for more. */
  maxLimit?: number
}

/** Returns the condition of a change. */
export const ifMatchOf = ({ headers }: Request): IfMatch => ({ ifMatch: headers.get('if-match') })

/** Sends the version of a resource as its ETag, and returns the resource. */
export async function sendVersioned<Value>({ headers }: HttpContext['set'], versioned: Awaitable<Versioned<Value>>) {
  const { value, version } = await versioned
  headers.etag = version
  return value
}

/** Sends `X-Limit`, `X-Total-Count` and `Link` of a page, and returns its items. */
export async function sendPage<Item>({ request, set }: HttpContext, page: Awaitable<ListPage<Item>>): Promise<Item[]> {
  const { headers } = set
  const { items, total, next, maxLimit } = await page
  if (maxLimit !== undefined) headers['x-limit'] = `${maxLimit}`
  if (total !== undefined) headers['x-total-count'] = `${total}`
  if (next) headers.link = toNextLink(request.url, next)
  return items
}

/** Sends `Cache-Control: no-store`, also with an error, and returns the value, which contains a secret. */
export function sendSecret<Value>({ headers }: HttpContext['set'], value: Value): Value {
  headers['cache-control'] = 'no-store'
  return value
}

function toNextLink(url: string, changes: NonNullable<ListPage<unknown>['next']>) {
  const [path = '', search] = url.slice(url.indexOf('/', 8)).split(/\?(.*)/s)
  const next = new URLSearchParams(search)
  for (const [name, value] of Object.entries(changes))
    if (value === undefined) next.delete(name)
    else next.set(name, value)
  return `<${path}?${next}>; rel="next"`
}
