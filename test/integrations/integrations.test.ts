import { beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { ID, TIME } from '../expectations'
import { type ApiClient, createTestTenant, statusAndCode } from '../test-tenant'
import { createIntegrationsFixture, type IntegrationsFixture } from './fixtures'

setDefaultTimeout(30_000)

let h: IntegrationsFixture
let admin: ApiClient
let lambdaId: string
beforeAll(async () => {
  h = await createIntegrationsFixture()
  admin = h.admin
  lambdaId = await h.lambda('() => 1')
})

const PATH = '/integrations'
const newWebhook = (more: object = {}) => ({
  trigger: { kind: 'webhook' },
  target: { kind: 'lambda', lambdaId },
  ...more,
})

describe('CRUD of integrations', () => {
  test('an admin creates, reads, lists, updates and deletes an integration', async () => {
    const created = await admin.post(PATH, newWebhook({ name: 'Orders', roles: ['buyer'], workspaceRoles: ['owner'] }))
    expect(created.status).toBe(201)
    expect(created.body).toEqual({
      _id: ID,
      name: 'Orders',
      active: true,
      guest: false,
      trigger: { kind: 'webhook' },
      target: { kind: 'lambda', lambdaId },
      roles: ['buyer'],
      workspaceRoles: ['owner'],
      plugin: null,
      user: h.users.admin,
      created: TIME,
      updated: created.body.created,
    })
    const path = `${PATH}/${created.body._id}`
    expect((await admin.get(path)).body).toEqual(created.body)
    expect((await admin.get(PATH)).body).toEqual([created.body])
    const trigger = { kind: 'event', source: 'accounts', eventKind: '*' }
    expect(statusAndCode(await admin.put(path, { ...created.body, trigger: { ...trigger, cron: 'x' } }))).toEqual([
      ...[400, 'INVALID_INPUT'],
    ])
    const changed = await admin.put(path, { ...created.body, trigger })
    expect([changed.status, changed.body]).toEqual([200, { ...created.body, trigger, updated: changed.body.updated }])
    expect((await admin.patch(path, { active: false, name: null })).body).toMatchObject({
      active: false,
      name: null,
      trigger,
    })
    expect((await admin.delete(path)).body).toEqual({ success: true })
    for (const answer of [
      await admin.get(path),
      await admin.put(path, {}),
      await admin.delete(path),
      await admin.get(`${PATH}/%00`),
    ])
      expect(statusAndCode(answer)).toEqual([404, 'INTEGRATION_NOT_FOUND'])
    expect((await admin.get(PATH)).body).toEqual([])
  })

  test('PUT and DELETE of an integration with an outdated If-Match answer 412 VERSION_MISMATCH', async () => {
    const created = await admin.post(PATH, newWebhook())
    const path = `${PATH}/${created.body._id}`
    const first = { 'if-match': created.headers.get('etag')! }
    const racing = await Promise.all(['a', 'b', 'c'].map((name) => admin.put(path, { name }, first)))
    expect(racing.map(({ status }) => status).sort()).toEqual([200, 412, 412])
    expect(statusAndCode(await admin.delete(path, first))).toEqual([412, 'VERSION_MISMATCH'])
    await h.clear()
  })

  test('every integration route answers 403 to other roles and 401 to anonymous callers', async () => {
    const { _id } = (await admin.post(PATH, newWebhook())).body
    const requests: ((client: ApiClient) => Promise<unknown>)[] = [
      (client) => client.get(PATH),
      (client) => client.get(`${PATH}/${_id}`),
      (client) => client.post(PATH, newWebhook()),
      (client) => client.put(`${PATH}/${_id}`, { name: 'x' }),
      (client) => client.patch(`${PATH}/${_id}`, { name: 'x' }),
      (client) => client.delete(`${PATH}/${_id}`),
    ]
    for (const send of requests) {
      for (const name of ['user', 'editor'] as const)
        expect(statusAndCode((await send(h.as(name))) as never)).toEqual([403, 'FORBIDDEN'])
      expect(statusAndCode((await send(h.anonymous)) as never)).toEqual([401, 'UNAUTHENTICATED'])
    }
    await h.clear()
  })

  test('admins of another tenant get 404 for an integration, and 400 for one that refers to a foreign lambda', async () => {
    const { _id } = (await admin.post(PATH, newWebhook())).body
    const otherAdmin = (await createTestTenant()).as('admin')
    expect((await otherAdmin.get(PATH)).body).toEqual([])
    for (const answer of [
      await otherAdmin.get(`${PATH}/${_id}`),
      await otherAdmin.put(`${PATH}/${_id}`, { name: 'x' }),
      await otherAdmin.delete(`${PATH}/${_id}`),
      await otherAdmin.get(`/webhooks/${_id}`),
    ])
      expect(answer.status).toBe(404)
    expect(statusAndCode(await otherAdmin.post(PATH, newWebhook()))).toEqual([400, 'INVALID_INPUT'])
    await h.clear()
  })

  test('rejects an integration with invalid properties or missing references with 400 INVALID_INPUT', async () => {
    const invalidPathsOf = async (body: object) => {
      const answer = await admin.post(PATH, newWebhook(body))
      expect(statusAndCode(answer)).toEqual([400, 'INVALID_INPUT'])
      return answer.body.details.map(({ path }: { path: string }) => path)
    }
    const http = await h.source('http', { url: 'https://x.test' })
    const openai = await h.source('openai', {})
    const plain = (await admin.post(PATH, newWebhook())).body._id
    expect(await invalidPathsOf({ trigger: { kind: 'moon' } })).toContain('/trigger/kind')
    expect(await invalidPathsOf({ trigger: {} })).toContain('/trigger/kind')
    expect(await invalidPathsOf({ trigger: undefined })).toContain('/trigger')
    expect(await invalidPathsOf({ target: { kind: 'moon' } })).toContain('/target/kind')
    expect(await invalidPathsOf({ trigger: { kind: 'schedule' } })).toContain('/trigger/cron')
    expect(await invalidPathsOf({ trigger: { kind: 'event', source: 7 } })).toEqual(['/trigger/source'])
    expect(await invalidPathsOf({ trigger: { kind: 'tool', name: 'a b', description: 'x' } })).toEqual([
      '/trigger/name',
    ])
    expect(
      await invalidPathsOf({ trigger: { kind: 'tool', name: 'a', description: 'x', parameters: { type: 'string' } } }),
    ).toEqual(['/trigger/parameters/type'])
    expect(await invalidPathsOf({ target: { kind: 'lambda' } })).toContain('/target/lambdaId')
    expect(await invalidPathsOf({ target: { kind: 'lambda', lambdaId: 'none' } })).toEqual(['/target/lambdaId'])
    expect(await invalidPathsOf({ target: { kind: 'http' } })).toEqual(['/target/url'])
    expect(await invalidPathsOf({ target: { kind: 'http', url: 'https://x.test', sourceId: http } })).toEqual([
      '/target/url',
    ])
    expect(await invalidPathsOf({ target: { kind: 'http', url: 'https://x.test', path: '/a' } })).toEqual([
      '/target/path',
    ])
    expect(await invalidPathsOf({ target: { kind: 'http', sourceId: openai } })).toEqual(['/target/sourceId'])
    expect(await invalidPathsOf({ target: { kind: 'http', url: 'https://x.test', method: 'TRACE' } })).toContain(
      '/target/method',
    )
    expect(await invalidPathsOf({ target: { kind: 'email', to: 'a@b.test', subject: 's' } })).toContain('/target/text')
    expect(
      await invalidPathsOf({ target: { kind: 'email', to: 'a@b.test', subject: 's', text: 't', sourceId: http } }),
    ).toEqual(['/target/sourceId'])
    expect(
      await invalidPathsOf({
        target: { kind: 'ai', sourceId: http, tools: ['none', plain], blueprints: ['none'] },
        plugin: 'none',
      }),
    ).toEqual(['/target/sourceId', '/target/tools/0', '/target/tools/1', '/target/blueprints/0', '/plugin'])
    expect(await invalidPathsOf({ target: { kind: 'ai', sourceId: 'echo', temperature: 3 } })).toEqual([
      '/target/temperature',
    ])
    expect(
      statusAndCode(await admin.put(`${PATH}/${plain}`, { target: { kind: 'lambda', lambdaId: 'none' } })),
    ).toEqual([400, 'INVALID_INPUT'])
    // Sending an integration back with `active: false` deactivates it.
    const secondLambda = await h.lambda('() => 1')
    const path = `${PATH}/${plain}`
    const target = { kind: 'lambda', lambdaId: secondLambda }
    const before = (await admin.put(path, { target })).body
    await admin.delete(`/lambdas/${secondLambda}`)
    expect((await admin.put(path, { ...before, active: false })).status).toBe(200)
    expect(statusAndCode(await admin.put(path, { target: { ...target, lambdaId: 'none' } }))).toEqual([
      400,
      'INVALID_INPUT',
    ])
    await h.clear()
  })

  test('a chat integration is stored with its AI target, is no webhook, and its tool answers 409 INTEGRATION_IN_USE on DELETE', async () => {
    const tool = await h.integration(
      { kind: 'tool', name: 'weather', description: 'Tells the weather', parameters: { type: 'object' } },
      { kind: 'lambda', lambdaId },
    )
    const sourceId = await h.source('openai', { apiUrl: 'https://ai.test/v1' }, { token: 'x' })
    await admin.post('/blueprints', { key: 'books', name: 'Books', fields: [] })
    const target = {
      ...{ kind: 'ai', sourceId, model: 'small', systemPrompt: 'Be brief.', temperature: 0.5, tools: [tool._id] },
      ...{ blueprints: ['books'], vectorStores: ['tenant'], maxToolRounds: 3, recordThread: true },
    }
    const chat = await h.integration({ kind: 'chat' }, target, { roles: ['user'] })
    expect(chat).toMatchObject({ trigger: { kind: 'chat' }, target })
    // A chat is no webhook, even for an admin.
    expect(statusAndCode(await admin.post(`/webhooks/${chat._id}`, {}))).toEqual([404, 'WEBHOOK_NOT_FOUND'])
    const offered = await admin.delete(`${PATH}/${tool._id}`)
    expect([...statusAndCode(offered), offered.body.message]).toEqual([
      409,
      'INTEGRATION_IN_USE',
      `The integration is a tool of the integration "${chat._id}". Remove it from there first.`,
    ])
    await admin.delete(`${PATH}/${chat._id}`)
    expect((await admin.delete(`${PATH}/${tool._id}`)).status).toBe(200)
    const echo = await h.integration({ kind: 'webhook' }, { kind: 'ai', sourceId: 'echo' })
    const answer = await admin.post(`/webhooks/${echo._id}`, { message: 'Hello' })
    expect(answer.body.choices[0].message.content).toBe('Hello')
    await h.clear()
  })

  test('DELETE of a connection that an integration uses answers 409 INTEGRATION_SOURCE_IN_USE', async () => {
    const sourceId = await h.source('http', { url: 'https://x.test' })
    const { _id } = await h.integration({ kind: 'webhook' }, { kind: 'http', sourceId }, { name: 'Shop' })
    const refused = await admin.delete(`/integration-sources/${sourceId}`)
    expect([...statusAndCode(refused), refused.body.message, refused.body.details]).toEqual([
      409,
      'INTEGRATION_SOURCE_IN_USE',
      'The integration source is used by the integration "Shop". Change or remove what uses it first.',
      { usedBy: ['the integration "Shop"'] },
    ])
    await admin.put(`${PATH}/${_id}`, { target: { kind: 'http', url: 'https://x.test' } })
    // Of two concurrent requests one fails, so that no integration lacks its connection.
    const [removed, changed] = await Promise.all([
      admin.delete(`/integration-sources/${sourceId}`),
      admin.put(`${PATH}/${_id}`, { target: { kind: 'http', sourceId } }),
    ])
    expect([removed.status, changed.status].sort()).toEqual(removed.status === 200 ? [200, 400] : [200, 409])
    await h.clear()
  })

  test('GET /integrations filters by kind, source, plugin, user, active and id, and has pages', async () => {
    const sourceId = await h.source('http', { url: 'https://x.test' })
    const plugin = (await admin.post('/plugins', { name: 'P' })).body._id
    await h.integration({ kind: 'webhook' }, { kind: 'lambda', lambdaId }, { name: 'a' })
    const b = await h.integration({ kind: 'event' }, { kind: 'http', sourceId }, { name: 'b', active: false, plugin })
    await h.integration({ kind: 'chat' }, { kind: 'ai', sourceId: 'echo' }, { name: 'c' })
    const names = async (query: string) =>
      (await admin.get(`${PATH}?sort=name&${query}`)).body.map(({ name }: { name: string }) => name).join('')
    expect(await names('')).toBe('abc')
    expect(await names('trigger.kind=event')).toBe('b')
    expect(await names('trigger.kind=event,chat')).toBe('bc')
    expect(await names('target.kind=lambda')).toBe('a')
    expect(await names('kind=ai')).toBe('c')
    expect(await names('kind=webhook,http')).toBe('ab')
    expect(await names('active=true')).toBe('ac')
    expect(await names('active=0')).toBe('b')
    expect(await names('active=undefined&kind=&source=undefined')).toBe('abc')
    expect(await names(`source=${sourceId}`)).toBe('b')
    expect(await names('source=echo')).toBe('c')
    expect(await names(`plugin=${plugin}`)).toBe('b')
    expect(await names(`user=${h.users.admin}`)).toBe('abc')
    expect(await names(`user=${h.users.user}`)).toBe('')
    expect(await names(`_id=${b._id},none`)).toBe('b')
    expect(await names('kind=moon')).toBe('')
    expect(await names('limit=2&page=2')).toBe('c')
    const page = await admin.get(`${PATH}?limit=1&count=true`)
    expect([page.headers.get('x-total-count'), page.headers.get('link')]).toEqual([
      '3',
      expect.stringContaining('%24after='),
    ])
    expect((await admin.get(`${PATH}?active=maybe`)).status).toBe(400)
    await h.clear()
  })
})
