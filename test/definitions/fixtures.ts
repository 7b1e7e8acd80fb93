import { expect } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { createTestTenant } from '../test-tenant'

type TestTenant = Awaited<ReturnType<typeof createTestTenant>>

/** The values of the secrets of `createRichTenant`, by their variables. */
export const SECRETS = {
  CONNECTION_CRM_HEADERS_X_KEY: 'k-1',
  CONNECTION_MODELS_TOKEN: 'sk-models',
  CONNECTION_STRIPE_SECRET_KEY: 'sk_test_1',
  CONNECTION_STRIPE_WEBHOOK_SECRET_1: 'whsec_1',
  CONNECTION_STRIPE_WEBHOOK_SECRET_2: 'whsec_2',
  LAMBDA_CHEAP_MOST: '5',
  PLUGIN_SHIPPING_SECRET: `whsec_${Buffer.alloc(32, 7).toString('base64')}`,
  CONFIGURATION_AUTH_CONFIGURATION_GITHUB_CLIENT_SECRET: 'github-secret',
}

/** Creates at least one thing of each kind, with references, secrets and awkward names. */
export async function createRichTenant(tenant: TestTenant) {
  const admin = tenant.as('admin')
  const post = async (path: string, body: object) => {
    const answer = await admin.post(path, body)
    expect(answer.status, `${path} ${JSON.stringify(answer.body)}`).toBeOneOf([200, 201])
    return answer.body
  }
  const put = async (path: string, body: object) => {
    const answer = await admin.put(path, body)
    expect(answer.status, `${path} ${JSON.stringify(answer.body)}`).toBe(200)
  }
  const title = { key: 'title', type: 'string' }
  await post('/blueprints', { key: 'con', name: 'Cons', fields: [title] })
  await post('/blueprints', { key: 'authors', name: 'Authors', fields: [title] })
  const by = { key: 'by', type: 'relation', target: 'authors', onDelete: 'nullify' }
  await post('/blueprints', {
    ...{ key: 'books', name: 'Books', description: 'All books', fields: [{ ...title, required: true }, by] },
    permissions: [{ operation: 'read', guest: true, scope: 'tenant' }],
    permissionScope: 'tenant',
    history: { versions: 20 },
  })
  await put('/blueprints/authors', { fields: [title, { key: 'best', type: 'relation', target: 'books' }] })
  const stripe = await post('/integration-sources', {
    ...{ name: 'stripe', kind: 'stripe' },
    authentication: { secretKey: 'sk_test_1', webhookSecret: ['whsec_1', 'whsec_2'] },
  })
  const models = await post('/integration-sources', {
    ...{ name: 'Models', kind: 'openai', labels: ['ai'], metadata: { model: 'small' } },
    authentication: { token: 'sk-models' },
  })
  const crm = await post('/integration-sources', {
    ...{ name: 'CRM', kind: 'http', metadata: { url: 'https://crm.example.com' } },
    authentication: { headers: { 'x-key': 'k-1' } },
  })
  await post('/integration-sources', { name: 'crm', kind: 'http', metadata: { url: 'https://old.example.com' } })
  const code = 'export default async () => new Response("ok")\r\n'
  const cheap = await post('/lambdas', {
    name: 'cheap',
    code,
    env: { MOST: '5' },
    timeoutMs: 100,
    serviceRole: 'admin',
  })
  await post('/lambdas', { name: 'Send / the: "order"?', code: 'export default () => 1' })
  await post('/lambdas', { name: '長'.repeat(180), code: 'export default () => 2' })
  const plugin = await post('/plugins', {
    ...{ name: 'Shipping', apiPath: 'shipping', proxyUrl: 'https://ship.example.com' },
    subscribedEvents: [{ hookUrl: 'https://ship.example.com/hook', kind: 'entity' }],
    secret: SECRETS.PLUGIN_SHIPPING_SECRET,
  })
  const webhook = { trigger: { kind: 'webhook' }, target: { kind: 'lambda', lambdaId: cheap._id } }
  await post('/integrations', { ...webhook, guest: true, plugin: plugin._id })
  await post('/integrations', { ...webhook, active: false })
  const tool = await post('/integrations', {
    trigger: { kind: 'tool', name: 'look_up', description: 'Looks up', parameters: { type: 'object' } },
    target: { kind: 'http', sourceId: crm._id, path: 'find' },
  })
  await post('/integrations', {
    ...{ name: 'Summary', trigger: { kind: 'event', source: 'books' } },
    target: { kind: 'ai', sourceId: models._id, tools: [tool._id], vectorStores: ['tenant'] },
  })
  await post('/ai/agents', {
    ...{ name: 'Librarian', sourceId: models._id, tools: [tool._id], blueprints: ['books'], systemPrompt: 'Be kind.' },
    ...{ model: 'large', temperature: 0.5, top_p: 0.9, max_tokens: 500, frequency_penalty: 0.1, presence_penalty: 0.1 },
    ...{
      vectorStores: ['tenant'],
      maxToolRounds: 3,
      historyTokens: 1_000,
      recordThread: true,
      allowSystemMessages: true,
      forbidClientRules: true,
    },
  })
  await post('/ai/agents', { name: 'Echo', sourceId: 'echo' })
  await post('/blocks', { name: 'Hero', content: '<b onclick="x()">Hello</b>', contentType: 'html' })
  await post('/blocks', { name: 'Hero', content: 'Second', description: 'Same name' })
  const component = 'export default () => <p>Hi</p>\n'
  await post('/components', {
    identifier: 'Button',
    content: component,
    requiredProps: [{ prop: 'a', type: 'string' }],
  })
  await post('/components', { identifier: 'button', content: component, componentName: 'Small', description: 'Small' })
  const pro = await post('/plans', {
    ...{ name: 'Pro', monthlyPrice: 9.99, yearlyPrice: 99, currency: 'EUR', limits: { books: 10 } },
    externalIds: { stripe: { monthlyPriceId: 'price_1' } },
  })
  await post('/plans', { name: 'Custom', dynamic: true, isActive: false })
  await post('/coupons', {
    ...{ code: 'WELCOME', discountType: 'percentage', discountValue: 10, applicablePlanIds: [pro._id] },
    validUntil: '2030-01-01T00:00:00Z',
  })
  await post('/coupons', { code: 'FIVE', discountType: 'fixed', discountValue: 5, currency: 'EUR' })
  await put('/configurations/app-configuration', { contentEditors: ['writer'], theme: { color: 'red' } })
  await put('/configurations/payments-configuration', { metadata: { paymentSourceId: stripe._id, isEnabled: true } })
  await put('/configurations/auth-configuration', {
    metadata: { allowSignup: false, providers: { github: { clientId: 'g', clientSecret: 'github-secret' } } },
  })
  await put('/configurations/mail-templates', {
    metadata: {
      invitation: { subject: 'Come in', html: '<b>{{name}}</b>', link: 'https://a.example/' },
      message: { text: '{{text}}' },
    },
  })
  await post('/configurations', { key: 'nav', public: true, kind: 'menu', metadata: { items: [1, 2] } })
}

/** Returns the texts of all files in a folder by their paths, without `.atoll.json`. */
export async function readTexts(folder: string): Promise<Record<string, string>> {
  const paths = (readdirSync(folder, { recursive: true, withFileTypes: true }) as import('node:fs').Dirent[])
    .filter((entry) => entry.isFile() && entry.name !== '.atoll.json')
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort()
  return Object.fromEntries(
    await Promise.all(paths.map(async (path) => [path, await Bun.file(join(folder, path)).text()])),
  )
}
