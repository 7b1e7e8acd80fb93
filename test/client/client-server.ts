import { apiCaller, createTempFolder, createTenantByCli, PASSWORD, signIn, startAtoll } from '../fakes/cli'
import { fullAccessRules } from '../test-tenant'

export const TENANT = 'acme'
/** The users of the tenant besides root, who is its administrator. */
export const USERS = { grace: 'grace@example.com', hopper: 'hopper@example.com' }

const EVERYBODY = { permissions: fullAccessRules('tenant', 'user') }
const BLUEPRINTS = [
  { key: 'projects', name: 'Projects', fields: [{ key: 'name', type: 'string', required: true }], ...EVERYBODY },
  {
    key: 'tasks',
    name: 'Tasks',
    fields: [
      { key: 'title', type: 'string', required: true },
      { key: 'done', type: 'boolean', default: false },
      { key: 'points', type: 'integer' },
      { key: 'due', type: 'date' },
      { key: 'project', type: 'relation', target: 'projects' },
    ],
    ...EVERYBODY,
    history: true,
  },
]
const GREET = 'export default async ({ body }) => ({ greeting: "Hello, " + body.name })'

type ServerOptions = {
  /** Settings of the server process. */
  env?: Record<string, string>
}

/** Starts a server process with a tenant that has some of everything a client works with. Dispose it after use. */
export async function startClientServer({ env = {} }: ServerOptions = {}) {
  const at = { at: createTempFolder(), env: { ATOLL_AI_ECHO: 'on', ...env } }
  await createTenantByCli(at, TENANT)
  const server = await startAtoll(at)
  const anonymous = apiCaller(server.url, { tenant: TENANT })
  const call = apiCaller(server.url, await signIn(server.url, TENANT))
  const expectMade = async (method: string, path: string, body: unknown) => {
    const answer = await call(method, `/api/${path}`, body)
    if (answer.status >= 300) throw new Error(`${path}: ${JSON.stringify(answer.body)}`)
    return answer.body
  }
  const post = (path: string, body: unknown) => expectMade('POST', path, body)
  await expectMade('PUT', 'configurations/auth-configuration', { metadata: { allowEmailSignIn: true } })
  await expectMade('PUT', 'configurations/app-configuration', { websiteUrls: ['https://app.example.com'] })
  for (const blueprint of BLUEPRINTS) await post('blueprints', blueprint)
  for (const [username, email] of Object.entries(USERS)) await post('users', { username, email, password: PASSWORD })
  const lambda = await post('lambdas', { name: 'greet', code: GREET })
  const webhook = await post('integrations', {
    name: 'Greeting',
    trigger: { kind: 'webhook' },
    target: { kind: 'lambda', lambdaId: lambda._id },
    guest: true,
  })
  const agent = await post('ai/agents', { name: 'Parrot', sourceId: 'echo', recordThread: true })
  const plan = await post('plans', { name: 'Pro', monthlyPrice: 20, yearlyPrice: 200 })
  await post('coupons', { code: 'FREE', discountType: 'percentage', discountValue: 100 })
  const { token: apiKey } = await post('me/api-tokens', { nickname: 'test', currentPassword: PASSWORD })
  const atoll = (await call('GET', '/api/blueprints/client.ts')).body as string
  return {
    ...{ server, at, url: server.url, anonymous, call, post, apiKey: apiKey as string, atoll },
    ...{ lambdaId: lambda._id as string, webhookId: webhook._id as string },
    ...{ agent: agent as { _id: string }, plan: plan as { _id: string } },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}
export type ClientServer = Awaited<ReturnType<typeof startClientServer>>
