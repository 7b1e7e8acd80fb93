import { Problem } from './problem'

const MAX_CALLS_PER_TENANT = 64
const MAX_CALLS_PER_HOST = 8 // of one tenant
const MAX_WAITING_PER_TENANT = 256

/** 503 BUSY: the tenant has too many outbound calls in progress, and this call could not begin in time. */
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
 * Runs a call to a server (`host` includes the port) when it is its turn. Per tenant, 64 calls run at once, 8 of them
 * to one host, and 256 wait. A call waits only for calls of its own tenant, and hosts take turns. `signal` ends the
 * wait.
 * @throws 503 BUSY when too many calls wait, or `signal` ended the wait
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

/** Waits for a turn. `startNext` counts the call as started, because a new call could overtake it otherwise. */
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
    // The host moves to the end, so that another host is next.
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

/** Returns how many calls of all tenants are running and waiting. */
export function countAllOutboundCalls() {
  let [running, waiting] = [0, 0]
  for (const calls of callsByTenant.values()) {
    running += calls.running
    waiting += calls.waiting
  }
  return { running, waiting }
}

/** Returns how many calls of a tenant are running and waiting, for tests. */
export const countOutboundCalls = (tenant: string) => {
  const { running = 0, waiting = 0 } = callsByTenant.get(tenant) ?? {}
  return { running, waiting }
}
