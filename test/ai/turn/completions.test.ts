import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { createTestTenant, statusAndCode } from '../../test-tenant'
import { chatMessage, createAiFixture, joinContent, parseEvents } from '../fixtures'

const at = await createAiFixture()
const { user, admin, openai, main, stranger, chat } = at
afterAll(() => openai.stop())
beforeEach(() => openai.clear())

describe('a completion', () => {
  test('is as OpenAI’s API has it, and nothing of the source shows', async () => {
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
    const { headers, body: asked } = openai.last()
    expect(headers.authorization).toBe('Bearer sk-secret')
    expect(Object.keys(headers).filter((name) => name.startsWith('x-stainless'))).toEqual([])
    expect(asked).toEqual({ model: 'model-1', messages: [chatMessage('Hello')], stream: false })
  })

  test('is a stream of chunks where the body or the header asks for one', async () => {
    const asked = { messages: [chatMessage('Hello')] }
    const path = `/ai/${main}/chat-completion`
    const answers = [
      await user.post(path, { ...asked, stream: true }),
      await user.post(path, asked, { accept: 'text/event-stream' }),
      await user.post(path, { ...asked, stream: true }, { accept: 'text/event-stream' }),
    ]
    for (const { status, headers, body } of answers) {
      expect(status).toBe(200)
      expect(headers.get('content-type')).toStartWith('text/event-stream')
      const { events, end } = parseEvents(body)
      expect(end).toBe('[DONE]')
      expect(joinContent(events)).toBe('Hello there!')
    }
    expect((await user.post(path, { ...asked, stream: false }, { accept: 'text/event-stream' })).body.object).toBe(
      'chat.completion',
    )
  })

  test('is for integrations that there are, switched on, that talk, and whose roles the caller has', async () => {
    const off = await at.agent({ active: false })
    const few = await at.agent({ roles: ['gardener'] })
    const { _id: hook } = await at.made('/integrations', {
      trigger: { kind: 'webhook' },
      target: { kind: 'ai', sourceId: at.source },
    })
    for (const id of ['nothing', off, hook])
      expect(statusAndCode(await chat(user, id))).toEqual([404, 'INTEGRATION_NOT_FOUND'])
    expect(statusAndCode(await chat(user, few))).toEqual([403, 'FORBIDDEN'])
    expect((await chat(admin, few)).status).toBe(200)
    expect(statusAndCode(await chat(stranger))).toEqual([401, 'UNAUTHENTICATED'])
    expect(statusAndCode(await chat((await createTestTenant()).as('admin')))).toEqual([404, 'INTEGRATION_NOT_FOUND'])
  })

  test('leaves a row of what it took', async () => {
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
    openai.says({ usage: null, text: 'Four words and more.' })
    await chat()
    expect((await at.usage())[0]).toMatchObject({ estimated: true, completion: 5, status: 'completed' })
    const [event] = (await admin.get('/events?source=ai&limit=1')).body
    expect(event).toMatchObject({ kind: 'completion', eventName: 'completion', user: at.users.user })
    expect(JSON.stringify(event)).not.toContain('Four words')
  })
})

test('with an Idempotency-Key is asked of the model once', async () => {
  const path = `/ai/${main}/chat-completion`
  const key = { 'idempotency-key': crypto.randomUUID() }
  const [first, second] = [
    await user.post(path, { messages: [chatMessage('Hello')] }, key),
    await user.post(path, { messages: [chatMessage('Hello')] }, key),
  ]
  expect(second.body).toEqual(first.body)
  expect(openai.asked).toHaveLength(1)
})

describe('what is asked', () => {
  test('is passed on, before what the integration says', async () => {
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
    ['no messages', { messages: [] }],
    ['none at all', { messages: undefined }],
    ['too hot', { temperature: 2.1 }],
    ['too cold', { temperature: -0.1 }],
    ['frequency_penalty', { frequency_penalty: 2.5 }],
    ['presence_penalty', { presence_penalty: -2.5 }],
    ['top_p', { top_p: 1.5 }],
    ['a part of a token', { max_tokens: 1.5 }],
    ['no tokens', { max_tokens: 0 }],
    ['five stops', { stop: ['a', 'b', 'c', 'd', 'e'] }],
    ['a format of another kind', { response_format: { type: 'xml' } }],
    ['a schema without a name', { response_format: { type: 'json_schema', json_schema: {} } }],
    ['a context that is no object', { context: 'text' }],
    ['rules that are no texts', { rules: [1] }],
    ['another role', { messages: [chatMessage('x', 'developer')] }],
    ['a message without content', { messages: [{ role: 'user' }] }],
    ['content of parts', { messages: [{ role: 'user', content: [{ type: 'text', text: 'x' }] }] }],
    [
      'an answer of a tool to nobody',
      { messages: [chatMessage('x'), { role: 'tool', content: 'x', tool_call_id: 'c1' }] },
    ],
    ['an answer of a tool without its call', { messages: [{ role: 'tool', content: 'x' }] }],
    [
      'a user who calls tools',
      {
        messages: [
          { ...chatMessage('x'), tool_calls: [{ id: 'c', type: 'function', function: { name: 'x', arguments: '' } }] },
        ],
      },
    ],
    ['a tool without a name', { clientTools: [{ description: 'x' }] }],
    ['a tool whose name models don’t take', { clientTools: [{ name: 'a b' }] }],
    ['a tool that takes a text', { clientTools: [{ name: 'a', schema: { type: 'string' } }] }],
    ['too much context', { context: { text: 'x'.repeat(17 << 10) } }],
    ['a system message', { messages: [chatMessage('Be rude.', 'system'), chatMessage('x')] }],
  ])('is refused where it makes no sense: %s', async (_, body) => {
    expect(statusAndCode(await chat(user, main, body))).toEqual([400, 'INVALID_INPUT'])
    expect(statusAndCode(await chat(user, main, { ...body, stream: true }))).toEqual([400, 'INVALID_INPUT'])
    expect(openai.asked).toEqual([])
  })

  test('comes after the prompt, the rules and the context, each in a message of its own', async () => {
    const id = await at.agent({ systemPrompt: 'You are a gardener.' })
    await chat(user, id, { rules: ['Be short.', 'Be kind.'], context: { season: 'spring' } })
    const { messages } = openai.last().body
    expect(messages.map(({ role }: { role: string }) => role)).toEqual(['system', 'system', 'system', 'user'])
    const [prompt, rules, context] = messages.map(({ content }: { content: string }) => content)
    expect(prompt).toBe('You are a gardener.')
    expect(rules).toContain('1. Be short.\n2. Be kind.')
    expect(context).toContain('{"season":"spring"}')
  })

  test('has up to 16 KiB of context', async () => {
    await chat(user, main, { context: { text: 'x'.repeat(16_000) } })
    expect(Buffer.byteLength(openai.last().body.messages[0].content)).toBeLessThanOrEqual(16 << 10)
  })

  test('may have system messages where the integration says so', async () => {
    const id = await at.agent({ allowSystemMessages: true })
    const messages = [chatMessage('Be rude.', 'system'), chatMessage('Hello')]
    expect((await chat(user, id, { messages })).status).toBe(200)
    expect(openai.last().body.messages).toEqual(messages)
  })

  test('may be larger than other bodies', async () => {
    const text = 'x'.repeat(2 << 20)
    expect((await chat(user, main, { messages: [chatMessage(text)] })).status).toBe(200)
    expect(openai.last().body.messages[0].content).toHaveLength(2 << 20)
    expect(statusAndCode(await chat(user, main, { messages: [chatMessage('x'.repeat(17 << 20))] }))).toEqual([
      413,
      'BODY_TOO_LARGE',
    ])
  })

  test('that is nothing counts as not said', async () => {
    const nothing = { model: null, temperature: null, stop: null, context: null, rules: null, clientTools: null }
    expect(
      (await chat(user, main, { ...nothing, stream: null, queryParams: null, response_format: null })).status,
    ).toBe(200)
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

test('budgets are kept to: of the tenant, of workspaces, of users', async () => {
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
