import { config } from '../../src/config'
import { withOutboundCall } from '../../src/core/outbound-calls'
import { emitAll, type NewEvent } from '../../src/jobs/outbox'
import { runDueJobs } from '../../src/jobs/runner'
import type { Tenant } from '../../src/tenancy/tenants'
import type { ApiClient } from '../test-tenant'

export const times = (n: number) => Array.from({ length: n }, (_, i) => i)

/** Allows requests to private networks, as in an office. */
export const allowPrivateNetwork = () => {
  config.ATOLL_ALLOW_PRIVATE_NETWORK = 'on'
}
export const denyPrivateNetwork = () => {
  config.ATOLL_ALLOW_PRIVATE_NETWORK = 'off'
}

/** Uses up the outbound calls of a tenant to one host until the returned function is called. */
export function exhaustOutboundCalls({ tenant }: Tenant, url: string) {
  const { promise, resolve } = Promise.withResolvers<void>()
  const { signal } = new AbortController()
  const calls = times(8 + 256).map(() => withOutboundCall(tenant, new URL(url).host, signal, () => promise))
  return async () => {
    resolve()
    await Promise.all(calls)
  }
}

let pluginCount = 0
/** Creates a plugin that subscribes these addresses to the events of the source `shop`. */
export async function createOrderPlugin(admin: ApiClient, hookUrls: string[], more: object = {}) {
  const subscribedEvents = hookUrls.map((hookUrl) => ({ source: 'shop', hookUrl }))
  const { status, body } = await admin.post('/plugins', { name: `plugin ${pluginCount++}`, subscribedEvents, ...more })
  if (status !== 201) throw new Error(JSON.stringify(body))
  return body
}

export const newOrderEvent = (n: number): NewEvent => ({
  source: 'shop',
  kind: 'order',
  eventName: 'placed',
  metadata: { n },
})

/** Emits these events and runs the jobs that deliver them. */
export async function emitAndDeliver(tenant: Tenant, ...newEvents: NewEvent[]) {
  await tenant.write((tx) => emitAll(tenant, tx, newEvents))
  return runDueJobs(tenant)
}
