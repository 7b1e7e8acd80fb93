import type { ShareLimits } from '../core/fair-share'
import type { RunSlice } from '../core/sliced-json'
import type { WorkOwner } from '../core/turn-queue'
import { Busy } from '../storage/errors'
import { costlyWork } from '../tenancy/fair-queue'
import type { PublicCtx } from './context'
import { toWorkOwner } from './work-owner'

/** Runs slices of a request's work when it is the caller's turn. */
export class WorkTurns {
  #owner: WorkOwner
  #leaveQueue?: () => void

  /** `limits`: how much of such work may be under way or wait (default: any amount). */
  constructor(
    ctx: PublicCtx,
    private request?: Request,
    private limits?: ShareLimits,
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
