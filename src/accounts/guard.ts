import type { TSchema } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { config } from '../config'
import { type Judging, readJson } from '../core/body'
import { assertLengths } from '../core/lengths'
import { Problem, ProblemShape } from '../core/problem'
import { noteRoute, noteUser } from '../core/request-log'
import { holdBody } from '../tenancy/bodies'
import { startWork } from '../tenancy/caller'
import { type Tenant, tenantOf } from '../tenancy/tenants'
import { type Actor, bearerOf, byApiToken, byBearer, byCookie } from './actors'
import { clearCookie, cookieOf, keepCookie } from './cookies'
import { claiming } from './idempotency/claim'
import { endIfJudged } from './idempotency/verdict'
import { guiseOf, impersonated, recording } from './impersonation'
import { isCrossSite, refuseForeign } from './origins'
import { may, missingRole, type Permission, refuseBeyond } from './permissions'

/** Who asks, and in whose house. Every verb takes one as its first argument. */
export type Ctx = Tenant & { actor: Actor }
export type OpenCtx = Tenant & { actor?: Actor }

type Headers = Record<string, string | number | string[]>
type Set = { headers: unknown }

async function admit(
  request: Request,
  set: Set,
  area: string,
  permission?: Permission,
  readsCookie = true,
): Promise<OpenCtx> {
  const tenant = await tenantOf(request)
  const caller = await actorBehind(request, tenant, set.headers as Headers, readsCookie)
  refuseBeyond(caller, area, isRead(request) ? 'read' : 'write')
  const guise = guiseOf(request)
  const actor = guise ? await impersonated(tenant, caller, guise) : caller
  if (caller) noteUser(request, caller.user)
  if (!actor) {
    if (!permission) return claiming(request, tenant)
    throw new Problem(401, 'UNAUTHENTICATED', 'Sign in first, or send an API token.')
  }
  if (permission && !may(actor, permission)) throw new Problem(403, 'FORBIDDEN', missingRole(permission))
  if (actor.impersonator && permission === 'oneself')
    throw new Problem(403, 'FORBIDDEN', 'This everybody does themselves: nobody else may act as them here.')
  const { db, heard, write, tenant: id } = claiming(request, tenant)
  const ctx = { tenant: id, db, heard, write, actor }
  return actor.impersonator && !isRead(request) ? { ...ctx, write: recording(request, ctx, actor) } : ctx
}

/** The caller of a request some time later, while it is still answered. @throws as if they came now */
export const readmit = (request: Request, area: string): Promise<OpenCtx> => admit(request, { headers: {} }, area)

/**
 * The same where a GET may have effects, as it has what code of the tenant's makes of it. Browsers send a session cookie
 * along when a page of another site leads here, so then it counts for nothing, and its owner is anonymous.
 */
export const readmitSameSite = (request: Request, area: string): Promise<OpenCtx> =>
  admit(request, { headers: {} }, area, undefined, !(isRead(request) && isCrossSite(request)))

/** The first credential decides; one that is no good is refused, never overlooked. */
function actorBehind(request: Request, tenant: Tenant, headers: Headers, readsCookie: boolean) {
  const key = request.headers.get('x-api-key')
  if (key) return byApiToken(tenant, key)
  if (request.headers.get('authorization')) return byBearer(tenant, bearerOf(request))
  const cookie = readsCookie && cookieOf(request, tenant)
  if (cookie) return byKeptCookie(request, tenant, cookie, headers)
}

async function byKeptCookie(request: Request, tenant: Tenant, cookie: string, headers: Headers): Promise<Actor> {
  const known = await byCookie(tenant, cookie)
  if (!known) {
    headers['set-cookie'] = clearCookie(request, tenant)
    throw new Problem(401, 'UNAUTHENTICATED', 'This session has ended. Sign in again.')
  }
  if (!isRead(request)) await refuseForeign(request, tenant)
  await keepCookie(request, tenant, cookie, known, headers)
  return known.actor
}

const isRead = ({ method }: Request) => method === 'GET' || method === 'HEAD'

/**
 * Every route says `can`, `anyone` or `open`; a test refuses one that says none. Strangers are turned away before a byte
 * of their body is read and before it is validated, so that they learn nothing of the schema. `anyone` looks at
 * credentials but lets guests in, whom the verb must judge; `open` does not look, nor does `openAtAddress`, where
 * `?tenant=` may name the tenant. `area` is what the scopes of API
 * tokens are about. Elysia is only sure to wait for hooks that are `async`, and skips the macros after a `false` one.
 */
export const guard = <Area extends string>(area: Area) => guarding(area, readBody)

/** The same for areas whose bodies may be larger. */
export const aiGuard = <Area extends string>(area: Area) => guarding(area, readLargeBody)

/** The same for routes that read the body themselves, as it comes in. */
export const streamGuard = <Area extends string>(area: Area) => guarding(area, leaveBody)

/** The same for uploads. */
export const uploadGuard = <Area extends string>(area: Area) => guarding(area, readUpload)

const readBody: ReadBody = (request, judging) => readJson(request, config.ATOLL_BODY_LIMIT, judging)
const readLargeBody: ReadBody = (request, judging) => readJson(request, config.ATOLL_AI_BODY_LIMIT, judging)
const readUpload: ReadBody = (request, judging) => readJson(request, config.ATOLL_UPLOAD_LIMIT, judging)
const leaveBody = async () => {}

const guarding = <Area extends string>(area: Area, read: ReadBody) =>
  new Elysia({ name: 'guard', seed: `${area} ${read.name}` }).macro({
    can: (permission: Permission) => ({
      ...hooks<Ctx>(permission, (request, set) => admit(request, set, area, permission), read),
      response: { 401: ProblemShape, 403: ProblemShape },
    }),
    anyone: (_: true) => hooks<OpenCtx>('anyone', (request, set) => admit(request, set, area), read),
    open: (_: true) => hooks<OpenCtx>('open', async (request) => claiming(request, await tenantOf(request)), read),
    openAtAddress: (_: true) =>
      hooks<OpenCtx>('open', async (request) => claiming(request, await tenantOf(request, namedIn(request))), read),
  })

const namedIn = ({ url }: Request) => new URLSearchParams(url.split('?')[1]).get('tenant')

type ReadBody = (request: Request, judging: Judging) => Promise<unknown>

type ShapeOf = (method: string, route: string) => TSchema | undefined
let shapeOf: ShapeOf = () => undefined

/** Who knows the shapes of bodies, by the method and the path of their routes. */
export const setBodyShapes = (find: ShapeOf) => {
  shapeOf = find
}

type Asked<C> = { request: Request; route: string; set: Set; ctx?: C }

/**
 * Whoever enters does so once: before the body is read or, where there is none, before validation. Elysia reads the
 * source of hooks to see what of the context they need, so they name it and never pass the context on.
 */
function hooks<C extends OpenCtx>(
  access: Permission | 'anyone' | 'open',
  enter: (request: Request, set: Set) => OpenCtx | Promise<OpenCtx>,
  read: ReadBody,
) {
  return {
    detail: { 'x-access': access } as object, // a key of OpenAPI's that Elysia's type does not know
    parse: async (context: Asked<C>) => {
      noteRoute(context.request, context.route)
      context.ctx = (await enter(context.request, context.set)) as C
      const { request, route, ctx } = context
      endIfJudged(request)
      const judging: Judging = {
        bytes: (count, most) => holdBody(request, ctx.tenant, count, most),
        value: (value) => {
          const shape = shapeOf(request.method, route)
          if (shape) assertLengths(shape, value)
        },
      }
      // Nothing is `null` here: after `undefined` Elysia would read the body once more by itself.
      return (await read(request, judging)) ?? null
    },
    transform: async (context: Asked<C>) => {
      if (read !== leaveBody) startWork(context.request)
      if (!context.ctx) {
        noteRoute(context.request, context.route)
        context.ctx = (await enter(context.request, context.set)) as C
      }
      endIfJudged(context.request)
    },
    // Only for the types: the context has it already, and another hook would cost every request a turn.
    ...({} as { resolve: () => { ctx: C } }),
  }
}
