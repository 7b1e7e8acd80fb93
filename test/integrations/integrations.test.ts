import { beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { type ApiClient, createTestTenant, statusAndCode } from '../test-tenant'
import { ID, TIME } from '../workspaces/workspace-fixtures'
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

describe('an integration', () => {
  test('is made, read, listed, changed and removed', async () => {
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
    const trigger = { kind: 'event', source: 'shop', eventKind: '*' }
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

  test('is changed and removed only as it was read', async () => {
    const created = await admin.post(PATH, newWebhook())
    const path = `${PATH}/${created.body._id}`
    const first = { 'if-match': created.headers.get('etag')! }
    const racing = await Promise.all(['a', 'b', 'c'].map((name) => admin.put(path, { name }, first)))
    expect(racing.map(({ status }) => status).sort()).toEqual([200, 412, 412])
    expect(statusAndCode(await admin.delete(path, first))).toEqual([412, 'VERSION_MISMATCH'])
    await h.clear()
  })

  test('is the business of admins only', async () => {
    const { _id } = (await admin.post(PATH, newWebhook())).body
    const asks: ((client: ApiClient) => Promise<unknown>)[] = [
      (client) => client.get(PATH),
      (client) => client.get(`${PATH}/${_id}`),
      (client) => client.post(PATH, newWebhook()),
      (client) => client.put(`${PATH}/${_id}`, { name: 'x' }),
      (client) => client.patch(`${PATH}/${_id}`, { name: 'x' }),
      (client) => client.delete(`${PATH}/${_id}`),
    ]
    for (const asked of asks) {
      for (const name of ['user', 'editor'] as const)
        expect(statusAndCode((await asked(h.as(name))) as never)).toEqual([403, 'FORBIDDEN'])
      expect(statusAndCode((await asked(h.stranger)) as never)).toEqual([401, 'UNAUTHENTICATED'])
    }
    await h.clear()
  })

  test('is seen by no other tenant, and refers to nothing of theirs', async () => {
    const { _id } = (await admin.post(PATH, newWebhook())).body
    const abroad = (await createTestTenant()).as('admin')
    expect((await abroad.get(PATH)).body).toEqual([])
    for (const answer of [
      await abroad.get(`${PATH}/${_id}`),
      await abroad.put(`${PATH}/${_id}`, { name: 'x' }),
      await abroad.delete(`${PATH}/${_id}`),
      await abroad.get(`/webhooks/${_id}`),
    ])
      expect(answer.status).toBe(404)
    expect(statusAndCode(await abroad.post(PATH, newWebhook()))).toEqual([400, 'INVALID_INPUT'])
    await h.clear()
  })

  test('is as its kinds have to be, and what it refers to is there', async () => {
    const flawsOf = async (body: object) => {
      const answer = await admin.post(PATH, newWebhook(body))
      expect(statusAndCode(answer)).toEqual([400, 'INVALID_INPUT'])
      return answer.body.details.map(({ path }: { path: string }) => path)
    }
    const http = await h.source('http', { url: 'https://x.test' })
    const openai = await h.source('openai', {})
    const plain = (await admin.post(PATH, newWebhook())).body._id
    expect(await flawsOf({ trigger: { kind: 'moon' } })).toContain('/trigger/kind')
    expect(await flawsOf({ trigger: {} })).toContain('/trigger/kind')
    expect(await flawsOf({ trigger: undefined })).toContain('/trigger')
    expect(await flawsOf({ target: { kind: 'moon' } })).toContain('/target/kind')
    expect(await flawsOf({ trigger: { kind: 'schedule' } })).toContain('/trigger/cron')
    expect(await flawsOf({ trigger: { kind: 'event', source: 7 } })).toEqual(['/trigger/source'])
    expect(await flawsOf({ trigger: { kind: 'tool', name: 'a b', description: 'x' } })).toEqual(['/trigger/name'])
    expect(
      await flawsOf({ trigger: { kind: 'tool', name: 'a', description: 'x', parameters: { type: 'string' } } }),
    ).toEqual(['/trigger/parameters/type'])
    expect(await flawsOf({ target: { kind: 'lambda' } })).toContain('/target/lambdaId')
    expect(await flawsOf({ target: { kind: 'lambda', lambdaId: 'none' } })).toEqual(['/target/lambdaId'])
    expect(await flawsOf({ target: { kind: 'http' } })).toEqual(['/target/url'])
    expect(await flawsOf({ target: { kind: 'http', url: 'https://x.test', sourceId: http } })).toEqual(['/target/url'])
    expect(await flawsOf({ target: { kind: 'http', url: 'https://x.test', path: '/a' } })).toEqual(['/target/path'])
    expect(await flawsOf({ target: { kind: 'http', sourceId: openai } })).toEqual(['/target/sourceId'])
    expect(await flawsOf({ target: { kind: 'http', url: 'https://x.test', method: 'TRACE' } })).toContain(
      '/target/method',
    )
    expect(await flawsOf({ target: { kind: 'email', to: 'a@b.test', subject: 's' } })).toContain('/target/text')
    expect(
      await flawsOf({ target: { kind: 'email', to: 'a@b.test', subject: 's', text: 't', sourceId: http } }),
    ).toEqual(['/target/sourceId'])
    expect(
      await flawsOf({
        target: { kind: 'ai', sourceId: http, tools: ['none', plain], blueprints: ['none'] },
        plugin: 'none',
      }),
    ).toEqual(['/target/sourceId', '/target/tools/0', '/target/tools/1', '/target/blueprints/0', '/plugin'])
    expect(await flawsOf({ target: { kind: 'ai', sourceId: 'echo', temperature: 3 } })).toEqual(['/target/temperature'])
    expect(
      statusAndCode(await admin.put(`${PATH}/${plain}`, { target: { kind: 'lambda', lambdaId: 'none' } })),
    ).toEqual([400, 'INVALID_INPUT'])
    // What is gone meanwhile stands in nobody's way who switches it off.
    const gone = await h.lambda('() => 1')
    const path = `${PATH}/${plain}`
    const target = { kind: 'lambda', lambdaId: gone }
    const before = (await admin.put(path, { target })).body
    await admin.delete(`/lambdas/${gone}`)
    expect((await admin.put(path, { ...before, active: false })).status).toBe(200)
    expect(statusAndCode(await admin.put(path, { target: { ...target, lambdaId: 'none' } }))).toEqual([
      400,
      'INVALID_INPUT',
    ])
    await h.clear()
  })

  test('of a chat with an AI, with its tools, is kept and checked', async () => {
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
    // It is no webhook, whoever asks.
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

  test('holds the connection that it goes by', async () => {
    const sourceId = await h.source('http', { url: 'https://x.test' })
    const { _id } = await h.integration({ kind: 'webhook' }, { kind: 'http', sourceId }, { name: 'Shop' })
    const held = await admin.delete(`/integration-sources/${sourceId}`)
    expect([...statusAndCode(held), held.body.message, held.body.details]).toEqual([
      409,
      'INTEGRATION_SOURCE_IN_USE',
      'The integration source is used by the integration "Shop". Change or remove what uses it first.',
      { usedBy: ['the integration "Shop"'] },
    ])
    await admin.put(`${PATH}/${_id}`, { target: { kind: 'http', url: 'https://x.test' } })
    // Of two at once, one comes first: never is there an integration without its connection.
    const [removed, changed] = await Promise.all([
      admin.delete(`/integration-sources/${sourceId}`),
      admin.put(`${PATH}/${_id}`, { target: { kind: 'http', sourceId } }),
    ])
    expect([removed.status, changed.status].sort()).toEqual(removed.status === 200 ? [200, 400] : [200, 409])
    await h.clear()
  })

  test('is found by kinds, source, plugin, user, whether it is active, and id, page by page', async () => {
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
      expect.stringContaining('page=2'),
    ])
    expect((await admin.get(`${PATH}?active=maybe`)).status).toBe(400)
    await h.clear()
  })
})
