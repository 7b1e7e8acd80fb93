import { expect, test } from 'bun:test'
import { join } from 'node:path'
import BetterSqlite from 'better-sqlite3'
import { apiCaller, createTempFolder, createTenantByCli, type RunningAtoll, signIn, startAtoll } from '../../fakes/cli'
import { signStripeWebhook } from '../../fakes/vendors/stripe'
import type { SignedWebhook } from '../../fakes/vendors/vendor'
import { databaseUrl } from '../../storage/engines'

const SUBSCRIPTIONS = 24
const KILLS = 3
const CONCURRENT_SENDERS = 12
const SECRET = 'whsec_of_the_test'

const name = `t${crypto.randomUUID()}`

/** Delivers events concurrently until all are acknowledged or the server is gone, and records the acknowledged statuses. */
async function deliver({ url }: RunningAtoll, events: [string, SignedWebhook][], acknowledged: Map<string, string>) {
  const left = events.values()
  const sender = async () => {
    for (const [id, { raw, headers }] of left) {
      const request = { method: 'POST', body: raw, headers: { ...headers, tenant: name } }
      const answer = await fetch(`${url}/api/payments/webhooks/stripe`, request).catch(() => undefined)
      if (!answer) return
      expect(answer.status).toBe(200)
      const { status } = (await answer.json().catch(() => ({ status: 'unknown' }))) as { status: string }
      acknowledged.set(id, status)
    }
  }
  await Promise.all(Array.from({ length: CONCURRENT_SENDERS }, sender))
}

const shuffle = <T>(list: T[]) =>
  list
    .map((one) => [Math.random(), one] as const)
    .sort(([a], [b]) => a - b)
    .map(([, one]) => one)

test('a server that is killed at random moments loses no acknowledged webhook and applies none twice', async () => {
  const at = {
    at: createTempFolder(),
    env: { ATOLL_DURABILITY: 'full', ...(databaseUrl && { ATOLL_DATABASE_URL: databaseUrl }) },
  }
  await createTenantByCli(at, name)
  const events = new Map<string, SignedWebhook>()
  const own: string[] = []
  {
    await using server = await startAtoll(at)
    const admin = apiCaller(server.url, await signIn(server.url, name))
    await admin('POST', '/api/integration-sources', {
      name: 'Stripe',
      kind: 'stripe',
      authentication: { webhookSecret: SECRET },
    })
    const plan = (await admin('POST', '/api/plans', { name: 'Pro', monthlyPrice: 20, yearlyPrice: 200 })).body._id
    await admin('POST', '/api/coupons', { code: 'HALF', discountType: 'percentage', discountValue: 50 })
    for (let n = 0; n < SUBSCRIPTIONS; n++) {
      const { body: workspace } = await admin('POST', '/api/workspaces', { name: `w${n}` })
      const entity = { billableEntityType: 'workspace', billableEntityId: workspace._id }
      const order = { planId: plan, billingCycle: 'monthly', couponCode: 'HALF', ...entity }
      const { body } = await admin('POST', '/api/subscriptions', order)
      own.push(body._id)
      const created = Math.floor(Date.now() / 1000)
      const period = { current_period_start: created, current_period_end: created + 2_592_000 }
      const metadata = { tenant: name, subscription: body._id }
      const objects: Record<string, object> = {
        'customer.subscription.created': { id: `sub_${n}`, status: 'active', metadata, ...period },
        'invoice.paid': {
          id: `in_${n}`,
          amount_due: 1000,
          amount_paid: 1000,
          currency: 'usd',
          subscription: `sub_${n}`,
        },
        'customer.subscription.updated': {
          id: `sub_${n}`,
          status: 'active',
          metadata,
          ...period,
          cancel_at_period_end: true,
        },
      }
      for (const [type, object] of Object.entries(objects)) {
        const id = `evt_${n}_${type}`
        const at = type.endsWith('updated') ? created + 1 : created
        events.set(id, await signStripeWebhook(JSON.stringify({ id, type, created: at, data: { object } }), SECRET))
      }
    }
    await server.end('SIGTERM')
  }

  const acknowledged = new Map<string, string>()
  for (let kill = 0; kill < KILLS; kill++) {
    await using server = await startAtoll(at)
    const waiting = shuffle([...events].filter(([id]) => !acknowledged.has(id)))
    const enough = acknowledged.size + 5
    const delivering = deliver(server, waiting, acknowledged)
    while (acknowledged.size < enough) await Bun.sleep(1)
    await Bun.sleep(Math.random() * 15)
    await server.end('SIGKILL')
    await delivering
  }
  expect(acknowledged.size).toBeLessThan(events.size)

  await using server = await startAtoll(at)
  const admin = apiCaller(server.url, await signIn(server.url, name))
  const inbox = async (query: string) =>
    (await admin('GET', `/api/payments/events?limit=1000&${query}`)).body as { eventId: string }[]
  // All acknowledged events are stored, whatever their status.
  const storedIds = new Set((await inbox('')).map(({ eventId }) => eventId))
  expect([...acknowledged.keys()].filter((id) => !storedIds.has(id))).toEqual([])
  // Providers repeat unacknowledged events, and sometimes acknowledged ones.
  const statuses = new Map<string, string>()
  await deliver(server, shuffle([...events]), statuses)
  for (const [id, status] of statuses) expect([id, status === 'duplicate']).toEqual([id, storedIds.has(id)])
  const until = performance.now() + 15_000
  while ((await inbox('status=parked,failed')).length && performance.now() < until) await Bun.sleep(100)
  expect(await inbox('status=parked,failed,received')).toEqual([])

  const count = async (path: string) => (await admin('GET', `/api${path}&limit=1000`)).body.length as number
  const rows = (await admin('GET', '/api/subscriptions?status=active&limit=1000')).body as {
    cancelAtPeriodEnd: boolean
  }[]
  expect([rows.length, rows.every(({ cancelAtPeriodEnd }) => cancelAtPeriodEnd)]).toEqual([SUBSCRIPTIONS, true])
  expect(await count('/invoices?status=paid')).toBe(SUBSCRIPTIONS)
  expect(await count('/payments/events?')).toBe(events.size)
  expect((await admin('GET', '/api/coupons')).body[0].currentRedemptions).toBe(SUBSCRIPTIONS)
  for (const event of ['subscription-activated', 'invoice-paid'])
    expect([event, await count(`/events?eventName=${event}`)]).toEqual([event, SUBSCRIPTIONS])
  await server.end('SIGTERM')
  if (databaseUrl) return
  const db = new BetterSqlite(join(at.at, `tenants/${name}/data.db`), { readonly: true })
  expect(db.pragma('integrity_check', { simple: true })).toBe('ok')
  db.close()
}, 60_000)
