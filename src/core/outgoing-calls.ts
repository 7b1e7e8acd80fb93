import { Problem } from './problem'

const MAX_CALLS_PER_TENANT = 64
const MAX_CALLS_PER_HOST = 8 // of one tenant
const MAX_WAITING_PER_TENANT = 256

/** The tenant has too many calls of other servers under way, and its call could not begin in time (503). */
export class TooManyCalls extends Problem {
  constructor() {
    const message = 'Too many calls of other servers are under way. Try again in a moment.'
    super(503, 'BUSY', message, { headers: { 'retry-after': '1' } })
  }
}

type Host = { running: number; waiting: (() => void)[] }
type Calls = { running: number; waiting: number; hosts: Map<string, Host> }

const tenants = new Map<string, Calls>()

/**
 * Calls a server (`host`, with its port) when it is its turn: of one tenant 64 calls are under way at once, 8 of them at one
 * host, and 256 wait. A call waits only for calls of its own tenant, and hosts take turns. `signal` ends the waiting.
 * @throws 503 BUSY when too many wait, or the waiting ended
 */
export async function withOutgoingCall<T>(
  tenant: string,
  host: string,
  signal: AbortSignal,
  call: () => Promise<T>,
): Promise<T> {
  const calls = tenants.get(tenant) ?? { running: 0, waiting: 0, hosts: new Map<string, Host>() }
  tenants.set(tenant, calls)
  const at = calls.hosts.get(host) ?? { running: 0, waiting: [] }
  calls.hosts.set(host, at)
  if (mayBegin(calls, at)) begin(calls, at)
  else await turn(calls, at, signal).finally(() => forgetIdle(tenant, host))
  try {
    return await call()
  } finally {
    calls.running--
    at.running--
    beginNext(calls)
    forgetIdle(tenant, host)
  }
}

const mayBegin = (calls: Calls, at: Host) => calls.running < MAX_CALLS_PER_TENANT && at.running < MAX_CALLS_PER_HOST

function begin(calls: Calls, at: Host) {
  calls.running++
  at.running++
}

/** Whoever hands the turn on counts the call as begun, or else one that comes just then would overtake. */
async function turn(calls: Calls, { waiting }: Host, signal: AbortSignal) {
  if (calls.waiting >= MAX_WAITING_PER_TENANT || signal.aborted) throw new TooManyCalls()
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const leave = () => {
    calls.waiting--
    signal.removeEventListener('abort', giveUp)
  }
  const come = () => {
    leave()
    resolve()
  }
  const giveUp = () => {
    leave()
    waiting.splice(waiting.indexOf(come), 1)
    reject(new TooManyCalls())
  }
  calls.waiting++
  waiting.push(come)
  signal.addEventListener('abort', giveUp)
  await promise
}

function beginNext(calls: Calls) {
  for (const [name, host] of calls.hosts) {
    if (!host.waiting.length || !mayBegin(calls, host)) continue
    begin(calls, host)
    // At the end of the row, so that another host is next.
    calls.hosts.delete(name)
    calls.hosts.set(name, host)
    return host.waiting.shift()?.()
  }
}

function forgetIdle(tenant: string, name: string) {
  const calls = tenants.get(tenant)
  const host = calls?.hosts.get(name)
  if (host && !host.running && !host.waiting.length) calls?.hosts.delete(name)
  if (calls && !calls.hosts.size) tenants.delete(tenant)
}

/** How many calls of a tenant are under way and wait, for tests and figures. */
export const countOutgoingCalls = (tenant: string) => {
  const { running = 0, waiting = 0 } = tenants.get(tenant) ?? {}
  return { running, waiting }
}
