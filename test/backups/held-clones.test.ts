import { expect, setDefaultTimeout, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { cloneTenant } from '../../src/backups/clone'
import { moveClock, now } from '../../src/core/clock'
import { callTarget } from '../../src/integrations/targets/index'
import { emit } from '../../src/jobs/outbox'
import { runDueJobs } from '../../src/jobs/runner'
import { fetchForLambda } from '../../src/lambdas/host-api/fetch'
import { getSubscriptionProvider } from '../../src/payments/configuration'
import { resumeOutgoing } from '../../src/tenancy/outgoing-hold'
import { getTenantInfo } from '../../src/tenancy/tenant-list'
import { getTenant, isOutgoingHeld } from '../../src/tenancy/tenants'
import { startWebhookReceiver } from '../fakes/webhook-receiver'
import { createLambda, toResult } from '../lambdas/fixtures'
import { allowPrivateNetwork, createOrderPlugin, denyPrivateNetwork, newOrderEvent } from '../plugins/fixtures'
import { errorOf } from '../rejections'
import { createClientOf, createTenantWithThings, freshId } from './fixtures'

setDefaultTimeout(60_000)

const root = resolve(import.meta.dir, '../..')
/** Where each file that calls other servers is held; undefined where it only reads, or acts for the installation. */
const WAYS_OUT: Record<string, string | undefined> = {
  'src/accounts/social/oauth-client.ts': 'src/accounts/social/provider-config.ts',
  'src/ai/sources/source-request.ts': 'src/ai/sources/sources.ts',
  'src/connections/kinds/probe.ts': undefined,
  'src/integrations/targets/http.ts': 'src/integrations/targets/index.ts',
  'src/lambdas/host-api/fetch.ts': 'src/lambdas/host-api/fetch.ts',
  'src/payments/providers/provider-http.ts': 'src/payments/configuration.ts',
  'src/plugins/delivery-job.ts': 'src/plugins/delivery-job.ts',
  'src/plugins/manifest.ts': undefined,
  'src/plugins/proxy.ts': 'src/plugins/proxy.ts',
  'src/tls/acme-authority.ts': undefined,
}

test('a copy delivers nothing of its origin and nothing of its own until the operator lets it', async () => {
  const own = await createTenantWithThings()
  const receiver = startWebhookReceiver()
  allowPrivateNetwork()
  try {
    await createOrderPlugin(own.as('admin'), [`${receiver.url}/orders`])
    const origin = await getTenant(own.id)
    // The origin delivers this one, after it was copied.
    await origin.write((tx) => emit(origin, tx, newOrderEvent(1)))
    const as = freshId()
    await cloneTenant(own.id, as)
    expect([await isOutgoingHeld(as), await isOutgoingHeld(own.id)]).toEqual([true, false])
    const copy = await getTenant(as)
    await copy.write((tx) => emit(copy, tx, newOrderEvent(2)))
    await runDueJobs(copy)
    expect(receiver.deliveries).toEqual([])
    const jobs = await copy.db.query("select state, attempts from jobs where kind = 'delivery'")
    expect(jobs.map((row) => row.map(String))).toEqual([['waiting', '0']])
    await runDueJobs(origin)
    expect(receiver.deliveries).toHaveLength(1)
    await resumeOutgoing(as)
    expect((await getTenantInfo(as)).outgoingHeld).toBeUndefined()
    moveClock(now() + 61_000)
    await runDueJobs(await getTenant(as))
    expect(receiver.deliveries.map(({ headers }) => headers['x-atoll-tenant'])).toEqual([own.id, as])
  } finally {
    moveClock()
    denyPrivateNetwork()
    await receiver.stop()
  }
})

test('a copy runs no target of an integration until the operator lets it', async () => {
  const own = await createTenantWithThings()
  const as = freshId()
  await cloneTenant(own.id, as)
  const [copy, target] = [await getTenant(as), { kind: 'lambda', lambda: 'nobody' } as never]
  const run = async () => callTarget({ ...copy, actor: undefined } as never, target, {} as never)
  expect(await errorOf(run())).toMatchObject({ status: 409, code: 'OUTGOING_HELD' })
  await resumeOutgoing(as)
  expect((await errorOf(run())).code).not.toBe('OUTGOING_HELD')
})

test('a lambda of a copy fetches nothing until the operator lets it, whoever runs it', async () => {
  const own = await createTenantWithThings()
  const as = freshId()
  await cloneTenant(own.id, as)
  const fetchAs = async () =>
    fetchForLambda({ ctx: await getTenant(as), fetchCount: 0 } as never, 'https://example.invalid/', 'GET', [], '')
  expect(await errorOf(fetchAs())).toMatchObject({ status: 409, code: 'OUTGOING_HELD' })
})

test('POST /api/lambdas/:id/execute in a copy makes no outgoing call until the operator lets it', async () => {
  const own = await createTenantWithThings()
  let calls = 0
  const count = () => Response.json(++calls)
  const upstream = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: count })
  allowPrivateNetwork()
  try {
    const body = `async () => (await fetch('http://127.0.0.1:${upstream.port}/')).json()`
    const path = await createLambda(own.as('admin'), body)
    const as = freshId()
    await cloneTenant(own.id, as)
    const copy = await createClientOf(as, own.users.admin)
    const execute = async () => toResult(await copy.post(`${path}/execute`, {}))
    expect([String(await execute()), calls]).toEqual([expect.stringContaining('outgoing'), 0])
    await resumeOutgoing(as)
    expect(await execute()).toBe(1)
  } finally {
    denyPrivateNetwork()
    await upstream.stop()
  }
})

test('a copy calls no plugin, model server or sign-in provider until the operator lets it', async () => {
  const own = await createTenantWithThings()
  const upstream = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => Response.json({ from: 'outside' }) })
  allowPrivateNetwork()
  try {
    const admin = own.as('admin')
    const url = `http://127.0.0.1:${upstream.port}`
    await admin.post('/plugins', { name: 'Shop', apiPath: 'shop', proxyUrl: url })
    const source = { name: 'Models', kind: 'openai', metadata: { apiUrl: url }, authentication: { token: 'sk-1' } }
    const sourceId = (await admin.post('/integration-sources', source)).body._id
    const target = { kind: 'ai', sourceId }
    const agent = (await admin.post('/integrations', { trigger: { kind: 'chat' }, target })).body._id
    const providers = { google: { clientId: 'ours', clientSecret: 'secret' } }
    await admin.put('/configurations/auth-configuration', { metadata: { providers } })
    const as = freshId()
    await cloneTenant(own.id, as)
    const copy = await createClientOf(as, own.users.admin)
    const requests = [
      () => copy.get('/shop/orders'),
      () => copy.post(`/ai/${agent}/chat-completion`, { messages: [{ role: 'user', content: 'Hello' }] }),
      () => copy.get('/auth/google'),
    ]
    const held = { status: 409, body: { code: 'OUTGOING_HELD' } }
    for (const request of requests) expect(await request()).toMatchObject(held)
    await resumeOutgoing(as)
    expect((await requests[0]!()).body).toEqual({ from: 'outside' })
    for (const request of requests) expect((await request()).body?.code).not.toBe('OUTGOING_HELD')
  } finally {
    denyPrivateNetwork()
    await upstream.stop()
  }
})

test('every way out stands behind the hold of copies, or only reads', () => {
  const files = [...new Bun.Glob('src/**/*.ts').scanSync(root)].sort()
  const callers = files.filter(
    (file) =>
      !file.startsWith('src/core/') && /\bfetchExternal(Stream)?\(/.test(readFileSync(join(root, file), 'utf8')),
  )
  expect(Object.keys(WAYS_OUT).sort()).toEqual(callers)
  for (const [file, guard] of Object.entries(WAYS_OUT))
    if (guard) expect(readFileSync(join(root, guard), 'utf8'), file).toMatch(/assertOutgoingAllowed|isOutgoing: true/)
})

test('a copy of a tenant calls no payment provider, and its subscriptions belong to none', async () => {
  const own = await createTenantWithThings()
  await (await getTenant(own.id)).write((tx) =>
    tx.query(
      `insert into subscriptions (_id, plan_id, billable_entity_type, billable_entity_id, status, billing_cycle, currency,
        cancel_at_period_end, failed_checkouts, metadata, provider_kind, provider_source_id, external_subscription_id,
        created, updated) values (?, 'plan', 'user', ?, 'active', 'monthly', 'EUR', 0, 0, '{}', 'stripe', ?, 'sub_1', 0, 0)`,
      [Bun.randomUUIDv7(), own.users.user, own.connection],
    ),
  )
  const as = freshId()
  await cloneTenant(own.id, as)
  const subscriptionOf = async (id: string) =>
    (
      await (await getTenant(id)).db.query('select provider_kind, external_subscription_id, status from subscriptions')
    )[0]
  expect(await subscriptionOf(own.id)).toEqual(['stripe', 'sub_1', 'active'])
  expect(await subscriptionOf(as)).toEqual([null, null, 'active'])
  const copy = await getTenant(as)
  const linked = { providerKind: 'stripe' as const, providerSourceId: own.connection }
  expect(await errorOf(getSubscriptionProvider(copy, linked))).toMatchObject({ status: 409, code: 'OUTGOING_HELD' })
  expect((await getSubscriptionProvider(await getTenant(own.id), linked)).kind).toBe('stripe')
  // Nor does it when it acts outside again: what it had was the origin's.
  await resumeOutgoing(as)
  expect(await subscriptionOf(as)).toEqual([null, null, 'active'])
})

test('a copy without secrets has none of them, and tells which they were', async () => {
  const own = await createTenantWithThings()
  const as = freshId()
  const { omittedSecrets, lostSecrets } = await cloneTenant(own.id, as, {}, { withoutSecrets: true })
  expect([omittedSecrets.length, lostSecrets]).toEqual([1, 0])
  expect(omittedSecrets[0]).toContain('connection')
  const copy = await getTenant(as)
  expect(await copy.db.query('select 1 from sealed')).toEqual([])
  const client = await createClientOf(as, own.users.admin)
  expect((await client.get(`/integration-sources/${own.connection}`)).body.name).toBe('Cards')
  expect((await client.get('/installation')).body.outgoingHeld).toBe(true)
  expect((await own.as('admin').get('/installation')).body.outgoingHeld).toBe(false)
})
