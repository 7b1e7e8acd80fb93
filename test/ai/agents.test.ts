import { afterAll, describe, expect, test } from 'bun:test'
import { config } from '../../src/config'
import { callApi, createTestTenant, statusAndCode } from '../test-tenant'
import { chatMessage, createAiFixture, joinContent, parseEvents } from './fixtures'

const at = await createAiFixture()
const { user, admin, openai, anonymous } = at
afterAll(() => openai.stop())

const secret = 'Never tell anybody the word quince.'

describe('an agent', () => {
  test('POST /ai/agents creates a chat integration, and only admins can read its system prompt', async () => {
    const more = { description: 'Helps.', systemPrompt: secret, temperature: 0.5, tools: [], maxToolRounds: 3 }
    const { status, body } = await admin.post('/ai/agents', {
      name: 'Helper',
      sourceId: at.source,
      model: 'm',
      ...more,
    })
    expect(status).toBe(201)
    const publicFields = {
      ...{ _id: body._id, name: 'Helper', description: 'Helps.', sourceId: at.source, model: 'm', temperature: 0.5 },
      ...{ tools: [], active: true, created: body.created, updated: body.updated },
    }
    expect(body).toEqual({ ...publicFields, systemPrompt: secret, maxToolRounds: 3, roles: [], workspaceRoles: [] })
    expect((await user.get(`/ai/agents/${body._id}`)).body).toEqual(publicFields)
    expect((await user.get('/ai/agents')).body).toContainEqual(publicFields)
    expect((await admin.get(`/integrations/${body._id}`)).body).toMatchObject({
      ...{ name: 'Helper', trigger: { kind: 'chat' }, target: { kind: 'ai', systemPrompt: secret } },
    })
    for (const path of [`/ai/agents/${body._id}`, '/ai/agents'])
      expect(JSON.stringify((await user.get(path)).body)).not.toContain('quince')
  })

  test('PUT /ai/agents/:id accepts a body it has returned, an inactive agent answers 404 to chats, and DELETE removes the agent', async () => {
    const id = await at.agent({ systemPrompt: secret, temperature: 1 })
    const before = (await admin.get(`/ai/agents/${id}`)).body
    const { status, body } = await admin.put(`/ai/agents/${id}`, { ...before, model: 'other', active: false })
    expect(status).toBe(200)
    expect(body).toEqual({ ...before, model: 'other', active: false, updated: expect.any(String) })
    expect(statusAndCode(await user.post(`/ai/agents/${id}/chat`, { messages: [chatMessage('x')] }))).toEqual([
      404,
      'AGENT_NOT_FOUND',
    ])
    const listed = async (query: string) =>
      (await user.get(`/ai/agents${query}`)).body.map((one: { _id: string }) => one._id)
    expect(await listed('?active=false')).toEqual([id])
    expect(await listed('?active=true')).not.toContain(id)
    expect(await listed('')).toContain(id)
    const thread = await at.thread()
    expect((await admin.delete(`/ai/agents/${id}`)).body).toEqual({ success: true })
    expect(statusAndCode(await admin.get(`/ai/agents/${id}`))).toEqual([404, 'AGENT_NOT_FOUND'])
    expect((await user.get(`/ai/threads/${thread}`)).status).toBe(200)
  })

  test('PUT /ai/agents/:id with null removes a setting, and the others stay', async () => {
    const id = await at.agent({ systemPrompt: secret, temperature: 1, max_tokens: 50 })
    const { status, body } = await admin.put(`/ai/agents/${id}`, { temperature: null, model: null })
    expect([status, body.max_tokens, body.systemPrompt]).toEqual([200, 50, secret])
    for (const key of ['temperature', 'model']) expect(body).not.toHaveProperty(key)
    expect(statusAndCode(await admin.put(`/ai/agents/${id}`, { sourceId: null }))).toEqual([400, 'INVALID_INPUT'])
  })

  test('concurrent updates of different fields of one agent are all kept', async () => {
    const id = await at.agent({ systemPrompt: 'old', model: 'old' })
    const answers = await Promise.all([
      admin.put(`/ai/agents/${id}`, { systemPrompt: 'new' }),
      admin.put(`/ai/agents/${id}`, { model: 'new' }),
      admin.put(`/ai/agents/${id}`, { temperature: 0.5 }),
    ])
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
    expect((await admin.get(`/ai/agents/${id}`)).body).toMatchObject({
      ...{ systemPrompt: 'new', model: 'new', temperature: 0.5 },
    })
  })

  test('POST /ai/agents rejects unknown references and values out of range with 400, and a source in use cannot be deleted (409)', async () => {
    for (const more of [
      { sourceId: 'nothing' },
      { tools: ['nothing'] },
      { blueprints: ['nothing'] },
      { temperature: 3 },
      { maxToolRounds: -1 },
    ])
      expect(statusAndCode(await admin.post('/ai/agents', { sourceId: at.source, ...more }))).toEqual([
        400,
        'INVALID_INPUT',
      ])
    expect(statusAndCode(await admin.delete(`/integration-sources/${at.source}`))).toEqual([
      409,
      'INTEGRATION_SOURCE_IN_USE',
    ])
  })

  test('POST /ai/agents answers 403 to users, and an agent with roles is hidden from users who lack them', async () => {
    const restricted = await at.agent({ roles: ['gardener'] })
    const body = { name: 'Mine', sourceId: 'echo' }
    expect(statusAndCode(await user.post('/ai/agents', body))).toEqual([403, 'FORBIDDEN'])
    expect(statusAndCode(await anonymous.get('/ai/agents'))).toEqual([401, 'UNAUTHENTICATED'])
    expect(statusAndCode(await user.get(`/ai/agents/${restricted}`))).toEqual([403, 'FORBIDDEN'])
    expect(statusAndCode(await user.post(`/ai/agents/${restricted}/chat`, { messages: [chatMessage('x')] }))).toEqual([
      403,
      'FORBIDDEN',
    ])
    const ids = (await user.get('/ai/agents')).body.map((one: { _id: string }) => one._id)
    expect(ids).not.toContain(restricted)
    await at.done(admin.put(`/users/${at.users.user}`, { roles: ['user', 'gardener'] }))
    expect((await user.get(`/ai/agents/${restricted}`)).status).toBe(200)
    await at.done(admin.put(`/users/${at.users.user}`, { roles: ['user'] }))
  })

  test('GET, PUT and DELETE /ai/agents/:id answer 404 AGENT_NOT_FOUND for an agent of another tenant', async () => {
    const id = await at.agent()
    const otherTenantAdmin = (await createTestTenant()).as('admin')
    expect((await otherTenantAdmin.get('/ai/agents')).body).toEqual([])
    for (const answer of [
      otherTenantAdmin.get(`/ai/agents/${id}`),
      otherTenantAdmin.put(`/ai/agents/${id}`, {}),
      otherTenantAdmin.delete(`/ai/agents/${id}`),
    ])
      expect(statusAndCode(await answer)).toEqual([404, 'AGENT_NOT_FOUND'])
  })

  test('an agent without a sourceId gets the oldest source, or the built-in echo source when there is none', async () => {
    expect((await at.done(admin.post('/ai/agents', { name: 'Any' }))).sourceId).toBe(at.source)
    const otherTenantAdmin = (await createTestTenant()).as('admin')
    const { body } = await otherTenantAdmin.post('/ai/agents', { name: 'Any' })
    expect(body.sourceId).toBe('echo')
    const answer = await otherTenantAdmin.post(`/ai/agents/${body._id}/chat`, {
      messages: [chatMessage('Anybody there?')],
    })
    expect(answer.body.choices[0].message.content).toBe('Anybody there?')
  })
})

describe('chats with an agent', () => {
  const messages = [chatMessage('Hello')]

  test('POST /ai/agents/:id/chat returns a completion and writes to the thread of threadId; an unknown thread gets 404 THREAD_NOT_FOUND', async () => {
    const id = await at.agent()
    const threadId = await at.thread(id)
    expect((await user.post(`/ai/agents/${id}/chat`, { messages })).body.object).toBe('chat.completion')
    expect((await user.post(`/ai/agents/${id}/chat`, { messages, threadId })).status).toBe(200)
    expect((await at.threadOf(threadId)).messages).toHaveLength(2)
    expect(statusAndCode(await user.post(`/ai/agents/${id}/chat`, { messages, threadId: 'x' }))).toEqual([
      404,
      'THREAD_NOT_FOUND',
    ])
  })

  const address = (id: string, query: Record<string, string>) => `/ai/agents/${id}/chat?${new URLSearchParams(query)}`

  test('GET /ai/agents/:id/chat streams server-sent events for EventSource, and rejects malformed messages with 400 INVALID_INPUT', async () => {
    const id = await at.agent()
    const threadId = await at.thread(id)
    const { headers, body } = await user.get(address(id, { messages: JSON.stringify(messages), threadId }))
    expect(headers.get('content-type')).toStartWith('text/event-stream')
    expect(joinContent(parseEvents(body).events)).toBe('Hello there!')
    expect((await at.threadOf(threadId)).messages).toHaveLength(2)
    for (const wrong of ['', 'text', '{}', '[]', '[{"role":"user"}]', '[1]'])
      expect(statusAndCode(await user.get(address(id, { messages: wrong }))), wrong).toEqual([400, 'INVALID_INPUT'])
  })

  test('GET /ai/agents/:id/chat rejects cross-site requests with 403 CROSS_SITE, and read-only API tokens with 403 FORBIDDEN', async () => {
    const id = await at.agent()
    const url = address(id, { messages: JSON.stringify(messages) })
    await at.done(anonymous.post('/signup', { username: 'eve', password: 'correct-horse' }))
    const signedIn = await anonymous.post('/signin', { username: 'eve', password: 'correct-horse' })
    const cookie = signedIn.headers.get('set-cookie')!.split(';')[0]!
    const by = (headers: Record<string, string>) =>
      callApi('GET', `${at.origin}/api${url}`, { headers: { cookie, ...headers } })
    expect((await by({})).status).toBe(200)
    expect((await by({ 'sec-fetch-site': 'same-origin' })).status).toBe(200)
    expect(statusAndCode(await by({ 'sec-fetch-site': 'cross-site' }))).toEqual([403, 'CROSS_SITE'])
    const token = async (scope: string) => {
      const { body } = await callApi('POST', `${at.origin}/api/me/api-tokens`, {
        headers: { cookie },
        body: { nickname: 'x', scopes: [scope] },
      })
      return { 'x-api-key': body.token }
    }
    const reads = await token('ai:read')
    expect(statusAndCode(await anonymous.get(url, reads))).toEqual([403, 'FORBIDDEN'])
    expect(statusAndCode(await anonymous.post(`/ai/agents/${id}/chat`, { messages }, reads))).toEqual([
      403,
      'FORBIDDEN',
    ])
    expect((await anonymous.get('/ai/agents', reads)).status).toBe(200)
    expect((await anonymous.get(url, await token('ai:write'))).status).toBe(200)
  })
})

describe('the built-in echo source', async () => {
  const id = await at.agent({
    sourceId: 'echo',
    model: undefined,
    tools: [await at.tool('twice', '({ body }) => body.n * 2')],
  })
  const echoReply = async (content: string, more: object = {}) => {
    const { body } = await user.post(`/ai/agents/${id}/chat`, { messages: [chatMessage(content)], ...more })
    return body.choices?.[0].message.content ?? body
  }

  test('the echo source repeats the message, streams it word by word, and reports exact usage', async () => {
    expect(await echoReply('One.\n\nTwo.')).toBe('One.\n\nTwo.')
    const { events } = parseEvents(
      (await user.post(`/ai/agents/${id}/chat`, { messages: [chatMessage('Word by word.')], stream: true })).body,
    )
    expect(events.map(({ choices }) => choices[0].delta.content)).toEqual(['Word ', 'by ', 'word.', undefined])
    expect((await at.usage())[0]).toMatchObject({ status: 'completed', estimated: false, completion: 4 })
  })

  test('the echo source calls the tools that a message lists, step by step, and passes tool errors on', async () => {
    expect(await echoReply('call twice {"n":4}')).toBe('8')
    expect(await echoReply('call twice {"n":1}\ncall twice {"n":2}\nthen\ncall twice {"n":3}')).toBe('2\n4\n6')
    expect(await echoReply('Look:\ncall twice {"n":1}\nthen\nThat is all.')).toBe('Look:That is all.')
    expect(await echoReply('call pick {"a":1}', { clientTools: [{ name: 'pick' }] })).toMatchObject({
      ...{ type: 'client_tool_calls', functionCalls: [{ function: { name: 'pick', arguments: '{"a":1}' } }] },
    })
    expect(await echoReply('call nothing')).toContain('TOOL_NOT_FOUND')
    expect(await echoReply('call twice {')).toContain('INVALID_ARGUMENTS')
  })

  test('the echo source answers in JSON when response_format is json_object', async () => {
    const response_format = { type: 'json_object' }
    expect(JSON.parse(await echoReply('Hello', { response_format }))).toEqual({ echo: 'Hello' })
    expect(JSON.parse(await echoReply('{"a":[1]}', { response_format }))).toEqual({ a: [1] })
  })

  test('the echo source rejects new agents with 400 and chats with 404 when ATOLL_AI_ECHO is off', async () => {
    config.ATOLL_AI_ECHO = 'off'
    try {
      expect(statusAndCode(await admin.post('/ai/agents', { sourceId: 'echo' }))).toEqual([400, 'INVALID_INPUT'])
      expect(statusAndCode(await user.post(`/ai/agents/${id}/chat`, { messages: [chatMessage('x')] }))).toEqual([
        404,
        'INTEGRATION_SOURCE_NOT_FOUND',
      ])
    } finally {
      config.ATOLL_AI_ECHO = 'on'
    }
  })
})
