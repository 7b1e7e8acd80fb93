import { beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { resolveAllOfKind, resolveConnection } from '../../src/connections/resolver'
import { storeSecrets } from '../../src/connections/secrets'
import { connections } from '../../src/connections/tables'
import { rotateVaultKey } from '../../src/platform/vault/key-rotation'
import { sealed } from '../../src/platform/vault/tables'
import { withVault } from '../../src/platform/vault/vault'
import { ID, TIME } from '../expectations'
import { denyPrivateNetwork } from '../plugins/fixtures'
import { type ApiClient, createTestTenant, statusAndCode } from '../test-tenant'

setDefaultTimeout(30_000)

let h: Awaited<ReturnType<typeof createTestTenant>>
let admin: ApiClient
beforeAll(async () => {
  h = await createTestTenant()
  admin = h.as('admin')
})

beforeAll(denyPrivateNetwork)

const PATH = '/integration-sources'
const newStripe = (more: object = {}) => ({
  name: 'Cards',
  kind: 'stripe',
  labels: ['money', 'eu'],
  metadata: { requireExternalPrice: true, checkoutMode: 'hosted' },
  authentication: { secretKey: 'sk_live_1', webhookSecret: ['whsec_a', 'whsec_b'] },
  ...more,
})
const createConnection = async (more: object = {}) => (await admin.post(PATH, newStripe(more))).body

describe('CRUD of connections', () => {
  test('an admin creates, reads, lists, updates and deletes a connection, whose secrets are never returned', async () => {
    const created = await admin.post(PATH, newStripe())
    expect(created.status).toBe(201)
    expect(created.body).toEqual({
      _id: ID,
      name: 'Cards',
      kind: 'stripe',
      labels: ['money', 'eu'],
      metadata: { requireExternalPrice: true, checkoutMode: 'hosted' },
      secrets: ['secretKey', 'webhookSecret'],
      created: TIME,
      updated: created.body.created,
    })
    const path = `${PATH}/${created.body._id}`
    expect((await admin.get(path)).body).toEqual(created.body)
    expect((await admin.get(PATH)).body).toEqual([created.body])
    // A connection can be sent back as it was read.
    const changed = await admin.put(path, {
      ...created.body,
      name: 'Purse',
      metadata: { checkoutMode: null, apiUrl: 'https://x.test' },
      authentication: { secretKey: 'sk_live_1' },
    })
    expect([changed.status, changed.body]).toEqual([
      200,
      {
        ...created.body,
        name: 'Purse',
        metadata: { requireExternalPrice: true, apiUrl: 'https://x.test' },
        updated: changed.body.updated,
      },
    ])
    expect((await admin.patch(path, { labels: [] })).body.labels).toEqual([])
    expect((await admin.delete(path)).body).toEqual({ success: true })
    for (const answer of [
      await admin.get(path),
      await admin.put(path, { name: 'x' }),
      await admin.delete(path),
      await admin.post(`${path}/status`),
      await admin.get(`${PATH}/%00`),
    ])
      expect(statusAndCode(answer)).toEqual([404, 'INTEGRATION_SOURCE_NOT_FOUND'])
    expect((await admin.get(PATH)).body).toEqual([])
  })

  test('PUT and DELETE of a connection with an outdated If-Match answer 412 VERSION_MISMATCH', async () => {
    const created = await admin.post(PATH, newStripe())
    const path = `${PATH}/${created.body._id}`
    const first = { 'if-match': created.headers.get('etag')! }
    const racing = await Promise.all(['a', 'b', 'c'].map((name) => admin.put(path, { name }, first)))
    expect(racing.map(({ status }) => status).sort()).toEqual([200, 412, 412])
    expect(statusAndCode(await admin.delete(path, first))).toEqual([412, 'VERSION_MISMATCH'])
    expect((await admin.delete(path)).status).toBe(200)
  })

  test('every connection route answers 403 to other roles and 401 to anonymous callers', async () => {
    const { _id } = await createConnection()
    const requests: ((client: ApiClient) => Promise<unknown>)[] = [
      (client) => client.get(PATH),
      (client) => client.get(`${PATH}/${_id}`),
      (client) => client.post(PATH, newStripe()),
      (client) => client.put(`${PATH}/${_id}`, { name: 'x' }),
      (client) => client.patch(`${PATH}/${_id}`, { name: 'x' }),
      (client) => client.delete(`${PATH}/${_id}`),
      (client) => client.post(`${PATH}/${_id}/status`),
      (client) => client.post(`${PATH}/status`, { kind: 'http' }),
    ]
    for (const send of requests) {
      for (const name of ['user', 'editor'] as const)
        expect(statusAndCode((await send(h.as(name))) as never)).toEqual([403, 'FORBIDDEN'])
      expect(statusAndCode((await send(h.anonymous)) as never)).toEqual([401, 'UNAUTHENTICATED'])
    }
    await admin.delete(`${PATH}/${_id}`)
  })

  test('admins of another tenant get 404 for a connection and do not see it in their list', async () => {
    const { _id } = await createConnection()
    const otherAdmin = (await createTestTenant()).as('admin')
    expect((await otherAdmin.get(PATH)).body).toEqual([])
    for (const answer of [
      await otherAdmin.get(`${PATH}/${_id}`),
      await otherAdmin.put(`${PATH}/${_id}`, { name: 'x' }),
      await otherAdmin.delete(`${PATH}/${_id}`),
      await otherAdmin.post(`${PATH}/${_id}/status`),
    ])
      expect(answer.status).toBe(404)
    expect((await admin.delete(`${PATH}/${_id}`)).status).toBe(200)
  })

  test('each secret of a connection is encrypted in the vault, changes on its own, and is resolved for the server', async () => {
    const { _id } = await createConnection()
    const path = `${PATH}/${_id}`
    const secrets = async () => (await resolveConnection(h.tenant, _id, 'stripe')).authentication
    expect(await secrets()).toEqual({ secretKey: 'sk_live_1', webhookSecret: ['whsec_a', 'whsec_b'] })
    await admin.put(path, { authentication: { webhookSecret: 'whsec_c' } })
    expect(await secrets()).toEqual({ secretKey: 'sk_live_1', webhookSecret: 'whsec_c' })
    await admin.put(path, { authentication: { secretKey: null } })
    expect(await secrets()).toEqual({ webhookSecret: 'whsec_c' })
    await Promise.all([
      admin.put(path, { authentication: { secretKey: 'sk_2' } }),
      admin.put(path, { authentication: { webhookSecret: ['whsec_d'] } }),
    ])
    expect(await secrets()).toEqual({ secretKey: 'sk_2', webhookSecret: ['whsec_d'] })
    const sealedRows = JSON.stringify(await h.tenant.db.select().from(sealed))
    for (const secret of ['sk_', 'whsec_']) expect(sealedRows).not.toContain(secret)
    expect((await rotateVaultKey()).failed).toEqual([])
    expect(await secrets()).toEqual({ secretKey: 'sk_2', webhookSecret: ['whsec_d'] })
    expect((await resolveAllOfKind(h.tenant, 'stripe')).map((one) => one.authentication)).toEqual([await secrets()])
    expect(await resolveConnection(h.tenant, _id, 'paypal').catch(({ code }) => code)).toBe(
      'INTEGRATION_SOURCE_NOT_FOUND',
    )
    await admin.delete(path)
    expect(await h.tenant.db.$count(sealed)).toBe(0)
    expect(await resolveAllOfKind(h.tenant, 'stripe')).toEqual([])
  })

  test('rejects a connection that does not fit its kind, and a change of the kind, with 400 INVALID_INPUT', async () => {
    const invalidPathsOf = async (body: object) => {
      const answer = await admin.post(PATH, { name: 'x', ...body })
      expect(statusAndCode(answer)).toEqual([400, 'INVALID_INPUT'])
      expect(JSON.stringify(answer.body)).not.toContain('s3cret')
      return answer.body.details.map(({ path }: { path: string }) => path)
    }
    expect(await invalidPathsOf({ kind: 'fax' })).toContain('/kind')
    expect(await invalidPathsOf({ kind: 'http' })).toContain('/metadata/url')
    expect(await invalidPathsOf({ kind: 'http', metadata: { url: 'ftp://x' } })).toEqual(['/metadata/url'])
    expect(await invalidPathsOf({ kind: 'email', metadata: { host: 'a b', port: 0 } })).toEqual([
      '/metadata/host',
      '/metadata/port',
    ])
    expect(await invalidPathsOf({ kind: 'openai', authentication: { tokn: 's3cret' } })).toEqual([
      '/authentication/tokn',
    ])
    expect(await invalidPathsOf({ kind: 'openai', authentication: { token: { a: 's3cret' } } })).toEqual([
      '/authentication/token',
    ])
    expect(await invalidPathsOf({ kind: 'paypal', metadata: { environment: 'moon' } })).toContain(
      '/metadata/environment',
    )
    expect(await invalidPathsOf({ kind: 'stripe', authentication: { webhookSecret: ['s3cret', 'b', 'c'] } })).toContain(
      '/authentication/webhookSecret',
    )
    expect(
      await invalidPathsOf({ kind: 'stripe', metadata: { apiUrl: `https://x.test/${'x'.repeat(20_000)}` } }),
    ).toContain('/metadata')
    const headers = { 'x y': '1' }
    const withInvalidHeader = { kind: 'http', metadata: { url: 'https://x.test' }, authentication: { headers } }
    expect((await invalidPathsOf(withInvalidHeader)).length).toBeGreaterThan(0)
    expect(
      (await invalidPathsOf({ ...withInvalidHeader, authentication: { headers: { ok: 's3cret\r\nevil: 1' } } })).length,
    ).toBeGreaterThan(0)
    for (const url of ['http://x.test', 'https://10.0.0.1', 'https://ada:x@x.test'])
      expect(await invalidPathsOf({ kind: 'http', metadata: { url } })).toEqual(['/metadata/url'])
    const { _id } = await createConnection()
    expect(statusAndCode(await admin.put(`${PATH}/${_id}`, { metadata: { apiUrl: 'http://127.0.0.1' } }))).toEqual([
      400,
      'INVALID_INPUT',
    ])
    expect(statusAndCode(await admin.put(`${PATH}/${_id}`, { kind: 'paddle' }))).toEqual([400, 'INVALID_INPUT'])
    expect(statusAndCode(await admin.put(`${PATH}/${_id}`, { metadata: { apiUrl: 7 } }))).toEqual([
      400,
      'INVALID_INPUT',
    ])
    await admin.delete(`${PATH}/${_id}`)
  })

  test.each([
    ['openai', 'baseUrl', 'Did you mean `apiUrl`?'],
    ['openai', 'url', 'Did you mean `apiUrl`?'],
    ['openai', 'embedding_model', 'Did you mean `embeddingModel`?'],
    ['openai', 'token', 'send it in `authentication`'],
    ['http', 'address', 'A connection of the kind http has url.'],
    ['stripe', 'note', 'A connection of the kind stripe has apiUrl, requireExternalPrice, checkoutMode.'],
  ])('unknown metadata is refused with what was meant: %s, %s', async (kind, key, hint) => {
    const metadata = { ...(kind === 'http' && { url: 'https://x.test' }), [key]: 'https://y.test' }
    for (const path of [PATH, `${PATH}/status`]) {
      const { status, body } = await admin.post(path, { ...(path === PATH && { name: 'x' }), kind, metadata })
      expect([status, body.details[0].path]).toEqual([400, `/metadata/${key}`])
      expect(body.message).toContain(hint)
    }
  })

  test('unknown metadata that was stored before passes unchanged, and may be removed but not changed', async () => {
    const { _id } = await createConnection()
    const stored = { requireExternalPrice: true, note: 'ours' }
    await h.tenant.write((tx) => tx.update(connections).set({ metadata: stored }).where(eq(connections._id, _id)))
    const path = `${PATH}/${_id}`
    expect((await admin.put(path, { name: 'Purse', metadata: stored })).body.metadata).toEqual(stored)
    expect(statusAndCode(await admin.put(path, { metadata: { note: 'new' } }))).toEqual([400, 'INVALID_INPUT'])
    expect((await admin.put(path, { metadata: { note: null } })).body.metadata).toEqual({ requireExternalPrice: true })
    await admin.delete(path)
  })

  test.each([
    ['openai', 'token'],
    ['stripe', 'secretKey'],
    ['paddle', 'apiKey'],
  ])('a key that is not ASCII is refused, also in a check before: %s', async (kind, secret) => {
    for (const value of ['sk-••••1234', 'sk-1\nx', 'sk-…'])
      for (const path of [PATH, `${PATH}/status`]) {
        const { status, body } = await admin.post(path, {
          ...(path === PATH && { name: 'x' }),
          ...{ kind, authentication: { [secret]: value } },
        })
        expect([status, body.details[0].path]).toEqual([400, `/authentication/${secret}`])
        expect(JSON.stringify(body)).not.toContain(value)
      }
  })

  test('the check of a connection whose stored key is not ASCII says that it failed', async () => {
    const { _id } = await createConnection()
    await withVault(h.tenant, (tx, vault) => storeSecrets(tx, vault, _id, { secretKey: 'sk-••••1234' }))
    const { status, body } = await admin.post(`${PATH}/${_id}/status`)
    expect([status, body.status]).toEqual([200, 'failed'])
    await admin.delete(`${PATH}/${_id}`)
  })

  test.each([
    ['openai', { apiUrl: 'https://x.test/v1' }, { apiUrl: 'https://y.test/v1' }, { token: 'k' }],
    ['openai', { apiUrl: 'https://x.test/v1' }, { apiUrl: 'https://x.test:8443/v1' }, { token: 'k' }],
    ['openai', {}, { apiUrl: 'https://y.test/v1' }, { token: 'k' }],
    ['openai', { apiUrl: 'https://x.test/v1' }, { apiUrl: null }, { token: 'k' }],
    ['http', { url: 'https://x.test' }, { url: 'https://y.test' }, { headers: { authorization: 'k' } }],
    ['email', { host: 'x.test' }, { host: 'y.test' }, { password: 'k' }],
    ['stripe', {}, { apiUrl: 'https://y.test' }, { secretKey: 'k' }],
    ['paddle', { environment: 'live' }, { environment: 'sandbox' }, { apiKey: 'k' }],
  ])('a secret goes to no other server unless it is sent again: %s, %j to %j', async (kind, metadata, to, secrets) => {
    const created = await admin.post(PATH, { name: 'x', kind, metadata, authentication: secrets })
    expect(created.status).toBe(201)
    const path = `${PATH}/${created.body._id}`
    const refused = await admin.put(path, { metadata: to })
    expect(statusAndCode(refused)).toEqual([400, 'INVALID_INPUT'])
    expect(refused.body.details[0].path).toBe(`/authentication/${Object.keys(secrets)[0]}`)
    expect((await admin.get(path)).body.metadata).toEqual(metadata)
    const withoutSecrets = Object.fromEntries(Object.keys(secrets).map((name) => [name, null]))
    expect((await admin.put(path, { metadata: to, authentication: secrets })).status).toBe(200)
    expect((await admin.put(path, { metadata, authentication: withoutSecrets })).body.secrets).toEqual([])
    await admin.delete(path)
  })

  test('another path at the same server keeps the secrets, and webhook secrets stay with any server', async () => {
    const apiUrl = 'https://x.test/v1'
    const authentication = { token: 'k' }
    const { body } = await admin.post(PATH, { name: 'x', kind: 'openai', metadata: { apiUrl }, authentication })
    expect((await admin.put(`${PATH}/${body._id}`, { metadata: { apiUrl: 'https://x.test/v2' } })).status).toBe(200)
    const { _id } = await createConnection({ authentication: { webhookSecret: 'whsec_a' } })
    expect((await admin.put(`${PATH}/${_id}`, { metadata: { apiUrl } })).body.secrets).toEqual(['webhookSecret'])
    for (const id of [body._id, _id]) await admin.delete(`${PATH}/${id}`)
  })

  test('a list of connections is filtered by kind, name and label, and has pages', async () => {
    await createConnection({ name: 'a', labels: ['x'] })
    await createConnection({ name: 'b', labels: ['y', 'z'] })
    await createConnection({ name: 'c', kind: 'paddle', metadata: {}, authentication: {}, labels: [] })
    const names = async (query: string) =>
      (await admin.get(`${PATH}?sort=name&${query}`)).body.map(({ name }: { name: string }) => name).join('')
    expect(await names('')).toBe('abc')
    expect(await names('kind=paddle')).toBe('c')
    expect(await names('kind=paddle,stripe')).toBe('abc')
    expect(await names('kind=undefined&name=&labels=undefined')).toBe('abc')
    expect(await names('name=b')).toBe('b')
    expect(await names('labels=x,z')).toBe('ab')
    expect(await names('labels=nothing')).toBe('')
    expect(await names('kind=nothing')).toBe('')
    expect(await names('limit=2&page=2')).toBe('c')
    const page = await admin.get(`${PATH}?limit=1&labels=x,z&count=true`)
    expect([page.headers.get('x-total-count'), page.headers.get('link')]).toEqual([
      '2',
      expect.stringContaining('page=2'),
    ])
    expect((await admin.get(`${PATH}?sort=labels`)).status).toBe(400)
  })
})
