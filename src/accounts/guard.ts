import type { TSchema } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { config } from '../config'
import { type Awaitable, andThen } from '../core/awaitable'
import { type BodyInspector, isForm, readJson } from '../core/body'
import { slot } from '../core/extension'
import { assertLengths } from '../core/length-limits'
import { Problem, ProblemShape } from '../core/problem'
import { noteRoute, noteUser } from '../core/request-log'
import type { RunSlice } from '../core/sliced-json'
import { assertSameSite, mayActByCookie } from '../http/allowed-origins'
import { endAuthorizationCheck } from '../http/idempotency/authorization-check'
import { withClaim } from '../http/idempotency/claim'
import { assertQuotaLeft, assertRoomForChange } from '../limits/quota-check'
import { limitCostlyRequest, limitRequest } from '../limits/request-limit'
import { reserveBody } from '../tenancy/body-budget'
import { costlyWork } from '../tenancy/fair-queue'
import { resolveTenant, type Tenant } from '../tenancy/tenants'
import type { Actor } from './actors'
import { authenticate } from './authentication'
import type { Ctx, PublicCtx } from './context'
import { expireSessionCookie, extendSessionCookie } from './cookies'
import { type Admit, withAdmission } from './direct-reads'
import { createAuditedWrite, impersonate, readImpersonationTarget } from './impersonation'
import { assertScope, hasPermission, missingRoleMessage, type Permission, type ScopeArea } from './permissions'
import { WorkTurns } from './work-turns'

type AuthorizationOptions = {
  readsCookie?: boolean
  renewsCookie?: boolean
  /** Whether the request counts for the rate limits of its caller. */
  isCounted?: boolean
  /** Whether the scope to read suffices, regardless of the method. */
  onlyReads?: boolean
}

/** Returns the context of a request, without a promise when all that it depends on is cached. */
const authorize = (
  request: Request,
  area: ScopeArea,
  permission?: Permission,
  options: AuthorizationOptions = {},
): Awaitable<PublicCtx> =>
  andThen(resolveTenant(request), (tenant) =>
    andThen(findCallerWithinLimits(request, tenant, options), (caller) => {
      assertScope(caller, area, options.onlyReads || isRead(request) ? 'read' : 'write')
      const impersonation = readImpersonationTarget(request)
      const actor = impersonation ? impersonate(tenant, caller, impersonation) : caller
      return andThen(actor, (actor) => {
        if (caller) noteUser(request, caller.user)
        return createContext(request, tenant, actor, permission)
      })
    }),
  )

function createContext(
  request: Request,
  tenant: Tenant,
  actor: Actor | undefined,
  permission: Permission | undefined,
): PublicCtx {
  if (!actor) {
    if (!permission) return withClaim(request, tenant)
    throw new Problem(401, 'UNAUTHENTICATED', 'Sign in first, or send an API token.')
  }
  if (permission && !hasPermission(actor, permission))
    throw new Problem(403, 'FORBIDDEN', missingRoleMessage(permission))
  if (actor.impersonator && permission === 'oneself')
    throw new Problem(403, 'FORBIDDEN', 'This action is not available while impersonating a user.')
  const { db, place, remoteVersion, write, tenant: id } = withClaim(request, tenant)
  const ctx = { tenant: id, place, db, remoteVersion, write, actor }
  return actor.impersonator && !isRead(request) ? { ...ctx, write: createAuditedWrite(request, ctx, actor) } : ctx
}

/**
 * Authorizes the caller of a request again while a long response is still being sent. The session cookie is not renewed,
 * because the browser would not learn of it.
 * @throws 401, 403 as for a new request
 */
export const reauthorize = async (request: Request, area: ScopeArea): Promise<PublicCtx> =>
  authorize(request, area, undefined, { renewsCookie: false, isCounted: false })

/** Authorizes the caller of a costly read that no guard protects. @throws 401, 403 as for other reads, 429 RATE_LIMITED */
export async function authorizeCostlyRead(request: Request, area: ScopeArea): Promise<PublicCtx> {
  const ctx = await authorize(request, area, undefined, { renewsCookie: false })
  await limitCostlyRequest(ctx, request)
  return ctx
}

/**
 * Authorizes like `reauthorize`, but for routes where a GET may have effects because code of the tenant handles it.
 * Browsers send a session cookie along when a page of another origin links here, so such a cookie is ignored and its
 * owner is anonymous.
 */
export async function reauthorizeSameOrigin(request: Request, area: ScopeArea): Promise<PublicCtx> {
  const readsCookie = !isRead(request) || (await mayActByCookie(request, await resolveTenant(request)))
  return authorize(request, area, undefined, { readsCookie })
}

/** Whoever sends an invalid credential counts as a guest. @throws 401, 403 as `findCaller`, 429 RATE_LIMITED */
function findCallerWithinLimits(
  request: Request,
  tenant: Tenant,
  options: AuthorizationOptions,
): Awaitable<Actor | undefined> {
  if (options.isCounted === false) return findCaller(request, tenant, options)
  const countCaller = (caller: Actor | undefined) => andThen(limitRequest(request, tenant, caller), () => caller)
  const countRefused = (error: unknown) =>
    andThen(limitRequest(request, tenant), (): never => {
      throw error
    })
  let found: Awaitable<Actor | undefined>
  try {
    found = findCaller(request, tenant, options)
  } catch (error) {
    return countRefused(error)
  }
  return found instanceof Promise ? found.then(countCaller, countRefused) : countCaller(found)
}

/**
 * Returns the actor of the first credential, and renews a session cookie. An invalid credential is rejected, never
 * ignored.
 * @throws 401 UNAUTHENTICATED, 403 COOKIE_OF_ANOTHER_HOST, CROSS_SITE for a write by cookie from another site
 */
const findCaller = (
  request: Request,
  tenant: Tenant,
  { readsCookie, renewsCookie = true }: AuthorizationOptions,
): Awaitable<Actor | undefined> =>
  andThen(authenticate(request, tenant, { readsCookie }), (authentication) => {
    if (!authentication || 'actor' in authentication) return authentication?.actor
    const { cookie, session = rejectEndedSession(request, tenant) } = authentication
    return andThen(isRead(request) ? undefined : assertSameSite(request, tenant), () =>
      andThen(renewsCookie ? extendSessionCookie(request, tenant, cookie, session) : undefined, () => session.actor),
    )
  })

function rejectEndedSession(request: Request, tenant: Tenant): never {
  expireSessionCookie(request, tenant)
  throw new Problem(401, 'UNAUTHENTICATED', 'This session has ended. Sign in again.')
}

const isRead = ({ method }: Request) => method === 'GET' || method === 'HEAD'

/**
 * Returns the guard of an area. Every route declares `can`, `canRead`, `anyone`, `open`, `openThrottled` or
 * `openAtAddress`; a test rejects a route that declares none. Unauthorized callers are rejected before their body is read
 * and validated, so that they learn nothing about the schema. `anyone` authenticates credentials but admits guests, whom the handler must check.
 * `canRead` is `can` for a POST that changes nothing, so that the scope to read suffices.
 * `open` does not authenticate; nor do the other two, which the rate limits leave out: sign-ins and sign-ups in all
 * their forms have throttles instead, and webhooks and plugins count their callers themselves. With `openAtAddress`,
 * `?tenant=` may name the tenant. `costly` counts for the limit of costly requests, and `addsData` is refused when the
 * quota of storage is used up, `changesData` only with a larger body. `area` is the area in the scopes of API tokens. Elysia only waits reliably for hooks that
 * are `async`, and it skips the macros after one that is `false`.
 */
export const guard = (area: ScopeArea) => getGuard(area, readBody)

/** Returns a guard that reads bodies of up to ATOLL_AI_BODY_LIMIT bytes. */
export const aiGuard = (area: ScopeArea) => getGuard(area, readLargeBody)

/** Returns a guard for routes that read the body themselves while it arrives. */
export const streamGuard = (area: ScopeArea) => getGuard(area, skipBody)

/** Returns a guard that reads bodies as `guard` does, except multipart forms, which routes read while they arrive. */
export const formGuard = (area: ScopeArea) => getGuard(area, readBodyUnlessForm)

/** Returns a guard that reads bodies of up to ATOLL_UPLOAD_LIMIT bytes. */
export const uploadGuard = (area: ScopeArea) => getGuard(area, readUpload)

const readBody: ReadBody = (request, checks) => readJson(request, config.ATOLL_BODY_LIMIT, checks)
const readLargeBody: ReadBody = (request, checks) => readJson(request, config.ATOLL_AI_BODY_LIMIT, checks)
const readUpload: ReadBody = (request, checks) => readJson(request, config.ATOLL_UPLOAD_LIMIT, checks)
const skipBody = async () => {}
const readBodyUnlessForm: ReadBody = async (request, checks) =>
  isForm(request) ? undefined : readBody(request, checks)

const guards = new Map<string, ReturnType<typeof createGuard>>()

/** Returns the guard of an area, which all of its routes with such bodies share. */
function getGuard(area: ScopeArea, read: ReadBody) {
  const seed = `${area} ${read.name}`
  const known = guards.get(seed) ?? createGuard(seed, area, read)
  guards.set(seed, known)
  return known
}

const createGuard = (seed: string, area: ScopeArea, read: ReadBody) =>
  new Elysia({ name: 'guard', seed }).macro({
    can: (permission: Permission) => ({
      ...createHooks<Ctx>(permission, (request) => authorize(request, area, permission), read),
      response: { 401: ProblemShape, 403: ProblemShape },
    }),
    canRead: (permission: Permission) => ({
      ...createHooks<Ctx>(permission, (request) => authorize(request, area, permission, { onlyReads: true }), read),
      response: { 401: ProblemShape, 403: ProblemShape },
    }),
    anyone: (_: true) => createHooks<PublicCtx>('anyone', (request) => authorize(request, area), read),
    open: (_: true) =>
      createHooks<PublicCtx>(
        'open',
        (request) =>
          andThen(resolveTenant(request), (tenant) =>
            andThen(limitRequest(request, tenant), () => withClaim(request, tenant)),
          ),
        read,
      ),
    openThrottled: (_: true) =>
      createHooks<PublicCtx>('open', async (request) => withClaim(request, await resolveTenant(request)), read),
    openAtAddress: (_: true) =>
      createHooks<PublicCtx>(
        'open',
        async (request) => withClaim(request, await resolveTenant(request, readTenantParam(request))),
        read,
      ),
    costly: (_: true) => ({
      beforeHandle: async (context: { request: Request }) =>
        limitCostlyRequest((context as HookContext<PublicCtx>).ctx!, context.request),
    }),
    addsData: (_: true) => ({
      beforeHandle: async (context: { request: Request }) =>
        assertQuotaLeft((context as HookContext<PublicCtx>).ctx!, 'storage'),
    }),
    changesData: (_: true) => ({
      beforeHandle: async (context: HookContext<PublicCtx> & { body: unknown }) =>
        assertRoomForChange(context.ctx!, context.body),
    }),
  })

const readTenantParam = ({ url }: Request) => new URLSearchParams(url.split('?')[1]).get('tenant')

type ReadBody = (request: Request, judging: BodyInspector) => Promise<unknown>

/** Returns the shape of a route's body, by the method and the path of the route. */
export const bodyShapeLookup = slot<(method: string, route: string) => TSchema | undefined>('body shapes')

/** The thread time (ms) that a MiB of a body takes until it is parsed. */
const RECEIVING_MS_PER_MIB = 2
const chargeReceiving = (bytes: number) => costlyWork.chargeThreadTime((bytes / 2 ** 20) * RECEIVING_MS_PER_MIB)

type HookContext<C> = { request: Request; route: string; ctx?: C }

/** How many large bodies may be parsed, or wait for it. */
const LARGE_BODY_LIMITS = { perTenant: 100, perCaller: 50 }

/**
 * Each request is authorized once: before its body is read or, without a body, before validation. Elysia reads the
 * source of hooks to find out which parts of the context they need, so hooks name these parts and never pass the
 * context on.
 */
function createHooks<C extends PublicCtx>(
  access: Permission | 'anyone' | 'open',
  authorizeRequest: (request: Request) => Awaitable<PublicCtx>,
  read: ReadBody,
) {
  const admit: Admit = (request, route) => {
    noteRoute(request, route)
    return andThen(authorizeRequest(request), (ctx) => {
      endAuthorizationCheck(request)
      return ctx
    })
  }
  return {
    detail: { 'x-access': access } as object, // an OpenAPI extension, which the type of Elysia lacks
    parse: async (context: HookContext<C>) => {
      context.ctx = (await admit(context.request, context.route)) as C
      const { request, route, ctx } = context
      let turns: WorkTurns | undefined
      const runSlice: RunSlice = (slice) => {
        turns ??= new WorkTurns(ctx, request, LARGE_BODY_LIMITS)
        return turns.run(slice)
      }
      const checks: BodyInspector = {
        onBytes: (count, most) => reserveBody(request, ctx.tenant, count, most),
        onChunk: chargeReceiving,
        waitForTurn: async () => {
          await runSlice(() => {})
          // A body that arrives slowly takes nobody's place meanwhile.
          turns?.end()
        },
        onLargeValue: (value) => {
          const shape = bodyShapeLookup()(request.method, route)
          if (shape) assertLengths(shape, value)
        },
        runSlice,
      }
      try {
        // An empty body is `null`: after `undefined` Elysia would read the body once more by itself.
        return (await read(request, checks)) ?? null
      } finally {
        turns?.end()
      }
    },
    transform: withAdmission(async (context: HookContext<C>) => {
      context.ctx ??= (await admit(context.request, context.route)) as C
    }, admit),
    // This is only for the types: the context already has `ctx`, and another hook would delay every request.
    ...({} as { resolve: () => { ctx: C } }),
  }
}
