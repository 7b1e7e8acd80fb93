import type { PublicCtx } from '../../accounts/context'
import { toWorkOwner } from '../../accounts/work-owner'
import { FairShare } from '../../core/fair-share'
import { tooManyRequests } from '../../core/problem'

const MAX_STREAMS_PER_CALLER = 100 // streams at a time
const MAX_STREAMS_PER_TENANT = 10_000
const RETRY_AFTER_SECONDS = 10 // s

const streamShare = new FairShare({
  running: { perTenant: MAX_STREAMS_PER_TENANT, perCaller: MAX_STREAMS_PER_CALLER },
  createRefusal: (limit) =>
    tooManyRequests(
      RETRY_AFTER_SECONDS,
      limit === 'perCaller'
        ? `You have ${MAX_STREAMS_PER_CALLER} open change streams, which is the maximum. Close one.`
        : `This tenant has ${MAX_STREAMS_PER_TENANT} open change streams, which is the maximum.`,
    ),
})

/** Reserves a place for a stream and returns the function that releases it. @throws 429 */
export const acquireStream = (ctx: PublicCtx, request: Request): (() => void) =>
  streamShare.reserve(toWorkOwner(ctx, request))

/** Returns the number of open streams of this process. */
export const countStreams = () => streamShare.totals.running
