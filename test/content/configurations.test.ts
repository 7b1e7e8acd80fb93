import { describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { authSettings } from '../../src/accounts/auth-settings'
import { toProviderSecretRef } from '../../src/platform/settings/provider-secrets'
import { configurations } from '../../src/platform/settings/tables'
import { getSettings } from '../../src/platform/settings/tenant-settings'
import { openSecret } from '../../src/platform/vault/vault'
import { nextPagePath } from '../entities/fixtures'
import { createTestTenant, statusAndCode } from '../test-tenant'

const APP_PATH = '/configurations/app-configuration'
const themeConfiguration = (more: object = {}) => ({
  key: 'theme',
  public: true,
  kind: 'look',
  description: 'Colours',
  metadata: { dark: true, colours: ['teal'] },
  ...more,
})
const joinKeys = ({ body }: { body: { key: string }[] }) => body.map(({ key }) => key).join(' ')

describe('CRUD of configurations', () => {
  test('an admin creates, reads, updates by key and deletes a configuration', async () => {
    const { as, anonymous } = await createTestTenant()
    const admin = as('admin')
    const created = await admin.post('/configurations', themeConfiguration())
    expect([created.status, created.body]).toEqual([
      201,
      {
        ...themeConfiguration(),
        _id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/),
        created: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        updated: created.body.created,
      },
    ])
    const path = '/configurations/theme'
    for (const client of [admin, as('user'), anonymous]) expect((await client.get(path)).body).toEqual(created.body)
    const changed = await admin.put(path, { description: 'All colours', metadata: { dark: null, size: 3 } })
    expect([changed.status, changed.body]).toEqual([
      200,
      {
        ...created.body,
        description: 'All colours',
        metadata: { colours: ['teal'], size: 3 },
        updated: changed.body.updated,
      },
    ])
    const closed = await admin.patch(path, { public: false, kind: 'other' })
    expect(closed.body).toMatchObject({ public: false, kind: 'other', metadata: { size: 3 } })
    expect((await admin.delete(path)).body).toEqual({ success: true })
    for (const answer of [await admin.get(path), await admin.put(path, {}), await admin.delete(path)])
      expect(statusAndCode(answer)).toEqual([404, 'CONFIGURATION_NOT_FOUND'])
  })

  test('a configuration needs a valid key, is private by default and has at most 64 KiB of metadata', async () => {
    const admin = (await createTestTenant()).as('admin')
    const { body } = await admin.post('/configurations', { key: 'a' })
    expect(body).toMatchObject({ key: 'a', public: false, kind: '', description: '', metadata: {} })
    for (const wrong of [
      ...[{ key: undefined }, { key: '' }, { key: 'A' }, { key: 'a b' }, { key: '1' }, { key: 'a'.repeat(64) }],
      ...[{ public: 'yes' }, { metadata: [] }, { metadata: 'x' }, { metadata: null }, { kind: 'a\nb' }],
      { metadata: { large: 'x'.repeat(64 << 10) } },
    ])
      expect([wrong, statusAndCode(await admin.post('/configurations', themeConfiguration(wrong)))]).toEqual([
        wrong,
        [400, 'INVALID_INPUT'],
      ])
    // Existing metadata counts, too.
    const half = { metadata: { half: 'x'.repeat(40 << 10) } }
    expect((await admin.put('/configurations/a', half)).status).toBe(200)
    const more = { metadata: { more: half.metadata.half } }
    expect(statusAndCode(await admin.put('/configurations/a', more))).toEqual([400, 'INVALID_INPUT'])
    expect((await admin.get('/configurations/a')).body.metadata).toEqual(half.metadata)
  })

  test('a key that is taken answers 409 CONFIGURATION_EXISTS, and an outdated If-Match answers 412 VERSION_MISMATCH', async () => {
    const admin = (await createTestTenant()).as('admin')
    const { headers } = await admin.post('/configurations', themeConfiguration())
    expect(statusAndCode(await admin.post('/configurations', themeConfiguration()))).toEqual([
      409,
      'CONFIGURATION_EXISTS',
    ])
    const creations = await Promise.all(
      [1, 2, 3].map(() => admin.post('/configurations', themeConfiguration({ key: 'new' }))),
    )
    expect(creations.map(({ status }) => status).sort()).toEqual([201, 409, 409])
    const first = { 'if-match': headers.get('etag')! }
    const racing = await Promise.all(
      [1, 2, 3].map((n) => admin.put('/configurations/theme', { metadata: { n } }, first)),
    )
    expect(racing.map(({ status }) => status).sort()).toEqual([200, 412, 412])
    expect(statusAndCode(await admin.delete('/configurations/theme', first))).toEqual([412, 'VERSION_MISMATCH'])
    const { headers: currentHeaders } = await admin.get('/configurations/theme')
    expect((await admin.delete('/configurations/theme', { 'if-match': currentHeaders.get('etag')! })).status).toBe(200)
  })

  test('concurrent writes of different keys of a configuration are all kept', async () => {
    const admin = (await createTestTenant()).as('admin')
    await admin.post('/configurations', themeConfiguration({ metadata: {} }))
    const letters = [...'abcdefgh']
    await Promise.all(letters.map((key) => admin.put('/configurations/theme', { metadata: { [key]: 1 } })))
    expect(Object.keys((await admin.get('/configurations/theme')).body.metadata).sort()).toEqual(letters)
  })

  test('a private or missing configuration answers 401 to anonymous callers and 403 to non-admins', async () => {
    const { as, anonymous } = await createTestTenant()
    await as('admin').post('/configurations', themeConfiguration({ key: 'own', public: false }))
    for (const path of ['/configurations/own', '/configurations/none', '/configurations/auth-configuration']) {
      expect(statusAndCode(await anonymous.get(path))).toEqual([401, 'UNAUTHENTICATED'])
      for (const client of [as('user'), as('editor')])
        expect(statusAndCode(await client.get(path))).toEqual([403, 'FORBIDDEN'])
    }
    expect((await as('admin').get('/configurations/own')).status).toBe(200)
  })

  test('configurations are written and listed by admins only, else 401 or 403', async () => {
    const { as, anonymous } = await createTestTenant()
    await as('admin').post('/configurations', themeConfiguration())
    for (const [client, code] of [
      [as('user'), [403, 'FORBIDDEN']],
      [as('editor'), [403, 'FORBIDDEN']],
      [anonymous, [401, 'UNAUTHENTICATED']],
    ] as const)
      for (const answer of [
        await client.get('/configurations'),
        await client.post('/configurations', themeConfiguration({ key: 'x' })),
        await client.put('/configurations/theme', {}),
        await client.patch('/configurations/theme', {}),
        await client.delete('/configurations/theme'),
        await client.put(APP_PATH, {}),
        await client.patch(APP_PATH, {}),
        await client.delete(APP_PATH),
      ])
        expect(statusAndCode(answer)).toEqual([...code])
  })

  test('configurations of one tenant answer 404 to admins of another tenant', async () => {
    const [one, otherTenant] = [await createTestTenant(), await createTestTenant()]
    await one.as('admin').post('/configurations', themeConfiguration())
    await one.as('admin').put(APP_PATH, { logo: 'one' })
    const admin = otherTenant.as('admin')
    expect(joinKeys(await admin.get('/configurations'))).toBe('app-configuration')
    expect((await admin.get(APP_PATH)).body).toEqual({ metadata: {} })
    for (const answer of [
      await admin.get('/configurations/theme'),
      await admin.put('/configurations/theme', {}),
      await admin.delete('/configurations/theme'),
    ])
      expect(statusAndCode(answer)).toEqual([404, 'CONFIGURATION_NOT_FOUND'])
  })

  test('rejects the 201st configuration with 409 TOO_MANY_CONFIGURATIONS', async () => {
    const admin = (await createTestTenant()).as('admin')
    const made = await Promise.all(
      Array.from({ length: 200 }, (_, n) => admin.post('/configurations', { key: `c${n}` })),
    )
    expect(new Set(made.map(({ status }) => status))).toEqual(new Set([201]))
    expect(statusAndCode(await admin.post('/configurations', { key: 'more' }))).toEqual([
      409,
      'TOO_MANY_CONFIGURATIONS',
    ])
  })
})

test('GET /configurations sorts by key, pages and counts with count=true', async () => {
  const admin = (await createTestTenant()).as('admin')
  for (const key of ['c', 'b', 'd']) await admin.post('/configurations', { key })
  expect(joinKeys(await admin.get('/configurations'))).toBe('app-configuration b c d')
  expect(joinKeys(await admin.get('/configurations?sort=created&limit=2'))).toBe('c b')
  const first = await admin.get('/configurations?limit=2&count=true')
  expect([joinKeys(first), first.headers.get('x-total-count')]).toEqual(['app-configuration b', '4'])
  expect(joinKeys(await admin.get(nextPagePath(first.headers)!))).toBe('c d')
  expect(statusAndCode(await admin.get('/configurations?sort=metadata'))).toEqual([400, 'INVALID_INPUT'])
})

describe('the app-configuration', () => {
  test('the app-configuration exists from the start and is public, even with invalid credentials', async () => {
    const { as, anonymous } = await createTestTenant()
    for (const client of [as('admin'), as('user'), anonymous, anonymous.with({ 'x-api-key': 'nonsense' })])
      expect([(await client.get(APP_PATH)).status, (await client.get(APP_PATH)).body]).toEqual([200, { metadata: {} }])
    await as('admin').put(APP_PATH, { logo: 'x' })
    expect((await anonymous.with({ authorization: 'Bearer x' }).get(APP_PATH)).body).toEqual({
      metadata: { logo: 'x' },
    })
    const { body } = await as('admin').get('/configurations')
    expect(body[0]).toMatchObject({ key: 'app-configuration', public: true, metadata: { logo: 'x' } })
  })

  test('PUT of the app-configuration accepts keys at the top level or as metadata and merges them into the existing ones', async () => {
    const admin = (await createTestTenant()).as('admin')
    const put = async (body: unknown) => {
      const { status, body: answer } = await admin.put(APP_PATH, body)
      expect(status).toBe(200)
      expect((await admin.get(APP_PATH)).body).toEqual(answer)
      return answer
    }
    expect(await put({ logo: 'a', features: { chat: true, shop: true } })).toEqual({
      metadata: { logo: 'a', features: { chat: true, shop: true } },
    })
    expect(await put({ metadata: { features: { chat: false } } })).toEqual({
      metadata: { logo: 'a', features: { chat: false } },
    })
    expect(await put({ logo: null, theme: 'dark' })).toEqual({ metadata: { features: { chat: false }, theme: 'dark' } })
    expect(await put({})).toEqual({ metadata: { features: { chat: false }, theme: 'dark' } })
    // The configuration as the list shows it: only its metadata changes.
    const [whole] = (await admin.get('/configurations')).body
    expect(await put({ ...whole, public: false, metadata: { theme: 'light' } })).toEqual({
      metadata: { features: { chat: false }, theme: 'light' },
    })
    expect((await admin.get('/configurations')).body[0].public).toBeTrue()
    expect((await admin.patch(APP_PATH, { theme: 'red' })).body.metadata.theme).toBe('red')
    for (const wrong of [[], 'x', 5, { metadata: 'x' }, { metadata: [] }, { metadata: null }])
      expect([wrong, (await admin.put(APP_PATH, wrong)).status]).toEqual([wrong, 400])
  })

  test('POST of the app-configuration answers 409 CONFIGURATION_EXISTS, and DELETE answers 409 CONFIGURATION_NEEDED', async () => {
    const admin = (await createTestTenant()).as('admin')
    for (const _ of [1, 2]) {
      expect(statusAndCode(await admin.post('/configurations', { key: 'app-configuration' }))).toEqual([
        409,
        'CONFIGURATION_EXISTS',
      ])
      expect(statusAndCode(await admin.delete(APP_PATH))).toEqual([409, 'CONFIGURATION_NEEDED'])
      await admin.put(APP_PATH, { logo: 'x' })
    }
  })

  test('PUT of the app-configuration with an outdated If-Match answers 412 VERSION_MISMATCH, even for the first write', async () => {
    const { as, anonymous } = await createTestTenant()
    const admin = as('admin')
    const initial = { 'if-match': (await anonymous.get(APP_PATH)).headers.get('etag')! }
    const racing = await Promise.all([1, 2, 3].map((n) => admin.put(APP_PATH, { n }, initial)))
    expect(racing.map(({ status }) => status).sort()).toEqual([200, 412, 412])
    const currentEtag = (await anonymous.get(APP_PATH)).headers.get('etag')!
    expect(racing.find(({ status }) => status === 200)!.headers.get('etag')).toBe(currentEtag)
    expect((await admin.put(APP_PATH, { n: 9 }, { 'if-match': currentEtag })).status).toBe(200)
    expect(statusAndCode(await admin.put(APP_PATH, { n: 10 }, { 'if-match': currentEtag }))).toEqual([
      412,
      'VERSION_MISMATCH',
    ])
  })

  test('rejects invalid websiteUrls and contentEditors with 400 INVALID_INPUT and their path', async () => {
    const admin = (await createTestTenant()).as('admin')
    for (const [body, path] of [
      [{ websiteUrls: 'https://a.example' }, '/websiteUrls'],
      [{ websiteUrls: ['https://a.example', 5] }, '/websiteUrls/1'],
      [{ websiteUrls: ['a.example'] }, '/websiteUrls/0'],
      [{ websiteUrls: ['https://a.example', 'ftp://a.example'] }, '/websiteUrls/1'],
      [{ websiteUrls: ['javascript:alert(1)'] }, '/websiteUrls/0'],
      [{ websiteUrls: ['*'] }, '/websiteUrls/0'],
      [{ websiteUrls: ['https://'] }, '/websiteUrls/0'],
      [{ websiteUrls: ['https://user:secret@a.example'] }, '/websiteUrls/0'],
      [{ websiteUrls: Array(101).fill('https://a.example') }, '/websiteUrls'],
      [{ metadata: { websiteUrls: ['x'] } }, '/metadata/websiteUrls/0'],
      [{ contentEditors: ['a', 5] }, '/contentEditors/1'],
      [{ metadata: { contentEditors: 'admin' } }, '/metadata/contentEditors'],
    ] as const) {
      const answer = await admin.put(APP_PATH, body)
      expect([body, ...statusAndCode(answer), answer.body.details[0].path]).toEqual([body, 400, 'INVALID_INPUT', path])
    }
    expect((await admin.get(APP_PATH)).body).toEqual({ metadata: {} })
  })
})

describe('the private configurations of the server', () => {
  const PRIVATE = ['auth-configuration', 'workspace-configuration', 'ai-configuration', 'payments-configuration']

  test.each(PRIVATE)('%s is never public, neither by a request nor by its row', async (key) => {
    const { as, anonymous, tenant } = await createTestTenant()
    const admin = as('admin')
    const refused = await admin.post('/configurations', { key, public: true })
    expect([...statusAndCode(refused), refused.body.details[0].path]).toEqual([400, 'INVALID_INPUT', '/public'])
    expect((await admin.post('/configurations', { key, description: 'Ours' })).status).toBe(201)
    for (const send of [admin.put, admin.patch])
      expect(statusAndCode(await send(`/configurations/${key}`, { public: true }))).toEqual([400, 'INVALID_INPUT'])
    await tenant.write(async (tx) => void (await tx.query('update configurations set public = 1')))
    expect(statusAndCode(await anonymous.get(`/configurations/${key}`))).toEqual([401, 'UNAUTHENTICATED'])
    expect(statusAndCode(await as('user').get(`/configurations/${key}`))).toEqual([403, 'FORBIDDEN'])
    expect((await admin.get(`/configurations/${key}`)).body.description).toBe('Ours')
  })

  test.each(PRIVATE)('%s is created by its first PUT or by POST', async (key) => {
    const [one, otherAdmin] = [(await createTestTenant()).as('admin'), (await createTestTenant()).as('admin')]
    const path = `/configurations/${key}`
    expect(statusAndCode(await one.get(path))).toEqual([404, 'CONFIGURATION_NOT_FOUND'])
    const descriptions = ['a', 'b', 'c']
    const racing = await Promise.all(descriptions.map((description) => one.put(path, { description })))
    expect(racing.map(({ status }) => status)).toEqual([200, 200, 200])
    const { body } = await one.get(path)
    expect(body).toMatchObject({ key, public: false, metadata: {} })
    expect(descriptions).toContain(body.description)
    expect(statusAndCode(await one.post('/configurations', { key }))).toEqual([409, 'CONFIGURATION_EXISTS'])
    expect((await otherAdmin.post('/configurations', { key })).status).toBe(201)
    expect(statusAndCode(await otherAdmin.put('/configurations/other-configuration', {}))).toEqual([
      404,
      'CONFIGURATION_NOT_FOUND',
    ])
  })

  test('rejects invalid values and unknown keys with 400 INVALID_INPUT', async () => {
    const admin = (await createTestTenant()).as('admin')
    for (const [key, metadata, path] of [
      ['auth-configuration', { allowSignup: 'no' }, '/metadata/allowSignup'],
      ['auth-configuration', { allowedReturnHosts: 'a.example' }, '/metadata/allowedReturnHosts'],
      ['auth-configuration', { providers: { google: {} } }, '/metadata/providers/google/clientId'],
      [
        'auth-configuration',
        { providers: { google: { clientId: 'a', kind: 'saml' } } },
        '/metadata/providers/google/kind',
      ],
      ['auth-configuration', { providers: [] }, '/metadata/providers'],
      ...[null, 'secret', {}, { clientId: 'a', clientSecret: 'b' }, { clientId: 'a', clientSecret: { b: 1 } }].map(
        (Google) => ['auth-configuration', { providers: { Google } }, '/metadata/providers/Google'] as const,
      ),
      ['workspace-configuration', { isActive: 1 }, '/metadata/isActive'],
      ['workspace-configuration', { labels: [1] }, '/metadata/labels/0'],
      ['workspace-configuration', { creationPrivilegedRoles: {} }, '/metadata/creationPrivilegedRoles'],
      ['workspace-configuration', { allowNonLabeledWorkspaces: null, isActive: 'x' }, '/metadata/isActive'],
      ['workspace-configuration', { own: { deep: [1, null] } }, '/metadata/own'],
      ['auth-configuration', { requireSecondFactor: true }, '/metadata/requireSecondFactor'],
      ['auth-configuration', { passwordPolicy: { minLength: 12 } }, '/metadata/passwordPolicy'],
      ['auth-configuration', { sessionLifetime: '2h' }, '/metadata/sessionLifetime'],
      ['payments-configuration', { automaticTax: true }, '/metadata/automaticTax'],
      ['mail-templates', { receipt: {} }, '/metadata/receipt'],
      ['files-configuration', { 'a/b~': 1 }, '/metadata/a~1b~0'],
    ] as const) {
      const answer = await admin.post('/configurations', { key, metadata })
      expect([metadata, ...statusAndCode(answer)]).toEqual([metadata, 400, 'INVALID_INPUT'])
      expect(answer.body.details[0].path).toBe(path)
    }
    for (const key of ['auth-configuration', 'ai-configuration', 'files-configuration', 'limits-configuration'])
      for (const answer of [
        await admin.put(`/configurations/${key}`, { allowSignup: false }),
        await admin.post('/configurations', { key, allowSignup: false }),
      ])
        expect([answer.status, answer.body.details[0].path]).toEqual([400, '/allowSignup'])
    const metadata = { isActive: false, labels: ['a'] }
    const made = await admin.post('/configurations', { key: 'workspace-configuration', metadata })
    expect([made.body.metadata, made.body.warnings]).toEqual([metadata, undefined])
  })

  test('keeps what is stored and comes back unchanged, names it in warnings, and refuses what is new', async () => {
    const { as, tenant } = await createTestTenant()
    const admin = as('admin')
    const path = '/configurations/auth-configuration'
    const google = { clientId: 'a', colour: 'red' }
    const metadata = { passwordPolicy: { minLength: 12 }, allowSignup: 'no', providers: { google } }
    await admin.post('/configurations', { key: 'auth-configuration' })
    // As an earlier version stored it.
    await tenant.write((tx) =>
      tx.update(configurations).set({ metadata }).where(eq(configurations.key, 'auth-configuration')),
    )
    const read = await admin.get(path)
    expect(read.body.warnings.map((one: { path: string }) => one.path)).toEqual([
      '/metadata/providers/google/colour',
      '/metadata/passwordPolicy',
      '/metadata/allowSignup',
    ])
    const github = { clientId: 'b' }
    const sent = { ...metadata, providers: { google, github }, allowEmailSignIn: true }
    const put = await admin.put(path, { metadata: sent })
    expect([put.status, put.body.metadata, put.body.warnings]).toEqual([200, sent, read.body.warnings])
    for (const [changed, at] of [
      [{ passwordPolicy: { minLength: 8 } }, '/metadata/passwordPolicy'],
      [{ allowSignup: 'yes' }, '/metadata/allowSignup'],
      [{ providers: { google: { ...google, colour: 'blue' } } }, '/metadata/providers/google/colour'],
      [{ providers: { google, other: { ...google } } }, '/metadata/providers/other/colour'],
    ] as const) {
      const { status, body } = await admin.put(path, { metadata: changed })
      expect([status, body.details.map((one: { path: string }) => one.path)]).toEqual([400, [at]])
    }
    const cleared = await admin.put(path, {
      metadata: { passwordPolicy: null, allowSignup: null, providers: { github } },
    })
    expect([cleared.status, cleared.body.warnings]).toEqual([200, undefined])
  })

  test('a change of the auth-configuration takes effect at once, and its deletion restores the defaults', async () => {
    const { as, tenant } = await createTestTenant()
    const admin = as('admin')
    const allowed = async () => (await getSettings(tenant, authSettings)).allowSignup
    expect(await allowed()).toBeTrue()
    await admin.post('/configurations', { key: 'auth-configuration', metadata: { allowSignup: false } })
    expect(await allowed()).toBeFalse()
    await admin.put('/configurations/auth-configuration', { metadata: { allowSignup: null } })
    expect(await allowed()).toBeTrue()
    await admin.put('/configurations/auth-configuration', { metadata: { allowSignup: false } })
    expect(await allowed()).toBeFalse()
    await admin.delete('/configurations/auth-configuration')
    expect(await allowed()).toBeTrue()
  })

  test('client secrets of providers are encrypted in the vault and never returned', async () => {
    const { as, tenant } = await createTestTenant()
    const admin = as('admin')
    const path = '/configurations/auth-configuration'
    const secret = (name: string) => openSecret(tenant, toProviderSecretRef(name))
    const google = { clientId: 'g', clientSecret: 'shh-google' }
    const made = await admin.post('/configurations', {
      key: 'auth-configuration',
      metadata: { providers: { google, github: { clientId: 'h', clientSecret: 'shh-github' } } },
    })
    expect(made.body.metadata).toEqual({ providers: { google: { clientId: 'g' }, github: { clientId: 'h' } } })
    expect([await secret('google'), await secret('github')]).toEqual(['shh-google', 'shh-github'])

    // Sending the configuration back as it was read changes nothing.
    expect((await admin.put(path, made.body)).body.metadata).toEqual(made.body.metadata)
    await admin.put(path, { metadata: { allowSignup: false } })
    expect([await secret('google'), await secret('github')]).toEqual(['shh-google', 'shh-github'])
    const answers = [await admin.get(path), await admin.get('/configurations')].map(({ body }) => JSON.stringify(body))
    const rows = await tenant.db.query('select metadata from configurations')
    for (const text of [
      ...answers,
      JSON.stringify(rows),
      JSON.stringify(await tenant.db.query('select text from sealed')),
    ])
      expect(text).not.toContain('shh-')

    await admin.put(path, { metadata: { providers: { google: { clientId: 'g', clientSecret: 'new' } } } })
    expect([await secret('google'), await secret('github')]).toEqual(['new', null])
    await admin.put(path, { metadata: { providers: { google: { clientId: 'g', clientSecret: null } } } })
    expect(await secret('google')).toBeNull()
    await admin.put(path, { metadata: { providers: { google } } })
    await admin.delete(path)
    expect(await secret('google')).toBeNull()
  })

  test.each([
    ['baseUrl', { baseUrl: 'https://evil.example' }],
    ['issuer', { kind: 'oidc', issuer: 'https://evil.example' }],
    ['a missing issuer', { kind: 'oidc' }],
  ])('the secret of a provider goes to no other server unless it is sent again: %s', async (_, changed) => {
    const { as, tenant } = await createTestTenant()
    const admin = as('admin')
    const path = '/configurations/auth-configuration'
    const corp = { clientId: 'c', kind: 'oidc', issuer: 'https://login.example/one' }
    await admin.put(path, { metadata: { providers: { corp: { ...corp, clientSecret: 'shh' } } } })
    const secret = () => openSecret(tenant, toProviderSecretRef('corp'))
    const refused = await admin.put(path, { metadata: { providers: { corp: { clientId: 'c', ...changed } } } })
    expect([refused.status, refused.body.details[0].path]).toEqual([400, '/metadata/providers/corp/clientSecret'])
    expect((await admin.get(path)).body.metadata.providers.corp).toEqual(corp)
    const moved = { ...corp, issuer: 'https://login.example/two' }
    expect((await admin.put(path, { metadata: { providers: { corp: moved } } })).status).toBe(200)
    expect(await secret()).toBe('shh')
    const sent = { clientId: 'c', ...changed, clientSecret: 'other' }
    expect((await admin.put(path, { metadata: { providers: { corp: sent } } })).status).toBe(200)
    expect(await secret()).toBe('other')
    expect((await admin.put(path, { metadata: { providers: { corp: { ...corp, clientSecret: null } } } })).status).toBe(
      200,
    )
    expect(await secret()).toBeNull()
  })
})
