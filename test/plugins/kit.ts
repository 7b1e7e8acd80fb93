import { config } from '../../src/config'
import { emitAll, type Telling } from '../../src/jobs/outbox'
import { runDue } from '../../src/jobs/runner'
import type { Tenant } from '../../src/tenancy/tenants'
import type { Client } from '../house'

export const times = (n: number) => Array.from({ length: n }, (_, i) => i)

/** Neighbours may be asked, as in an office. */
export const open = () => {
  config.ATOLL_ALLOW_PRIVATE_NETWORK = 'on'
}
export const closed = () => {
  config.ATOLL_ALLOW_PRIVATE_NETWORK = 'off'
}

let made = 0
/** A plugin that hears of what `orders` tell, at these addresses. */
export async function orders(admin: Client, hookUrls: string[], more: object = {}) {
  const subscribedEvents = hookUrls.map((hookUrl) => ({ source: 'shop', hookUrl }))
  const { status, body } = await admin.post('/plugins', { name: `plugin ${made++}`, subscribedEvents, ...more })
  if (status !== 201) throw new Error(JSON.stringify(body))
  return body
}

export const placed = (n: number): Telling => ({ source: 'shop', kind: 'order', eventName: 'placed', metadata: { n } })

/** Has this happen, and delivers it. */
export async function happen(tenant: Tenant, ...tellings: Telling[]) {
  await tenant.write((tx) => emitAll(tenant, tx, tellings))
  return runDue(tenant)
}
