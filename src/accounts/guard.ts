import type { TSchema } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { config } from '../config'
import { type BodyInspector, readJson } from '../core/body'
import { slot } from '../core/extension'
import { assertLengths } from '../core/length-limits'
import { Problem, ProblemShape } from '../core/problem'
import { noteRoute, noteUser } from '../core/request-log'
import { assertSameSite, isCrossSite } from '../http/allowed-origins'
import { endAuthorizationCheck } from '../http/idempotency/authorization-check'
import { withClaim } from '../http/idempotency/claim'
import { reserveBody } from '../tenancy/body-budget'
import { startProcessing } from '../tenancy/client-connection'
import { resolveTenant, type Tenant } from '../tenancy/tenants'
import type { Actor, CookieSession } from './actors'
import { authenticate } from './authentication'
import type { Ctx, PublicCtx } from './context'
import { extendSessionCookie, serializeExpiredSessionCookie } from './cookies'
import { createAuditedWrite, impersonate, readImpersonationTarget } from './impersonation'
import { assertScope, hasPermission, missingRoleMessage, type Permission } from './permissions'

type Headers = Record<string, string | number | string[]>
type Set = { headers: unknown }

async function authorize(
  request: Request,
  set: Set,
  area: string,
  permission?: Permission,
  readsCookie = true,
): Promise<PublicCtx> {
  const tenant = await resolveTenant(request)
  const caller = await findCaller(request, tenant, set.headers as Headers, readsCookie)
  assertScope(caller, area, isRead(request) ? 'read' : 'write')
  const impersonation = readImpersonationTarget(request)
  const actor = impersonation ? await impersonate(tenant, caller, impersonation) : caller
  if (caller) noteUser(request, caller.user)
  if (!actor) {
    if (!permission) return withClaim(request, tenant)
    throw new Problem(401, 'UNAUTHENTICATED', 'Sign in first, or send an API token.')
  }
  if (permission && !hasPermission(actor, permission))
    throw new Problem(403, 'FORBIDDEN', missingRoleMessage(permission))
  if (actor.impersonator && permission === 'oneself')
    throw new Problem(403, 'FORBIDDEN', 'This action is not available while impersonating a user.')
  const { db, remoteVersion, write, tenant: id } = withClaim(request, tenant)
  const ctx = { tenant: id, db, remoteVersion, write, actor }
  return actor.impersonator && !isRead(request) ? { ...ctx, write: createAuditedWrite(request, ctx, actor) } : ctx
}

/** The caller of a request some time later, while it is still answered. @throws as if they came now */
export const reauthorize = (request: Request, area: string): Promise<PublicCtx> =>
  authorize(request, { headers: {} }, area)

/**
 * The same where a GET may have effects, as it has what code of the tenant's makes of it. Browsers send a session cookie
 * along when a page of another site leads here, so then it counts for nothing, and its owner is anonymous.
 */
export const reauthorizeSameSite = (request: Request, area: string): Promise<PublicCtx> =>
  authorize(request, { headers: {} }, area, undefined, !(isRead(request) && isCrossSite(request)))

/** The first credential decides; an invalid one is refused, never overlooked. */
async function findCaller(request: Request, tenant: Tenant, headers: Headers, readsCookie: boolean) {
  const authentication = await authenticate(request, tenant, { readsCookie })
  if (!authentication || 'actor' in authentication) return authentication?.actor
  return acceptSessionCookie(request, tenant, authentication, headers)
}

/** Renews the cookie of a session that goes on. @throws 401 when it has ended, 403 CROSS_SITE for a write from another site */
async function acceptSessionCookie(
  request: Request,
  tenant: Tenant,
  { cookie, session }: { cookie: string; session: CookieSession | undefined },
  headers: Headers,
): Promise<Actor> {
  if (!session) {
    headers['set-cookie'] = serializeExpiredSessionCookie(request, tenant)
    throw new Problem(401, 'UNAUTHENTICATED', 'This session has ended. Sign in again.')
  }
  if (!isRead(request)) await assertSameSite(request, tenant)
  await extendSessionCookie(request, tenant, cookie, session, headers)
  return session.actor
}

const isRead = ({ method }: Request) => method === 'GET' || method === 'HEAD'

/**
 * Every route says `can`, `anyone` or `open`; a test refuses one that says none. Strangers are turned away before a byte
 * of their body is read and before it is validated, so that they learn nothing of the schema. `anyone` looks at
 * credentials but lets guests in, whom the verb must judge; `open` does not look, nor does `openAtAddress`, where
 * `?tenant=` may name the tenant. `area` is what the scopes of API
 * tokens are about. Elysia is only sure to wait for hooks that are `async`, and skips the macros after a `false` one.
 */
export const guard = <Area extends string>(area: Area) => createGuard(area, readBody)

/** The same for areas whose bodies may be larger. */
export const aiGuard = <Area extends string>(area: Area) => createGuard(area, readLargeBody)

/** The same for routes that read the body themselves, as it comes in. */
export const streamGuard = <Area extends string>(area: Area) => createGuard(area, skipBody)

/** The same for uploads. */
export const uploadGuard = <Area extends string>(area: Area) => createGuard(area, readUpload)

const readBody: ReadBody = (request, checks) => readJson(request, config.ATOLL_BODY_LIMIT, checks)
const readLargeBody: ReadBody = (request, checks) => readJson(request, config.ATOLL_AI_BODY_LIMIT, checks)
const readUpload: ReadBody = (request, checks) => readJson(request, config.ATOLL_UPLOAD_LIMIT, checks)
const skipBody = async () => {}

const createGuard = <Area extends string>(area: Area, read: ReadBody) =>
  new Elysia({ name: 'guard', seed: `${area} ${read.name}` }).macro({
    can: (permission: Permission) => ({
      ...createHooks<Ctx>(permission, (request, set) => authorize(request, set, area, permission), read),
      response: { 401: ProblemShape, 403: ProblemShape },
    }),
    anyone: (_: true) => createHooks<PublicCtx>('anyone', (request, set) => authorize(request, set, area), read),
    open: (_: true) =>
      createHooks<PublicCtx>('open', async (request) => withClaim(request, await resolveTenant(request)), read),
    openAtAddress: (_: true) =>
      createHooks<PublicCtx>(
        'open',
        async (request) => withClaim(request, await resolveTenant(request, readTenantParam(request))),
        read,
      ),
  })

const readTenantParam = ({ url }: Request) => new URLSearchParams(url.split('?')[1]).get('tenant')

type ReadBody = (request: Request, judging: BodyInspector) => Promise<unknown>

/** Returns the shape of a route's body, by the method and the path of the route. */
export const bodyShapeLookup = slot<(method: string, route: string) => TSchema | undefined>('body shapes')

type HookContext<C> = { request: Request; route: string; set: Set; ctx?: C }

/**
 * Whoever enters does so once: before the body is read or, where there is none, before validation. Elysia reads the
 * source of hooks to see what of the context they need, so they name it and never pass the context on.
 */
function createHooks<C extends PublicCtx>(
  access: Permission | 'anyone' | 'open',
  authorizeRequest: (request: Request, set: Set) => PublicCtx | Promise<PublicCtx>,
  read: ReadBody,
) {
  return {
    detail: { 'x-access': access } as object, // a key of OpenAPI's that Elysia's type does not know
    parse: async (context: HookContext<C>) => {
      noteRoute(context.request, context.route)
      context.ctx = (await authorizeRequest(context.request, context.set)) as C
      const { request, route, ctx } = context
      endAuthorizationCheck(request)
      const checks: BodyInspector = {
        onBytes: (count, most) => reserveBody(request, ctx.tenant, count, most),
        onLargeValue: (value) => {
          const shape = bodyShapeLookup()(request.method, route)
          if (shape) assertLengths(shape, value)
        },
      }
      // Nothing is `null` here: after `undefined` Elysia would read the body once more by itself.
      return (await read(request, checks)) ?? null
    },
    transform: async (context: HookContext<C>) => {
      if (read !== skipBody) startProcessing(context.request)
      if (!context.ctx) {
        noteRoute(context.request, context.route)
        context.ctx = (await authorizeRequest(context.request, context.set)) as C
      }
      endAuthorizationCheck(context.request)
    },
    // Only for the types: the context has it already, and another hook would cost every request a turn.
    ...({} as { resolve: () => { ctx: C } }),
  }
}
