import { eq } from 'drizzle-orm'
import { issueSigninToken } from '../../../src/accounts/links/signin-link'
import { emailChanges } from '../../../src/accounts/mail/tables'
import { issueOneTimeToken, type TokenPurpose } from '../../../src/accounts/one-time-tokens'
import { passkeys } from '../../../src/accounts/passkeys/tables'
import { createSession } from '../../../src/accounts/sessions'
import { identities } from '../../../src/accounts/social/tables'
import { codeAt, decodeBase32, stepAt } from '../../../src/accounts/totp/codes'
import { totp } from '../../../src/accounts/totp/tables'
import { now, toIsoString } from '../../../src/core/clock'
import { apiClient } from '../../test-tenant'
import { createAuthenticator } from '../passkeys/passkey-fixtures'
import { password, type Requester, type RouteRequest, type TenantFixture } from './tenant-fixture'

type BuildRequest = (at: TenantFixture, by: Requester) => RouteRequest | Promise<RouteRequest>

const device = { userAgent: 'a browser', address: '192.0.2.1' }
const todos: RouteRequest = { path: { key: 'todos' } }

const user: BuildRequest = async (at) => ({ path: { id: (await at.someone()).id } })
const workspace: BuildRequest = (at) => ({ path: { id: at.workspace } })
const todo: BuildRequest = async (at) => ({ path: { key: 'todos', identifier: await at.todo() } })
const block: BuildRequest = async (at) => ({ path: { id: await at.block() } })
const lambda: BuildRequest = async (at) => ({ path: { id: await at.lambda() } })
const component: BuildRequest = (at) => ({ path: { id: at.shown } })
const source: BuildRequest = async (at) => ({ path: { id: await at.source() } })
const integration: BuildRequest = async (at) => ({ path: { id: await at.integration() } })
const webhook: BuildRequest = async (at) => ({ path: { integrationId: await at.integration() } })
const storage =
  (body: object = {}): BuildRequest =>
  async (at) => ({ path: { sourceId: 'echo' }, body: { ...body, integrationId: await at.otherAgent() } })
const plugin: BuildRequest = (at) => ({ path: { id: at.plugin } })
const echo: RouteRequest = { path: { sourceId: 'echo' } }
const agent: BuildRequest = (at) => ({ path: { id: at.agent } })
const thread: BuildRequest = async (at, { user }) => ({ path: { id: await at.thread(user) } })
const chatBody = { messages: [{ role: 'user', content: 'hello' }] }
const site: BuildRequest = async (at) => ({ raw: await at.site(), headers: { 'content-type': 'application/x-tar' } })
const deployments =
  (count: number): BuildRequest =>
  async (at) => {
    for (let n = 0; n < count; n++) await at.deploy()
    return {}
  }
const upload: BuildRequest = async (at, { user }) => ({ path: { id: await at.upload(user), name: 'a.txt' } })
const plan: BuildRequest = (at) => ({ path: { id: at.plan } })
const coupon: BuildRequest = async (at) => ({ path: { id: await at.coupon() } })
const subscription: BuildRequest = async (at) => ({ path: { id: await at.subscription() } })
const configuration: BuildRequest = () => ({ path: { key: 'theme' } })

/** Returns the request with a body. */
const withBody =
  (build: BuildRequest | RouteRequest, body: unknown): BuildRequest =>
  async (at, by) => ({ ...(typeof build === 'function' ? await build(at, by) : build), body })

/** Issues a one-time token to a new user. */
async function issueToken({ tenant, someone }: TenantFixture, purpose: TokenPurpose) {
  const { id, emailKey } = await someone()
  return tenant.write((tx) => issueOneTimeToken(tx, purpose, id, { emailKey }))
}

/** Issues a token by which a new user restores their old e-mail address. */
export async function issueRevertToken({ tenant, someone }: Pick<TenantFixture, 'tenant' | 'someone'>) {
  const { id: user, emailKey } = await someone()
  const _id = Bun.randomUUIDv7()
  const dates = { created: toIsoString(now()), expires: toIsoString(now() + 60_000) }
  return tenant.write(async (tx) => {
    await tx.insert(emailChanges).values({ _id, user, email: emailKey, emailKey, ...dates })
    return issueOneTimeToken(tx, 'emailRevert', user, { change: _id })
  })
}

/** Starts TOTP for the requester; returns a code, and a function that confirms TOTP and returns a recovery code. */
async function startTotp({ tenant, origin }: TenantFixture, { user, headers }: Requester) {
  await tenant.write((tx) => tx.delete(totp).where(eq(totp.user, user)))
  const me = apiClient(origin, headers)
  const { secret } = (await me.post('/me/totp')).body
  const code = secret ? codeAt(decodeBase32(secret), stepAt(now())) : '000000'
  return { code, confirm: async () => (await me.post('/me/totp/confirm', { code })).body.recoveryCodes?.[0] ?? code }
}

/** Inserts two passkeys of the requester, so that one can be deleted; returns the ID of one. */
async function insertPasskeys({ tenant }: TenantFixture, { user }: Requester) {
  const row = { user, publicKey: 'x', counter: 0, host: 'x', name: 'x', transports: [], backedUp: false }
  const ids = [1, 2].map(() => Bun.randomUUIDv7())
  const rows = ids.map((_id) => ({ ...row, _id, credential: _id, created: toIsoString(now()) }))
  await tenant.write((tx) => tx.insert(passkeys).values(rows))
  return ids[0]!
}

/** Inserts an identity of the requester besides two passkeys; returns its ID. */
async function insertIdentity(at: TenantFixture, by: Requester) {
  const row = { provider: 'google', subject: at.name(), user: by.user, created: toIsoString(now()) }
  await insertPasskeys(at, by)
  await at.tenant.write((tx) => tx.insert(identities).values(row))
  const { body } = await apiClient(at.origin, by.headers).get('/me/identities')
  return (body[0]?._id as string | undefined) ?? 'x'
}

/**
 * The request to each route, valid in all respects, so that only the caller decides about the response. Routes without
 * input are left out. Resources that a request uses up or deletes are created for each request.
 */
export const requests: Record<string, BuildRequest> = {
  'POST /api/signin': () => ({ body: { username: 'ada', password } }),
  'POST /api/signup': (at) => ({ body: { username: at.name(), password } }),
  'POST /api/setup': (at) => ({ body: { username: at.name(), password, token: 'invalid' } }),
  'POST /api/signin/link': async ({ tenant, users }) => ({
    body: { token: await issueSigninToken(tenant, users.user) },
  }),
  'POST /api/signin/passkey/': async ({ anonymous, device }) => ({
    body: { credential: device.get((await anonymous.post('/signin/passkey/options')).body) },
  }),
  'POST /api/token/refresh': async ({ tenant, users }) => ({
    body: { refreshToken: (await createSession(tenant, users.other, 'oauth', device)).key },
  }),
  'POST /api/me/': () => ({ body: { firstName: 'Ada' } }),
  'DELETE /api/me/sessions/:id': async ({ tenant }, { user }) => ({
    path: { id: (await createSession(tenant, user, 'cookie', device)).session },
  }),
  'POST /api/me/api-tokens': () => ({ body: { nickname: 'x' } }),
  'DELETE /api/me/api-tokens/:id': async (at, { user }) => ({ path: { id: await at.token(user) } }),
  'POST /api/email/verify': async (at) => ({ body: { token: await issueToken(at, 'verification') } }),
  'POST /api/email/revert': async (at) => ({ body: { token: await issueRevertToken(at) } }),
  'POST /api/signin/email': (at) => ({ body: { email: at.email(at.name()) } }),
  'POST /api/password/forgot': (at) => ({ body: { email: at.email(at.name()) } }),
  'POST /api/password/reset': async (at) => ({ body: { token: await issueToken(at, 'passwordReset'), password } }),
  'POST /api/me/totp/confirm': async (at, by) => ({ body: { code: (await startTotp(at, by)).code } }),
  'DELETE /api/me/totp': async (at, by) => ({ body: { code: await (await startTotp(at, by)).confirm() } }),
  'POST /api/me/passkeys/': async ({ origin }, { headers }) => {
    const { status, body } = await apiClient(origin, headers).post('/me/passkeys/options')
    return { body: status === 200 ? { credential: createAuthenticator(origin).create(body) } : {} }
  },
  'PUT /api/me/passkeys/:id': async (at, by) => ({
    path: { id: await insertPasskeys(at, by) },
    body: { name: 'Phone' },
  }),
  'DELETE /api/me/passkeys/:id': async (at, by) => ({ path: { id: await insertPasskeys(at, by) } }),
  'POST /api/me/identities/': () => ({ body: { provider: 'google' } }),
  'DELETE /api/me/identities/:id': async (at, by) => ({ path: { id: await insertIdentity(at, by) } }),
  'GET /api/users/:id/signin-state': user,
  'DELETE /api/users/:id/sessions': user,
  'DELETE /api/users/:id/api-tokens': user,
  'DELETE /api/users/:id/totp': user,
  'DELETE /api/users/:id/passkeys': user,
  'GET /api/auth/:provider': () => ({ path: { provider: 'google' } }),
  'POST /api/auth/:provider/callback': () => ({ path: { provider: 'google' } }),
  'GET /api/auth/:provider/callback': () => ({ path: { provider: 'google' } }),
  'POST /api/auth/callback': async (at) => ({ body: { rt: await issueToken(at, 'redirect') } }),

  'GET /api/users/:id': user,
  'POST /api/users/': (at) => ({ body: { username: at.name() } }),
  'PUT /api/users/:id': withBody(user, { roles: ['admin'] }),
  'DELETE /api/users/:id': user,
  'GET /api/users/:id/encrypted': user,
  'POST /api/users/:id/encrypted': withBody(user, { number: 1 }),

  'GET /api/workspaces/:id': workspace,
  'POST /api/workspaces/': () => ({ body: { name: 'New' } }),
  'PUT /api/workspaces/:id': withBody(workspace, { name: 'Changed' }),
  'DELETE /api/workspaces/:id': async (at) => ({ path: { id: await at.another() } }),
  'POST /api/workspaces/:id/activate': workspace,
  'GET /api/workspaces/:id/members/': workspace,
  'POST /api/workspaces/:id/members/': async (at) => ({
    path: { id: at.workspace },
    body: { userId: (await at.someone()).id, roles: [] },
  }),
  'PUT /api/workspaces/:id/members/:userId': (at) => ({
    path: { id: at.workspace, userId: at.users.other },
    body: { roles: ['member'] },
  }),
  'DELETE /api/workspaces/:id/members/:userId': async (at) => ({
    path: { id: at.workspace, userId: await at.member() },
  }),
  'POST /api/invites': async (at, { email }) => ({ body: { workspace: await at.inviting(email), kind: 'accept' } }),
  'POST /api/workspaces/:id/invites': (at) => ({ path: { id: at.workspace }, body: { email: at.email(at.name()) } }),
  'DELETE /api/workspaces/:id/invites/:inviteId': async (at) => ({
    path: { id: at.workspace, inviteId: await at.invite() },
  }),
  'GET /api/workspaces/:id/encrypted': workspace,
  'POST /api/workspaces/:id/encrypted': withBody(workspace, { number: 1 }),

  'GET /api/blueprints/:key': () => todos,
  'GET /api/blueprints/:key/indexes': () => todos,
  'GET /api/blueprints/:key/permissions/explain': () => todos,
  'POST /api/blueprints/': (at) => ({ body: { key: at.name(), name: 'New', fields: [] } }),
  'PUT /api/blueprints/:key': () => ({ ...todos, body: { name: 'To-dos' } }),
  'PATCH /api/blueprints/:key': () => ({ ...todos, body: { name: 'To-dos' } }),
  'DELETE /api/blueprints/:key': async (at) => ({ path: { key: await at.blueprint() } }),

  'POST /api/blueprints/:key/entities/batch': async (at) => ({
    ...todos,
    body: {
      operations: [
        { op: 'create', data: { title: 'new' } },
        { op: 'delete', identifier: await at.todo() },
      ],
    },
  }),
  'GET /api/blueprints/:key/entities/export': () => todos,
  'POST /api/blueprints/:key/entities/import': () => ({
    ...todos,
    raw: '{"title":"imported"}\n',
    headers: { 'content-type': 'application/x-ndjson' },
  }),
  'GET /api/blueprints/:key/entities/changes': () => todos,
  'GET /api/blueprints/:key/entities/': () => todos,
  'GET /api/blueprints/:key/entities/:identifier': todo,
  'GET /api/blueprints/:key/entities/:identifier/history/': todo,
  'POST /api/blueprints/:key/entities/:identifier/history/:version/restore': async (at) => ({
    path: { key: 'todos', identifier: await at.todo(), version: '1' },
  }),
  'POST /api/blueprints/:key/entities/': () => ({ ...todos, body: { title: 'new' } }),
  'PUT /api/blueprints/:key/entities/:identifier': withBody(todo, { hours: 2 }),
  'PATCH /api/blueprints/:key/entities/:identifier': withBody(todo, { hours: 2 }),
  'DELETE /api/blueprints/:key/entities/all': () => ({ ...todos, query: 'title=imported&confirm=todos' }),
  'DELETE /api/blueprints/:key/entities/:identifier': todo,
  'GET /api/blueprints/:key/charts/count': () => todos,
  'GET /api/blueprints/:key/charts/sum': () => ({ ...todos, query: 'sum=hours' }),
  'GET /api/blueprints/:key/charts/pie': () => ({ ...todos, query: 'x=title' }),
  'GET /api/blueprints/:key/charts/:type': () => ({ path: { key: 'todos', type: 'bar' }, query: 'x=title' }),

  'GET /api/components/:id': component,
  'POST /api/components/': (at) => ({ body: { identifier: at.name(), content: 'export const x = 1' } }),
  'POST /api/components/bulk': (at) => ({ body: { components: [{ identifier: at.name(), content: 'export {}' }] } }),
  'PUT /api/components/:id': withBody(component, { description: 'changed' }),
  'PATCH /api/components/:id': withBody(component, { description: 'changed' }),
  'DELETE /api/components/:id': async (at) => ({ path: { id: await at.component() } }),
  'GET /api/static/:file': (at) => ({ path: { file: at.file } }),
  'POST /api/files/': () => ({ query: 'name=a.txt', raw: 'text', headers: { 'content-type': 'text/plain' } }),
  'GET /api/files/:id': upload,
  'PUT /api/files/:id': withBody(upload, { keep: true }),
  'DELETE /api/files/:id': upload,
  'POST /api/files/:id/token': upload,
  'GET /api/files/:id/:name': upload,
  'PUT /api/sites/': site,
  'POST /api/sites/rollback': deployments(2),
  'DELETE /api/sites/': deployments(1),
  'GET /api/lambdas/:id': lambda,
  'POST /api/lambdas/': (at) => ({ body: { name: at.name(), code: 'export default () => 1' } }),
  'PUT /api/lambdas/:id': withBody(lambda, { description: 'changed' }),
  'PATCH /api/lambdas/:id': withBody(lambda, { description: 'changed' }),
  'DELETE /api/lambdas/:id': lambda,
  'GET /api/lambdas/:id/versions': lambda,
  'POST /api/lambdas/:id/rollback': withBody(lambda, { version: 1 }),
  'POST /api/lambdas/:id/execute': withBody(lambda, { body: 1 }),
  'GET /api/lambdas/:id/logs': lambda,
  'GET /api/blocks/:id': block,
  'POST /api/blocks/': () => ({ body: { name: 'new', content: 'new' } }),
  'PUT /api/blocks/:id': withBody(block, { name: 'changed' }),
  'PATCH /api/blocks/:id': withBody(block, { name: 'changed' }),
  'DELETE /api/blocks/:id': block,
  'POST /api/mails/templates/:name/preview': () => ({ path: { name: 'verification' }, body: { subject: 'Hello' } }),
  'POST /api/mails/templates/:name/test': () => ({ path: { name: 'verification' } }),
  'POST /api/definitions/diff': () => ({ body: { files: {} } }),
  'POST /api/definitions/push': () => ({ body: { files: {} } }),
  'GET /api/configurations/:key': () => ({ path: { key: 'hidden' } }),
  'POST /api/configurations/': (at) => ({ body: { key: at.name(), metadata: {} } }),
  'PUT /api/configurations/app-configuration': () => ({ body: { theme: 'dark' } }),
  'PATCH /api/configurations/app-configuration': () => ({ body: { theme: 'dark' } }),
  'PUT /api/configurations/:key': withBody(configuration, { metadata: { color: 'red' } }),
  'PATCH /api/configurations/:key': withBody(configuration, { metadata: { color: 'red' } }),
  'DELETE /api/configurations/:key': async (at) => ({ path: { key: await at.configuration() } }),

  'GET /api/integration-sources/:id': source,
  'POST /api/integration-sources/': (at) => ({ body: { name: at.name(), kind: 'stripe' } }),
  'PUT /api/integration-sources/:id': withBody(source, { name: 'changed' }),
  'PATCH /api/integration-sources/:id': withBody(source, { name: 'changed' }),
  'DELETE /api/integration-sources/:id': source,
  'POST /api/integration-sources/status': () => ({ body: { kind: 'stripe' } }),
  'POST /api/integration-sources/:id/status': source,
  'GET /api/integrations/due-times': () => ({ query: 'cron=0+9+*+*+*' }),
  'GET /api/integrations/:id': integration,
  'POST /api/integrations/': async (at) => ({
    body: { trigger: { kind: 'webhook' }, target: { kind: 'lambda', lambdaId: await at.lambda() } },
  }),
  'PUT /api/integrations/:id': withBody(integration, { name: 'changed' }),
  'PATCH /api/integrations/:id': withBody(integration, { name: 'changed' }),
  'DELETE /api/integrations/:id': integration,
  'GET /api/integrations/:id/runs': integration,
  'POST /api/jobs/:id/retry': async (at) => ({ path: { id: await at.failingJob() } }),
  'POST /api/integrations/:id/runs/:runId/replay': async (at) => ({ path: await at.run() }),
  'POST /api/mcp/': () => ({
    headers: { accept: 'application/json, text/event-stream' },
    body: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
  }),
  'GET /api/ai/sources/:sourceId/storage/': () => echo,
  'GET /api/ai/sources/:sourceId/storage/:id/files': async (at) => ({
    path: { sourceId: 'echo', id: await at.vectorStore() },
  }),
  'POST /api/ai/sources/:sourceId/storage/': async (at, by) => storage({ scope: 'user', subjectId: by.user })(at, by),
  'POST /api/ai/sources/:sourceId/storage/upload': async (at, { user }) => ({
    path: { sourceId: 'echo' },
    body: { vectorStoreId: await at.vectorStore(user), content: 'new' },
  }),
  'POST /api/ai/sources/:sourceId/storage/clear': async (at, { user }) => ({
    path: { sourceId: 'echo' },
    body: { vectorStoreId: await at.vectorStore(user) },
  }),
  'GET /api/webhooks/:integrationId': webhook,
  'POST /api/webhooks/:integrationId': withBody(webhook, { number: 1 }),
  'PUT /api/webhooks/:integrationId': withBody(webhook, { number: 1 }),
  'DELETE /api/webhooks/:integrationId': webhook,

  'GET /api/ai/threads/:id': thread,
  'POST /api/ai/threads/': (at) => ({ body: { integration: at.agent } }),
  'DELETE /api/ai/threads/:id': thread,
  'GET /api/ai/agents/:id': agent,
  'GET /api/ai/agents/:id/chat': (at) => ({
    path: { id: at.agent },
    query: new URLSearchParams({ messages: JSON.stringify(chatBody.messages) }).toString(),
  }),
  'POST /api/ai/agents/:id/chat': withBody(agent, chatBody),
  'POST /api/ai/agents/:id/search': withBody(agent, { question: 'what' }),
  'POST /api/ai/agents/': (at) => ({ body: { name: at.name(), sourceId: 'echo' } }),
  'PUT /api/ai/agents/:id': withBody(agent, { description: 'changed' }),
  'PATCH /api/ai/agents/:id': withBody(agent, { description: 'changed' }),
  'DELETE /api/ai/agents/:id': async (at) => ({ path: { id: await at.otherAgent() } }),
  'GET /api/ai/v1/models/:model': (at) => ({ path: { model: at.agent } }),
  'POST /api/ai/v1/chat/completions': (at) => ({ body: { model: at.agent, ...chatBody } }),
  'POST /api/ai/v1/embeddings': (at) => ({ body: { model: at.agent, input: 'Hello' } }),
  'POST /api/ai/:integrationId/chat-completion/': (at) => ({ path: { integrationId: at.agent }, body: chatBody }),
  'POST /api/ai/:integrationId/chat-completion/:threadId': async (at, { user }) => ({
    path: { integrationId: at.agent, threadId: await at.thread(user) },
    body: chatBody,
  }),
  'POST /api/ai/sources/:sourceId/chat-completion': withBody(echo, chatBody),
  'POST /api/ai/sources/:sourceId/chat-completion/plain': withBody(echo, chatBody),
  'POST /api/ai/sources/:sourceId/chat-completion/pages': withBody(echo, chatBody),
  'POST /api/ai/sources/:sourceId/chat-completion/integrations': withBody(echo, chatBody),
  'POST /api/ai/sources/:sourceId/blueprints': withBody(echo, { prompt: 'A library.' }),

  'GET /api/plugins/:id': plugin,
  'POST /api/plugins/': (at) => ({ body: { name: at.name() } }),
  'PUT /api/plugins/:id': withBody(plugin, { description: 'changed' }),
  'PATCH /api/plugins/:id': withBody(plugin, { description: 'changed' }),
  'DELETE /api/plugins/:id': async (at) => ({ path: { id: await at.otherPlugin() } }),
  'POST /api/plugins/:id/reload': plugin,
  'POST /api/plugins/:id/rotate-secret': plugin,
  'POST /api/plugins/:id/token': plugin,
  'GET /api/plugins/:id/deliveries': plugin,
  'POST /api/plugins/:id/deliveries/:deliveryId/replay': (at) => ({ path: { id: at.plugin, deliveryId: at.delivery } }),

  'GET /api/plans/:id': plan,
  'POST /api/plans/': (at) => ({ body: { name: at.name(), monthlyPrice: 10, yearlyPrice: 100 } }),
  'PUT /api/plans/:id': withBody(plan, { description: 'changed' }),
  'DELETE /api/plans/:id': async (at) => ({ path: { id: await at.otherPlan() } }),
  'POST /api/plans/:id/price-preview': withBody(plan, { billingCycle: 'monthly' }),
  'GET /api/coupons/:id': coupon,
  'POST /api/coupons/': (at) => ({ body: { code: at.name(), discountType: 'percentage', discountValue: 5 } }),
  'POST /api/coupons/validate': (at) => ({ body: { code: 'spring', planId: at.plan } }),
  'PUT /api/coupons/:id': withBody(coupon, { discountValue: 5 }),
  'DELETE /api/coupons/:id': coupon,
  'GET /api/subscriptions/:id': subscription,
  'GET /api/subscriptions/:id/price-preview': subscription,
  'POST /api/subscriptions/': (at, { user }) => ({
    body: { planId: at.plan, billingCycle: 'monthly', billableEntityType: 'user', billableEntityId: user },
  }),
  'PUT /api/subscriptions/:id/dynamic-amount': async (at) => ({
    path: { id: await at.subscription(at.dynamic) },
    body: { amount: 10 },
  }),
  'PUT /api/subscriptions/:id/coupon': withBody(subscription, { couponCode: 'SPRING' }),
  'PUT /api/subscriptions/:id/cancel': subscription,
  'POST /api/checkout/': (at) => ({ body: { planId: at.plan, billingCycle: 'monthly', reset: true } }),
  'PUT /api/checkout/:subscriptionId/cancel': async (at) => ({ path: { subscriptionId: await at.subscription() } }),
  'GET /api/invoices/:invoiceId': (at) => ({ path: { invoiceId: at.invoice } }),
  'GET /api/payments/events/:id': (at) => ({ path: { id: at.providerEvent } }),
  'POST /api/payments/events/:id/replay': (at) => ({ path: { id: at.providerEvent } }),
  'POST /api/payments/webhooks/:providerKind': () => ({ path: { providerKind: 'nobody' } }),
  'PUT /api/payments/configuration/': () => ({ body: { metadata: { gracePeriodDays: 5 } } }),

  'GET /api/events/sum': () => ({ query: 'sum=n' }),
  'GET /api/events/:eventId': (at) => ({ path: { eventId: at.event } }),
  'POST /api/events/': () => ({ body: { source: 'house', kind: 'door', eventName: 'opened' } }),
}
