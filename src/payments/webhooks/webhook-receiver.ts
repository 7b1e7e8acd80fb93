import type { PublicCtx } from '../../accounts/context'
import { createGuestRateLimit } from '../../accounts/guest-rate-limit'
import { config } from '../../config'
import { resolveAllOfKind } from '../../connections/resolver'
import { readBytes, requireStorable } from '../../core/body'
import { now } from '../../core/clock'
import { logError } from '../../core/log'
import { Problem } from '../../core/problem'
import { RateLimiter } from '../../core/rate-limiter'
import { parseWithShape } from '../../core/shapes'
import { emit } from '../../jobs/outbox'
import { disableIdleTimeout } from '../../tenancy/client-connection'
import type { Tenant } from '../../tenancy/tenants'
import { isProviderKind, providerKinds, providerOf } from '../providers'
import type { ProviderKind } from '../providers/provider'
import { decodeUtf8 } from '../providers/webhook-signature'
import { storeAndApply } from './event-store'
import { ParsedEvent, type ProviderEventReceipt } from './shapes'

const throttleRemoteVerification = createGuestRateLimit(300, 10_000, 'Too many webhooks.')

/**
 * Receives a webhook of a provider, verifies its signature, and stores and applies its event. Duplicates have no effect.
 * @throws 400 UNSUPPORTED_PROVIDER, 401 INVALID_SIGNATURE, 413, 429, 502
 */
export async function receiveWebhook(ctx: PublicCtx, kind: string, request: Request): Promise<ProviderEventReceipt> {
  if (!isProviderKind(kind))
    throw new Problem(
      400,
      'UNSUPPORTED_PROVIDER',
      `Unknown payment provider "${kind}". Supported: ${providerKinds.join(', ')}.`,
    )
  const raw = await readBytes(request, config.ATOLL_BODY_LIMIT)
  const sender = await verifySender(ctx, kind, raw, request)
  if (!sender) return rejectSignature(ctx, kind)
  return storeAndApply(ctx, kind, sender, decodeUtf8(raw)!, parseEvent(kind, raw))
}

/** @throws 400 INVALID_INPUT when a signed body is not a valid event of its provider */
function parseEvent(kind: ProviderKind, raw: Uint8Array) {
  try {
    const event = requireStorable(providerOf(kind).parseEvent(raw))
    parseWithShape(ParsedEvent, event)
    return event
  } catch (cause) {
    if (cause instanceof Problem) throw cause
    logError('WEBHOOK_UNREADABLE', { provider: kind, cause })
    throw new Problem(400, 'INVALID_INPUT', 'The body is not a valid event of this provider.', { cause })
  }
}

/** Returns the id of the connection whose secret signed a body, or undefined. @throws 502 when a check failed */
async function verifySender(ctx: PublicCtx, kind: ProviderKind, raw: Uint8Array, request: Request) {
  const provider = providerOf(kind)
  if (provider.verifiesRemotely) {
    throttleRemoteVerification(ctx, kind, request)
    disableIdleTimeout(request)
  }
  let failure: unknown
  for (const connection of await resolveAllOfKind(ctx, kind))
    try {
      if (await provider.verifyWebhook(connection, raw, request.headers)) return connection._id
    } catch (error) {
      failure ??= error
    }
  // A check that failed might have succeeded, so the provider has to send the event again.
  if (failure) throw failure
}

const invalidSignatureLimiter = new RateLimiter(1, 60_000)

/** Rejects a webhook. The first one of each minute is reported as an event, so that admins find the cause. */
async function rejectSignature(ctx: Tenant, kind: ProviderKind): Promise<never> {
  const { tenant } = ctx
  if ((await resolveAllOfKind(ctx, kind)).length && !invalidSignatureLimiter.consume(`${tenant} ${kind}`))
    await ctx.write((tx) =>
      emit(ctx, tx, {
        ...{ source: 'payments', kind: 'webhook', eventName: 'webhook-failed' },
        description: `A webhook for ${kind} was rejected: its signature matches none of the configured secrets.`,
        metadata: { providerKind: kind, code: 'INVALID_SIGNATURE', at: now() },
      }),
    )
  throw new Problem(401, 'INVALID_SIGNATURE', 'The signature is invalid or expired.')
}
