import type { AnyElysia } from 'elysia'
import type { Awaitable } from '../core/awaitable'
import { BoundedMap } from '../core/bounded-map'
import type { PublicCtx } from './context'

/** Authorizes the caller of a request. @throws 401, 403, 404, 409, 429 as the guard of the route */
export type Admit = (request: Request, route: string) => Awaitable<PublicCtx>

type Read = (ctx: PublicCtx, params: Record<string, string>, request: Request) => Awaitable<Response>

/** A GET route that the gateway answers without Elysia. */
export type DirectRead = { route: string; admit: Admit; read: Read }

/** A direct read and its path parameters. */
export type FoundRead = { direct: DirectRead; params: Record<string, string> }

const [ADMIT, READ] = [Symbol('admit'), Symbol('read')]

/** Attaches the function of a guard to its hook, so that the gateway can call it without Elysia. */
export const withAdmission = <Hook extends object>(hook: Hook, admit: Admit) => Object.assign(hook, { [ADMIT]: admit })

/**
 * Marks a handler that needs only its caller's context, its path and the request, and returns a complete response. The gateway
 * calls it without Elysia, which takes as long as a read from memory.
 */
export const readDirectly = (read: Read) =>
  Object.assign(
    ({ ctx, params, request }: { ctx: PublicCtx; params: Record<string, string>; request: Request }) =>
      read(ctx, params, request),
    { [READ]: read },
  )

/**
 * Returns a function that finds the direct read of a path by the table of routes.
 * @throws an error for a direct read without a guard, or whose route validates values that the read does not get
 */
export function createDirectReadFinder({ routes, router }: AnyElysia) {
  const reads = new Map<object, DirectRead>()
  for (const { method, path, handler, hooks } of routes) {
    const read = (handler as unknown as { [READ]?: Read })[READ]
    if (!read || method !== 'GET') continue
    const admit = findAdmission(hooks.transform)
    const found = router.http.find('GET', path)
    if (!admit || !found || hooks.params || hooks.query || hooks.beforeHandle?.length)
      throw new Error(`${path} cannot be read directly.`)
    reads.set(found.store, { route: path, admit, read })
  }
  // A name that equals the last part of a route's path may lead to that route.
  const endings = new Set(routes.map(({ path }) => lastPartOf(path)))
  const collections = new BoundedMap<string, Collection>(MAX_KNOWN_COLLECTIONS)
  return (path: string): FoundRead | undefined => {
    const name = lastPartOf(path)
    const isPlain = name !== '' && !name.includes('%') && !endings.has(name)
    const collection = path.slice(0, path.length - name.length)
    const known = isPlain && collections.get(collection)
    if (known) return { direct: known.direct, params: { ...known.params, [known.parameter]: name } }
    const found = router.http.find('GET', path)
    const direct = found && reads.get(found.store)
    if (!direct) return
    const parameter = lastPartOf(direct.route).slice(1)
    if (isPlain && found.params[parameter] === name)
      collections.set(collection, { direct, parameter, params: found.params })
    return { direct, params: found.params }
  }
}

const lastPartOf = (path: string) => path.slice(path.lastIndexOf('/') + 1)

const MAX_KNOWN_COLLECTIONS = 1_000
/** The read of a collection's path, cached because the router takes longer. Only the last parameter varies. */
type Collection = FoundRead & { parameter: string }

const findAdmission = (hooks: { fn: { [ADMIT]?: Admit } }[] | undefined) =>
  hooks?.map(({ fn }) => fn[ADMIT]).find((admit) => admit)
