import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { app } from '../../src/app'
import { config } from '../../src/config'
import { readSecrets } from '../../src/plugins/secrets'
import { createTestTenant, statusAndCode, type TestResponse } from '../test-tenant'
import { allowPrivateNetwork, denyPrivateNetwork, exhaustOutboundCalls, times } from './fixtures'

setDefaultTimeout(30_000)

let h: Awaited<ReturnType<typeof createTestTenant>>
let manifest: unknown
let site: ReturnType<typeof Bun.serve>
const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

beforeAll(async () => {
  h = await createTestTenant()
  site = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: ({ url }) => {
      const { pathname } = new URL(url)
      if (pathname === '/moved') return Response.redirect('/manifest.json')
      if (pathname === '/large') return new Response(' '.repeat(300_000))
      if (pathname === '/broken') return new Response('{"name":')
      if (pathname !== '/manifest.json') return new Response('no', { status: 404 })
      return Response.json(manifest)
    },
  })
})
beforeEach(allowPrivateNetwork)
afterAll(async () => {
  denyPrivateNetwork()
  await site.stop(true)
})

let nameCount = 0
const nextName = () => `plugin ${nameCount++}`
const toSiteUrl = (path: string) => `http://127.0.0.1:${site.port}${path}`
const createPlugin = async (more: object = {}) =>
  (await h.as('admin').post('/plugins', { name: nextName(), ...more })).body

describe('CRUD of plugins', () => {
  test('an admin creates, reads, updates and deletes a plugin, and only the answer to the creation contains its secret', async () => {
    const admin = h.as('admin')
    const input = {
      ...{ name: 'Shop', description: 'Sells', apiPath: 'shop', proxyUrl: 'http://127.0.0.1:9/base' },
      subscribedEvents: [
        { source: 'accounts', kind: '*', eventName: '*', hookUrl: 'http://127.0.0.1:9/hooks', active: true },
      ],
    }
    const { status, body, headers } = await admin.post('/plugins', input)
    expect([status, headers.get('cache-control')]).toEqual([201, 'no-store'])
    const { secret, ...plugin } = body
    expect(Buffer.from(secret.slice(6), 'base64')).toHaveLength(32)
    expect(plugin).toEqual({
      ...input,
      ...{ _id: expect.any(String), active: true, manifestUrl: null },
      health: { status: 'unknown', lastError: null, lastErrorAt: null, lastSuccessAt: null },
      ...{ created: expect.any(String), updated: expect.any(String) },
    })
    expect((await admin.get(`/plugins/${plugin._id}`)).body).toEqual(plugin)
    expect((await admin.get('/plugins')).body).toEqual([plugin])

    const changed = await admin.put(`/plugins/${plugin._id}`, { description: 'Sells more', active: false })
    expect(changed.body).toEqual({
      ...plugin,
      ...{ description: 'Sells more', active: false, updated: expect.any(String) },
    })
    // A plugin can be sent back as it was read.
    const same = await admin.put(`/plugins/${plugin._id}`, changed.body)
    expect(same.body).toEqual({ ...changed.body, updated: expect.any(String) })
    expect((await admin.patch(`/plugins/${plugin._id}`, { apiPath: null })).body.apiPath).toBeNull()
    for (const { body } of [changed, same, await admin.get('/plugins')])
      expect(JSON.stringify(body)).not.toContain('whsec')
    expect((await admin.delete(`/plugins/${plugin._id}`)).body).toEqual({ success: true })
    expect(statusAndCode(await admin.get(`/plugins/${plugin._id}`))).toEqual([404, 'PLUGIN_NOT_FOUND'])
    expect(await h.tenant.db.query("select owner from sealed where purpose = 'plugin'")).toEqual([])
  })

  test('rejects a name or API path that is taken or reserved with 409 PLUGIN_EXISTS or API_PATH_EXISTS', async () => {
    const admin = h.as('admin')
    const { _id } = await createPlugin({ name: 'one', apiPath: 'one' })
    const otherPlugin = await createPlugin({ name: 'other' })
    expect(statusAndCode(await admin.post('/plugins', { name: 'one' }))).toEqual([409, 'PLUGIN_EXISTS'])
    expect(statusAndCode(await admin.post('/plugins', { name: nextName(), apiPath: 'one' }))).toEqual([
      409,
      'API_PATH_EXISTS',
    ])
    expect(statusAndCode(await admin.put(`/plugins/${otherPlugin._id}`, { name: 'one' }))).toEqual([
      409,
      'PLUGIN_EXISTS',
    ])
    expect(statusAndCode(await admin.put(`/plugins/${otherPlugin._id}`, { apiPath: 'one' }))).toEqual([
      409,
      'API_PATH_EXISTS',
    ])
    expect((await admin.put(`/plugins/${_id}`, { name: 'one', apiPath: 'one' })).status).toBe(200)
    const segments = new Set(app.routes.flatMap(({ path }) => /^\/api\/([a-z0-9_-]+)/.exec(path)?.[1] ?? []))
    expect(segments.size).toBeGreaterThan(15)
    for (const apiPath of [...segments, 'v1', 'ai', 'payments'])
      expect(statusAndCode(await admin.post('/plugins', { name: nextName(), apiPath })), apiPath).toEqual([
        409,
        'API_PATH_EXISTS',
      ])
    const racing = await Promise.all(times(5).map(() => admin.post('/plugins', { name: 'twin', apiPath: 'twin' })))
    expect(racing.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409, 409])
  })

  test('every plugin route answers 403 to other roles, 401 to anonymous callers and 404 to admins of another tenant', async () => {
    const { _id } = await createPlugin()
    const routes: [string, string, unknown?][] = [
      ...([
        ['get', '/plugins'],
        ['post', '/plugins', { name: 'x' }],
        ['get', `/plugins/${_id}`],
      ] as [string, string][]),
      ...([
        ['put', `/plugins/${_id}`, {}],
        ['patch', `/plugins/${_id}`, {}],
        ['delete', `/plugins/${_id}`],
      ] as [string, string][]),
      ...([
        ['post', `/plugins/${_id}/reload`],
        ['post', `/plugins/${_id}/rotate-secret`],
      ] as [string, string][]),
      ...([
        ['post', `/plugins/${_id}/token`],
        ['get', `/plugins/${_id}/deliveries`],
      ] as [string, string][]),
      ['post', `/plugins/${_id}/deliveries/x/replay`],
    ]
    const send = (client: ReturnType<typeof h.as>, [method, path, body]: (typeof routes)[number]) =>
      (client as unknown as Record<string, (path: string, body?: unknown) => Promise<TestResponse>>)[method]!(
        path,
        body,
      )
    const otherTenant = await createTestTenant()
    for (const route of routes) {
      for (const name of ['user', 'editor'] as const)
        expect(statusAndCode(await send(h.as(name), route)), route.join(' ')).toEqual([403, 'FORBIDDEN'])
      expect((await send(h.anonymous, route)).status, route.join(' ')).toBe(401)
      if (route[1].includes(_id))
        expect(statusAndCode(await send(otherTenant.as('admin'), route)), route.join(' ')).toEqual([
          404,
          'PLUGIN_NOT_FOUND',
        ])
    }
    expect((await otherTenant.as('admin').get('/plugins')).body).toEqual([])
  })

  test('rejects invalid plugins, and plain HTTP or private addresses unless they are allowed, with 400 INVALID_INPUT', async () => {
    const admin = h.as('admin')
    const hook = (hookUrl: unknown, more = {}) => ({ subscribedEvents: [{ hookUrl, ...more }] })
    const wrong = [
      ...[
        { name: undefined },
        { name: '' },
        { name: 'x'.repeat(101) },
        { name: 'a\nb' },
        { apiPath: 'a/b' },
        { apiPath: '' },
      ],
      ...[
        { apiPath: 'A' },
        { apiPath: '..' },
        { proxyUrl: 'ftp://x' },
        { proxyUrl: 'http://' },
        { proxyUrl: 'http://a:b@c/' },
      ],
      ...[hook('x'), hook('file:///x'), hook(undefined), hook('http://a b/'), hook('http://x/', { kind: 1 })],
      ...[
        { subscribedEvents: times(51).map(() => ({ hookUrl: 'http://x/' })) },
        { active: 'yes' },
        { secret: 'secret' },
      ],
      ...[{ secret: `whsec_${'A'.repeat(31)}` }, { secret: `whsec_${'A'.repeat(88)}` }, { manifestUrl: 'x' }],
    ]
    for (const more of wrong)
      expect(statusAndCode(await admin.post('/plugins', { name: nextName(), ...more })), JSON.stringify(more)).toEqual([
        400,
        'INVALID_INPUT',
      ])
    denyPrivateNetwork()
    for (const proxyUrl of [
      'http://example.com/',
      'https://127.0.0.1/',
      'https://[::1]/',
      'https://0x7f.1/',
      'https://10.0.0.1',
    ])
      expect(statusAndCode(await admin.post('/plugins', { name: nextName(), proxyUrl })), proxyUrl).toEqual([
        400,
        'INVALID_INPUT',
      ])
    expect((await admin.post('/plugins', { name: nextName(), ...hook('https://example.com/') })).status).toBe(201)
  })

  test('rejects the 101st plugin with 409 TOO_MANY_PLUGINS and lists plugins page by page', async () => {
    const { as } = await createTestTenant()
    const made = await Promise.all(times(103).map((n) => as('admin').post('/plugins', { name: `p${n}` })))
    expect(made.filter(({ status }) => status === 201)).toHaveLength(100)
    expect(statusAndCode(made.find(({ status }) => status !== 201)!)).toEqual([409, 'TOO_MANY_PLUGINS'])
    const page = await as('admin').get('/plugins?limit=2&page=2&sort=name&count=true')
    const names = made.flatMap(({ body }) => body.name ?? []).sort()
    expect(page.body.map(({ name }: { name: string }) => name)).toEqual(names.slice(2, 4))
    expect(page.headers.get('x-total-count')).toBe('100')
    expect(page.headers.get('link')).toContain('page=3')
  })
})

describe('the secret of a plugin', () => {
  test('an admin may choose the secret of a plugin, and a rotation returns a new secret and when the former one expires', async () => {
    const admin = h.as('admin')
    const made = await createPlugin({ secret })
    expect(made.secret).toBe(secret)
    const { status, body, headers } = await admin.post(`/plugins/${made._id}/rotate-secret`)
    expect([status, headers.get('cache-control')]).toEqual([200, 'no-store'])
    expect(body.secret).toStartWith('whsec_')
    expect(body.secret).not.toBe(secret)
    expect(Date.parse(body.formerUntil) - Date.now()).toBeWithin(86_300_000, 86_400_001)
    expect((await admin.post(`/plugins/${made._id}/rotate-secret`, { secret })).body.secret).toBe(secret)
    expect(statusAndCode(await admin.post(`/plugins/${made._id}/rotate-secret`, { secret: 'x' }))).toEqual([
      400,
      'INVALID_INPUT',
    ])
    expect((await admin.post(`/plugins/${made._id}/rotate-secret`, { name: 'of nothing here' })).status).toBe(200)
    expect(statusAndCode(await admin.post('/plugins/nobody/rotate-secret'))).toEqual([404, 'PLUGIN_NOT_FOUND'])
  })

  test('after several rotations at once the former secret is one that a rotation has returned', async () => {
    const made = await createPlugin({ secret })
    const path = `/plugins/${made._id}/rotate-secret`
    const answers = await Promise.all(times(4).map(() => h.as('admin').post(path)))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    const [current, former] = await readSecrets(h.tenant, made._id, true)
    const issued = answers.map(({ body }) => body.secret)
    expect(issued).toContain(current)
    expect(issued).toContain(former)
    expect(former).not.toBe(current)
  })

  test('a rotation replaces a secret whose key is lost', async () => {
    const made = await createPlugin({ secret })
    await h.tenant.write((tx) => tx.query('update sealed set text = ? where owner = ?', ['bG9zdA==', made._id]))
    const { status, body } = await h.as('admin').post(`/plugins/${made._id}/rotate-secret`)
    expect(status).toBe(200)
    expect(await readSecrets(h.tenant, made._id, false)).toEqual([body.secret])
  })

  test('the database contains no plugin secret in plain text', async () => {
    await createPlugin({ secret })
    const rows = await h.tenant.db.query('select * from plugins')
    const sealedRows = await h.tenant.db.query('select * from sealed')
    expect(JSON.stringify([rows, sealedRows])).not.toContain(secret.slice(6, 30))
  })
})

describe('the manifest of a plugin', () => {
  const fullManifest = {
    ...{ name: 'From afar', description: 'Told by itself', apiPath: 'afar', proxyUrl: '/api', version: '1.2' },
    subscribedEvents: [{ source: 'shop', hookUrl: 'hooks?x=1' }],
  }

  test('a manifest describes the plugin with relative URLs, and the values of the request take precedence', async () => {
    manifest = fullManifest
    const made = await createPlugin({ name: undefined, manifestUrl: toSiteUrl('/manifest.json') })
    expect(made).toMatchObject({
      ...{ name: 'From afar', description: 'Told by itself', apiPath: 'afar', proxyUrl: toSiteUrl('/api') },
      subscribedEvents: [{ source: 'shop', kind: '*', eventName: '*', hookUrl: toSiteUrl('/hooks?x=1'), active: true }],
    })
    expect(made).not.toHaveProperty('version')
    const otherPlugin = await createPlugin({ name: 'mine', apiPath: 'mine', manifestUrl: toSiteUrl('/moved') })
    expect(otherPlugin).toMatchObject({ name: 'mine', apiPath: 'mine', description: 'Told by itself' })

    manifest = { ...fullManifest, description: 'Told anew', name: undefined }
    const { body } = await h.as('admin').post(`/plugins/${made._id}/reload`)
    expect(body).toMatchObject({ name: 'From afar', description: 'Told anew', health: { status: 'ok' } })
    const moved = await h
      .as('admin')
      .put(`/plugins/${otherPlugin._id}`, { manifestUrl: toSiteUrl('/manifest.json'), apiPath: 'other' })
    expect(moved.body).toMatchObject({ name: 'mine', apiPath: 'other', description: 'Told anew' })
  })

  test('a manifest that is invalid (400) or unreachable (502) leaves the plugin unchanged and sets its health to failing', async () => {
    const admin = h.as('admin')
    manifest = { name: nextName() }
    const made = await createPlugin({ manifestUrl: toSiteUrl('/manifest.json'), description: 'before' })
    const reload = () => admin.post(`/plugins/${made._id}/reload`)
    for (const wrong of [
      [],
      'x',
      null,
      { name: 1 },
      { apiPath: '../x' },
      { proxyUrl: 'ftp://x' },
      { subscribedEvents: 'x' },
      { subscribedEvents: [{ source: 'x' }] },
      { description: 'a\0b' },
    ]) {
      manifest = wrong
      expect(statusAndCode(await reload()), JSON.stringify(wrong)).toEqual([400, 'MANIFEST_INVALID'])
    }
    manifest = { proxyUrl: 'http://user:secret@x/' }
    expect(statusAndCode(await reload())).toEqual([400, 'INVALID_INPUT'])
    for (const path of ['/nowhere', '/large'])
      expect(statusAndCode(await admin.post('/plugins', { name: nextName(), manifestUrl: toSiteUrl(path) }))).toEqual([
        502,
        'MANIFEST_UNREACHABLE',
      ])
    expect(
      statusAndCode(await admin.post('/plugins', { name: nextName(), manifestUrl: toSiteUrl('/broken') })),
    ).toEqual([400, 'MANIFEST_INVALID'])
    expect(
      statusAndCode(await admin.post('/plugins', { name: nextName(), manifestUrl: 'http://127.0.0.1:1/' })),
    ).toEqual([502, 'MANIFEST_UNREACHABLE'])
    config.ATOLL_ALLOW_PRIVATE_NETWORK = 'off'
    expect(
      statusAndCode(await admin.post('/plugins', { name: nextName(), manifestUrl: 'https://localhost/' })),
    ).toEqual([502, 'MANIFEST_UNREACHABLE'])
    expect(statusAndCode(await admin.post(`/plugins/${made._id}/reload`))).toEqual([400, 'INVALID_INPUT'])
    const { body } = await admin.get(`/plugins/${made._id}`)
    expect(body).toMatchObject({
      description: 'before',
      health: { status: 'failing', lastErrorAt: expect.any(String) },
    })
    expect(body.health.lastError).toStartWith('Manifest: ')
    const pluginWithoutManifest = await createPlugin()
    expect(statusAndCode(await admin.post(`/plugins/${pluginWithoutManifest._id}/reload`))).toEqual([
      409,
      'NO_MANIFEST',
    ])
    manifest = { apiPath: 'users' }
    allowPrivateNetwork()
    expect(statusAndCode(await admin.post(`/plugins/${made._id}/reload`))).toEqual([409, 'API_PATH_EXISTS'])
  })

  test('a reload answers 503 BUSY while the tenant has too many outbound calls, and the health of the plugin stays ok', async () => {
    manifest = { name: nextName() }
    const made = await createPlugin({ manifestUrl: toSiteUrl('/manifest.json') })
    await h.as('admin').post(`/plugins/${made._id}/reload`)
    const release = exhaustOutboundCalls(h.tenant, toSiteUrl('/'))
    const refused = await h.as('admin').post(`/plugins/${made._id}/reload`).finally(release)
    expect(statusAndCode(refused)).toEqual([503, 'BUSY'])
    const { health } = (await h.as('admin').get(`/plugins/${made._id}`)).body
    expect(health).toMatchObject({ status: 'ok', lastError: null })
  })
})

describe('the API token of a plugin', () => {
  test('a token signs in as the user of its plugin, the plugin is the source of its events, and a new token revokes the old', async () => {
    const made = await createPlugin({ name: 'Teller' })
    const first = await h.as('admin').post(`/plugins/${made._id}/token`)
    expect([first.status, first.headers.get('cache-control')]).toEqual([201, 'no-store'])
    const plugin = h.anonymous.with({ 'x-api-key': first.body.token })
    expect((await plugin.get('/me')).body).toMatchObject({
      _id: first.body.user,
      roles: ['plugin'],
      fullName: 'Teller',
    })
    const sources = async () => {
      const answers = await Promise.all(
        ['accounts', 'plugin:Other', undefined].map((source) => plugin.post('/events', { source, kind: 'news' })),
      )
      return answers.map(({ body }) => body.source)
    }
    expect(await sources()).toEqual(Array(3).fill('plugin:Teller'))
    await h.as('admin').put(`/plugins/${made._id}`, { name: 'Told' })
    expect(await sources()).toEqual(Array(3).fill('plugin:Told'))
    expect((await plugin.get('/plugins')).status).toBe(403)
    // Another token of the same user revokes the first one.
    const second = await h.as('admin').post(`/plugins/${made._id}/token`)
    expect(second.body.user).toBe(first.body.user)
    expect((await plugin.get('/me')).status).toBe(401)
    const pluginWithNewToken = h.anonymous.with({ 'x-api-key': second.body.token })
    expect((await pluginWithNewToken.get('/me')).status).toBe(200)
    await h.as('admin').delete(`/plugins/${made._id}`)
    expect((await pluginWithNewToken.get('/me')).status).toBe(401)
    expect(statusAndCode(await h.as('admin').get(`/users/${first.body.user}`))).toEqual([404, 'USER_NOT_FOUND'])
  })

  test('only one of several tokens that are issued at once is valid', async () => {
    const made = await createPlugin()
    const path = `/plugins/${made._id}/token`
    await h.as('admin').post(path)
    const answers = await Promise.all(times(4).map(() => h.as('admin').post(path)))
    const statuses: number[] = []
    for (const { body } of answers)
      statuses.push((await h.anonymous.with({ 'x-api-key': body.token }).get('/me')).status)
    expect(statuses.toSorted()).toEqual([200, 401, 401, 401])
  })

  test('a plugin whose user an admin has deleted gets a new user with its next token', async () => {
    const made = await createPlugin()
    const { body } = await h.as('admin').post(`/plugins/${made._id}/token`)
    await h.as('admin').delete(`/users/${body.user}`)
    const secondToken = await h.as('admin').post(`/plugins/${made._id}/token`)
    expect(secondToken.status).toBe(201)
    expect(secondToken.body.user).not.toBe(body.user)
    expect(statusAndCode(await h.as('admin').post('/plugins/nobody/token'))).toEqual([404, 'PLUGIN_NOT_FOUND'])
  })
})
