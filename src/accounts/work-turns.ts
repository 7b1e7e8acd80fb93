import type { RunSlice } from '../core/sliced-json'
import { Busy } from '../storage/errors'
import { clientNetwork } from '../tenancy/client-connection'
import { type ConcurrencyLimits, costlyWork, type WorkOwner } from '../tenancy/fair-queue'
import type { PublicCtx } from './context'

/** Returns for whom the costly work of a request is done. */
export const toWorkOwner = ({ tenant, actor }: PublicCtx, request?: Request): WorkOwner => ({
  tenant,
  caller: actor?.user ?? (request ? `at ${clientNetwork(request)}` : 'nobody'),
})

/** Runs slices of a request's work when it is the caller's turn. */
export class WorkTurns {
  #owner: WorkOwner
  #leaveQueue?: () => void

  /** `limits`: how much of such work may be under way or wait (default: any amount). */
  constructor(
    ctx: PublicCtx,
    private request?: Request,
    private limits?: ConcurrencyLimits,
  ) {
    this.#owner = toWorkOwner(ctx, request)
  }

  /** @throws 503 BUSY when too much is under way, or the client has disconnected */
  run: RunSlice = (slice) => {
    if (this.request?.signal.aborted) throw new Busy('The client disconnected.')
    if (this.limits) this.#leaveQueue ??= costlyWork.acquireSlot(this.#owner, this.limits)
    return costlyWork.run(this.#owner, async () => slice(), { whole: true })
  }

  end() {
    this.#leaveQueue?.()
    this.#leaveQueue = undefined
  }
}
