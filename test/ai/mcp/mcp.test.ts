import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Server } from 'bun'
import { listen } from '../../../src/gateway'
import { bearer, signInForCookie, signInForTokens } from '../../accounts/session-fixtures'
import { errorOf } from '../../rejections'
import { callApi, createTestTenant, fullAccessRules, statusAndCode, type TestUser } from '../../test-tenant'

setDefaultTimeout(30_000)

let testTenant: Awaited<ReturnType<typeof createTestTenant>>
let server: Server<undefined>
const cleanups: (() => Promise<void>)[] = []
beforeAll(async () => {
  server = listen('127.0.0.1', 0)
  testTenant = await createTestTenant()
  const admin = testTenant.as('admin')
  const fields = [
    { key: 'title', type: 'string', required: true },
    { key: 'price', type: 'decimal' },
    { key: 'margin', type: 'number', readRoles: ['boss'], writeRoles: ['boss'] },
  ]
  const createBlueprint = (key: string, permissions: object[], more: object = {}) =>
    admin.post('/blueprints', {
      key,
      name: key.toUpperCase(),
      description: `The ${key}.`,
      fields,
      permissions,
      ...more,
    })
  await createBlueprint('books', fullAccessRules('user', 'user'))
  await createBlueprint('news', [{ operation: 'read', scope: 'tenant', roleBased: ['user'] }])
  await createBlueprint('wages', [])
})
afterAll(async () => {
  for (const close of cleanups) await close()
  await server.stop(true)
})

/** Connects the official MCP client over HTTP with these headers. */
async function connectAssistant(headers: Record<string, string>, tenant = testTenant.id) {
  const client = new Client({ name: 'test', version: '1' })
  const url = new URL('/api/mcp', server.url)
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers: { tenant, ...headers } } }))
  cleanups.push(() => client.close())
  const call = async (name: string, args: Record<string, unknown> = {}) => {
    const { content, isError } = await client.callTool({ name, arguments: args })
    const [{ text }] = content as [{ text: string }]
    return { failed: !!isError, result: JSON.parse(text) }
  }
  const names = async () => (await client.listTools()).tools.map(({ name }) => name)
  return { client, call, names }
}
const connectAs = (name: TestUser) => connectAssistant({ 'x-api-key': testTenant.tokens[name] })

describe('an MCP assistant', () => {
  test('an assistant finds, reads, creates, updates and removes entities with the rights of its user', async () => {
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
    expect(made).toMatchObject({ failed: false, result: { identifier: 'walden', title: 'Walden', price: '12.50' } })
    expect((await testTenant.as('user').get('/blueprints/books/entities/walden')).body.title).toBe('Walden')
    expect((await call('update_books', { identifier: 'walden', price: '9.99' })).result.price).toBe('9.99')
    expect((await call('find_books', { query: { price: { $lt: '10' } } })).result).toMatchObject([
      { identifier: 'walden' },
    ])
    expect((await call('get_books', { identifier: 'walden' })).result.title).toBe('Walden')
    expect((await call('remove_books', { identifier: 'walden' })).failed).toBe(false)
    expect((await call('find_books')).result).toEqual([])
  })

  test('an assistant gets the validation details of a failed call, and error -32602 for unknown tools and cursors', async () => {
    const { client, call } = await connectAs('user')
    const wrong = await call('create_books', { price: 'cheap' })
    expect(wrong).toMatchObject({ failed: true, result: { error: { code: 'INVALID_INPUT' } } })
    expect(JSON.stringify(wrong.result.error.details)).toContain('title')
    expect(await call('get_books', { identifier: 'none' })).toMatchObject({
      failed: true,
      result: { error: { code: 'ENTITY_NOT_FOUND' } },
    })
    for (const name of ['fly', 'find_wages', 'create_news', '__proto__'])
      expect(await errorOf(client.callTool({ name, arguments: {} }))).toMatchObject({ code: -32602 })
    expect(await errorOf(client.listTools({ cursor: 'x' }))).toMatchObject({ code: -32602 })
  })

  test('an assistant lists and reads only the blueprints that its user may see, without hidden fields; others get error -32002', async () => {
    const { client } = await connectAs('user')
    const { resources } = await client.listResources()
    expect(resources.map(({ uri }) => uri)).toEqual(['atoll://blueprints/books', 'atoll://blueprints/news'])
    const { contents } = await client.readResource({ uri: 'atoll://blueprints/books' })
    const [{ text, mimeType }] = contents as unknown as [{ text: string; mimeType: string }]
    expect(mimeType).toBe('application/json')
    expect(JSON.parse(text)).toEqual((await testTenant.as('user').get('/blueprints/books')).body)
    expect(text).not.toContain('margin')
    for (const uri of [
      'atoll://blueprints/wages',
      'atoll://blueprints/none',
      'atoll://blueprints/%00',
      'file:///etc/passwd',
    ])
      expect(await errorOf(client.readResource({ uri }))).toMatchObject({ code: -32002 })
    const { resources: all } = await (await connectAs('admin')).client.listResources()
    expect(all.map(({ name }) => name)).toEqual(['books', 'news', 'wages'])
  })

  test('an assistant calls tool integrations that are active and open to the roles of its user', async () => {
    const admin = testTenant.as('admin')
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
    expect(await call('add', { a: 2, b: 3 })).toMatchObject({ failed: false, result: { sum: 5 } })
    await admin.put(`/lambdas/${lambdaId}`, { code: 'export default () => { throw new Error("broken") }' })
    expect((await call('add', { a: 2, b: 3 })).failed).toBe(true)
    await admin.put(`/integrations/${body._id}`, { active: false })
    expect(await names()).not.toContain('add')
    expect(await errorOf(client.callTool({ name: 'add', arguments: {} }))).toMatchObject({ code: -32602 })
  })
})

describe('the rights of an assistant', () => {
  test('an assistant has the rights of its user with API tokens, bearer tokens and impersonation alike', async () => {
    await (await connectAs('user')).call('create_books', { identifier: 'mine', title: 'Mine' })
    expect((await (await connectAs('other')).call('find_books')).result).toEqual([])
    expect((await (await connectAs('other')).call('get_books', { identifier: 'mine' })).result.error.code).toBe(
      'ENTITY_NOT_FOUND',
    )
    const { token } = await signInForTokens(testTenant, 'user')
    expect((await (await connectAssistant(bearer(token))).call('get_books', { identifier: 'mine' })).result.title).toBe(
      'Mine',
    )
    const admin = await connectAs('admin')
    expect(await admin.names()).toContain('create_wages')
    const impersonated = await connectAssistant({
      'x-api-key': testTenant.tokens.admin,
      'x-impersonate-user': testTenant.users.other,
    })
    expect((await impersonated.call('find_books')).result).toEqual([])
    expect(await impersonated.names()).not.toContain('find_wages')
  })

  test('permissions and sessions that are revoked during a connection fail at the next request', async () => {
    const admin = testTenant.as('admin')
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
    expect(await errorOf(client.callTool({ name: 'create_notes', arguments: {} }))).toMatchObject({ code: -32602 })
    await admin.delete('/blueprints/notes?force=true')
    expect((await names()).filter((name) => name.endsWith('notes'))).toEqual([])
    const { token } = await signInForTokens(testTenant, 'other')
    const leaving = await connectAssistant(bearer(token))
    await callApi('POST', `${testTenant.origin}/api/logout`, { headers: bearer(token) })
    expect(await errorOf(leaving.client.listTools())).toMatchObject({ code: 401 })
  })

  test('an API token limits an assistant to its scopes', async () => {
    const { token } = await signInForTokens(testTenant, 'user')
    const limited = async (scopes: string[]) => {
      const { body } = await callApi('POST', `${testTenant.origin}/api/me/api-tokens`, {
        headers: bearer(token),
        body: { nickname: 'x', scopes },
      })
      return { 'x-api-key': body.token as string }
    }
    expect(await errorOf(connectAssistant(await limited(['entities:write'])))).toMatchObject({ code: 403 })
    const { body: lambda } = await testTenant
      .as('admin')
      .post('/lambdas', { name: 'one', code: 'export default () => 1' })
    const trigger = { kind: 'tool', name: 'one', description: 'One.' }
    await testTenant.as('admin').post('/integrations', { trigger, target: { kind: 'lambda', lambdaId: lambda._id } })
    const reader = await connectAssistant(await limited(['mcp:write', 'entities:read']))
    expect((await reader.call('find_books')).failed).toBe(false)
    expect((await reader.call('create_books', { title: 'x' })).result.error.code).toBe('FORBIDDEN')
    expect((await reader.call('one')).result.error.message).toContain('lambdas:write')
    expect((await reader.client.listResources()).resources).toEqual([])
    expect(await errorOf(reader.client.readResource({ uri: 'atoll://blueprints/books' }))).toMatchObject({
      code: -32002,
    })
  })

  test('an assistant of another tenant sees nothing, and connections without a valid token get 401', async () => {
    const otherTenant = await createTestTenant()
    const otherTenantAssistant = await connectAssistant({ 'x-api-key': otherTenant.tokens.admin }, otherTenant.id)
    expect(await otherTenantAssistant.names()).toEqual([])
    expect((await otherTenantAssistant.client.listResources()).resources).toEqual([])
    expect(await errorOf(otherTenantAssistant.client.readResource({ uri: 'atoll://blueprints/books' }))).toMatchObject({
      code: -32002,
    })
    expect(await errorOf(connectAssistant({ 'x-api-key': otherTenant.tokens.admin }))).toMatchObject({ code: 401 })
    expect(await errorOf(connectAssistant({}))).toMatchObject({ code: 401 })
    const challenge = async (headers: Record<string, string>) => {
      const answer = await callApi('POST', `${testTenant.origin}/api/mcp`, { headers, body: {} })
      return [answer.status, answer.headers.get('www-authenticate')]
    }
    expect(await challenge({})).toEqual([401, 'Bearer realm="atoll"'])
    expect(await challenge({ 'x-api-key': otherTenant.tokens.admin })).toEqual([401, 'Bearer realm="atoll"'])
    const refused = [401, 'Bearer realm="atoll", error="invalid_token"']
    expect(await challenge(bearer('nonsense'))).toEqual(refused)
    expect(await challenge({ accept: 'text/html' })).toEqual([401, 'Bearer realm="atoll"'])
  })
})

describe('POST /api/mcp', () => {
  const MESSAGE = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
  const accept = { accept: 'application/json, text/event-stream' }
  const send = (body: unknown, headers: Record<string, string> = {}) =>
    testTenant.as('user').post('/mcp', body, { ...accept, ...headers })

  test('POST /api/mcp answers one JSON-RPC message, and rejects batches and malformed messages with 400 INVALID_INPUT', async () => {
    expect((await send(MESSAGE)).body).toMatchObject({ jsonrpc: '2.0', id: 1, result: { tools: expect.any(Array) } })
    expect((await send({ jsonrpc: '2.0', method: 'notifications/initialized' })).status).toBe(202)
    for (const body of [{}, [MESSAGE, MESSAGE], [], 'x', 5, { jsonrpc: '1.0', id: 1, method: 'x' }])
      expect([body, statusAndCode(await send(body))] as unknown).toEqual([body, [400, 'INVALID_INPUT']])
    expect(statusAndCode(await testTenant.as('user').post('/mcp', MESSAGE))).toEqual([406, 'NOT_ACCEPTABLE'])
    expect(statusAndCode(await send(MESSAGE, { 'mcp-protocol-version': '1999-01-01' }))).toEqual([400, 'INVALID_INPUT'])
    expect((await send({ ...MESSAGE, method: 'tools/fly' })).body.error.code).toBe(-32601)
    expect((await send({ ...MESSAGE, method: 'tools/call', params: { name: 5 } })).body).toHaveProperty('error')
  })

  test.each(['*/*', 'application/*', 'application/json', 'text/event-stream, application/json;q=0.5'])(
    'POST /api/mcp answers JSON to whoever takes it: %s',
    async (accept) => expect((await send(MESSAGE, { accept })).body.result.tools).toBeArray(),
  )

  test('POST /api/mcp answers 406 NOT_ACCEPTABLE to whoever takes no JSON', async () => {
    expect(statusAndCode(await send(MESSAGE, { accept: 'text/event-stream' }))).toEqual([406, 'NOT_ACCEPTABLE'])
  })

  test('POST /api/mcp refuses pages of other hosts, also with a key; a website of the tenant is welcome', async () => {
    const origin = 'https://shop.example'
    expect(statusAndCode(await send(MESSAGE, { origin }))).toEqual([403, 'CROSS_SITE'])
    expect(statusAndCode(await send(MESSAGE, { origin: 'null' }))).toEqual([403, 'CROSS_SITE'])
    expect((await send(MESSAGE, { origin: testTenant.origin })).status).toBe(200)
    expect((await send(MESSAGE, { origin: 'http://localhost:6274' })).status).toBe(200)
    await testTenant
      .as('admin')
      .put('/configurations/app-configuration', { metadata: { websiteUrls: [`${origin}/start`] } })
    expect((await send(MESSAGE, { origin })).status).toBe(200)
  })

  test('tools say what they do to what exists, so that assistants can ask before', async () => {
    const { tools } = (await send(MESSAGE)).body.result
    const hintsOf = (name: string) => tools.find((tool: { name: string }) => tool.name === name).annotations
    expect(hintsOf('find_books')).toMatchObject({ readOnlyHint: true })
    expect(hintsOf('create_books')).toMatchObject({ readOnlyHint: false, destructiveHint: false })
    expect(hintsOf('update_books')).toMatchObject({ readOnlyHint: false, destructiveHint: true, idempotentHint: true })
    expect(hintsOf('remove_books')).toMatchObject({ readOnlyHint: false, destructiveHint: true })
  })

  test('GET and DELETE /api/mcp get 405 METHOD_NOT_ALLOWED, as the server keeps no sessions', async () => {
    for (const method of ['GET', 'DELETE'])
      expect(
        statusAndCode(
          await callApi(method, `${testTenant.origin}/api/mcp`, {
            headers: { 'x-api-key': testTenant.tokens.user, ...accept },
          }),
        ),
      ).toEqual([405, 'METHOD_NOT_ALLOWED'])
  })

  test('POST /api/mcp rejects cross-site requests that carry a cookie with 403 CROSS_SITE', async () => {
    const cookie = await signInForCookie(testTenant, 'user')
    const postWithCookie = (headers: Record<string, string>) =>
      callApi('POST', `${testTenant.origin}/api/mcp`, { headers: { ...cookie, ...accept, ...headers }, body: MESSAGE })
    expect((await postWithCookie({})).status).toBe(200)
    expect((await postWithCookie({ origin: testTenant.origin })).status).toBe(200)
    expect(statusAndCode(await postWithCookie({ origin: 'https://evil.example' }))).toEqual([403, 'CROSS_SITE'])
    expect(statusAndCode(await postWithCookie({ 'sec-fetch-site': 'cross-site' }))).toEqual([403, 'CROSS_SITE'])
  })
})
