import { beforeAll, expect, test } from 'bun:test'
import { createTestTenant } from './test-tenant'

let t: Awaited<ReturnType<typeof createTestTenant>>
beforeAll(async () => {
  t = await createTestTenant()
})

const sourceOf = (url: string) => ({ name: 'x', kind: 'http', metadata: { url } })
const NO_SOURCE = 'There is no integration source of the kind openai with this id. The built-in one is called echo.'

const invalidSchedule = { kind: 'schedule', cron: 'every monday' }
const ADMIN_ONLY = 'Only users with the role admin may do this.'

test.each<['admin' | 'user', string, string, number, string, string, unknown]>([
  ['user', 'POST', '/blueprints', 403, 'FORBIDDEN', 'Only users with the role admin or plugin may do this.', {}],
  ['user', 'GET', '/users', 403, 'FORBIDDEN', ADMIN_ONLY, undefined],
  ['user', 'GET', '/configurations/secret', 403, 'FORBIDDEN', ADMIN_ONLY, undefined],
  ['admin', 'POST', '/ai/agents', 400, 'INVALID_INPUT', NO_SOURCE, { name: 'x', sourceId: 'none' }],
  ['admin', 'POST', '/integrations', 400, 'INVALID_INPUT', 'target is required.', { trigger: invalidSchedule }],
  [
    ...(['admin', 'POST', '/integrations', 400, 'INVALID_INPUT'] as const),
    'This is not a cron expression. Write five parts, such as 0 9 * * MON.',
    { trigger: invalidSchedule, target: { kind: 'lambda', lambdaId: 'x' } },
  ],
  [
    ...(['admin', 'POST', '/integration-sources', 400, 'INVALID_INPUT'] as const),
    'Write a whole address that begins with https:// or http://.',
    sourceOf('nope'),
  ],
  ['admin', 'DELETE', '/signin', 405, 'METHOD_NOT_ALLOWED', 'DELETE is not allowed here. Allowed: POST.', undefined],
  [
    ...(['admin', 'GET', '/blocks?sort=colour', 400, 'INVALID_INPUT'] as const),
    'This list cannot be sorted by "colour". Use one of: _id, name, contentType, created, updated.',
    undefined,
  ],
])('%s: %s %s is refused with %d %s: %s', async (who, method, path, status, code, message, body) => {
  const answer = await t.as(who)[method.toLowerCase() as 'post'](path, body as object)
  expect([answer.status, answer.body.code, answer.body.message]).toEqual([status, code, message])
})

test('the errors of an agent carry the path of the invalid value in the body', async () => {
  const admin = t.as('admin')
  const made = await admin.post('/ai/agents', { name: 'x', sourceId: 'none' })
  expect(made.body.details).toEqual([{ path: '/sourceId', message: NO_SOURCE }])
  const agent = (await admin.post('/ai/agents', { name: 'x', sourceId: 'echo' })).body._id
  const changed = await admin.put(`/ai/agents/${agent}`, { tools: ['none'] })
  expect(changed.body.details.map(({ path }: { path: string }) => path)).toEqual(['/tools/0'])
})

test('GET /api/auth/google without a configured provider names the provider', async () => {
  const answer = await t.anonymous.get('/auth/google')
  expect(JSON.stringify([answer.body, answer.headers.get('location')])).toContain('google is not set up')
})
