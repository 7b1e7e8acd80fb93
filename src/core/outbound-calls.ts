import { Busy } from './busy'
import { FairShare } from './fair-share'

/** 503 BUSY: the tenant has too many outbound calls in progress, and this call could not begin in time. */
export class TooManyCalls extends Busy {
  constructor() {
    super(undefined, 'Too many outbound calls are in progress. Try again in a moment.')
  }
}

// A call waits only for calls of its own tenant, and there the hosts take turns, as callers do elsewhere.
const callShare = new FairShare({
  running: { perTenant: 64, perCaller: 8 },
  waiting: { perTenant: 256 },
  createRefusal: () => new TooManyCalls(),
})

/**
 * Runs a call to a server (`host` includes the port) when it is its turn. Per tenant, 64 calls run at once, 8 of them
 * to one host, and 256 wait. `signal` ends the wait.
 * @throws 503 BUSY when too many calls wait, or `signal` ended the wait
 */
export const withOutboundCall = <T>(tenant: string, host: string, signal: AbortSignal, call: () => Promise<T>) =>
  callShare.run({ tenant, caller: host }, call, { signal })

/** Returns how many calls of all tenants are running and waiting. */
export const countAllOutboundCalls = () => callShare.totals

/** Returns how many calls of a tenant are running and waiting, for tests. */
export const countOutboundCalls = (tenant: string) => callShare.countOf(tenant)
