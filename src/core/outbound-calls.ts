import { Problem } from './problem'

const MAX_CALLS_PER_TENANT = 64
const MAX_CALLS_PER_HOST = 8 // of one tenant
const MAX_WAITING_PER_TENANT = 256

/** The tenant has too many calls of other servers under way, and its call could not begin in time (503). */
export class TooManyCalls extends Problem {
  constructor() {
    const message = 'Too many outbound calls are in progress. Try again in a moment.'
    super(503, 'BUSY', message, { headers: { 'retry-after': '1' } })
  }
}

type HostCalls = { running: number; waiting: (() => void)[] }
type TenantCalls = { running: number; waiting: number; hosts: Map<string, HostCalls> }

const callsByTenant = new Map<string, TenantCalls>()

/**
 * Calls a server (`host`, with its port) when it is its turn: of one tenant 64 calls are under way at once, 8 of them at one
 * host, and 256 wait. A call waits only for calls of its own tenant, and hosts take turns. `signal` ends the waiting.
 * @throws 503 BUSY when too many wait, or the waiting ended
 */
export async function withOutboundCall<T>(
  tenant: string,
  host: string,
  signal: AbortSignal,
  call: () => Promise<T>,
): Promise<T> {
  const calls = callsByTenant.get(tenant) ?? { running: 0, waiting: 0, hosts: new Map<string, HostCalls>() }
  callsByTenant.set(tenant, calls)
  const hostCalls = calls.hosts.get(host) ?? { running: 0, waiting: [] }
  calls.hosts.set(host, hostCalls)
  if (mayStart(calls, hostCalls)) countStarted(calls, hostCalls)
  else await waitForStart(calls, hostCalls, signal).finally(() => removeIdle(tenant, host))
  try {
    return await call()
  } finally {
    calls.running--
    hostCalls.running--
    startNext(calls)
    removeIdle(tenant, host)
  }
}

const mayStart = (calls: TenantCalls, hostCalls: HostCalls) =>
  calls.running < MAX_CALLS_PER_TENANT && hostCalls.running < MAX_CALLS_PER_HOST

function countStarted(calls: TenantCalls, hostCalls: HostCalls) {
  calls.running++
  hostCalls.running++
}

/** Whoever hands the turn on counts the call as begun, or else one that comes just then would overtake. */
async function waitForStart(calls: TenantCalls, { waiting }: HostCalls, signal: AbortSignal) {
  if (calls.waiting >= MAX_WAITING_PER_TENANT || signal.aborted) throw new TooManyCalls()
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const stopWaiting = () => {
    calls.waiting--
    signal.removeEventListener('abort', giveUp)
  }
  const start = () => {
    stopWaiting()
    resolve()
  }
  const giveUp = () => {
    stopWaiting()
    waiting.splice(waiting.indexOf(start), 1)
    reject(new TooManyCalls())
  }
  calls.waiting++
  waiting.push(start)
  signal.addEventListener('abort', giveUp)
  await promise
}

function startNext(calls: TenantCalls) {
  for (const [name, host] of calls.hosts) {
    if (!host.waiting.length || !mayStart(calls, host)) continue
    countStarted(calls, host)
    // At the end of the row, so that another host is next.
    calls.hosts.delete(name)
    calls.hosts.set(name, host)
    return host.waiting.shift()?.()
  }
}

function removeIdle(tenant: string, name: string) {
  const calls = callsByTenant.get(tenant)
  const host = calls?.hosts.get(name)
  if (host && !host.running && !host.waiting.length) calls?.hosts.delete(name)
  if (calls && !calls.hosts.size) callsByTenant.delete(tenant)
}

/** How many calls of a tenant are under way and wait, for tests and figures. */
export const countOutboundCalls = (tenant: string) => {
  const { running = 0, waiting = 0 } = callsByTenant.get(tenant) ?? {}
  return { running, waiting }
}
