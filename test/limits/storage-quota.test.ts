import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { app } from '../../src/app'
import { config } from '../../src/config'
import { requests } from '../accounts/access/route-requests'
import {
  createTenantFixture,
  type RouteRequest,
  sendRequest,
  type TenantFixture,
} from '../accounts/access/tenant-fixture'
import { fullAccessRules, statusAndCode, withoutRateLimits } from '../test-tenant'
import { createQuotaFixture, setQuotas } from './quota-fixtures'

setDefaultTimeout(120_000)

const EXCEEDED = [403, 'QUOTA_EXCEEDED']

/** Writes that stay possible when storage is used up, by why. All others are refused. */
const POSSIBLE: Record<string, string[]> = {
  'signing in, and what keeps an account safe': [
    ...['POST /api/signin', 'POST /api/signup', 'POST /api/setup', 'POST /api/signin/link'],
    ...['POST /api/token/refresh', 'POST /api/cookie/refresh', 'POST /api/logout'],
    ...['POST /api/signin/passkey/options', 'POST /api/signin/passkey/', 'POST /api/auth/callback'],
    'POST /api/auth/:provider/callback',
    ...['POST /api/me/api-tokens', 'POST /api/me/totp', 'POST /api/me/totp/confirm', 'POST /api/me/identities/'],
    ...['POST /api/me/passkeys/options', 'POST /api/me/passkeys/', 'PUT /api/me/passkeys/:id'],
    ...['POST /api/email/verify', 'POST /api/email/verification', 'POST /api/email/revert'],
    ...['POST /api/password/forgot', 'POST /api/password/reset'],
    ...['POST /api/signin/email', 'POST /api/signin/email/code', 'POST /api/signin/email/link'],
    ...['POST /api/plugins/:id/rotate-secret', 'POST /api/plugins/:id/token'],
  ],
  'messages of other systems': [
    ...['POST /api/payments/webhooks/:providerKind', 'POST /api/webhooks/:integrationId'],
    'PUT /api/webhooks/:integrationId',
  ],
  'what is repeated that was accepted before': [
    ...['POST /api/payments/events/:id/replay', 'POST /api/integrations/:id/runs/:runId/replay'],
    ...['POST /api/plugins/:id/deliveries/:deliveryId/replay', 'POST /api/plugins/:id/reload'],
    ...['POST /api/lambdas/:id/rollback', 'POST /api/sites/rollback', 'POST /api/jobs/:id/retry'],
  ],
  'a choice, a role or a price instead of another one': [
    ...['POST /api/invites', 'POST /api/workspaces/:id/activate', 'PUT /api/workspaces/:id/members/:userId'],
    ...['PUT /api/subscriptions/:id/dynamic-amount', 'PUT /api/subscriptions/:id/coupon'],
    ...['PUT /api/subscriptions/:id/cancel', 'PUT /api/checkout/:subscriptionId/cancel'],
    ...['PUT /api/payments/configuration/', 'PUT /api/files/:id'],
  ],
  'what stores nothing, or what others check': [
    'POST /api/definitions/diff',
    ...['POST /api/files/:id/token', 'POST /api/mails/templates/:name/preview', 'POST /api/mails/templates/:name/test'],
    ...['POST /api/integration-sources/status', 'POST /api/integration-sources/:id/status'],
    ...['POST /api/plans/:id/price-preview', 'POST /api/coupons/validate', 'POST /api/lambdas/:id/execute'],
    ...['POST /api/ai/agents/:id/search', 'POST /api/ai/agents/:id/chat', 'POST /api/mcp/'],
    ...['POST /api/ai/:integrationId/chat-completion/', 'POST /api/ai/sources/:sourceId/chat-completion'],
    ...['POST /api/ai/sources/:sourceId/chat-completion/plain', 'POST /api/ai/sources/:sourceId/chat-completion/pages'],
    ...['POST /api/ai/sources/:sourceId/chat-completion/integrations', 'POST /api/ai/sources/:sourceId/blueprints'],
    ...['POST /api/ai/v1/chat/completions', 'POST /api/ai/v1/embeddings'],
    // The report of an import tells it.
    'POST /api/blueprints/:key/entities/import',
  ],
  'what makes room': ['POST /api/ai/sources/:sourceId/storage/clear'],
}
const LONG_TEXT = 'x'.repeat(2_000)
/** Changes that are refused only when they are larger, and what makes them larger. */
const LARGER_CHANGES: [more: object, names: string[]][] = [
  [
    { metadata: { text: LONG_TEXT } },
    [
      ...['POST /api/me/', 'PUT /api/users/:id', 'PUT /api/plans/:id'],
      ...['PUT /api/configurations/:key', 'PATCH /api/configurations/:key'],
      ...['PUT /api/integration-sources/:id', 'PATCH /api/integration-sources/:id'],
    ],
  ],
  [
    { description: LONG_TEXT },
    [
      ...['PUT /api/configurations/app-configuration', 'PATCH /api/configurations/app-configuration'],
      ...['PUT /api/coupons/:id', 'PUT /api/plugins/:id', 'PATCH /api/plugins/:id'],
      ...['PUT /api/ai/agents/:id', 'PATCH /api/ai/agents/:id'],
    ],
  ],
  [{ labels: Array.from({ length: 20 }, (_, n) => `${n}${'x'.repeat(90)}`) }, ['PUT /api/workspaces/:id']],
  [
    { target: { kind: 'email', to: 'ada@example.com', subject: 'Hello', text: LONG_TEXT } },
    ['PUT /api/integrations/:id', 'PATCH /api/integrations/:id'],
  ],
  [
    { fields: [{ key: 'more', type: 'string', description: LONG_TEXT }] },
    ['PUT /api/blueprints/:key', 'PATCH /api/blueprints/:key'],
  ],
]

type Route = { method: string; path: string }

/** Sends the request of the table for each route as an admin of a tenant whose storage is used up. */
async function sendWhenFull(at: TenantFixture, { method, path }: Route, more: object = {}) {
  const by = { user: at.users.admin, email: at.email('admin'), headers: { 'x-api-key': at.tokens.admin } }
  const request: RouteRequest = (await requests[`${method} ${path}`]?.(at, by)) ?? {}
  await setQuotas(at.id, { storage: 1 })
  const body = Object.keys(more).length ? { ...(request.body as object), ...more } : request.body
  const answer = await sendRequest(at.origin, { method, path }, { ...request, body }, by.headers)
  await setQuotas(at.id, { storage: null })
  return answer
}

afterAll(() => {
  config.ATOLL_OPERATOR_TOKEN = ''
})

test('when storage is used up, each write that adds something is refused, and what has a reason stays possible', async () => {
  using _ = withoutRateLimits()
  const at = await createTenantFixture()
  const possible = new Set([...Object.values(POSSIBLE).flat(), ...LARGER_CHANGES.flatMap(([, names]) => names)])
  const writes = app.routes.filter(
    ({ method, path }) => path.startsWith('/api/') && ['POST', 'PUT', 'PATCH'].includes(method),
  )
  expect(writes.length).toBeGreaterThan(80)
  const differences: string[] = []
  for (const route of writes) {
    const name = `${route.method} ${route.path}`
    const { status, body } = await sendWhenFull(at, route)
    if ((body?.code === 'QUOTA_EXCEEDED') === possible.delete(name))
      differences.push(`${name}: ${status} ${body?.code}`)
  }
  expect(differences).toEqual([])
  expect([...possible]).toEqual([])
})

test('when storage is used up, a change with a small body is possible, and one with a larger body is refused', async () => {
  using _ = withoutRateLimits()
  const at = await createTenantFixture()
  for (const [more, names] of LARGER_CHANGES)
    for (const name of names) {
      const [method = '', path = ''] = name.split(' ')
      expect([name, (await sendWhenFull(at, { method, path })).status]).toEqual([name, 200])
      expect([name, ...statusAndCode(await sendWhenFull(at, { method, path }, more))]).toEqual([name, ...EXCEEDED])
    }
})

test('when storage is used up, a blueprint can lose fields and change its rules, but not get fields', async () => {
  const { id, admin } = await createQuotaFixture()
  const fields = ['one', 'two'].map((key) => ({ key, type: 'string', description: 'A field. '.repeat(100) }))
  expect((await admin.post('/blueprints', { key: 'notes', name: 'Notes', fields })).status).toBe(201)
  await setQuotas(id, { storage: 1 })
  const change = async (input: object) => statusAndCode(await admin.put('/blueprints/notes', input))
  expect(await change({ fields: [...fields, { key: 'three', type: 'string' }] })).toEqual(EXCEEDED)
  expect((await change({ permissions: fullAccessRules('tenant', 'user') }))[0]).toBe(200)
  expect((await change({ fields: fields.slice(1) }))[0]).toBe(200)
  expect((await admin.delete('/blueprints/notes')).status).toBe(200)
})

test('when storage is used up, an agent that records threads answers nobody, and one that does not answers', async () => {
  const { id, admin, user } = await createQuotaFixture()
  const create = async (recordThread: boolean) => {
    const target = { kind: 'ai', sourceId: 'echo', recordThread }
    return (await admin.post('/integrations', { name: `${recordThread}`, trigger: { kind: 'chat' }, target })).body._id
  }
  const [recording, forgetting] = [await create(true), await create(false)]
  await setQuotas(id, { storage: 1 })
  const ask = (agent: string) =>
    user.post(`/ai/${agent}/chat-completion`, { messages: [{ role: 'user', content: 'Hello' }] })
  expect(statusAndCode(await ask(recording))).toEqual(EXCEEDED)
  expect((await ask(forgetting)).status).toBe(200)
  await setQuotas(id, { storage: null })
  expect((await ask(recording)).status).toBe(200)
})
