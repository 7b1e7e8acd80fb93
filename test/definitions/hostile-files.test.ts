import { beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { createTestTenant, statusAndCode } from '../test-tenant'

setDefaultTimeout(60_000)

let tenant: Awaited<ReturnType<typeof createTestTenant>>
beforeAll(async () => {
  tenant = await createTestTenant()
})

const post = (action: 'diff' | 'push', files: Record<string, object | string>, secrets?: Record<string, string>) =>
  tenant
    .as('admin')
    .post(`/definitions/${action}`, {
      files: Object.fromEntries(
        Object.entries(files).map(([path, file]) => [path, typeof file === 'string' ? file : JSON.stringify(file)]),
      ),
      secrets,
    })
const placeholder = (name: string) => `\${${name}}`
const url = 'https://crm.example.com'
const nest = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`

describe('files of definitions', () => {
  test.each([
    ['nested 100 levels deep', `{"metadata":${nest(100)}}`, 'nested more than 64 levels'],
    ['nested 20,000 levels deep', `{"metadata":${nest(20_000)}}`, 'nested more than 64 levels'],
    ['with U+0000', '{"metadata":{"a":"\\u0000"}}', 'U+0000'],
    ['with half a character', '{"metadata":{"a":"\\ud800"}}', 'surrogate'],
    ['with a property "__proto__"', '{"metadata":{"__proto__":{"public":true}}}', '__proto__'],
    ['with a number that no double holds', '{"metadata":{"a":1e999}}', 'too large'],
  ])('a file %s is refused with its name, as such a body is', async (_, text, reason) => {
    for (const action of ['diff', 'push'] as const) {
      const answer = await post(action, { 'configurations/nav.json': text })
      expect(statusAndCode(answer)).toEqual([400, 'INVALID_INPUT'])
      expect(answer.body.message).toContain('configurations/nav.json')
      expect(answer.body.message).toContain(reason)
    }
    expect(statusAndCode(await tenant.as('admin').get('/configurations/nav'))[0]).toBe(404)
  })

  test('properties that are named as methods of objects are kept as they are', async () => {
    const nav = { 'configurations/methods.json': { metadata: { a: { toString: 1, valueOf: 2 } } } }
    expect((await post('push', nav)).status).toBe(200)
    expect((await post('diff', nav)).body.changes).toEqual([])
  })

  test('a name that an object or a database would misread is refused', async () => {
    for (const name of ['__proto__', 'a%00b'])
      expect(statusAndCode(await post('push', { [`mail/${name}.json`]: { subject: 'x' } }))).toEqual([
        400,
        'INVALID_INPUT',
      ])
  })

  test.each(['constructor', 'toString', '__proto__'])(
    'the placeholder %s has no value unless one is sent',
    async (name) => {
      const connection = {
        'connections/crm.json': {
          kind: 'http',
          metadata: { url },
          authentication: { headers: { 'x-key': placeholder(name) } },
        },
      }
      expect((await post('diff', connection)).body.missingSecrets).toEqual([name])
      expect(statusAndCode(await post('push', connection))).toEqual([400, 'MISSING_SECRETS'])
    },
  )

  test.each<[string, object]>([
    ['configurations/auth-configuration.json', { metadata: { providers: { google: null } } }],
    ['configurations/auth-configuration.json', { metadata: { providers: { google: 'x' } } }],
    ['configurations/auth-configuration.json', { metadata: { providers: 'google' } }],
    ['configurations/auth-configuration.json', { metadata: { providers: [1] } }],
    ['configurations/nav.json', { metadata: null }],
    ['integrations/hook.json', { trigger: { kind: 'webhook' }, target: { kind: 'ai', tools: 'search' } }],
    ['integrations/hook.json', { trigger: { kind: 'webhook' }, target: { kind: 'ai', tools: { a: 1 } } }],
    ['integrations/hook.json', { trigger: { kind: 'webhook' }, target: { kind: 'ai', vectorStores: 'tenant' } }],
    ['agents/a.json', { sourceId: 'echo', tools: 'search' }],
  ])('%s with %j is refused, because a value has the wrong type', async (path, definition) => {
    expect(statusAndCode(await post('push', { [path]: definition }))).toEqual([400, 'INVALID_INPUT'])
  })

  test('the secret of a sign-in provider does not get into another configuration', async () => {
    const provider = { clientId: 'g', clientSecret: placeholder('GITHUB') }
    const auth = { 'configurations/auth-configuration.json': { metadata: { providers: { github: provider } } } }
    expect((await post('push', auth, { GITHUB: 'github-secret' })).status).toBe(200)
    const copy = (github: object) => ({
      'configurations/copy.json': { public: true, metadata: { providers: { github } } },
    })
    expect((await post('push', copy({ clientId: 'g' }))).status).toBe(200)
    expect(statusAndCode(await post('push', copy({ ...provider, clientId: 'h' })))).toEqual([400, 'MISSING_SECRETS'])
    expect(JSON.stringify((await tenant.as('admin').get('/configurations/copy')).body)).not.toContain('github-secret')
  })
})

test('a push switches the history of a blueprint on, and off only after the diff has said what that removes', async () => {
  const fields = [{ key: 'title', type: 'string' }]
  const file = (more: object) => ({ 'blueprints/notes.json': { name: 'Notes', fields, ...more } })
  await post('push', file({ history: true }))
  expect((await tenant.as('admin').get('/blueprints/notes')).body.history).toBe(true)
  expect((await post('diff', file({ history: true }))).body.changes).toEqual([])
  const [change] = (await post('diff', file({}))).body.changes
  expect(change.details).toEqual(['removes the history of its entities'])
  await post('push', file({}))
  expect((await tenant.as('admin').get('/blueprints/notes')).body.history).toBeUndefined()
  expect((await post('diff', file({}))).body.changes).toEqual([])
})
