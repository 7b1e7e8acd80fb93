import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { issueApiToken } from '../../src/accounts/api-tokens'
import { handleRequest } from '../../src/gateway'
import { createTempFolder, runAtoll, SOURCE_COMMAND } from '../fakes/cli'
import { createTestTenant, withoutRateLimits } from '../test-tenant'
import { readTexts } from './fixtures'

let server: ReturnType<typeof Bun.serve>
let limits: Disposable
beforeAll(() => {
  limits = withoutRateLimits()
  server = Bun.serve({ port: 0, fetch: (request) => handleRequest(request) })
})
afterAll(async () => {
  limits[Symbol.dispose]()
  await server.stop(true)
})

// The tests of features run on PostgreSQL, too; the laptop always has SQLite.
test('a tenant of a laptop with SQLite has the same bytes on a server after a push by a token for definitions only', async () => {
  const at = createTempFolder()
  const run = async (command: string, env: Record<string, string> = {}) => {
    const result = await runAtoll(`${command} --json`, { at, env, program: SOURCE_COMMAND, timeout: 60_000 })
    expect(result.code, `${command}: ${result.err}`).toBe(0)
    return result.json
  }
  await run('tenant create shop --host shop.test')
  const files = {
    'blueprints/orders.json': JSON.stringify({ name: 'Orders', fields: [{ key: 'number', type: 'string' }] }),
    'connections/Models.json': JSON.stringify({ kind: 'openai', authentication: { token: `\${MODELS_TOKEN}` } }),
    'lambdas/total.ts': 'export default () => 1\n',
    'agents/Clerk.json': JSON.stringify({ sourceId: 'Models', blueprints: ['orders'] }),
    'integrations/Totals.json': JSON.stringify({
      ...{ trigger: { kind: 'schedule', cron: '0 9 * * MON' }, target: { kind: 'lambda', lambdaId: 'total' } },
    }),
    'secrets.env': 'MODELS_TOKEN="sk-from-file"\n',
  }
  for (const [path, text] of Object.entries(files)) await Bun.write(join(at, 'written', path), text)
  const made = await run('push written --tenant shop --env-file written/secrets.env --yes')
  expect(made.changes.map(({ kind, name }: { kind: string; name: string }) => `${kind} ${name}`)).toEqual([
    ...['blueprint orders', 'connection Models', 'lambda total', 'integration Totals', 'agent Clerk'],
  ])
  await run('pull laptop --tenant shop')

  const tenant = await createTestTenant()
  const scopes = ['definitions:write']
  const { token } = await issueApiToken(tenant.tenant, tenant.users.admin, { nickname: 'ci', scopes })
  const remote = { ATOLL_URL: server.url.href, ATOLL_TOKEN: token }
  const env = { ...remote, CONNECTION_MODELS_TOKEN: 'sk-from-environment' }
  const missing = await runAtoll(`push laptop --tenant ${tenant.id} --yes --json`, {
    ...{ at, env: remote, program: SOURCE_COMMAND, timeout: 60_000 },
  })
  expect(missing.code).toBe(1)
  expect(JSON.parse(missing.err)).toMatchObject({ code: 'MISSING_SECRETS' })
  const planned = await run(`diff laptop --tenant ${tenant.id}`, env)
  expect(await run(`push laptop --tenant ${tenant.id} --yes`, env)).toEqual(planned)
  expect(await run(`push laptop --tenant ${tenant.id} --yes`, env)).toEqual({ changes: [] })
  await run(`pull server --tenant ${tenant.id}`, env)
  expect(await readTexts(join(at, 'server'))).toEqual(await readTexts(join(at, 'laptop')))
}, 120_000)
