import { beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { app } from '../../src/app'
import { createTestTenant } from '../test-tenant'
import { findMismatch } from './described-answers'

setDefaultTimeout(120_000)

const t = await createTestTenant()
const admin = t.as('admin')
/** The values of path parameters. */
const PATH_PARAMETERS: Record<string, string> = {
  id: 'none',
  type: 'bar',
  providerKind: 'stripe',
  provider: 'google',
  file: 'x.js',
}
const createdIds: Record<string, string> = {}

const fields = [
  { key: 'title', type: 'string', required: true },
  { key: 'hours', type: 'number' },
]
const permissions = [{ operation: 'read', scope: 'tenant', guest: true }]
const code = 'export default (request) => ({ hello: request.query })'

/** The paths and bodies of things to create, and the names under which their ids are stored. */
const creations: [path: string, body: object | (() => object), as?: string][] = [
  ['/blueprints/', { key: 'todos', name: 'To-dos', fields, permissions }],
  ['/blueprints/todos/entities/', { title: 'One', hours: 2 }, 'entity'],
  ['/blueprints/todos/entities/batch', { operations: [{ op: 'create', data: { title: 'Two' } }] }],
  ['/workspaces/', { name: 'Engines' }, 'workspaces'],
  ['/users/', { username: 'grace', roles: ['user'] }, 'users'],
  ['/components/', { identifier: 'hello', content: 'export default () => 1' }, 'components'],
  ['/components/bulk', { components: [{ identifier: 'other', content: 'export default 2' }, {}] }],
  ['/blocks/', { name: 'footer', content: '<p>x</p>', contentType: 'html' }, 'blocks'],
  ['/configurations/', { key: 'theme', metadata: { dark: true } }, 'configurations'],
  ['/events/', { source: 'shop', kind: 'order', eventName: 'placed', metadata: { total: 5 } }, 'events'],
  ['/lambdas/', { name: 'Greeting', code }, 'lambdas'],
  [
    '/integration-sources/',
    { name: 'Own', kind: 'http', metadata: { url: 'https://example.com' } },
    'integration-sources',
  ],
  [
    '/integrations/',
    () => ({ name: 'Greet', trigger: { kind: 'webhook' }, target: { kind: 'lambda', lambdaId: createdIds.lambdas } }),
    'integrations',
  ],
  ['/plans/', { name: 'Pro', monthlyPrice: 10, yearlyPrice: 100, currency: 'EUR' }, 'plans'],
  ['/coupons/', { code: 'SPRING', discountType: 'percentage', discountValue: 20 }, 'coupons'],
  ['/coupons/validate', { code: 'SPRING' }],
  [
    '/subscriptions/',
    () => ({
      planId: createdIds.plans,
      billingCycle: 'monthly',
      billableEntityType: 'user',
      billableEntityId: t.users.user,
    }),
    'subscriptions',
  ],
  ['/plugins/', { name: 'Mailer' }, 'plugins'],
  ['/ai/agents/', { name: 'Helper', sourceId: 'echo' }, 'agents'],
  ['/ai/threads/', () => ({ integration: createdIds.agents }), 'threads'],
  ['/users/:id/encrypted', { secret: 1 }],
]

const segmentsOf = (path: string) => path.replace(/\/$/, '').split('/')

/** The path of a route with the ids of the things that were created for it. */
function fillPath(path: string): string {
  const [, , first = '', second = ''] = segmentsOf(path)
  const thing = first === 'ai' ? second : first
  return path
    .replace('/api', '')
    .replace(/:key/, first === 'configurations' ? 'theme' : 'todos')
    .replace(/:identifier/, createdIds.entity ?? 'none')
    .replace(/:id|:\w+Id/, createdIds[thing] ?? PATH_PARAMETERS.id ?? '')
    .replace(/:(\w+)/g, (_, name: string) => PATH_PARAMETERS[name] ?? 'none')
}

const routeOf = (path: string) => (path.includes('todos') ? path.replace('todos', ':key') : path)

beforeAll(async () => {
  for (const [path, body, name] of creations) {
    const to = path.replace(':id', t.users.user)
    const answer = await admin.post(to, typeof body === 'function' ? body() : body)
    expect([path, answer.status < 300 || answer.body], 'it is created').toEqual([path, true])
    expect([path, findMismatch('POST', `/api${routeOf(path)}`, answer)]).toEqual([path, ''])
    if (name) createdIds[name] = answer.body._id
  }
})

const QUERIES: Record<string, string> = {
  '/api/blueprints/:key/charts/sum': '?sum=hours',
  '/api/blueprints/:key/charts/pie': '?x=title',
  '/api/blueprints/:key/charts/:type': '?x=title',
  '/api/events/sum': '?sum=total',
}

describe('answers match the OpenAPI document', () => {
  const gets = app.routes.filter(
    ({ method, path, hooks }) =>
      method === 'GET' &&
      !hooks.detail?.hide &&
      !/\/(changes|chat)$|webhooks|\/auth\/:/.test(path) &&
      path.startsWith('/api/'),
  )

  test.each(gets.map(({ path }) => [path]))(
    'GET %s answers an admin, a user and a guest as documented',
    async (path) => {
      const url = fillPath(path) + (QUERIES[path] ?? '')
      for (const who of [admin, t.as('user'), t.anonymous])
        expect(findMismatch('GET', path, await who.get(url)), url).toBe('')
      expect(findMismatch('GET', path, await admin.get(`${fillPath(path)}?limit=x&$limit=x`))).toBe('')
      expect(findMismatch('GET', path, await admin.get(url, { 'accept-version': 'v9' }))).toBe('')
    },
  )

  test('GET /api/blueprints/:key/entities answers a list and a query plan as documented', async () => {
    const path = '/api/blueprints/:key/entities/'
    for (const query of ['', '?$explain=true', '?$flat=false', '?$select=title', '?$count=true']) {
      const answer = await admin.get(`/blueprints/todos/entities${query}`)
      expect([answer.status, findMismatch('GET', path, answer)], query).toEqual([200, ''])
    }
    const plan = (await admin.get('/blueprints/todos/entities?$explain=true')).body
    expect(plan.driver.by).toBeString()
  })

  const writes = app.routes.filter(
    ({ method, path, hooks }) =>
      ['POST', 'PUT', 'PATCH', 'DELETE'].includes(method) &&
      !hooks.detail?.hide &&
      path.startsWith('/api/') &&
      !/webhooks/.test(path),
  )

  test.each(writes.map(({ method, path }) => [method, path] as const))(
    '%s %s refuses an unknown thing, a wrong body and a missing right as documented',
    async (method, path) => {
      const url = path.replace('/api', '').replace(/:\w+/g, 'none')
      for (const client of [admin, t.as('user'), t.anonymous]) {
        const send = (body: unknown) =>
          method === 'DELETE' ? client.delete(url) : client[method.toLowerCase() as 'post'](url, body)
        for (const body of [[1], { name: 5 }]) expect(findMismatch(method, path, await send(body)), url).toBe('')
      }
    },
  )
})
