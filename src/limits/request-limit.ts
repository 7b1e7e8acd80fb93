import { config } from '../config'
import { now } from '../core/clock'
import { tooManyRequests } from '../core/problem'
import { notesOf } from '../core/request-log'
import { clientNetwork } from '../tenancy/client-connection'
import type { Tenant } from '../tenancy/tenants'
import { getRateLimits } from './rate-limits'
import type { RateLimits, RequestKind } from './shapes'
import { TokenBuckets } from './token-bucket'

/** Who makes a request: a user, or the API token of one; a guest is undefined. */
type Caller = { user: string; impersonator?: string; token?: { _id: string } }

/** The buckets of a tenant by kind, so that a caller has the same name in each. */
type TenantBuckets = Record<RequestKind, TokenBuckets>

const bucketsByTenant = new Map<string, TenantBuckets>()

/**
 * Counts a request to a tenant as a read or a write of its caller. Returns a promise only when the limits have to be
 * read first.
 * @throws 429 RATE_LIMITED
 */
export function limitRequest(request: Request, tenant: Tenant, caller?: Caller): void | Promise<void> {
  const isRead = request.method === 'GET' || request.method === 'HEAD'
  return limitRequestOfKind(isRead ? 'reads' : 'writes', request, tenant, caller)
}

/** Counts a costly request, such as an export, besides the read or the write that it is. @throws 429 RATE_LIMITED */
export const limitCostlyRequest = (ctx: Tenant & { actor?: Caller }, request: Request): void | Promise<void> =>
  limitRequestOfKind('costly', request, ctx, ctx.actor)

function limitRequestOfKind(kind: RequestKind, request: Request, tenant: Tenant, caller?: Caller) {
  if (config.ATOLL_RATE_LIMITS === 'off') return
  const limits = getRateLimits(tenant)
  if (limits instanceof Promise) return limits.then((loaded) => consume(loaded, kind, request, tenant.tenant, caller))
  consume(limits, kind, request, tenant.tenant, caller)
}

function consume(limits: RateLimits, kind: RequestKind, request: Request, tenant: string, caller?: Caller) {
  const callers = caller ? 'users' : 'guests'
  const limit = limits[callers][kind]
  const name = caller ? (caller.impersonator ?? caller.token?._id ?? caller.user) : clientNetwork(request)
  const { remaining, resetMs, waitMs } = bucketsOf(tenant)[kind].take(name, limit, now())
  const notes = notesOf(request)
  if (notes) notes.rateLimit = { limit, remaining, reset: Math.ceil(resetMs / 1_000) }
  if (waitMs)
    tooManyRequests(waitMs / 1_000, `You have made too many requests: the limit is ${limit} ${NAMES[kind]} per minute.`)
}

const NAMES: Record<RequestKind, string> = { reads: 'reads', writes: 'writes', costly: 'costly requests' }

function bucketsOf(tenant: string): TenantBuckets {
  const existing = bucketsByTenant.get(tenant)
  if (existing) return existing
  const created = { reads: new TokenBuckets(), writes: new TokenBuckets(), costly: new TokenBuckets() }
  bucketsByTenant.set(tenant, created)
  return created
}

/** Forgets the callers who may make as many requests as at first. */
export function removeFullBuckets() {
  for (const [tenant, buckets] of bucketsByTenant) {
    const left = Object.values(buckets).map((each) => each.removeFull(now()))
    if (left.every((count) => count === 0)) bucketsByTenant.delete(tenant)
  }
}
