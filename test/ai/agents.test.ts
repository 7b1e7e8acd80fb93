import { afterAll, describe, expect, test } from 'bun:test'
import { config } from '../../src/config'
import { callApi, createTestTenant, statusAndCode } from '../test-tenant'
import { chatMessage, createAiFixture, joinContent, parseEvents } from './fixtures'

const at = await createAiFixture()
const { user, admin, openai, stranger } = at
afterAll(() => openai.stop())

const secret = 'Never tell anybody the word quince.'

describe('an agent', () => {
  test('is an integration that talks; only admins see what it is told to do', async () => {
    const more = { description: 'Helps.', systemPrompt: secret, temperature: 0.5, tools: [], maxToolRounds: 3 }
    const { status, body } = await admin.post('/ai/agents', {
      name: 'Helper',
      sourceId: at.source,
      model: 'm',
      ...more,
    })
    expect(status).toBe(201)
    const open = {
      ...{ _id: body._id, name: 'Helper', description: 'Helps.', sourceId: at.source, model: 'm', temperature: 0.5 },
      ...{ tools: [], active: true, created: body.created, updated: body.updated },
    }
    expect(body).toEqual({ ...open, systemPrompt: secret, maxToolRounds: 3, roles: [], workspaceRoles: [] })
    expect((await user.get(`/ai/agents/${body._id}`)).body).toEqual(open)
    expect((await user.get('/ai/agents')).body).toContainEqual(open)
    expect((await admin.get(`/integrations/${body._id}`)).body).toMatchObject({
      ...{ name: 'Helper', trigger: { kind: 'chat' }, target: { kind: 'ai', systemPrompt: secret } },
    })
    for (const path of [`/ai/agents/${body._id}`, '/ai/agents'])
      expect(JSON.stringify((await user.get(path)).body)).not.toContain('quince')
  })

  test('is changed by what is mentioned, and removed; what was read can be sent back', async () => {
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

  test('keeps both of two changes at once that mention different fields', async () => {
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

  test('is refused where it refers to what is not there', async () => {
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

  test('is made by admins, and is there for those whose roles it names', async () => {
    const few = await at.agent({ roles: ['gardener'] })
    const body = { name: 'Mine', sourceId: 'echo' }
    expect(statusAndCode(await user.post('/ai/agents', body))).toEqual([403, 'FORBIDDEN'])
    expect(statusAndCode(await stranger.get('/ai/agents'))).toEqual([401, 'UNAUTHENTICATED'])
    expect(statusAndCode(await user.get(`/ai/agents/${few}`))).toEqual([403, 'FORBIDDEN'])
    expect(statusAndCode(await user.post(`/ai/agents/${few}/chat`, { messages: [chatMessage('x')] }))).toEqual([
      403,
      'FORBIDDEN',
    ])
    const ids = (await user.get('/ai/agents')).body.map((one: { _id: string }) => one._id)
    expect(ids).not.toContain(few)
    await at.done(admin.put(`/users/${at.users.user}`, { roles: ['user', 'gardener'] }))
    expect((await user.get(`/ai/agents/${few}`)).status).toBe(200)
    await at.done(admin.put(`/users/${at.users.user}`, { roles: ['user'] }))
  })

  test('of another tenant is not there', async () => {
    const id = await at.agent()
    const other = (await createTestTenant()).as('admin')
    expect((await other.get('/ai/agents')).body).toEqual([])
    for (const answer of [
      other.get(`/ai/agents/${id}`),
      other.put(`/ai/agents/${id}`, {}),
      other.delete(`/ai/agents/${id}`),
    ])
      expect(statusAndCode(await answer)).toEqual([404, 'AGENT_NOT_FOUND'])
  })

  test('takes the oldest source where none is named; without any, the one that is built in', async () => {
    expect((await at.done(admin.post('/ai/agents', { name: 'Any' }))).sourceId).toBe(at.source)
    const other = (await createTestTenant()).as('admin')
    const { body } = await other.post('/ai/agents', { name: 'Any' })
    expect(body.sourceId).toBe('echo')
    const answer = await other.post(`/ai/agents/${body._id}/chat`, { messages: [chatMessage('Anybody there?')] })
    expect(answer.body.choices[0].message.content).toBe('Anybody there?')
  })
})

describe('a chat with it', () => {
  const messages = [chatMessage('Hello')]

  test('is a completion, in the thread that the body names', async () => {
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

  test('streams by address, as EventSource asks', async () => {
    const id = await at.agent()
    const threadId = await at.thread(id)
    const { headers, body } = await user.get(address(id, { messages: JSON.stringify(messages), threadId }))
    expect(headers.get('content-type')).toStartWith('text/event-stream')
    expect(joinContent(parseEvents(body).events)).toBe('Hello there!')
    expect((await at.threadOf(threadId)).messages).toHaveLength(2)
    for (const wrong of ['', 'text', '{}', '[]', '[{"role":"user"}]', '[1]'])
      expect(statusAndCode(await user.get(address(id, { messages: wrong }))), wrong).toEqual([400, 'INVALID_INPUT'])
  })

  test('is not had by a link of another site, nor by a token that may only read', async () => {
    const id = await at.agent()
    const url = address(id, { messages: JSON.stringify(messages) })
    await at.done(stranger.post('/signup', { username: 'eve', password: 'correct-horse' }))
    const signedIn = await stranger.post('/signin', { username: 'eve', password: 'correct-horse' })
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
    expect(statusAndCode(await stranger.get(url, reads))).toEqual([403, 'FORBIDDEN'])
    expect(statusAndCode(await stranger.post(`/ai/agents/${id}/chat`, { messages }, reads))).toEqual([403, 'FORBIDDEN'])
    expect((await stranger.get('/ai/agents', reads)).status).toBe(200)
    expect((await stranger.get(url, await token('ai:write'))).status).toBe(200)
  })
})

describe('the built-in source', async () => {
  const id = await at.agent({
    sourceId: 'echo',
    model: undefined,
    tools: [await at.tool('twice', '({ body }) => body.n * 2')],
  })
  const said = async (content: string, more: object = {}) => {
    const { body } = await user.post(`/ai/agents/${id}/chat`, { messages: [chatMessage(content)], ...more })
    return body.choices?.[0].message.content ?? body
  }

  test('says what it was told, the same each time', async () => {
    expect(await said('One.\n\nTwo.')).toBe('One.\n\nTwo.')
    const { events } = parseEvents(
      (await user.post(`/ai/agents/${id}/chat`, { messages: [chatMessage('Word by word.')], stream: true })).body,
    )
    expect(events.map(({ choices }) => choices[0].delta.content)).toEqual(['Word ', 'by ', 'word.', undefined])
    expect((await at.usage())[0]).toMatchObject({ status: 'completed', estimated: false, completion: 4 })
  })

  test('calls the tools that it is told to, step by step', async () => {
    expect(await said('call twice {"n":4}')).toBe('8')
    expect(await said('call twice {"n":1}\ncall twice {"n":2}\nthen\ncall twice {"n":3}')).toBe('2\n4\n6')
    expect(await said('Look:\ncall twice {"n":1}\nthen\nThat is all.')).toBe('Look:That is all.')
    expect(await said('call pick {"a":1}', { clientTools: [{ name: 'pick' }] })).toMatchObject({
      ...{ type: 'client_tool_calls', functionCalls: [{ function: { name: 'pick', arguments: '{"a":1}' } }] },
    })
    expect(await said('call nothing')).toContain('TOOL_NOT_FOUND')
    expect(await said('call twice {')).toContain('INVALID_ARGUMENTS')
  })

  test('says JSON where it is asked to', async () => {
    const response_format = { type: 'json_object' }
    expect(JSON.parse(await said('Hello', { response_format }))).toEqual({ echo: 'Hello' })
    expect(JSON.parse(await said('{"a":[1]}', { response_format }))).toEqual({ a: [1] })
  })

  test('is not there where it is off', async () => {
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
