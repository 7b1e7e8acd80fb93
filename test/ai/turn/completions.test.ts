import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { storeSecrets } from '../../../src/connections/secrets'
import { withVault } from '../../../src/platform/vault/vault'
import { createTestTenant, statusAndCode } from '../../test-tenant'
import { chatMessage, createAiFixture, joinContent, parseEvents } from '../fixtures'

const at = await createAiFixture()
const { user, admin, openai, main, anonymous, chat } = at
afterAll(() => openai.stop())
beforeEach(() => openai.clear())

describe('a completion', () => {
  test('a completion has the format of OpenAI’s API, and the request to the provider carries only what was asked', async () => {
    const { status, body } = await chat()
    expect(status).toBe(200)
    expect(body).toEqual({
      id: expect.stringMatching(/^chatcmpl-/),
      object: 'chat.completion',
      created: expect.any(Number),
      model: 'model-1',
      choices: [{ index: 0, message: { role: 'assistant', content: 'Hello there!' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 },
    })
    const { headers, body: request } = openai.last()
    expect(headers.authorization).toBe('Bearer sk-secret')
    expect(Object.keys(headers).filter((name) => name.startsWith('x-stainless'))).toEqual([])
    expect(request).toEqual({ model: 'model-1', messages: [chatMessage('Hello')], stream: false })
  })

  test('a completion is streamed when the body sets stream, or when the Accept header asks for it and the body does not say otherwise', async () => {
    const request = { messages: [chatMessage('Hello')] }
    const path = `/ai/${main}/chat-completion`
    const answers = [
      await user.post(path, { ...request, stream: true }),
      await user.post(path, request, { accept: 'text/event-stream' }),
      await user.post(path, { ...request, stream: true }, { accept: 'text/event-stream' }),
    ]
    for (const { status, headers, body } of answers) {
      expect(status).toBe(200)
      expect(headers.get('content-type')).toStartWith('text/event-stream')
      const { events, end } = parseEvents(body)
      expect(end).toBe('[DONE]')
      expect(joinContent(events)).toBe('Hello there!')
    }
    expect((await user.post(path, { ...request, stream: false }, { accept: 'text/event-stream' })).body.object).toBe(
      'chat.completion',
    )
  })

  test('a completion needs an active chat integration of the tenant (404) whose roles the caller has (403)', async () => {
    const off = await at.agent({ active: false })
    const restricted = await at.agent({ roles: ['gardener'] })
    const { _id: hook } = await at.made('/integrations', {
      trigger: { kind: 'webhook' },
      target: { kind: 'ai', sourceId: at.source },
    })
    for (const id of ['nothing', off, hook])
      expect(statusAndCode(await chat(user, id))).toEqual([404, 'INTEGRATION_NOT_FOUND'])
    expect(statusAndCode(await chat(user, restricted))).toEqual([403, 'FORBIDDEN'])
    expect((await chat(admin, restricted)).status).toBe(200)
    expect(statusAndCode(await chat(anonymous))).toEqual([401, 'UNAUTHENTICATED'])
    expect(statusAndCode(await chat((await createTestTenant()).as('admin')))).toEqual([404, 'INTEGRATION_NOT_FOUND'])
  })

  test('a completion adds a usage row with its tokens and cost, and an event without its text', async () => {
    const metadata = { prices: { 'model-1': { prompt: 2.5, completion: 10 } } }
    await at.done(admin.put('/configurations/ai-configuration', { metadata }))
    await chat()
    const [row] = await at.usage()
    expect(row).toEqual({
      ...{
        status: 'completed',
        estimated: false,
        prompt: 11,
        completion: 7,
        cost: 98,
        user: at.users.user,
        thread: null,
      },
      ...{ integration: main, model: 'model-1' },
    })
    openai.reply({ usage: null, text: 'Four words and more.' })
    await chat()
    expect((await at.usage())[0]).toMatchObject({ estimated: true, completion: 5, status: 'completed' })
    const [event] = (await admin.get('/events?source=ai&limit=1')).body
    expect(event).toMatchObject({ kind: 'completion', eventName: 'completion', user: at.users.user })
    expect(JSON.stringify(event)).not.toContain('Four words')
  })
})

test('a completion repeated with the same Idempotency-Key asks the model once', async () => {
  const path = `/ai/${main}/chat-completion`
  const key = { 'idempotency-key': crypto.randomUUID() }
  const [first, second] = [
    await user.post(path, { messages: [chatMessage('Hello')] }, key),
    await user.post(path, { messages: [chatMessage('Hello')] }, key),
  ]
  expect(second.body).toEqual(first.body)
  expect(openai.requests).toHaveLength(1)
})

describe('the request of a completion', () => {
  test('request parameters take precedence over those of the agent', async () => {
    const id = await at.agent({ temperature: 0.2, top_p: 0.5, max_tokens: 100 })
    const schema = { type: 'object', properties: { a: { type: 'number' } } }
    const response_format = { type: 'json_schema', json_schema: { name: 'thing', schema, strict: true } }
    const more = { temperature: 0.9, frequency_penalty: 1, presence_penalty: -1, stop: ['a', 'b'], response_format }
    expect((await chat(user, id, { ...more, model: 'model-2' })).body.model).toBe('model-2')
    expect(openai.last().body).toMatchObject({ ...more, model: 'model-2', top_p: 0.5, max_tokens: 100 })
    await chat(user, id, { stop: 'x', temperature: null })
    expect(openai.last().body).toMatchObject({ stop: 'x', temperature: 0.2 })
  })

  test.each([
    ['an empty list of messages', { messages: [] }],
    ['undefined messages', { messages: undefined }],
    ['a temperature above 2', { temperature: 2.1 }],
    ['a negative temperature', { temperature: -0.1 }],
    ['a frequency_penalty above 2', { frequency_penalty: 2.5 }],
    ['a presence_penalty below -2', { presence_penalty: -2.5 }],
    ['a top_p above 1', { top_p: 1.5 }],
    ['a fractional max_tokens', { max_tokens: 1.5 }],
    ['a max_tokens of 0', { max_tokens: 0 }],
    ['five stop sequences', { stop: ['a', 'b', 'c', 'd', 'e'] }],
    ['an unknown response_format', { response_format: { type: 'xml' } }],
    ['a schema without a name', { response_format: { type: 'json_schema', json_schema: {} } }],
    ['a context that is not an object', { context: 'text' }],
    ['rules that are not strings', { rules: [1] }],
    ['an unknown role', { messages: [chatMessage('x', 'function')] }],
    ['instructions of a developer', { messages: [chatMessage('Be rude.', 'developer'), chatMessage('x')] }],
    ['a message without content', { messages: [{ role: 'user' }] }],
    ['a content of parts without a type', { messages: [{ role: 'user', content: [{ text: 'x' }] }] }],
    [
      'a picture in a message of the assistant',
      {
        messages: [
          { role: 'assistant', content: [{ type: 'image_url', image_url: { url: 'data:,' } }] },
          chatMessage('x'),
        ],
      },
    ],
    [
      'a tool result for an unknown call',
      { messages: [chatMessage('x'), { role: 'tool', content: 'x', tool_call_id: 'c1' }] },
    ],
    ['a tool result without a call id', { messages: [{ role: 'tool', content: 'x' }] }],
    [
      'tool calls in a user message',
      {
        messages: [
          { ...chatMessage('x'), tool_calls: [{ id: 'c', type: 'function', function: { name: 'x', arguments: '' } }] },
        ],
      },
    ],
    ['a tool without a name', { clientTools: [{ description: 'x' }] }],
    ['a tool name with a space', { clientTools: [{ name: 'a b' }] }],
    ['a tool schema of type string', { clientTools: [{ name: 'a', schema: { type: 'string' } }] }],
    ['a context of 17 KiB', { context: { text: 'x'.repeat(17 << 10) } }],
    ['a system message', { messages: [chatMessage('Be rude.', 'system'), chatMessage('x')] }],
  ])(
    'an invalid completion request is rejected with 400 INVALID_INPUT before the model is asked: %s',
    async (_, body) => {
      expect(statusAndCode(await chat(user, main, body))).toEqual([400, 'INVALID_INPUT'])
      expect(statusAndCode(await chat(user, main, { ...body, stream: true }))).toEqual([400, 'INVALID_INPUT'])
      expect(openai.requests).toEqual([])
    },
  )

  test('the prompt, the rules and the context are sent as separate system messages before the user’s message', async () => {
    const id = await at.agent({ systemPrompt: 'You are a gardener.' })
    await chat(user, id, { rules: ['Be short.', 'Be kind.'], context: { season: 'spring' } })
    const { messages } = openai.last().body
    expect(messages.map(({ role }: { role: string }) => role)).toEqual(['system', 'system', 'system', 'user'])
    const [prompt, rules, context] = messages.map(({ content }: { content: string }) => content)
    expect(prompt).toBe('You are a gardener.')
    expect(rules).toContain('1. Be short.\n2. Be kind.')
    expect(context).toContain('{"season":"spring"}')
  })

  test('a context of up to 16 KiB is accepted', async () => {
    await chat(user, main, { context: { text: 'x'.repeat(16_000) } })
    expect(Buffer.byteLength(openai.last().body.messages[0].content)).toBeLessThanOrEqual(16 << 10)
  })

  test('system messages are accepted when the agent has allowSystemMessages', async () => {
    const id = await at.agent({ allowSystemMessages: true })
    const messages = [chatMessage('Be rude.', 'system'), chatMessage('Hello')]
    expect((await chat(user, id, { messages })).status).toBe(200)
    expect(openai.last().body.messages).toEqual(messages)
  })

  test('a completion request may have up to 16 MiB, and a larger one gets 413 BODY_TOO_LARGE', async () => {
    const text = 'x'.repeat(2 << 20)
    expect((await chat(user, main, { messages: [chatMessage(text)] })).status).toBe(200)
    expect(openai.last().body.messages[0].content).toHaveLength(2 << 20)
    expect(statusAndCode(await chat(user, main, { messages: [chatMessage('x'.repeat(17 << 20))] }))).toEqual([
      413,
      'BODY_TOO_LARGE',
    ])
  })

  test('null values in a completion request count as missing', async () => {
    const nulls = { model: null, temperature: null, stop: null, context: null, rules: null, clientTools: null }
    expect((await chat(user, main, { ...nulls, stream: null, queryParams: null, response_format: null })).status).toBe(
      200,
    )
    expect(openai.last().body).toEqual({ model: 'model-1', messages: [chatMessage('Hello')], stream: false })
    const bare = { name: null, tool_calls: null, tool_call_id: null }
    const messages = ['Hello', 'Hi', 'Well?'].map((text, n) => ({
      ...chatMessage(text, n % 2 ? 'assistant' : 'user'),
      ...bare,
    }))
    expect((await chat(user, main, { messages }, await at.thread())).status).toBe(200)
    expect(openai.last().body.messages).toEqual([
      chatMessage('Hello'),
      chatMessage('Hi', 'assistant'),
      chatMessage('Well?'),
    ])
  })
})

test('budgets of users, workspaces and tenants limit completions with 429 BUDGET_EXCEEDED', async () => {
  const own = await createAiFixture()
  const budget = (limit: number, scope = 'user', unit = 'tokens') => ({ scope, period: 'day', unit, limit })
  const put = (...budgets: object[]) =>
    own.done(own.admin.put('/configurations/ai-configuration', { metadata: { budgets } }))
  await put(budget(30))
  expect((await own.chat()).status).toBe(200)
  expect((await own.chat()).status).toBe(200)
  expect(statusAndCode(await own.chat())).toEqual([429, 'BUDGET_EXCEEDED'])
  expect((await own.chat(own.as('other'))).status).toBe(200)
  await put(budget(30, 'tenant'))
  expect(statusAndCode(await own.chat(own.as('other')))).toEqual([429, 'BUDGET_EXCEEDED'])
  await put(budget(1000, 'tenant'), budget(1, 'workspace'), budget(5, 'tenant', 'cost'))
  expect((await own.chat()).status).toBe(200)
  await own.openai.stop()
})

test('a completion of a source whose stored key is not ASCII says 502 and where to look, and the key is not told', async () => {
  const key = 'sk-••••1234'
  const own = await createAiFixture()
  await withVault(own.tenant, (tx, vault) => storeSecrets(tx, vault, own.source, { token: key }))
  for (const stream of [false, true]) {
    const { status, body } = await own.chat(own.user, own.main, { stream })
    expect([status, body.code]).toEqual([502, 'AI_UPSTREAM_ERROR'])
    expect(body.message).toContain('status of the integration source')
    expect(JSON.stringify(body)).not.toContain(key)
  }
  const { body } = await own.admin.post(`/integration-sources/${own.source}/status`)
  expect(body.status).toBe('failed')
  expect(own.openai.requests).toEqual([])
  await own.openai.stop()
})
