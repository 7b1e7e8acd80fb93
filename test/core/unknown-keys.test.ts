// engine: sqlite
import { beforeAll, describe, expect, test } from 'bun:test'
import type { TSchema } from '@sinclair/typebox'
import { app } from '../../src/app'
import { KEY_POLICY, type KeyPolicy } from '../../src/core/schema-annotations'
import { type ApiClient, callApi, createTestTenant, type TestResponse } from '../test-tenant'

let t: Awaited<ReturnType<typeof createTestTenant>>
let admin: ApiClient
beforeAll(async () => {
  t = await createTestTenant()
  admin = t.as('admin')
})

const keysOf = (shape: TSchema): string[] => [
  ...Object.keys(shape.properties ?? {}),
  ...((shape.anyOf ?? []) as TSchema[]).flatMap(keysOf),
]

/** Every route that takes a body whose keys are named. */
const routes = app.routes.flatMap(({ method, path, hooks }) => {
  const keys = hooks.body ? keysOf(hooks.body as TSchema) : []
  const isStrict = !!(hooks.body as { [KEY_POLICY]?: KeyPolicy } | undefined)?.[KEY_POLICY]?.strict
  return keys.length && path.startsWith('/api/')
    ? [{ method, path: path.slice(4).replace(/:\w+/g, 'x'), keys, isStrict }]
    : []
})

const send = ({ method, path }: { method: string; path: string }, body: unknown) =>
  callApi(method, `${t.origin}/api${path}`, { headers: { 'x-api-key': t.tokens.admin }, body })

const ignoredKeysOf = ({ headers }: TestResponse) => headers.get('x-ignored-keys')
const messagesOf = ({ body }: TestResponse): string[] =>
  (body.details ?? []).map(({ message }: { message: string }) => message)

describe('unknown keys in the body of every route', () => {
  test('every route refuses a misspelled top-level key with 400 INVALID_INPUT and suggests the right one', async () => {
    expect(routes.length).toBeGreaterThan(75)
    for (const route of routes) {
      const longest = route.keys.toSorted((a, b) => b.length - a.length)[0]!
      const wrong = longest.slice(0, 2) + longest.slice(3)
      const { status, body } = await send(route, { [wrong]: 1 })
      expect([status, body.code], `${route.method} ${route.path} ${wrong}`).toEqual([400, 'INVALID_INPUT'])
      expect(body.details).toEqual([
        { path: `/${wrong}`, message: `${wrong} is unknown. Did you mean \`${longest}\`?` },
      ])
    }
  })

  test('every route refuses a key in upper case or snake case and suggests the right one', async () => {
    for (const route of routes) {
      const longest = route.keys.toSorted((a, b) => b.length - a.length)[0]!
      for (const wrong of [longest.toUpperCase(), longest.replace(/(?<=.)(?=[A-Z])/g, '_').toLowerCase()])
        if (!route.keys.includes(wrong))
          expect(messagesOf(await send(route, { [wrong]: 1 })), `${route.path} ${wrong}`).toEqual([
            `${wrong} is unknown. Did you mean \`${longest}\`?`,
          ])
    }
  })

  test('every route that is not strict names keys that resemble no known key in the header X-Ignored-Keys', async () => {
    for (const route of routes.filter(({ isStrict }) => !isStrict)) {
      const answer = await send(route, { zzzzzzzzzzzz: 1, 'odd, "key"\n\u{1f600}': 2 })
      expect(ignoredKeysOf(answer), `${route.method} ${route.path}`).toBe(
        'zzzzzzzzzzzz, odd%2C%20%22key%22%0A%F0%9F%98%80',
      )
      expect(messagesOf(answer).filter((message) => message.includes('unknown'))).toEqual([])
    }
  })
})

test('the header X-Ignored-Keys is limited in length and exposed to other origins', async () => {
  const many = Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`${n}${'z'.repeat(500)}`, 1]))
  const answer = await admin.post('/blocks', { name: 'x', content: '', ...many })
  expect(answer.status).toBe(201)
  expect(ignoredKeysOf(answer)!.length).toBeLessThan(520)
  expect(ignoredKeysOf(answer)).toEndWith(', ...')
  const first = await admin.post('/blocks', { name: 'x', content: '', ['中'.repeat(64)]: 1 })
  expect(ignoredKeysOf(first)).toBe('...')
  const page = await admin.post('/blocks', { name: 'x', content: '', zzzz: 1 }, { origin: 'http://localhost:5173' })
  expect(page.headers.get('access-control-expose-headers') ?? 'X-Ignored-Keys').toContain('X-Ignored-Keys')
})

test('a request without unknown keys has no header X-Ignored-Keys', async () => {
  const answer = await admin.post('/blocks', { name: 'x', content: '' })
  expect([answer.status, ignoredKeysOf(answer)]).toEqual([201, null])
})

describe('unknown keys in parts of a body', () => {
  const blueprint = (more: object) => ({ key: 'x', name: 'X', fields: [{ key: 'a', type: 'string' }], ...more })
  const integration = (more: object) => ({
    trigger: { kind: 'webhook' },
    target: { kind: 'lambda', lambdaId: 'x' },
    ...more,
  })
  const source = (authentication: object, metadata: object = {}) => ({
    name: 'x',
    kind: 'openai',
    metadata,
    authentication,
  })
  const configured = (key: string, metadata: object) =>
    ['PUT', `/configurations/${key}`, { metadata }] as [string, string, object]

  test.each<[string, [string, string, object], string, string]>([
    [
      'a field',
      ['POST', '/blueprints', blueprint({ fields: [{ key: 'a', type: 'string', requird: true }] })],
      '/fields/0/requird',
      'Did you mean `required`?',
    ],
    [
      'a field whose key belongs to the blueprint',
      ['POST', '/blueprints', blueprint({ fields: [{ key: 'a', type: 'string', permissions: [] }] })],
      '/fields/0/permissions',
      '`permissions` belongs beside `fields`, not inside it.',
    ],
    [
      'a field with a key like no other',
      ['POST', '/blueprints', blueprint({ fields: [{ key: 'a', type: 'string', colour: 'red' }] })],
      '/fields/0/colour',
      'fields[0].colour is unknown. Known here: key, type, required,',
    ],
    [
      'a rule',
      ['POST', '/blueprints', blueprint({ permissions: [{ operation: 'read', roleBase: ['user'] }] })],
      '/permissions/0/roleBase',
      'Did you mean `roleBased`?',
    ],
    ...['ttl', 'softDelete', 'checks', 'unique', 'retention', 'trash'].map(
      (key): [string, [string, string, object], string, string] => [
        `a blueprint with ${key}`,
        ['POST', '/blueprints', blueprint({ [key]: true })],
        `/${key}`,
        `${key} is not supported.`,
      ],
    ),
    [
      'a change of a blueprint',
      ['PUT', '/blueprints/whatever', { softDelete: true }],
      '/softDelete',
      'softDelete is not supported.',
    ],
    [
      'a user with a hash',
      ['POST', '/users', { username: 'moved', passwordHash: '$2b$10$abc' }],
      '/passwordHash',
      'passwordHash is not supported.',
    ],
    [
      'a limitation',
      ['POST', '/blueprints', blueprint({ limitations: [{ scope: 'user', value: 1, role: ['user'] }] })],
      '/limitations/0/role',
      'Did you mean `roles`?',
    ],
    [
      'a limitation by a plan',
      ['POST', '/blueprints', blueprint({ limitations: [{ scope: 'user', value: { planLimits: 'x' } }] })],
      '/limitations/0/value/planLimits',
      'Did you mean `planLimit`?',
    ],
    [
      'a trigger whose key belongs to the integration',
      ['POST', '/integrations', integration({ trigger: { kind: 'webhook', guest: true } })],
      '/trigger/guest',
      'trigger.guest is unknown: `guest` belongs beside `trigger`, not inside it.',
    ],
    [
      'a trigger',
      ['POST', '/integrations', integration({ trigger: { kind: 'schedule', cron: '0 9 * * MON', timeZone: 'UTC' } })],
      '/trigger/timeZone',
      'Did you mean `timezone`?',
    ],
    [
      'a trigger of another kind',
      ['POST', '/integrations', integration({ trigger: { kind: 'webhook', cron: 'x' } })],
      '/trigger/cron',
      'A trigger of the kind webhook has no cron: only schedule has.',
    ],
    [
      'a target',
      ['POST', '/integrations', integration({ target: { kind: 'lambda', lambdaID: 'x' } })],
      '/target/lambdaID',
      'Did you mean `lambdaId`?',
    ],
    [
      'a client tool',
      ['POST', '/ai/echo/chat-completion', { messages: [], clientTools: [{ name: 'x', descripton: '' }] }],
      '/clientTools/0/descripton',
      'Did you mean `description`?',
    ],
    [
      'the function of a client tool',
      [
        'POST',
        '/ai/echo/chat-completion',
        { messages: [], clientTools: [{ type: 'function', function: { name: 'x', paramters: {} } }] },
      ],
      '/clientTools/0/function/paramters',
      'Did you mean `parameters`?',
    ],
    [
      'a budget',
      configured('ai-configuration', { budgets: [{ scope: 'user', period: 'day', unit: 'tokens', limits: 1 }] }),
      '/metadata/budgets/0/limits',
      'Did you mean `limit`?',
    ],
    [
      'a price',
      configured('ai-configuration', { prices: { x: { prompt: 1, completions: 1 } } }),
      '/metadata/prices/x/completions',
      'Did you mean `completion`?',
    ],
    [
      'a provider',
      configured('auth-configuration', { providers: { google: { clientID: 'x' } } }),
      '/metadata/providers/google/clientID',
      'Did you mean `clientId`?',
    ],
    [
      'authentication',
      ['POST', '/integration-sources', source({ tokn: 'x' })],
      '/authentication/tokn',
      'Did you mean `token`?',
    ],
    [
      'authentication with a key that belongs beside it',
      ['POST', '/integration-sources', source({ labels: [] })],
      '/authentication/labels',
      '`labels` belongs beside `authentication`, not inside it.',
    ],
    [
      'an event of a plugin',
      ['POST', '/plugins', { name: 'x', subscribedEvents: [{ hookUrl: 'https://a.test', hookURL: 'x' }] }],
      '/subscribedEvents/0/hookURL',
      'Did you mean `hookUrl`?',
    ],
    [
      'the prices of a provider in a plan',
      ['POST', '/plans', { name: 'x', externalIds: { stripe: { isActive: true } } }],
      '/externalIds/stripe/isActive',
      '`isActive` belongs beside `externalIds`, not inside it.',
    ],
    [
      'a required prop',
      ['POST', '/components', { identifier: 'x', content: '1', requiredProps: [{ prop: 'a', type: 'b', typ: 'c' }] }],
      '/requiredProps/0/typ',
      'Did you mean `type`?',
    ],
    [
      'metadata of a connection',
      ['POST', '/integration-sources', source({}, { apiURL: 'x' })],
      '/metadata/apiURL',
      'Did you mean `apiUrl`?',
    ],
    [
      'metadata of a configuration',
      configured('payments-configuration', { gracePeriodDay: 1 }),
      '/metadata/gracePeriodDay',
      'Did you mean `gracePeriodDays`?',
    ],
    [
      'the app configuration',
      ['PUT', '/configurations/app-configuration', { websiteUrl: [] }],
      '/websiteUrl',
      'Did you mean `websiteUrls`?',
    ],
    [
      'a coupon',
      ['POST', '/coupons', { code: 'x', discountType: 'fixed', discountValue: 1, maxRedemtions: 1 }],
      '/maxRedemtions',
      'Did you mean `maxRedemptions`?',
    ],
  ])(
    '%s with an unknown key is refused with 400 INVALID_INPUT and a message about the key',
    async (_, [method, path, sent], at, words) => {
      const { status, body } = await send({ method, path }, sent)
      expect([status, body.code]).toEqual([400, 'INVALID_INPUT'])
      const [flaw] = body.details.filter(({ path }: { path: string }) => path === at)
      expect(flaw?.message ?? JSON.stringify(body.details)).toContain(words)
    },
  )

  test('free metadata keeps keys that resemble no known key', async () => {
    const made = await admin.post('/configurations', { key: 'free', metadata: { region: 'eu' } })
    expect([made.status, made.body.metadata]).toEqual([201, { region: 'eu' }])
    const put = await admin.put('/configurations/app-configuration', { metadata: { colour: 'red' } })
    expect([put.status, put.body.metadata.colour]).toEqual([200, 'red'])
  })
})

test('every resource can be read and sent back unchanged with 200', async () => {
  const create = async (path: string, body: object) => {
    const made = await admin.post(path, body)
    expect([path, made.status < 300, messagesOf(made)]).toEqual([path, true, []])
    return `${path}/${made.body.key ?? made.body._id}`
  }
  const lambda = await create('/lambdas', { name: 'x', code: 'export default () => 1' })
  const paths = [
    await create('/blueprints', { key: 'back', name: 'X', fields: [{ key: 'a', type: 'string' }], permissions: [] }),
    lambda,
    await create('/integrations', {
      ...{ name: 'x', trigger: { kind: 'webhook' } },
      target: { kind: 'lambda', lambdaId: lambda.split('/').at(-1) },
    }),
    await create('/integration-sources', { name: 'x', kind: 'openai', authentication: { token: 'x' } }),
    await create('/ai/agents', { name: 'x', sourceId: 'echo' }),
    await create('/plugins', { name: 'x', subscribedEvents: [{ hookUrl: 'https://a.test/x' }] }),
    await create('/plans', { name: 'x', monthlyPrice: 1, yearlyPrice: 10 }),
    await create('/coupons', { code: 'BACK', discountType: 'percentage', discountValue: 5 }),
    await create('/blocks', { name: 'x', content: 'x' }),
    await create('/components', { identifier: 'back', content: 'export const a = 1', requiredProps: ['a'] }),
    await create('/configurations', { key: 'back', metadata: { a: 1 } }),
    await create('/workspaces', { name: 'x' }),
    await create('/users', { username: 'back' }),
  ]
  for (const path of paths) {
    const { body } = await admin.get(path)
    const answer = await admin.put(path, body)
    expect([path, answer.status, ignoredKeysOf(answer), messagesOf(answer)]).toEqual([path, 200, null, []])
  }
  const me = await admin.post('/me', (await admin.get('/me')).body)
  expect([me.status, ignoredKeysOf(me)]).toEqual([200, null])
})

const plan = 'name monthlyPrice yearlyPrice currency dynamic isActive _id'
const coupon =
  'code discountType discountValue currency maxRedemptions currentRedemptions validFrom validUntil benefitDurationUnit benefitDurationValue applicablePlanIds isActive'
const completion =
  'messages model temperature top_p max_tokens frequency_penalty presence_penalty stop response_format context stream clientTools rules queryParams'
const checkout =
  'subscriptionId planId billingCycle billableEntityType billableEntityId couponCode successUrl cancelUrl amount'

// The bodies of the contract, with all of their keys.
test.each([
  ['POST', '/blueprints', 'key name description fields'],
  ['PUT', '/blueprints/x', 'key name description fields'],
  ['POST', '/signin', 'username password authType'],
  ['POST', '/signup', 'username password firstName lastName birthDate fullName email name profileImage roles metadata'],
  ['POST', '/me', 'fullName firstName lastName metadata _id username email name profileImage roles workspace'],
  ['POST', '/workspaces', 'name logo labels _id isPrivilegedUser members invites tenant'],
  ['PUT', '/workspaces/x', 'name logo labels _id isPrivilegedUser members invites tenant'],
  ['POST', '/workspaces/x/members', 'userId roles user created'],
  ['PUT', '/workspaces/x/members/x', 'roles user created userId'],
  ['POST', '/invites', 'workspace kind'],
  ['POST', '/ai/threads', 'integration title messages messageSummaries created updated user workspace _id'],
  [
    'POST',
    '/ai/echo/chat-completion',
    `${completion} top_k top_a min_tokens models messageId tools tool_choice user n seed max_completion_tokens store`,
  ],
  ['POST', '/ai/echo/chat-completion/x', completion],
  ['POST', '/ai/sources/echo/storage', 'integrationId scope subjectId expirationAfterDays externalId _id created'],
  ['POST', '/ai/sources/echo/storage/upload', 'content integrationId fileName vectorStoreId metadata'],
  ['POST', '/ai/sources/echo/storage/clear', 'integrationId vectorStoreId fileIds'],
  ['POST', '/blocks', '_id name description content contentType'],
  ['PUT', '/blocks/x', '_id name description content contentType'],
  ['POST', '/events', 'source kind eventName description metadata'],
  ['POST', '/plans', plan],
  ['PUT', '/plans/x', plan],
  [
    'POST',
    '/subscriptions',
    'planId billingCycle couponCode dynamicAmount providerKind billableEntityType billableEntityId',
  ],
  ['PUT', '/subscriptions/x/dynamic-amount', 'amount'],
  ['PUT', '/subscriptions/x/coupon', 'couponCode'],
  ['POST', '/checkout', checkout],
  ['PUT', '/payments/configuration', 'metadata'],
  ['POST', '/coupons', coupon],
  ['PUT', '/coupons/x', coupon],
  ['POST', '/coupons/validate', 'code planId'],
])('%s %s accepts every key of the contract', async (method, path, keys) => {
  const answer = await send({ method, path }, Object.fromEntries(keys.split(' ').map((key) => [key, null])))
  expect(messagesOf(answer).filter((message) => message.includes('is unknown'))).toEqual([])
})

test('an unknown field in an entity or its query is refused with 400 and the readable field that resembles it', async () => {
  const permissions = [
    { operation: 'create', scope: 'tenant', roleBased: ['*'] },
    { operation: 'read', scope: 'tenant', roleBased: ['*'] },
  ]
  const fields = [
    { key: 'title', type: 'string' },
    { key: 'secret', type: 'string', readRoles: ['admin'], writeRoles: ['admin'] },
  ]
  expect((await admin.post('/blueprints', { key: 'todos', name: 'X', fields, permissions })).status).toBe(201)
  const user = t.as('user')
  const at = '/blueprints/todos/entities'
  const firstErrorOf = async (answer: Promise<TestResponse>) => {
    const { status, body } = await answer
    return [status, body.details?.[0]]
  }
  const none = 'The blueprint "todos" has no field'
  expect(await firstErrorOf(admin.post(at, { titel: 'x' }))).toEqual([
    ...[400, { path: '/titel', message: `${none} "titel". Did you mean \`title\`?` }],
  ])
  expect(await firstErrorOf(user.post(at, { secrt: 'x' }))).toEqual([
    400,
    { path: '/secrt', message: `${none} "secrt".` },
  ])
  for (const [query, path, words] of [
    ['limit=5', 'limit', `${none} "limit". Did you mean \`$limit\`?`],
    ['sort=title', 'sort', `${none} "sort". Did you mean \`$sort\`?`],
    ['populate=true', 'populate', `${none} "populate". Did you mean \`$populate\`?`],
    ['titel=x', 'titel', `${none} "titel". Did you mean \`title\`?`],
    ['$limt=5', '$limt', 'Unknown option "$limt". Did you mean `$limit`?'],
    ['$sort=title:desc', '$sort', 'Entities of "todos" cannot be sorted by "title:desc". Use -title.'],
    ['secrt=x', 'secrt', `${none} "secrt".`],
  ] as const)
    expect(await firstErrorOf(user.get(`${at}?${query}`))).toEqual([400, { path, message: words }])
})

test('a list whose limit exceeds the page size answers the effective limit in the header X-Limit', async () => {
  await admin.post('/blueprints', {
    ...{ key: 'long', name: 'X', fields: [{ key: 'a', type: 'string' }] },
    permissions: [{ operation: 'read', scope: 'tenant', roleBased: ['*'] }],
  })
  for (const [path, limit] of [
    ['/blueprints/long/entities?$limit=5000', '1000'],
    ['/blueprints/long/entities?$limit=1000', null],
    ['/blocks?limit=5000', '1000'],
    ['/blocks', null],
  ] as const) {
    const { status, headers } = await admin.get(path)
    expect([path, status, headers.get('x-limit')]).toEqual([path, 200, limit])
  }
})

test('streamed and plain answers both name ignored keys in the header X-Ignored-Keys', async () => {
  const agent = (await admin.post('/ai/agents', { name: 'x', sourceId: 'echo' })).body._id
  const messages = [{ role: 'user', content: 'hello' }]
  for (const stream of [true, false]) {
    const answer = await admin.post(`/ai/${agent}/chat-completion`, { messages, stream, seed: 1, top_k: 2 })
    expect([answer.status, ignoredKeysOf(answer)]).toEqual([200, 'seed'])
  }
})
