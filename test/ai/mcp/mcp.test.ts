import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Server } from 'bun'
import { listen } from '../../../src/gateway'
import { bearer, signInForCookie, signInForTokens } from '../../accounts/session-fixtures'
import { callApi, createTestTenant, fullAccessRules, statusAndCode, type TestUser } from '../../test-tenant'

setDefaultTimeout(30_000)

let h: Awaited<ReturnType<typeof createTestTenant>>
let server: Server<undefined>
const cleanups: (() => Promise<void>)[] = []
beforeAll(async () => {
  server = listen('127.0.0.1', 0)
  h = await createTestTenant()
  const admin = h.as('admin')
  const fields = [
    { key: 'title', type: 'string', required: true },
    { key: 'price', type: 'decimal' },
    { key: 'margin', type: 'number', readRoles: ['boss'], writeRoles: ['boss'] },
  ]
  const make = (key: string, permissions: object[], more: object = {}) =>
    admin.post('/blueprints', {
      key,
      name: key.toUpperCase(),
      description: `The ${key}.`,
      fields,
      permissions,
      ...more,
    })
  await make('books', fullAccessRules('user', 'user'))
  await make('news', [{ operation: 'read', scope: 'tenant', roleBased: ['user'] }])
  await make('wages', [])
})
afterAll(async () => {
  for (const close of cleanups) await close()
  await server.stop(true)
})

/** The official client, over HTTP, as somebody comes. */
async function connectAssistant(headers: Record<string, string>, tenant = h.id) {
  const client = new Client({ name: 'test', version: '1' })
  const url = new URL('/api/mcp', server.url)
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers: { tenant, ...headers } } }))
  cleanups.push(() => client.close())
  const call = async (name: string, args: Record<string, unknown> = {}) => {
    const { content, isError } = await client.callTool({ name, arguments: args })
    const [{ text }] = content as [{ text: string }]
    return { failed: !!isError, told: JSON.parse(text) }
  }
  const names = async () => (await client.listTools()).tools.map(({ name }) => name)
  return { client, call, names }
}
const connectAs = (name: TestUser) => connectAssistant({ 'x-api-key': h.tokens[name] })

describe('an assistant', () => {
  test('finds, reads, makes, changes and removes entities, as its user may', async () => {
    const { client, call } = await connectAs('user')
    expect(client.getServerVersion()).toMatchObject({ name: 'atoll' })
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toEqual([
      ...['find_books', 'get_books', 'create_books', 'update_books', 'remove_books', 'find_news', 'get_news'],
    ])
    const create = tools.find(({ name }) => name === 'create_books')!
    expect(create.description).toContain('The books.')
    expect(create.inputSchema).toMatchObject({
      type: 'object',
      required: ['title'],
      properties: { title: { type: 'string' } },
    })
    expect(create.inputSchema.properties).not.toHaveProperty('margin')

    const made = await call('create_books', { identifier: 'walden', title: 'Walden', price: '12.50' })
    expect(made).toMatchObject({ failed: false, told: { identifier: 'walden', title: 'Walden', price: '12.50' } })
    expect((await h.as('user').get('/blueprints/books/entities/walden')).body.title).toBe('Walden')
    expect((await call('update_books', { identifier: 'walden', price: '9.99' })).told.price).toBe('9.99')
    expect((await call('find_books', { query: { price: { $lt: '10' } } })).told).toMatchObject([
      { identifier: 'walden' },
    ])
    expect((await call('get_books', { identifier: 'walden' })).told.title).toBe('Walden')
    expect((await call('remove_books', { identifier: 'walden' })).failed).toBe(false)
    expect((await call('find_books')).told).toEqual([])
  })

  test('is told what was wrong, so that it can do better', async () => {
    const { client, call } = await connectAs('user')
    const wrong = await call('create_books', { price: 'cheap' })
    expect(wrong).toMatchObject({ failed: true, told: { error: { code: 'INVALID_INPUT' } } })
    expect(JSON.stringify(wrong.told.error.details)).toContain('title')
    expect(await call('get_books', { identifier: 'none' })).toMatchObject({
      failed: true,
      told: { error: { code: 'ENTITY_NOT_FOUND' } },
    })
    for (const name of ['fly', 'find_wages', 'create_news', '__proto__'])
      await expect(client.callTool({ name, arguments: {} })).rejects.toMatchObject({ code: -32602 })
    await expect(client.listTools({ cursor: 'x' })).rejects.toMatchObject({ code: -32602 })
  })

  test('reads the definitions of blueprints that concern its user, and no others', async () => {
    const { client } = await connectAs('user')
    const { resources } = await client.listResources()
    expect(resources.map(({ uri }) => uri)).toEqual(['atoll://blueprints/books', 'atoll://blueprints/news'])
    const { contents } = await client.readResource({ uri: 'atoll://blueprints/books' })
    const [{ text, mimeType }] = contents as unknown as [{ text: string; mimeType: string }]
    expect(mimeType).toBe('application/json')
    expect(JSON.parse(text)).toEqual((await h.as('user').get('/blueprints/books')).body)
    expect(text).not.toContain('margin')
    for (const uri of [
      'atoll://blueprints/wages',
      'atoll://blueprints/none',
      'atoll://blueprints/%00',
      'file:///etc/passwd',
    ])
      await expect(client.readResource({ uri })).rejects.toMatchObject({ code: -32002 })
    const { resources: all } = await (await connectAs('admin')).client.listResources()
    expect(all.map(({ name }) => name)).toEqual(['books', 'news', 'wages'])
  })

  test('calls the integrations that are tools, if its user may', async () => {
    const admin = h.as('admin')
    const code = 'export default ({ body, user }) => ({ sum: body.a + body.b, by: user.username ?? user._id })'
    const lambdaId = (await admin.post('/lambdas', { name: 'add', code })).body._id
    const parameters = { properties: { a: { type: 'number' }, b: { type: 'number' } }, required: ['a', 'b'] }
    const trigger = { kind: 'tool', name: 'add', description: 'Adds two numbers.', parameters }
    const target = { kind: 'lambda', lambdaId }
    const { body } = await admin.post('/integrations', { trigger, target })
    const secret = { ...trigger, name: 'secret' }
    await admin.post('/integrations', { trigger: secret, target, roles: ['boss'] })
    const { client, call, names } = await connectAs('user')
    expect(await names()).toContain('add')
    expect(await names()).not.toContain('secret')
    const { tools } = await client.listTools()
    expect(tools.find(({ name }) => name === 'add')!.inputSchema).toEqual({ type: 'object', ...parameters })
    expect(await call('add', { a: 2, b: 3 })).toMatchObject({ failed: false, told: { sum: 5 } })
    await admin.put(`/lambdas/${lambdaId}`, { code: 'export default () => { throw new Error("broken") }' })
    expect((await call('add', { a: 2, b: 3 })).failed).toBe(true)
    await admin.put(`/integrations/${body._id}`, { active: false })
    expect(await names()).not.toContain('add')
    await expect(client.callTool({ name: 'add', arguments: {} })).rejects.toMatchObject({ code: -32602 })
  })
})

describe('rights', () => {
  test('are each user’s own, by whichever credential they come', async () => {
    await (await connectAs('user')).call('create_books', { identifier: 'mine', title: 'Mine' })
    expect((await (await connectAs('other')).call('find_books')).told).toEqual([])
    expect((await (await connectAs('other')).call('get_books', { identifier: 'mine' })).told.error.code).toBe(
      'ENTITY_NOT_FOUND',
    )
    const { token } = await signInForTokens(h, 'user')
    expect((await (await connectAssistant(bearer(token))).call('get_books', { identifier: 'mine' })).told.title).toBe(
      'Mine',
    )
    const admin = await connectAs('admin')
    expect(await admin.names()).toContain('create_wages')
    const guise = await connectAssistant({ 'x-api-key': h.tokens.admin, 'x-impersonate-user': h.users.other })
    expect((await guise.call('find_books')).told).toEqual([])
    expect(await guise.names()).not.toContain('find_wages')
  })

  test('that are taken away are gone at once, in the midst of a conversation', async () => {
    const admin = h.as('admin')
    await admin.post('/blueprints', {
      key: 'notes',
      name: 'Notes',
      fields: [],
      permissions: fullAccessRules('user', 'user'),
    })
    const { client, call, names } = await connectAs('user')
    expect((await call('create_notes')).failed).toBe(false)
    await admin.put('/blueprints/notes', { permissions: [{ operation: 'read', scope: 'user', roleBased: ['user'] }] })
    expect((await names()).filter((name) => name.endsWith('notes'))).toEqual(['find_notes', 'get_notes'])
    await expect(client.callTool({ name: 'create_notes', arguments: {} })).rejects.toMatchObject({ code: -32602 })
    await admin.delete('/blueprints/notes?force=true')
    expect((await names()).filter((name) => name.endsWith('notes'))).toEqual([])
    const { token } = await signInForTokens(h, 'other')
    const leaving = await connectAssistant(bearer(token))
    await callApi('POST', `${h.origin}/api/logout`, { headers: bearer(token) })
    await expect(leaving.client.listTools()).rejects.toMatchObject({ code: 401 })
  })

  test('of an API token end where its scopes do', async () => {
    const { token } = await signInForTokens(h, 'user')
    const limited = async (scopes: string[]) => {
      const { body } = await callApi('POST', `${h.origin}/api/me/api-tokens`, {
        headers: bearer(token),
        body: { nickname: 'x', scopes },
      })
      return { 'x-api-key': body.token as string }
    }
    await expect(connectAssistant(await limited(['entities:write']))).rejects.toMatchObject({ code: 403 })
    const { body: lambda } = await h.as('admin').post('/lambdas', { name: 'one', code: 'export default () => 1' })
    const trigger = { kind: 'tool', name: 'one', description: 'One.' }
    await h.as('admin').post('/integrations', { trigger, target: { kind: 'lambda', lambdaId: lambda._id } })
    const reader = await connectAssistant(await limited(['mcp:write', 'entities:read']))
    expect((await reader.call('find_books')).failed).toBe(false)
    expect((await reader.call('create_books', { title: 'x' })).told.error.code).toBe('FORBIDDEN')
    expect((await reader.call('one')).told.error.message).toContain('lambdas:write')
    expect((await reader.client.listResources()).resources).toEqual([])
    await expect(reader.client.readResource({ uri: 'atoll://blueprints/books' })).rejects.toMatchObject({
      code: -32002,
    })
  })

  test('end at the tenant: another one sees nothing, and strangers are turned away', async () => {
    const other = await createTestTenant()
    const stranger = await connectAssistant({ 'x-api-key': other.tokens.admin }, other.id)
    expect(await stranger.names()).toEqual([])
    expect((await stranger.client.listResources()).resources).toEqual([])
    await expect(stranger.client.readResource({ uri: 'atoll://blueprints/books' })).rejects.toMatchObject({
      code: -32002,
    })
    await expect(connectAssistant({ 'x-api-key': other.tokens.admin })).rejects.toMatchObject({ code: 401 })
    await expect(connectAssistant({})).rejects.toMatchObject({ code: 401 })
  })
})

describe('the address', () => {
  const MESSAGE = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
  const accept = { accept: 'application/json, text/event-stream' }
  const send = (body: unknown, headers: Record<string, string> = {}) =>
    h.as('user').post('/mcp', body, { ...accept, ...headers })

  test('answers one message at a time, and tells what is none', async () => {
    expect((await send(MESSAGE)).body).toMatchObject({ jsonrpc: '2.0', id: 1, result: { tools: expect.any(Array) } })
    expect((await send({ jsonrpc: '2.0', method: 'notifications/initialized' })).status).toBe(202)
    for (const body of [{}, [MESSAGE, MESSAGE], [], 'x', 5, { jsonrpc: '1.0', id: 1, method: 'x' }])
      expect([body, statusAndCode(await send(body))] as unknown).toEqual([body, [400, 'INVALID_INPUT']])
    expect(statusAndCode(await h.as('user').post('/mcp', MESSAGE))).toEqual([406, 'NOT_ACCEPTABLE'])
    expect(statusAndCode(await send(MESSAGE, { 'mcp-protocol-version': '1999-01-01' }))).toEqual([400, 'INVALID_INPUT'])
    expect((await send({ ...MESSAGE, method: 'tools/fly' })).body.error.code).toBe(-32601)
    expect((await send({ ...MESSAGE, method: 'tools/call', params: { name: 5 } })).body).toHaveProperty('error')
  })

  test('has no sessions: nothing to listen to, and nothing to end', async () => {
    for (const method of ['GET', 'DELETE'])
      expect(
        statusAndCode(
          await callApi(method, `${h.origin}/api/mcp`, { headers: { 'x-api-key': h.tokens.user, ...accept } }),
        ),
      ).toEqual([405, 'METHOD_NOT_ALLOWED'])
  })

  test('is closed to pages of other sites that come by a cookie', async () => {
    const cookie = await signInForCookie(h, 'user')
    const asked = (headers: Record<string, string>) =>
      callApi('POST', `${h.origin}/api/mcp`, { headers: { ...cookie, ...accept, ...headers }, body: MESSAGE })
    expect((await asked({})).status).toBe(200)
    expect((await asked({ origin: h.origin })).status).toBe(200)
    expect(statusAndCode(await asked({ origin: 'https://evil.example' }))).toEqual([403, 'CROSS_SITE'])
    expect(statusAndCode(await asked({ 'sec-fetch-site': 'cross-site' }))).toEqual([403, 'CROSS_SITE'])
  })
})
