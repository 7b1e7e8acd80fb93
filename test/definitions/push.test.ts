import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { issueApiToken } from '../../src/accounts/api-tokens'
import { config } from '../../src/config'
import { writeFolder } from '../../src/definitions/folder'
import { diffFolder, type FolderOptions, pullFolder, pushFolder } from '../../src/definitions/folder-push'
import { type DefinitionTarget, openLocalTarget, openRemoteTarget } from '../../src/definitions/target'
import { handleRequest } from '../../src/gateway'
import { createTempFolder } from '../fakes/cli'
import { errorOf } from '../rejections'
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

const remote = ({ id, tokens }: Awaited<ReturnType<typeof createTestTenant>>) =>
  openRemoteTarget(server.url.href, tokens.admin, id)
const write = (folder: string, path: string, definition: object | string) =>
  Bun.write(join(folder, path), typeof definition === 'string' ? definition : JSON.stringify(definition))
const push = async (target: DefinitionTarget, folder: string, options: FolderOptions = {}) =>
  (await pushFolder(target, folder, options)).changes
const diff = async (target: DefinitionTarget, folder: string, options: FolderOptions = {}) =>
  (await diffFolder(target, folder, options)).changes

/** Other files of this process may set this otherwise. */
function withPrivateNetwork(setting: 'on' | 'off'): Disposable {
  const before = config.ATOLL_ALLOW_PRIVATE_NETWORK
  config.ATOLL_ALLOW_PRIVATE_NETWORK = setting
  return {
    [Symbol.dispose]() {
      config.ATOLL_ALLOW_PRIVATE_NETWORK = before
    },
  }
}

const title = { key: 'title', type: 'string' }
const code = 'export default () => 1'
const placeholder = (name: string) => `\${${name}}`

test('random blueprints make the round trip byte for byte', async () => {
  const field = fc.record(
    {
      key: fc.stringMatching(/^[a-z][a-z0-9]{0,8}$/),
      type: fc.constantFrom('string', 'number', 'boolean', 'date'),
      required: fc.boolean(),
      title: fc.string({ maxLength: 9 }).map((text) => `T${text.replace(/[^a-z]/g, '')}`),
    },
    { requiredKeys: ['key', 'type'] },
  )
  const fields = fc.uniqueArray(field, { selector: ({ key }) => key, maxLength: 6 })
  const tenant = fc.dictionary(fc.stringMatching(/^[a-z][a-z0-9]{0,8}$/), fields, { maxKeys: 4, minKeys: 1 })
  await fc.assert(
    fc.asyncProperty(tenant, async (blueprints) => {
      const [from, to] = [await createTestTenant(), await createTestTenant()]
      const [first, second] = [createTempFolder(), createTempFolder()]
      for (const [key, fields] of Object.entries(blueprints))
        await write(first, `blueprints/${key}.json`, { name: key, fields })
      await push(await openLocalTarget(from.id), first)
      await pullFolder(await openLocalTarget(from.id), first)
      await push(remote(to), first)
      await pullFolder(remote(to), second)
      expect(await readTexts(second)).toEqual(await readTexts(first))
    }),
    { numRuns: 8 },
  )
}, 60_000)

test('a renamed field keeps its values, and a removed blueprint needs prune, and with entities also pruneData', async () => {
  const tenant = await createTestTenant()
  const [target, folder, admin] = [remote(tenant), createTempFolder(), tenant.as('admin')]
  await write(folder, 'blueprints/books.json', { name: 'Books', fields: [title] })
  await push(target, folder)
  const { status, body } = await admin.post('/blueprints/books/entities', { title: 'Emma' })
  expect(status).toBe(201)
  const renamed = { name: 'Books', fields: [{ key: 'name', type: 'string', renamedFrom: 'title' }] }
  await write(folder, 'blueprints/books.json', renamed)
  const details = ['renames the field "title" to "name"']
  expect(await push(target, folder)).toEqual([
    { action: 'rename', kind: 'blueprint', name: 'books', details, entities: 1 },
  ])
  expect((await admin.get(`/blueprints/books/entities/${body._id}`)).body.name).toBe('Emma')
  expect(await push(target, folder)).toEqual([])
  await write(folder, 'blueprints/books.json', { name: 'Books', fields: [] })
  expect(await diff(target, folder)).toMatchObject([
    { action: 'change', details: ['removes the field "name" and its values'], entities: 1 },
  ])
  await Bun.file(join(folder, 'blueprints/books.json')).delete()
  expect(await push(target, folder)).toEqual([])
  expect(await errorOf(push(target, folder, { prune: true }))).toMatchObject({ code: 'BLUEPRINT_NOT_EMPTY' })
  expect(await push(target, folder, { prune: true, pruneData: true })).toMatchObject([
    { action: 'remove', name: 'books', entities: 1 },
  ])
  expect((await admin.get('/blueprints/books')).status).toBe(404)
})

test('a history is pulled, kept by a push, and switched off by a file without it, which the difference says', async () => {
  const tenant = await createTestTenant()
  const [target, folder, admin] = [remote(tenant), createTempFolder(), tenant.as('admin')]
  await write(folder, 'blueprints/books.json', { name: 'Books', fields: [title], history: true })
  await push(target, folder)
  await admin.post('/blueprints/books/entities', { identifier: 'emma', title: 'Emma' })
  await pullFolder(target, folder)
  expect(await push(target, folder)).toEqual([])
  expect((await admin.get('/blueprints/books/entities/emma/history')).body).toHaveLength(1)
  await write(folder, 'blueprints/books.json', { name: 'Books', fields: [title] })
  expect(await diff(target, folder)).toMatchObject([{ details: ['removes the history of its entities'] }])
  await push(target, folder)
  expect((await admin.get('/blueprints/books')).body.history).toBeUndefined()
})

test('a push of what somebody else has changed since the pull is 412 with both sides, until it is pulled again', async () => {
  const tenant = await createTestTenant()
  const [target, folder] = [remote(tenant), createTempFolder()]
  await write(folder, 'lambdas/one.ts', code)
  await push(target, folder)
  await write(folder, 'lambdas/one.ts', `${code} // mine`)
  const [{ _id }] = (await tenant.as('admin').get('/lambdas')).body
  expect((await tenant.as('admin').put(`/lambdas/${_id}`, { code: `${code} // theirs` })).status).toBe(200)
  const sides = [expect.stringContaining('mine'), expect.stringContaining('theirs')]
  const details = sides.map((message) => ({ path: expect.any(String), message }))
  expect(await errorOf(push(target, folder))).toMatchObject({ status: 412, more: { details } })
  expect(await errorOf(diff(target, folder))).toMatchObject({ status: 412 })
  await pullFolder(target, folder)
  await write(folder, 'lambdas/one.ts', `${code} // both`)
  expect(await push(target, folder)).toMatchObject([{ action: 'change', kind: 'lambda', details: ['changes code'] }])
})

test('a push that fails says what is made, and the same push finishes it once the file is corrected', async () => {
  const tenant = await createTestTenant()
  const [target, folder, admin] = [remote(tenant), createTempFolder(), tenant.as('admin')]
  for (const [name, apiPath] of [
    ['b', 'one'],
    ['d', 'two'],
  ])
    expect((await admin.post('/plugins', { name, apiPath })).status).toBe(201)
  await write(folder, 'blueprints/a.json', { name: 'A', fields: [title] })
  // Both paths are free after the push, but one of them not yet in between.
  await write(folder, 'plugins/b.json', { apiPath: 'two' })
  await write(folder, 'plugins/d.json', { apiPath: 'one' })
  await write(folder, 'blocks/c.json', { content: 'C' })
  const { message } = await errorOf(push(target, folder))
  expect(message).toContain('The plugin "b": /api/two is already taken.')
  expect(message).toContain('1 of 4 changes are made.')
  await write(folder, 'plugins/b.json', { apiPath: 'shop' })
  await write(folder, 'blueprints/a.json', { name: 'Changed', fields: [title] })
  expect(await push(target, folder)).toMatchObject([
    { action: 'change', kind: 'blueprint', name: 'a' },
    { action: 'change', kind: 'plugin', name: 'b' },
    { action: 'change', kind: 'plugin', name: 'd' },
    { action: 'create', kind: 'block', name: 'c' },
  ])
})

test.each<[string, string, string | object, string]>([
  [
    'a private address of a connection',
    'connections/models.json',
    { kind: 'openai', metadata: { apiUrl: 'https://10.0.0.1/v1' } },
    'This URL is not on the public internet.',
  ],
  ['a short secret of a plugin', 'plugins/p.json', { secret: placeholder('SHORT') }, '24 to 64 bytes'],
  [
    'a private hook of a plugin',
    'plugins/p.json',
    { subscribedEvents: [{ hookUrl: 'https://127.0.0.1/' }] },
    'This URL is not on the public internet.',
  ],
  ['a path of a plugin that the platform has', 'plugins/p.json', { apiPath: 'ai' }, '/api/ai is already taken.'],
  ['a path that another plugin keeps', 'plugins/p.json', { apiPath: 'kept' }, '/api/kept is already taken.'],
  [
    'an agent whose connection is no model',
    'agents/a.json',
    { sourceId: 'Site' },
    'There is no integration source of the kind openai with this id.',
  ],
  [
    'an agent with a tool that is none',
    'agents/a.json',
    { sourceId: 'echo', tools: ['Hook'] },
    'There is no integration with the trigger tool and this id.',
  ],
  [
    'a mail by a connection that sends none',
    'integrations/i.json',
    {
      trigger: { kind: 'webhook' },
      target: { kind: 'email', sourceId: 'Site', to: 'a@b.test', subject: 'x', text: 'x' },
    },
    'There is no integration source of the kind email with this id.',
  ],
  [
    'a request without an address',
    'integrations/i.json',
    { trigger: { kind: 'webhook' }, target: { kind: 'http' } },
    'Provide either sourceId or url.',
  ],
  [
    'a block whose HTML is nested too deeply',
    'blocks/b.json',
    { contentType: 'html', content: '<b>'.repeat(5_000) },
    'The block "b"',
  ],
  ['a mail that nothing sends', 'mail/welcome.json', { subject: 'Hello' }, 'welcome is unknown.'],
  [
    'mails that are too long together',
    'mail/message.json',
    { html: '"'.repeat(40_000) },
    'has at most 65536 characters.',
  ],
  [
    'a configuration that may not be public',
    'configurations/ai-configuration.json',
    { public: true },
    'can never be public.',
  ],
  [
    'a page after payments that is none',
    'configurations/payments-configuration.json',
    { metadata: { successUrl: 'paid' } },
    'successUrl must be an absolute http or https URL',
  ],
  ['a lambda that does not compile', 'lambdas/l.ts', 'export default (', 'The lambda "l"'],
  ['a component that does not compile', 'components/c.tsx', 'export const a = (', 'The component "c"'],
  [
    'a schedule without a valid expression',
    'integrations/i.json',
    {
      trigger: { kind: 'schedule', cron: 'often' },
      target: { kind: 'email', to: 'a@b.test', subject: 'x', text: 'x' },
    },
    'The integration "i"',
  ],
  [
    'an unknown setting',
    'configurations/auth-configuration.json',
    { metadata: { passwordPolicy: {} } },
    'passwordPolicy is unknown.',
  ],
  [
    'a price that its currency cannot hold',
    'plans/pro.json',
    { monthlyPrice: 9.999, yearlyPrice: 90, currency: 'USD' },
    'An amount in USD has at most 2 decimal places.',
  ],
  [
    'a coupon of more than 100 %',
    'coupons/ALL.json',
    { discountType: 'percentage', discountValue: 101 },
    'A percentage is at most 100.',
  ],
  [
    'a pattern that is no regular expression',
    'blueprints/z.json',
    { name: 'Z', fields: [{ ...title, pattern: '(' }] },
    'The blueprint "z"',
  ],
  [
    'a change that entities do not allow',
    'blueprints/books.json',
    { name: 'Books', fields: [{ key: 'title', type: 'integer' }] },
    'The blueprint "books"',
  ],
])('a push is refused before its first change because of %s', async (_, path, wrong, words) => {
  using _network = withPrivateNetwork('off')
  const tenant = await createTestTenant()
  const [admin, target, folder] = [tenant.as('admin'), remote(tenant), createTempFolder()]
  await admin.post('/blueprints', { key: 'books', name: 'Books', fields: [title] })
  await admin.post('/blueprints/books/entities', { title: 'Emma' })
  await admin.post('/plugins', { name: 'Kept', apiPath: 'kept' })
  await write(folder, 'blueprints/books.json', { name: 'Books', fields: [title] })
  await write(folder, 'connections/Site.json', { kind: 'http', metadata: { url: 'https://site.example/' } })
  await write(folder, 'integrations/Hook.json', {
    ...{ trigger: { kind: 'webhook' }, target: { kind: 'http', sourceId: 'Site' } },
  })
  // Both would be made before and after the wrong one.
  await write(folder, 'blueprints/aa.json', { name: 'AA', fields: [title] })
  await write(folder, 'coupons/FIRST.json', { discountType: 'percentage', discountValue: 5 })
  await write(folder, path, wrong)
  const failed = push(target, folder, { readSecret: () => 'whsec_c2hvcnQ=' })
  expect((await errorOf(failed)).message).toContain(words)
  expect((await errorOf(failed)).message).toMatch(/ 0 of \d+ changes are made\./)
  expect((await admin.get('/blueprints')).body.map(({ key }: { key: string }) => key)).toEqual(['books'])
  expect((await admin.get('/coupons')).body).toEqual([])
})

test('a push that would remove a blueprint with entities changes nothing, unless it may also remove these', async () => {
  const tenant = await createTestTenant()
  const [admin, target, folder] = [tenant.as('admin'), remote(tenant), createTempFolder()]
  await admin.post('/blueprints', { key: 'books', name: 'Books', fields: [title] })
  await admin.post('/blueprints/books/entities', { title: 'Emma' })
  await write(folder, 'blueprints/authors.json', { name: 'Authors', fields: [title] })
  const refused = await errorOf(push(target, folder, { prune: true }))
  expect(refused).toMatchObject({ status: 409, code: 'BLUEPRINT_NOT_EMPTY' })
  expect(refused.message).toContain('The blueprint "books": ')
  expect(refused.message).toContain('0 of 2 changes are made.')
  expect((await admin.get('/blueprints/authors')).status).toBe(404)
  expect(await push(target, folder, { prune: true, pruneData: true })).toHaveLength(2)
})

test('a push that would remove blueprints that point to each other changes nothing, unless it may remove entities', async () => {
  const [target, folder] = [remote(await createTestTenant()), createTempFolder()]
  const pointTo = (target: string) => ({ fields: [{ key: 'other', type: 'relation', target }] })
  await write(folder, 'blueprints/one.json', { name: 'One', ...pointTo('two') })
  await write(folder, 'blueprints/two.json', { name: 'Two', ...pointTo('one') })
  await write(folder, 'blocks/first.json', { content: 'first' })
  await push(target, folder)
  for (const path of ['blueprints/one.json', 'blueprints/two.json', 'blocks/first.json'])
    await Bun.file(join(folder, path)).delete()
  const refused = await errorOf(push(target, folder, { prune: true }))
  expect(refused).toMatchObject({ status: 409, code: 'BLUEPRINT_NOT_EMPTY' })
  expect(refused.message).toContain('0 of 3 changes are made.')
  expect(await push(target, folder, { prune: true, pruneData: true })).toHaveLength(3)
})

test.each<[string, string, object]>([
  ['connection', 'connections/site.json', { kind: 'http', metadata: { url: 'https://site.example/' } }],
  [
    'integration',
    'integrations/site.json',
    {
      trigger: { kind: 'tool', name: 'site', description: 'Reads the site.' },
      target: { kind: 'http', url: 'https://site.example/' },
    },
  ],
  ['blueprint', 'blueprints/site.json', { name: 'Sites', fields: [title] }],
])('a push that would remove the %s that another file refers to changes nothing', async (kind, path, definition) => {
  const tenant = await createTestTenant()
  const [admin, target, folder] = [tenant.as('admin'), remote(tenant), createTempFolder()]
  const user: Record<string, [string, object]> = {
    connection: [
      'integrations/user.json',
      { trigger: { kind: 'webhook' }, target: { kind: 'http', sourceId: 'site' } },
    ],
    integration: ['agents/user.json', { sourceId: 'echo', tools: ['site'] }],
    blueprint: ['blueprints/user.json', { name: 'Users', fields: [{ key: 'site', type: 'relation', target: 'site' }] }],
  }
  const [userPath, userDefinition] = user[kind]!
  await write(folder, path, definition)
  await write(folder, userPath, userDefinition)
  expect(await push(target, folder)).toHaveLength(2)
  await Bun.file(join(folder, path)).delete()
  await write(folder, 'blocks/new.json', { content: 'new' })
  expect((await errorOf(push(target, folder, { prune: true, pruneData: true }))).message).toContain(
    `"${userPath}" refers to the ${kind} "site", which has no file and would be removed.`,
  )
  expect((await admin.get('/blocks')).body).toEqual([])
  expect(await push(target, folder)).toHaveLength(1)
  await Bun.file(join(folder, userPath)).delete()
  expect(await push(target, folder, { prune: true })).toHaveLength(2)
})

test('a push is refused before its first change because of a manifest that is none', async () => {
  const [tenant, folder] = [await createTestTenant(), createTempFolder()]
  using _network = withPrivateNetwork('on')
  using site = Bun.serve({ port: 0, fetch: () => Response.json({ name: 5 }) })
  await write(folder, 'blueprints/aa.json', { name: 'AA', fields: [title] })
  await write(folder, 'plugins/p.json', { manifestUrl: `http://localhost:${site.port}/` })
  const refused = await errorOf(push(remote(tenant), folder))
  expect(refused).toMatchObject({ status: 400, code: 'MANIFEST_INVALID' })
  expect(refused.message).toContain('0 of 2 changes are made.')
  expect((await tenant.as('admin').get('/blueprints')).body).toEqual([])
})

test('a push is refused before it changes anything when a file is wrong, and each wrong file is named', async () => {
  const [target, folder] = [remote(await createTestTenant()), createTempFolder()]
  await write(folder, 'blueprints/a.json', { name: 'A', fields: [title], permisions: [] })
  await write(folder, 'blocks/b.json', '{')
  await write(folder, 'lambdas/c.json', { timeoutMs: 100 })
  await write(folder, 'connections/d.json', { kind: 'openai', authentication: { token: 'written-down' } })
  await write(folder, 'plugins/e.json', { name: 'Same' })
  await write(folder, 'plugins/f.json', { name: 'Same' })
  const refused = await push(target, folder).catch((error) => error)
  expect(refused).toMatchObject({ status: 400, code: 'INVALID_INPUT' })
  const messages = refused.more.details.map(({ message }: { message: string }) => message)
  expect(messages).toEqual([
    '"blueprints/a.json" has a property that its kind does not have. Check its spelling.',
    `"connections/d.json" has a secret at token. Write a placeholder such as ${placeholder('MY_SECRET')} there, and pass its value in the environment.`,
    '"lambdas/c.json" needs a file "lambdas/c.ts" beside it.',
    '"blocks/b.json" is not a JSON object.',
    '"plugins/e.json" and "plugins/f.json" are both named "Same".',
  ])
  for (const path of ['blueprints/a.json', 'connections/d.json', 'lambdas/c.json', 'blocks/b.json', 'plugins/f.json'])
    await Bun.file(join(folder, path)).delete()
  await write(folder, 'integrations/g.json', {
    ...{ trigger: { kind: 'webhook' }, target: { kind: 'lambda', lambdaId: 'missing' } },
  })
  expect((await errorOf(push(target, folder))).message).toContain(
    '"integrations/g.json" refers to the lambda "missing", which does not exist.',
  )
  expect((await target.read()).versions).toEqual({ 'configurations/app-configuration': expect.any(String) })
})

test('secrets are pushed when they differ, kept without a value, and named before anything is changed when new', async () => {
  const tenant = await createTestTenant()
  const [target, folder] = [remote(tenant), createTempFolder()]
  const connection = { kind: 'openai', authentication: { token: placeholder('TOKEN') } }
  await write(folder, 'connections/Models.json', connection)
  await write(folder, 'lambdas/one.ts', code)
  await write(folder, 'lambdas/one.json', { env: { MOST: placeholder('LAMBDA_ONE_MOST') } })
  expect(await diffFolder(target, folder)).toMatchObject({ missingSecrets: ['LAMBDA_ONE_MOST', 'TOKEN'] })
  const missing = push(target, folder, { readSecret: (name) => (name === 'TOKEN' ? 'a' : undefined) })
  expect((await errorOf(missing)).message).toContain('LAMBDA_ONE_MOST')
  expect((await target.read()).files).not.toHaveProperty(['connections/Models.json'])
  const values: Record<string, string> = { TOKEN: 'a', LAMBDA_ONE_MOST: '5' }
  const readSecret = (name: string) => values[name]
  expect(await push(target, folder, { readSecret })).toHaveLength(2)
  expect(await push(target, folder, { readSecret })).toEqual([])
  expect(await push(target, folder)).toEqual([])
  values.TOKEN = 'b'
  const change = { action: 'change', kind: 'connection', name: 'Models', details: ['changes the secret token'] }
  expect(await diff(target, folder, { readSecret })).toEqual([change] as never)
  expect(await push(target, folder, { readSecret })).toEqual([change] as never)
  expect(await push(target, folder, { readSecret })).toEqual([])
  await write(folder, 'connections/Models.json', { kind: 'openai' })
  expect(await push(target, folder)).toMatchObject([{ details: ['changes authentication'] }])
  const [stored] = (await tenant.as('admin').get('/integration-sources')).body
  expect(stored.secrets).toEqual([])
})

test('a push that leads a connection to another server needs its secret again, and nothing is changed before', async () => {
  const tenant = await createTestTenant()
  const [target, folder, admin] = [remote(tenant), createTempFolder(), tenant.as('admin')]
  const connection = (apiUrl: string) => ({
    ...{ kind: 'openai', metadata: { apiUrl }, authentication: { token: placeholder('TOKEN') } },
  })
  await write(folder, 'connections/Models.json', connection('https://one.example/v1'))
  await push(target, folder, { readSecret: () => 'a' })
  await write(folder, 'connections/Models.json', connection('https://one.example/v2'))
  expect(await push(target, folder)).toHaveLength(1)
  await write(folder, 'connections/Models.json', connection('https://two.example/v1'))
  expect((await errorOf(push(target, folder))).message).toContain('TOKEN')
  const stored = async () => (await admin.get('/integration-sources')).body[0]
  expect((await stored()).metadata.apiUrl).toBe('https://one.example/v2')
  expect(await push(target, folder, { readSecret: () => 'a' })).toHaveLength(1)
  expect(await stored()).toMatchObject({ metadata: { apiUrl: 'https://two.example/v1' }, secrets: ['token'] })
})

test('things with one name keep their ids when the file of one of them is removed', async () => {
  const tenant = await createTestTenant()
  const [target, folder, admin] = [remote(tenant), createTempFolder(), tenant.as('admin')]
  await write(folder, 'lambdas/one.ts', code)
  const webhook = (guest: boolean) => ({
    ...{ name: null, trigger: { kind: 'webhook' }, target: { kind: 'lambda', lambdaId: 'one' }, guest },
  })
  await write(folder, 'integrations/first.json', webhook(true))
  await write(folder, 'integrations/second.json', webhook(false))
  await push(target, folder)
  const before = (await admin.get('/integrations')).body
  const second = before.find(({ guest }: { guest: boolean }) => !guest)._id
  await Bun.file(join(folder, 'integrations/first.json')).delete()
  expect(await push(target, folder, { prune: true })).toMatchObject([{ action: 'remove', kind: 'integration' }])
  expect((await admin.get('/integrations')).body).toMatchObject([{ _id: second, guest: false }])
})

test('prune removes things of every kind in reverse order of need, and archives plans and coupons', async () => {
  const tenant = await createTestTenant()
  const [target, folder, admin] = [remote(tenant), createTempFolder(), tenant.as('admin')]
  await write(folder, 'lambdas/one.ts', code)
  await write(folder, 'integrations/hook.json', {
    ...{ trigger: { kind: 'webhook' }, target: { kind: 'lambda', lambdaId: 'one' } },
  })
  await write(folder, 'plans/Pro.json', { monthlyPrice: 1, yearlyPrice: 10 })
  await write(folder, 'coupons/TEN.json', { discountType: 'fixed', discountValue: 1, applicablePlanIds: ['Pro'] })
  await write(folder, 'mail/message.json', { text: 'Hello' })
  await push(target, folder)
  for (const path of [
    'lambdas/one.ts',
    'integrations/hook.json',
    'plans/Pro.json',
    'coupons/TEN.json',
    'mail/message.json',
  ])
    await Bun.file(join(folder, path)).delete()
  expect((await push(target, folder, { prune: true })).map(({ action, kind }) => `${action} ${kind}`)).toEqual([
    ...['remove mail', 'remove coupon', 'remove plan', 'remove integration', 'remove lambda'],
  ])
  expect(await push(target, folder, { prune: true })).toEqual([])
  expect((await admin.get('/plans')).body).toMatchObject([{ name: 'Pro', isActive: false }])
  expect((await admin.get('/lambdas')).body).toEqual([])
})

test('a token for definitions:write pushes, one for definitions:read compares without secrets, and others do neither', async () => {
  const tenant = await createTestTenant()
  const folder = createTempFolder()
  await write(folder, 'blueprints/books.json', { name: 'Books', fields: [title] })
  await write(folder, 'lambdas/one.ts', code)
  await write(folder, 'lambdas/one.json', { env: { MOST: placeholder('MOST') } })
  const issue = async (scope: string) =>
    (await issueApiToken(tenant.tenant, tenant.users.admin, { nickname: 'ci', scopes: [scope] })).token
  const open = async (scope: string) => openRemoteTarget(server.url.href, await issue(scope), tenant.id)
  const forbidden = { status: 403, code: 'FORBIDDEN' }
  const [reader, writer, other] = [
    await open('definitions:read'),
    await open('definitions:write'),
    await open('entities:write'),
  ]
  const values = { readSecret: () => '5' }
  expect(await diff(reader, folder, values)).toHaveLength(2)
  expect(await errorOf(push(reader, folder, values))).toMatchObject(forbidden)
  expect(await push(writer, folder, values)).toHaveLength(2)
  expect(await diff(writer, folder, { readSecret: () => '6' })).toHaveLength(1)
  expect(await diff(reader, folder, { readSecret: () => '6' })).toEqual([])
  expect(await errorOf(diff(other, folder))).toMatchObject(forbidden)
  const headers = { 'x-api-key': await issue('definitions:write') }
  expect((await tenant.anonymous.get('/lambdas', headers)).status).toBe(403)
  const user = openRemoteTarget(server.url.href, tenant.tokens.user, tenant.id)
  expect(await errorOf(push(user, folder))).toMatchObject(forbidden)
})

test('writeFolder refuses a path that would lead out of the folder, and writes nothing', async () => {
  const folder = createTempFolder()
  for (const path of [
    '../../things.json',
    'blueprints/../../x.json',
    'other/x.json',
    'blueprints/x.sh',
    '/blueprints/x.json',
  ])
    expect(await errorOf(writeFolder(folder, { [path]: '{}' }))).toMatchObject({
      status: 502,
      code: 'UNEXPECTED_ANSWER',
    })
  expect(readdirSync(folder)).toEqual([])
})
