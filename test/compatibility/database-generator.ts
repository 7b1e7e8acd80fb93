// Fills installations over HTTP, one for each engine, and stores them in `databases` for `earlier-database.test.ts`:
//   bun test/compatibility/database-generator.ts
// The server is that of these sources, or of another checkout that is named. The version in its package.json names the
// files: `<version>/<engine>.tar.gz` has the data and what Stripe knows, and `<engine>.json` has what the server issued.
// All secrets in them are invented.
import { generateKeyPairSync } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { codeAt, decodeBase32, stepAt } from '../../src/accounts/totp/codes'
import { createAuthenticator } from '../accounts/passkeys/passkey-fixtures'
import { allTypeFields } from '../entities/transfer/import-fixtures'
import { apiCaller, runAtoll, startAtoll } from '../fakes/cli'
import { startOauthProvider } from '../fakes/oauth-provider'
import { startOpenai } from '../fakes/openai-server'
import { startStripe } from '../fakes/vendors/stripe'
import { startWebhookReceiver } from '../fakes/webhook-receiver'
import { fullAccessRules } from '../test-tenant'
import { waitUntil } from '../wait-until'
import { MASTER_SECRETS, nextCursor, OPERATOR_TOKEN, PASSWORD, PLUGIN_SECRET, things } from './earlier-database'
import { createFixtureFolder, type EngineName, holdJobs, openFixtureDatabase } from './fixture-database'

const [checkout = '', engine = ''] = process.argv.slice(2)
// Without the name of an engine, this process starts one for each.
if (!engine) {
  for (const name of ['sqlite', 'postgres'] satisfies EngineName[])
    if (
      await Bun.spawn([process.execPath, import.meta.path, checkout, name], { stdio: ['ignore', 'inherit', 'inherit'] })
        .exited
    )
      process.exit(1)
  process.exit()
}

const { version } = await Bun.file(resolve(checkout, 'package.json')).json()
const program = [process.execPath, resolve(checkout, 'src/main.ts')]
using temporary = createFixtureFolder()
const at = temporary.path
const folder = join(at, 'tenants')
mkdirSync(folder, { mode: 0o700 })
writeFileSync(join(folder, 'secrets.json'), JSON.stringify(MASTER_SECRETS), { mode: 0o600 })

const [stripe, openai, receiver] = [await startStripe(), await startOpenai(), startWebhookReceiver()]
const provider = await startOauthProvider({ sub: 'ivo', email: 'ivo@acme.test', email_verified: true })
const database = await openFixtureDatabase(engine as EngineName, at)
const settings = {
  ...database.env,
  ATOLL_ALLOW_PRIVATE_NETWORK: 'on',
  ATOLL_TEST_CLOCK: 'on',
  ATOLL_OPERATOR_TOKEN: OPERATOR_TOKEN,
}
const options = { at, program, env: settings }
if (database.env.ATOLL_DATABASE_URL) await runAtoll('postgres init', options)
const created = await runAtoll(
  ['tenant', 'create', 'acme', '--host', 'acme.test', '--admin-username', 'ada', '--admin-password', PASSWORD],
  options,
)
if (created.code) throw new Error(created.err)

type Headers = Record<string, string>
let server = await startAtoll(options)

async function send(method: string, path: string, body?: unknown, headers: Headers = {}) {
  const answer = await apiCaller(server.url, { host: 'acme.test', ...headers })(method, `/api${path}`, body)
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
  return answer
}
const signIn = async (username: string, more: object = {}) =>
  (await send('POST', '/signin', { username, password: PASSWORD, authType: 'oauth', ...more })).body.payload
const bearer = (token: string): Headers => ({ authorization: `Bearer ${token}` })
const runJobs = () => apiCaller(server.url, bearer(OPERATOR_TOKEN))('POST', '/operator/jobs/run', { tenant: 'acme' })

let admin = bearer((await signIn('ada')).token)
const post = async (path: string, body: object, headers = admin) => (await send('POST', path, body, headers)).body
const put = async (path: string, body: object, headers = admin) => (await send('PUT', path, body, headers)).body
const get = async (path: string, headers = admin) => (await send('GET', path, undefined, headers)).body

// Accounts
const person = (username: string, more: object = {}) =>
  post('/users', { username, email: `${username}@acme.test`, password: PASSWORD, roles: ['user'], ...more })
for (const name of ['bea', 'carl', 'dora', 'emil', 'hugo']) await person(name)
const userIds = Object.fromEntries(
  ((await get('/users?limit=100')) as { _id: string; username: string }[]).map(({ _id, username }) => [username, _id]),
)
const [bea, carl] = [bearer((await signIn('bea')).token), bearer((await signIn('carl')).token)]
const dora = await signIn('dora')
const cookieAnswer = await send('POST', '/signin', { username: 'bea', password: PASSWORD })
const cookies = cookieAnswer.headers.getSetCookie().map((cookie) => cookie.split(';')[0]!)
const apiToken = (await post('/me/api-tokens', { nickname: 'script', currentPassword: PASSWORD })).token
const { secret } = await post('/me/totp', {}, carl)
const totpCode = () => codeAt(decodeBase32(secret), stepAt(Date.now()))
const { recoveryCodes } = await post('/me/totp/confirm', { code: totpCode() }, carl)
await post(`/users/${userIds.bea}/encrypted`, { iban: 'GB00 INVENTED' }, { ...admin, 'x-encrypted-id': 'bank' })
const keyPair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const device = createAuthenticator('http://acme.test', keyPair)
const passkeyOptions = await post('/me/passkeys/options', {}, bea)
await post('/me/passkeys', { name: 'Phone', credential: device.create(passkeyOptions) }, bea)
await post('/signin/passkey/options', {}, {})
await apiCaller(server.url, { host: 'acme.test' })('POST', '/api/signin', { username: 'hugo', password: 'wrong word' })
await post('/password/forgot', { email: 'hugo@acme.test' }, {})
await post('/signup', { username: 'gina', email: 'gina@acme.test', password: PASSWORD, authType: 'oauth' }, {})
const google = { clientId: provider.client.id, clientSecret: provider.client.secret, baseUrl: provider.issuer }
await put('/configurations/auth-configuration', { metadata: { providers: { google } } })
const visit = (url: string, headers: Headers = {}) => fetch(url, { redirect: 'manual', headers })
const departure = await visit(`${server.url}/api/auth/google`, { host: 'acme.test' })
const cookie = departure.headers
  .getSetCookie()
  .map((one) => one.split(';')[0])
  .join('; ')
const arrival = new URL((await visit(departure.headers.get('location')!)).headers.get('location')!)
const admitted = await visit(`${server.url}${arrival.pathname}${arrival.search}`, { host: 'acme.test', cookie })
if (admitted.status !== 302) throw new Error(await admitted.text())

// Workspaces
const workspace = await post('/workspaces', { name: 'Harbour' }, bea)
await post(`/workspaces/${workspace._id}/members`, { userId: userIds.carl, roles: ['member'] }, bea)
await post(`/workspaces/${workspace._id}/invites`, { email: 'guest@acme.test' }, bea)
await post(`/workspaces/${workspace._id}/encrypted`, { pin: '0000' }, admin)

// Entities
const permissions = fullAccessRules('tenant', 'user')
await post('/blueprints', { key: 'things', name: 'Things', fields: allTypeFields, permissions })
const entities = '/blueprints/things/entities'
for (const thing of things) await post(entities, thing)
await post(`${entities}/import?format=ndjson`, { identifier: 'imported', title: 'Imported' })
const idempotent = { ...admin, 'idempotency-key': 'order-1' }
const first = await post(entities, { identifier: 'once', title: 'Once' }, idempotent)
const cursorQueries = [
  '$sort=price&$limit=3',
  '$sort=-title&$limit=3',
  '$limit=3',
  '$q=harbour&$limit=2',
  '$sort=cost,-day&$limit=4',
]
// What fits nearly equally may change places when the index of words becomes ready.
await get(`${entities}?$q=harbour`)
await waitUntil(
  () => get(`${entities}?$q=harbour&$explain=true`),
  ({ indexes }) => indexes.some(({ field, state }: Record<string, string>) => field === '$q' && state === 'ready'),
)
const cursors: Record<string, string> = {}
for (const query of cursorQueries)
  cursors[query] = nextCursor(await send('GET', `${entities}?${query}`, undefined, admin))
const stream = await fetch(`${server.url}/api${entities}/changes`, { headers: { host: 'acme.test', ...admin } })
await post(entities, { identifier: 'live', title: 'Live' })
let received = ''
for await (const chunk of stream.body!.pipeThrough(new TextDecoderStream())) {
  received += chunk
  if (received.includes('event: create')) break
}
const eventId = /event: create\nid: (.*)/.exec(received)![1]!
await send('PATCH', `${entities}/live`, { title: 'Lively' }, admin)
const etag = (await send('GET', `${entities}/live`, undefined, admin)).headers.get('etag')

// Content, lambdas, connections, integrations, plugins
await post('/blocks', { name: 'imprint', content: '<p>Imprint</p>' })
await post('/components', { identifier: 'hello', content: 'export const Hello = () => <b>Hello</b>' })
await post('/configurations', { key: 'shop', public: true, metadata: { currency: 'EUR' } })
const code = 'export default (request, atoll) => ({ body: { secret: atoll.env.KEY, method: request.method } })'
const lambda = await post('/lambdas', { name: 'teller', code, env: { KEY: 'invented-lambda-secret' } })
await put(`/lambdas/${lambda._id}`, { name: 'teller', code: `${code} // 2` })
await post(`/lambdas/${lambda._id}/execute`, {})
const source = async (body: object): Promise<string> => (await post('/integration-sources', body))._id
const httpSource = await source({
  ...{ name: 'shop', kind: 'http', metadata: { url: receiver.url } },
  authentication: { headers: { 'x-shop-key': 'invented-shop-key' } },
})
const aiSource = await source({
  ...{ name: 'models', kind: 'openai', metadata: { apiUrl: openai.url, embeddingModel: 'embedding-1' } },
  authentication: { token: 'sk-invented' },
})
const stripeSource = await source(stripe.connection())
const integration = async (trigger: object, target: object): Promise<string> =>
  (await post('/integrations', { trigger, target }))._id
const toLambda = { kind: 'lambda', lambdaId: lambda._id }
const toShop = { kind: 'http', sourceId: httpSource, path: 'orders', method: 'POST' }
const lambdaHook = await integration({ kind: 'webhook' }, toLambda)
const shopHook = await integration({ kind: 'webhook' }, toShop)
await integration({ kind: 'event', source: 'shop' }, toShop)
await integration({ kind: 'schedule', cron: '0 9 * * MON', timezone: 'Europe/Lisbon' }, toLambda)
const tool = await integration({ kind: 'tool', name: 'teller', description: 'It tells the secret.' }, toLambda)
const plugin = await post('/plugins', {
  ...{ name: 'listener', secret: PLUGIN_SECRET },
  subscribedEvents: [{ source: 'shop', hookUrl: `${receiver.url}/hook` }],
})
await post('/events', { source: 'shop', kind: 'order', eventName: 'placed', metadata: { n: 1 } })
const agent = (
  await post('/ai/agents', {
    name: 'Clerk',
    sourceId: aiSource,
    model: 'model-1',
    vectorStores: ['user'],
    tools: [tool],
  })
)._id
const thread = (await post('/ai/threads', { integration: agent }, bea))._id
openai.reply({ calls: [{ name: 'teller', arguments: '{}' }] }, {})
await post(`/ai/${agent}/chat-completion/${thread}`, { messages: [{ role: 'user', content: 'Good day' }] }, bea)
await post(`/ai/sources/${aiSource}/storage/upload`, { integrationId: agent, content: 'Quinces are yellow.' }, bea)

// Payments: bea pays, a checkout of carl stays open, and an event belongs to no subscription.
await put('/payments/configuration', { metadata: { isEnabled: true, paymentSourceId: stripeSource } })
const plan = (await post('/plans', { name: 'Pro', monthlyPrice: 20, yearlyPrice: 200 }))._id
const dynamicPlan = (await post('/plans', { name: 'Made to measure', dynamic: true }))._id
await post('/coupons', { code: 'LESS', discountType: 'percentage', discountValue: 10 })
let delivered = 0
async function deliverStripeEvents() {
  for (const event of stripe.events.slice(delivered)) {
    delivered++
    const { raw, headers } = await stripe.signEvent(event)
    const sent = await fetch(`${server.url}/api/payments/webhooks/stripe`, {
      ...{ method: 'POST', body: raw },
      headers: { host: 'acme.test', ...headers },
    })
    if (!sent.ok) throw new Error(await sent.text())
  }
}
const payLastCheckout = () => stripe.pay([...stripe.sessions.keys()].at(-1)!)
async function subscribe(client: Headers, more: object = {}): Promise<string> {
  const { subscriptionId } = await post('/checkout', { planId: plan, billingCycle: 'monthly', ...more }, client)
  payLastCheckout()
  await deliverStripeEvents()
  return subscriptionId
}
const paid = await subscribe(bea, { couponCode: 'LESS' })
const emil = bearer((await signIn('emil')).token)
await subscribe(emil)
const leftThread = (await post('/ai/threads', { integration: agent }, emil))._id
const foreign = structuredClone(stripe.events.find(({ type }) => type === 'customer.subscription.created'))
const object = { ...foreign.data.object, id: 'sub_unknown', metadata: { tenant: 'acme' } }
stripe.events.push({ ...foreign, id: 'evt_unknown', type: 'customer.subscription.updated', data: { object } })
await deliverStripeEvents()
await runJobs()
receiver.answer = () => 503
await post('/events', { source: 'shop', kind: 'order', eventName: 'placed', metadata: { n: 2 } })
await runJobs()
await runJobs()
const mails = (await get('/mails?limit=100')) as { template: string; text: string }[]
const mailed = (template: string) => /#([\w-]{43})$/m.exec(mails.find((mail) => mail.template === template)!.text)![1]

// From here on jobs stay in the queue.
await server.end('SIGTERM')
const releaseJobs = await holdJobs(database)
server = await startAtoll(options)
await post('/password/forgot', { email: 'carl@acme.test' }, {})
await post('/signup', { username: 'fay', email: 'fay@acme.test', password: PASSWORD, authType: 'oauth' }, {})
await post('/events', { source: 'shop', kind: 'order', eventName: 'placed', metadata: { n: 3 } })
const newSubscription = { planId: dynamicPlan, billingCycle: 'monthly' }
const custom = (await post('/subscriptions', newSubscription, bearer(dora.token)))._id
await put(`/subscriptions/${custom}/dynamic-amount`, { amount: 50 })
await post('/checkout', { subscriptionId: custom }, bearer(dora.token))
payLastCheckout()
await put(`/subscriptions/${custom}/dynamic-amount`, { amount: 60 })
await deliverStripeEvents()
const open = await post('/checkout', { planId: plan, billingCycle: 'monthly' }, carl)
await post('/checkout', { subscriptionId: open.subscriptionId, cancelUrl: 'https://acme.test/cart' }, carl)
await send('DELETE', `/users/${userIds.emil}`, undefined, admin)
admin = bearer((await signIn('ada')).token)
const events = await send('GET', '/events?limit=5', undefined, admin)
// What an administrator reads. These paths tell of the program, or have digests of the ports, which differ.
const OMITTED_PATHS = [
  ...['/api/installation', '/api/mails/templates', '/api/time-zones', '/api/events/known'],
  '/api/definitions',
]
const { paths } = (await apiCaller(server.url)('GET', '/openapi/json')).body
const lists = Object.keys(paths).filter((path) => paths[path].get && /^\/api\/[^{]*$/.test(path))
const details = [
  `${entities}?$sort=created`,
  `/workspaces/${workspace._id}/members`,
  ...['versions', 'logs'].map((list) => `/lambdas/${lambda._id}/${list}`),
  `/ai/threads/${thread}`,
  `/ai/sources/${aiSource}/storage`,
  `/plugins/${plugin._id}/deliveries`,
]
const administrator = { host: 'acme.test', 'x-api-key': apiToken }
const answers: Record<string, unknown> = {}
for (const path of details) answers[`/api${path}`] = await get(path, administrator)
for (const path of lists.filter((path) => !OMITTED_PATHS.includes(path)).map((path) => `${path}?limit=100`)) {
  const answer = await fetch(`${server.url}${path}`, { headers: administrator })
  // Some need other parameters, and some are streams.
  const isData = answer.ok && answer.headers.get('content-type')?.startsWith('application/json')
  const body = isData && (await answer.json())
  if (body) answers[path] = body
  if (!isData) await answer.body?.cancel()
}
const issued = {
  issuedAt: Date.now(),
  ...{ accessToken: admin.authorization, apiToken, refreshToken: dora.refreshToken, cookies, totpSecret: secret },
  ...{ recoveryCode: recoveryCodes[0], passwordResetToken: mailed('passwordReset') },
  ...{ verificationToken: mailed('verification') },
  ...{ cursors, eventsCursor: nextCursor(events), eventId, etag, once: first },
  ...{
    users: userIds,
    workspace: workspace._id,
    plugin: plugin._id,
    thread,
    agent,
    paid,
    lambdaHook,
    shopHook,
    lambda: lambda._id,
    leftThread,
  },
  passkey: { id: device.id, userHandle: device.own.userHandle, key: keyPair.privateKey.export({ format: 'jwk' }) },
  answers,
  jobKinds: [] as string[],
  urls: { stripe: stripe.url, openai: openai.url, receiver: receiver.url },
}
await server.end('SIGTERM')
await releaseJobs()

for (const table of await database.listTables())
  if (!(await database.query(`select 1 from "${table}" limit 1`)).length) console.info(`The table ${table} is empty.`)
const jobs = await database.query<{ kind: string }>('select distinct kind from jobs order by kind')
issued.jobKinds = jobs.map(({ kind }) => kind)
const target = join(import.meta.dir, 'databases', version)
mkdirSync(target, { recursive: true })
writeFileSync(join(target, `${engine}.json`), `${JSON.stringify(issued)}\n`)
const vendor = { sessions: [...stripe.sessions], subscriptions: [...stripe.subscriptions] }
writeFileSync(join(at, 'stripe.json'), JSON.stringify(vendor))
await database.dump()
await database.stop()
await Bun.spawn(['tar', '-czf', join(target, `${engine}.tar.gz`), '-C', at, '.']).exited
await Promise.all([stripe.stop(), openai.stop(), receiver.stop(), provider.stop()])
