import type { OpenCtx } from '../../accounts/guard'
import { throttling } from '../../accounts/guests'
import { config } from '../../config'
import { keepable, readBytes } from '../../core/body'
import { now } from '../../core/clock'
import { Limiter } from '../../core/limiter'
import { report } from '../../core/log'
import { Problem } from '../../core/problem'
import { fitting } from '../../core/shapes'
import { emit } from '../../jobs/outbox'
import { allOpened } from '../../plugins/connections/opening'
import { waitsLong } from '../../tenancy/caller'
import type { Tenant } from '../../tenancy/tenants'
import type { ProviderKind } from '../providers/provider'
import { isProviderKind, providerKinds, providerOf } from '../providers/providers'
import { textOf } from '../providers/signed'
import { keep } from './keeping'
import { type Receipt, SensibleEvent } from './shapes'

/** Whether PayPal sent something, only PayPal knows: nobody is to have us ask as often as they like. */
const throttle = throttling(300, 10_000, 'Too many webhooks.')

/**
 * Takes what a provider sends: who sent it is known by its signature, and what was kept before changes nothing more.
 * @throws 400 UNSUPPORTED_PROVIDER, 401 INVALID_SIGNATURE, 413, 429, 502
 */
export async function receive(ctx: OpenCtx, kind: string, request: Request): Promise<Receipt> {
  if (!isProviderKind(kind))
    throw new Problem(
      400,
      'UNSUPPORTED_PROVIDER',
      `Nobody called "${kind}" sends here, but ${providerKinds.join(', ')}.`,
    )
  const raw = await readBytes(request, config.ATOLL_BODY_LIMIT)
  const sender = await senderOf(ctx, kind, raw, request)
  if (!sender) return refuse(ctx, kind)
  return keep(ctx, kind, sender, textOf(raw)!, read(kind, raw))
}

/** @throws 400 for what is signed, but none of the events that its provider describes */
function read(kind: ProviderKind, raw: Uint8Array) {
  try {
    const event = keepable(providerOf(kind).parseEvent(raw))
    fitting(SensibleEvent, event)
    return event
  } catch (cause) {
    if (cause instanceof Problem) throw cause
    report('WEBHOOK_UNREADABLE', { provider: kind, cause })
    throw new Problem(400, 'INVALID_INPUT', 'The body is no event of this provider.', { cause })
  }
}

/** The connection whose secret has signed a body. */
async function senderOf(ctx: OpenCtx, kind: ProviderKind, raw: Uint8Array, request: Request) {
  if (kind === 'paypal') {
    throttle(ctx, kind, request)
    waitsLong(request)
  }
  let failure: unknown
  for (const opened of await allOpened(ctx, kind))
    try {
      if (await providerOf(kind).verifyWebhook(opened, raw, request.headers)) return opened._id
    } catch (error) {
      failure ??= error
    }
  // Who could not be asked might have known it: it has to be sent again.
  if (failure) throw failure
}

const told = new Limiter(1, 60_000)

/** Who looks for why nothing comes is to find it: the first in a minute is written down. */
async function refuse(ctx: Tenant, kind: ProviderKind): Promise<never> {
  const { tenant } = ctx
  if ((await allOpened(ctx, kind)).length && !told.take(`${tenant} ${kind}`))
    await ctx.write((tx) =>
      emit(ctx, tx, {
        ...{ source: 'payments', kind: 'webhook', eventName: 'webhook-failed' },
        description: `Something came for ${kind} that none of its webhook secrets has signed.`,
        metadata: { providerKind: kind, code: 'INVALID_SIGNATURE', at: now() },
      }),
    )
  throw new Problem(401, 'INVALID_SIGNATURE', 'No webhook secret of this provider has signed these bytes just now.')
}
