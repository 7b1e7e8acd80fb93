import { eq, getTableName } from 'drizzle-orm'
import { issueApiToken } from '../../../src/accounts/api-tokens'
import { registerUser } from '../../../src/accounts/users/users'
import { threads } from '../../../src/ai/tables'
import { app } from '../../../src/app'
import { HOUR_MS, now } from '../../../src/core/clock'
import { files } from '../../../src/files/tables'
import { handleRequest } from '../../../src/gateway'
import { enqueue } from '../../../src/jobs/queue'
import { jobs } from '../../../src/jobs/tables'
import { transition } from '../../../src/payments/subscriptions/state-machine'
import { providerEvents } from '../../../src/payments/tables'
import { deliveries } from '../../../src/plugins/tables'
import { INDEX, packTar, siteClient } from '../../sites/fixtures'
import { tenantTables } from '../../storage/schema-facts'
import { apiClient, callApi, fullAccessRules, type TestResponse } from '../../test-tenant'
import { createWorkspaceFixture } from '../../workspaces/workspace-fixtures'
import { createAuthenticator, registerPasskey } from '../passkeys/passkey-fixtures'
import { createSignedInClient } from '../session-fixtures'

/** Every route that the app registers below /api, except those of plugins, which have tests of their own. */
export const routes = app.routes
  .filter(({ path }) => path.startsWith('/api/') && !path.endsWith('*'))
  .map(({ method, path, hooks }) => ({ name: `${method} ${path}`, method, path, access: hooks.detail?.['x-access'] }))

/** A request to a route: path parameters, query, body and headers. */
export type RouteRequest = {
  path?: Record<string, string>
  query?: string
  body?: unknown
  raw?: string | Uint8Array
  headers?: Record<string, string>
}

export const password = 'correct horse battery'

/** Creates a tenant with one resource of each kind, so that every route has something to act on. */
export async function createTenantFixture() {
  const home = await createWorkspaceFixture()
  const { tenant, id, as, at } = home
  const requireSuccess = async (answer: Promise<TestResponse>) => {
    const { status, body } = await answer
    if (status >= 300) throw new Error(JSON.stringify(body))
    return body
  }
  const admin = {
    get: (path: string) => requireSuccess(as('admin').get(path)),
    post: (path: string, body: object) => requireSuccess(as('admin').post(path, body)),
    put: (path: string, body: object) => requireSuccess(as('admin').put(path, body)),
  }
  let last = 0
  const name = () => `x${++last}`
  const email = (of: string) => `${of}@${id}.test`
  /** Creates a user. */
  const someone = async () => {
    const username = name()
    const { _id, emailKey } = await registerUser(tenant, { username, email: email(username) }, ['user'], undefined, {
      emailVerified: true,
    })
    return { id: _id, emailKey: emailKey! }
  }
  await admin.post('/users', { username: 'ada', password })
  const workspaceOwner = apiClient(home.origin, {
    'x-api-key': (await issueApiToken(tenant, (await someone()).id, { nickname: 'x' })).token,
  })

  await admin.post('/blueprints', {
    key: 'todos',
    name: 'To-dos',
    fields: [
      { key: 'title', type: 'string' },
      { key: 'done', type: 'boolean' },
      { key: 'hours', type: 'integer' },
      { key: 'parent', type: 'relation', target: 'todos' },
    ],
    permissions: fullAccessRules('tenant', 'user'),
    history: true,
  })
  await admin.post('/configurations', { key: 'theme', public: true, metadata: { color: 'teal' } })
  await admin.post('/configurations', { key: 'hidden', metadata: { plan: 'secret plan' } })
  const google = { clientId: 'x', clientSecret: 'x' }
  await admin.put('/configurations/auth-configuration', {
    metadata: { allowEmailSignIn: true, allowedReturnHosts: ['app.example.com'], providers: { google } },
  })
  const content = 'export const Hello = () => <b>Hello</b>'
  const component = async () => (await admin.post('/components', { identifier: name(), content }))._id as string
  await component()
  const [file] = (await admin.get('/static')) as [{ js: string }]
  const event = await admin.post('/events', { source: 'house', kind: 'door', eventName: 'opened', metadata: { n: 1 } })

  const subscribedEvents = [{ hookUrl: 'https://example.com/hooks' }]
  const plugin = (await admin.post('/plugins', { name: name(), subscribedEvents }))._id as string
  const delivery = {
    ...{
      _id: Bun.randomUUIDv7() as string,
      plugin,
      event: event._id,
      source: 'house',
      kind: 'door',
      eventName: 'opened',
    },
    ...{ hookUrl: 'https://example.com/hooks', state: 'dead' as const, attempts: 1, answer: '' },
    ...{ created: event.created, updated: event.created },
  }
  await tenant.write((tx) => tx.insert(deliveries).values(delivery))

  const mail = { kind: 'email', to: 'ada@example.com', subject: 'x', text: 'x' }
  const integration = async () =>
    (await admin.post('/integrations', { trigger: { kind: 'webhook' }, target: mail }))._id as string

  const otherAgent = async () => (await admin.post('/ai/agents', { name: name(), sourceId: 'echo' }))._id as string
  const agent = await otherAgent()
  /** Creates a vector store of the tenant, or of a user. */
  const vectorStore = async (user?: string) => {
    const owner = user ? { scope: 'user', subjectId: user } : { scope: 'tenant' }
    return (await admin.post('/ai/sources/echo/storage', { integrationId: agent, ...owner })).vectorStore._id as string
  }
  /** Creates a thread of a user. */
  const thread = async (user: string) => {
    const _id = Bun.randomUUIDv7()
    const more = { integration: agent, title: null, summaries: [], workspace: null }
    const row = { _id, user, ...more, created: event.created, updated: event.created }
    await tenant.write((tx) => tx.insert(threads).values(row))
    return _id
  }
  const plan = (await admin.post('/plans', { name: name(), monthlyPrice: 0, yearlyPrice: 0 }))._id as string
  const dynamic = (await admin.post('/plans', { name: name(), dynamic: true }))._id as string
  await admin.post('/coupons', { code: 'SPRING', discountType: 'percentage', discountValue: 50 })
  /** Creates a subscription of the member to a plan. */
  const subscription = async (planId = plan) => {
    const billable = { billableEntityType: 'user', billableEntityId: home.users.other }
    return (await admin.post('/subscriptions', { planId, billingCycle: 'monthly', ...billable }))._id as string
  }
  const subscribed = await subscription()
  const invoiceData = { externalInvoiceId: 'in_1', amount: 100, currency: 'USD' }
  await tenant.write((tx) =>
    transition(tx, tenant, { _id: subscribed }, 'paid', { providerKind: 'stripe', invoice: invoiceData }),
  )
  const [invoice] = (await admin.get('/invoices')) as [{ _id: string }]

  const providerEvent = {
    ...{
      _id: Bun.randomUUIDv7() as string,
      providerKind: 'stripe' as const,
      eventId: 'evt_1',
      type: 'customer.created',
    },
    ...{
      body: '{"id":"evt_1","type":"customer.created","created":1}',
      status: 'ignored' as const,
      occurredAt: 1000,
      attempts: 1,
    },
    ...{ created: event.created, updated: event.created },
  }
  await tenant.write((tx) => tx.insert(providerEvents).values(providerEvent))

  const device = createAuthenticator(home.origin)
  await registerPasskey(await createSignedInClient(home, 'other'), device)

  return {
    ...home,
    device,
    ...{ name, email, someone, component },
    shown: (await component()) as string,
    file: file.js.split('/').at(-1)!,
    event: event._id as string,
    upload: async (owner: string) => {
      const headers = { 'x-api-key': home.tokens.admin, 'content-type': 'text/plain' }
      const { _id } = await requireSuccess(
        callApi('POST', `${home.origin}/api/files?name=a.txt`, { raw: 'text', headers }),
      )
      await tenant.write((tx) => tx.update(files).set({ owner }).where(eq(files._id, _id)))
      return _id as string
    },
    site: () => packTar(INDEX),
    deploy: async () => requireSuccess(siteClient(home).deploy(await packTar(INDEX))),
    lambda: async () => (await admin.post('/lambdas', { name: name(), code: 'export default () => 1' }))._id as string,
    ...{ plugin, delivery: delivery._id, agent, otherAgent, vectorStore, thread },
    ...{ plan, dynamic, subscription, invoice: invoice._id, providerEvent: providerEvent._id },
    otherPlan: async () => (await admin.post('/plans', { name: name(), dynamic: true }))._id as string,
    coupon: async () =>
      (await admin.post('/coupons', { code: name(), discountType: 'percentage', discountValue: 50 }))._id as string,
    otherPlugin: async () => (await admin.post('/plugins', { name: name() }))._id as string,
    source: async () => (await admin.post('/integration-sources', { name: name(), kind: 'stripe' }))._id as string,
    integration,
    /** Creates an integration with a pending run. */
    run: async () => {
      const id = await integration()
      await admin.post(`/webhooks/${id}`, {})
      const [run] = (await admin.get(`/integrations/${id}/runs`)) as [{ _id: string }]
      return { id, runId: run._id }
    },
    /** Inserts a job whose first attempt failed, and returns its ID. */
    failingJob: async () => {
      const _id = Bun.randomUUIDv7() as string
      await tenant.write(async (tx) => {
        await enqueue(tenant, tx, { _id, kind: 'mail', at: now() + HOUR_MS })
        await tx.update(jobs).set({ attempts: 1 }).where(eq(jobs._id, _id))
      })
      return _id
    },
    todo: async () => (await admin.post('/blueprints/todos/entities', { title: name() })).identifier as string,
    block: async () => (await admin.post('/blocks', { name: name(), content: '' }))._id as string,
    blueprint: async () => (await admin.post('/blueprints', { key: name(), name: 'New', fields: [] })).key as string,
    configuration: async () => (await admin.post('/configurations', { key: name(), metadata: {} })).key as string,
    /** Creates a workspace with the same admin and the same member as the first one. */
    another: async () => {
      const { _id } = await requireSuccess(as('user').post('/workspaces', { name: name() }))
      await requireSuccess(
        as('user').post(`/workspaces/${_id}/members`, { userId: home.users.other, roles: ['member'] }),
      )
      return _id as string
    },
    invite: async () =>
      (await requireSuccess(as('user').post(`${at}/invites`, { email: email(name()) })))._id as string,
    /** Adds a new member to the workspace. */
    member: async () => {
      const { id: userId } = await someone()
      await requireSuccess(as('user').post(`${at}/members`, { userId, roles: ['member'] }))
      return userId
    },
    /** Invites an address to a new workspace. */
    inviting: async (address: string) => {
      const { _id } = await requireSuccess(workspaceOwner.post('/workspaces', { name: name() }))
      await requireSuccess(workspaceOwner.post(`/workspaces/${_id}/invites`, { email: address }))
      return _id as string
    },
    token: async (user: string) => (await issueApiToken(tenant, user, { nickname: 'x' })).apiToken._id,
  }
}
export type TenantFixture = Awaited<ReturnType<typeof createTenantFixture>>

/** Returns all rows of a tenant by table, except leases. */
export async function snapshotTenant({ tenant }: Pick<TenantFixture, 'tenant'>) {
  // This waits for writes in the background.
  await tenant.write(async () => {})
  const state: Record<string, string[]> = {}
  for (const table of tenantTables) {
    if (getTableName(table) === 'leases') continue
    const rows = await tenant.db.select().from(table)
    state[getTableName(table)] = rows.map((row) => JSON.stringify(row)).sort()
  }
  return state
}

/** The user who sends a request, their e-mail address and headers. */
export type Requester = { user: string; email: string; headers: Record<string, string> }

/** Sends a request to a route of an origin; a successful stream is cancelled after its headers. */
export async function sendRequest(
  origin: string,
  { method, path }: { method: string; path: string },
  routeRequest: RouteRequest,
  more: object,
) {
  const filled = path.replace(/:(\w+)/g, (_, name: string) => {
    const value = routeRequest.path?.[name]
    if (value === undefined) throw new Error(`route-requests.ts lacks the path parameter ${name} of ${method} ${path}.`)
    return encodeURIComponent(value)
  })
  const { body, raw, headers } = routeRequest
  const url = `${origin}${filled}${routeRequest.query ? `?${routeRequest.query}` : ''}`
  const init = { body, raw, headers: { ...headers, ...more } }
  if (!path.endsWith('/changes')) return callApi(method, url, init)
  const stream = await handleRequest(
    new Request(url, { method, headers: { host: new URL(url).host, ...init.headers } }),
  )
  const parsed = stream.ok ? undefined : await stream.json()
  if (stream.ok) await stream.body?.cancel()
  return { status: stream.status, headers: stream.headers, body: parsed }
}
