import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { issueApiToken } from '../../../src/accounts/api-tokens'
import { apiClient, statusAndCode } from '../../test-tenant'
import { chatMessage, createAiFixture, parseEvents, toolCalls } from '../fixtures'

const at = await createAiFixture()
const { user, admin, openai, tokens } = at
const count = await at.tool('count', '({ body }) => ({ counted: body.n })')
const agent = await at.agent({ name: 'Librarian', systemPrompt: 'You know novels.', tools: [count] })
const withKey = (token: string) => apiClient(at.origin, { authorization: `Bearer ${token}` })
const client = withKey(tokens.user)
afterAll(() => openai.stop())
beforeEach(() => openai.clear())

const path = '/ai/v1/chat/completions'
const hello = { model: 'Librarian', messages: [chatMessage('Hello')] }
const tools = [{ type: 'function', function: { name: 'pick', parameters: { type: 'object' } } }]
const sent = () => openai.last().body

describe('chat completions', () => {
  test('a completion has the form of OpenAI, with the name of the agent as its model', async () => {
    const { status, body } = await client.post(path, hello)
    expect([status, body]).toEqual([
      200,
      {
        id: expect.stringMatching(/^chatcmpl-/),
        object: 'chat.completion',
        created: expect.any(Number),
        model: 'Librarian',
        choices: [
          {
            index: 0,
            message: { role: 'assistant', content: 'Hello there!', refusal: null },
            logprobs: null,
            finish_reason: 'stop',
          },
        ],
        usage: { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 },
      },
    ])
    expect(sent()).toMatchObject({ model: 'model-1', messages: [{ role: 'system' }, chatMessage('Hello')] })
  })

  test.each([undefined, false, true])(
    'a stream has usage in one last chunk, only if it is asked for: %p',
    async (include) => {
      const stream_options = include === undefined ? undefined : { include_usage: include }
      const { body } = await client.post(path, { ...hello, stream: true, stream_options })
      expect(body).toEndWith('data: [DONE]\n\n')
      const { events } = parseEvents(body)
      expect(events[0].choices[0].delta).toEqual({ role: 'assistant', content: expect.any(String) })
      const chunks = include ? events.slice(0, -1) : events
      if (include) {
        const usage = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 }
        expect(events.at(-1)).toMatchObject({ model: 'Librarian', choices: [], usage })
      }
      expect(chunks.at(-1).choices).toEqual([{ index: 0, delta: {}, finish_reason: 'stop' }])
      expect(chunks.every((one) => one.usage === undefined && one.choices.length === 1)).toBeTrue()
    },
  )

  test('an answer is whole unless the body asks for a stream, whatever the header Accept says', async () => {
    const { body } = await client.post(path, hello, { accept: 'text/event-stream' })
    expect(body.object).toBe('chat.completion')
  })

  test('system and developer messages become rules below the prompt, which an agent may forbid', async () => {
    const messages = [
      chatMessage('Be brief.', 'system'),
      { role: 'developer', content: [{ type: 'text', text: 'Be kind.' }] },
      chatMessage('Hello'),
    ]
    expect((await client.post(path, { ...hello, messages })).status).toBe(200)
    expect(sent().messages).toEqual([
      chatMessage('You know novels.', 'system'),
      chatMessage('Keep to these rules:\n1. Be brief.\n2. Be kind.', 'system'),
      chatMessage('Hello'),
    ])
    const strict = await at.agent({ name: 'Strict', forbidClientRules: true })
    const { status, body } = await client.post(path, { model: strict, messages })
    expect([status, body.error.param]).toEqual([400, 'messages[0].role'])
  })

  test('known parameters are passed on, and the server ignores what it does not know', async () => {
    const known = {
      temperature: 0.5,
      seed: 7,
      reasoning_effort: 'low',
      parallel_tool_calls: false,
      max_completion_tokens: 9,
    }
    const unknown = { user: 'u1', store: false, logprobs: null, metadata: { a: 'b' }, n: 1 }
    expect((await client.post(path, { ...hello, ...known, ...unknown })).status).toBe(200)
    const { max_completion_tokens, ...same } = known
    expect(sent()).toMatchObject({ ...same, max_tokens: max_completion_tokens })
    for (const key of ['user', 'store', 'metadata']) expect(sent()).not.toContainKey(key)
    expect((await client.post(path, { ...hello, n: 2 })).body.error.param).toBe('n')
  })
})

describe('tools of the client', () => {
  const call = (id: string, name: string, args = '{}') => ({
    id,
    type: 'function',
    function: { name, arguments: args },
  })

  test.each([false, true])(
    'tools of the client are called as plain tool_calls, while the server runs its own, and keeps them (stream: %p)',
    async (stream) => {
      openai.reply(
        toolCalls(['count', { n: 1 }, 's1']),
        toolCalls(['pick', '', 'c1'], ['count', { n: 2 }, 's2'], ['pick', { color: 'teal' }, 'c2']),
      )
      const { body } = await client.post(path, { ...hello, stream, tools })
      const [c1, c2] = [call('c1', 'pick'), call('c2', 'pick', '{"color":"teal"}')]
      if (stream) {
        const { events } = parseEvents(body)
        expect(events.map(({ choices: [{ delta, finish_reason }] }) => [delta, finish_reason])).toEqual([
          [{ role: 'assistant', content: null, tool_calls: [{ index: 0, ...c1 }] }, null],
          [{ tool_calls: [{ index: 1, ...c2 }] }, null],
          [{}, 'tool_calls'],
        ])
      } else
        expect(body.choices).toMatchObject([
          { message: { content: null, tool_calls: [c1, c2] }, finish_reason: 'tool_calls' },
        ])
      openai.reply({ text: 'Done.' })
      const messages = [
        chatMessage('Hello'),
        { role: 'assistant', content: '', tool_calls: [c1, c2] },
        { role: 'tool', tool_call_id: 'c2', content: 'null' },
        { role: 'tool', tool_call_id: 'c1', content: 'undefined' },
      ]
      const { body: after } = await client.post(path, { ...hello, messages, tools })
      expect(after.choices[0].message.content).toBe('Done.')
      // The model sees the whole turn: its rounds, and the results of both sides.
      expect(sent().messages.slice(1)).toMatchObject([
        chatMessage('Hello'),
        { role: 'assistant', tool_calls: [{ id: 's1' }] },
        { role: 'tool', tool_call_id: 's1', content: '{"counted":1}' },
        { role: 'assistant', tool_calls: [{ id: 'c1' }, { id: 's2' }, { id: 'c2' }] },
        { role: 'tool', tool_call_id: 'c1', content: 'undefined' },
        { role: 'tool', tool_call_id: 's2', content: '{"counted":2}' },
        { role: 'tool', tool_call_id: 'c2', content: 'null' },
      ])
    },
  )

  test.each([
    ['a tuple of prefixItems', { prefixItems: [{ type: 'number' }, { type: 'string' }], items: false }],
    ['a tuple of items', { items: [{ type: 'number' }, { type: 'string' }], additionalItems: false }],
    ['a list of types', { type: ['string', 'number', 'null'] }],
    ['oneOf', { oneOf: [{ type: 'string' }, { type: 'object', properties: { a: { const: 1 } } }] }],
    [
      'propertyNames',
      { type: 'object', propertyNames: { pattern: '^[a-z]+$' }, additionalProperties: { type: 'number' } },
    ],
    ['const', { const: 'teal' }],
    ['a pattern beside a format', { type: 'string', format: 'email', pattern: '^(?!\\.)[\\w.]+@example\\.com$' }],
    ['an object without properties', { type: 'object', properties: {}, additionalProperties: false }],
  ])('the schema of a tool of the client reaches the model as it was sent: %s', async (_, color) => {
    for (const $schema of [
      undefined,
      'http://json-schema.org/draft-07/schema#',
      'https://json-schema.org/draft/2020-12/schema',
    ]) {
      const parameters = { ...($schema && { $schema }), type: 'object', properties: { color }, required: ['color'] }
      const own = [{ type: 'function', function: { name: 'pick', parameters } }]
      expect((await client.post(path, { ...hello, tools: own })).status).toBe(200)
      const [tool] = sent().tools.filter((one: { function: { name: string } }) => one.function.name === 'pick')
      expect(tool.function.parameters).toEqual(parameters)
    }
  })

  test.each([{ content: null }, { content: '' }, {}, { content: [{ type: 'text', text: 'So. ' }] }])(
    'an answer comes back with its calls and %j beside them',
    async (content) => {
      const messages = [
        chatMessage('Hello'),
        { role: 'assistant', ...content, tool_calls: [call('c9', 'pick', '{ "color" : "teal" }')] },
        { role: 'tool', tool_call_id: 'c9', content: 'ok' },
      ]
      const { status, body } = await client.post(path, { ...hello, messages, tools })
      expect([status, body.choices[0].message.content]).toEqual([200, 'Hello there!'])
      const [, said, result] = sent().messages.slice(1)
      expect(said.tool_calls).toMatchObject([{ id: 'c9', function: { name: 'pick' } }])
      expect([said.content || null, result]).toEqual([
        Array.isArray(content.content) ? 'So. ' : null,
        { role: 'tool', tool_call_id: 'c9', content: 'ok' },
      ])
    },
  )

  test('a choice of tools reaches the model in the first round only, and `none` withdraws them', async () => {
    const tool_choice = { type: 'function', function: { name: 'pick' } }
    openai.reply(toolCalls(['count', { n: 1 }, 's1']))
    await client.post(path, { ...hello, tools, tool_choice })
    expect(openai.requests.map(({ body }) => body.tool_choice)).toEqual([tool_choice, undefined])
    await client.post(path, { ...hello, tools, tool_choice: 'none' })
    expect(sent().tools.map((one: { function: { name: string } }) => one.function.name)).toEqual(['count'])
  })
})

describe('models', () => {
  test('the models are the agents that the caller may use, by name, or by id where the name is not the only one', async () => {
    const twins = [await at.agent({ name: 'Twin' }), await at.agent({ name: 'Twin' })]
    const secret = await at.agent({ name: 'Secret', roles: ['boss'] })
    const idle = await at.agent({ name: 'Idle', active: false })
    const { body } = await client.get('/ai/v1/models')
    expect(body.object).toBe('list')
    const ids = body.data.map(({ id }: { id: string }) => id)
    expect(ids).toEqual(expect.arrayContaining(['Librarian', ...twins]))
    for (const hidden of ['Secret', secret, 'Idle', idle, 'Twin']) expect(ids).not.toContain(hidden)
    expect(body.data[0]).toEqual({ id: twins[1], object: 'model', created: expect.any(Number), owned_by: 'atoll' })
    expect((await client.get('/ai/v1/models/Librarian')).body.id).toBe('Librarian')

    expect((await client.post(path, { ...hello, model: twins[0] })).status).toBe(200)
    expect(statusAndCode(await client.post(path, { ...hello, model: 'Twin' }))).toEqual([400, 'INVALID_INPUT'])
    for (const model of ['Secret', secret, 'Idle', 'nobody'])
      expect(statusAndCode(await client.post(path, { ...hello, model }))).toEqual([404, 'MODEL_NOT_FOUND'])
  })

  test('an id wins over a name', async () => {
    const impostor = await at.agent({ name: agent, systemPrompt: 'I am another.' })
    await client.post(path, { ...hello, model: agent })
    expect(sent().messages[0].content).toBe('You know novels.')
    await admin.delete(`/ai/agents/${impostor}`)
  })
})

describe('embeddings', () => {
  const embeddings = '/ai/v1/embeddings'

  test('embeddings come from the embedding model of the source, as numbers or base64', async () => {
    const input = ['green cats', 'blue dogs']
    const { body } = await client.post(embeddings, { model: 'Librarian', input, dimensions: 32 })
    expect(sent()).toMatchObject({ model: 'embedding-1', input, dimensions: 32 })
    expect(body).toMatchObject({ object: 'list', model: 'Librarian', usage: { prompt_tokens: 5, total_tokens: 5 } })
    expect(body.data).toMatchObject([{ object: 'embedding', index: 0 }, { index: 1 }])
    expect(body.data[0].embedding).toHaveLength(32)
    const encoded = await client.post(embeddings, {
      model: 'Librarian',
      input: 'green cats',
      encoding_format: 'base64',
    })
    expect(Buffer.from(encoded.body.data[0].embedding, 'base64')).toHaveLength(64 * 4)
    expect((await at.usage())[0]).toMatchObject({ status: 'completed', integration: agent, model: 'embedding-1' })
  })

  test('embeddings are 400 without such a model', async () => {
    const echo = await at.agent({ sourceId: 'echo' })
    const { status, body } = await client.post(embeddings, { model: echo, input: 'x' })
    expect([status, body.error.param]).toEqual([400, 'model'])
  })
})

describe('errors', () => {
  test('errors have the form that OpenAI’s clients read, beside ours', async () => {
    const { status, body } = await client.post(path, { ...hello, model: 'nobody' })
    expect([status, body]).toEqual([
      404,
      {
        error: { message: body.message, type: 'invalid_request_error', code: 'MODEL_NOT_FOUND', param: 'model' },
        code: 'MODEL_NOT_FOUND',
        message: 'There is no agent with this name or id that you may use.',
        details: [{ path: 'model', message: expect.any(String) }],
      },
    ])
  })

  test.each<[string, () => ReturnType<typeof client.get>, [number, string, string]]>([
    ['a guest', () => at.anonymous.post(path, hello), [401, 'UNAUTHENTICATED', 'authentication_error']],
    ['a wrong key', () => withKey('x').post(path, hello), [401, 'UNAUTHENTICATED', 'authentication_error']],
    ['an unknown route', () => client.get('/ai/v1/assistants'), [404, 'ROUTE_NOT_FOUND', 'invalid_request_error']],
    ['an unknown method', () => client.put('/ai/v1/models', {}), [405, 'METHOD_NOT_ALLOWED', 'invalid_request_error']],
    ['an invalid body', () => client.post(path, { model: 'x' }), [400, 'INVALID_INPUT', 'invalid_request_error']],
  ])('errors have a type: %s', async (_, request, expected) => {
    const { status, body } = await request()
    expect([status, body.code, body.error.type]).toEqual(expected)
    expect(body.error).toMatchObject({ code: body.code, message: body.message })
  })

  test('a failing model is 502, in mid-stream an event at which clients raise', async () => {
    openai.reply({ status: 401 })
    const failed = await client.post(path, hello)
    expect([failed.status, failed.body.error.type]).toEqual([502, 'server_error'])
    openai.reply({ cut: 2 })
    const { events } = parseEvents((await client.post(path, { ...hello, stream: true })).body)
    expect(events.at(-1).error).toMatchObject({ code: 'AI_UPSTREAM_ERROR', type: 'server_error', param: null })
  })

  test('a budget that is used up is 402, which no client repeats', async () => {
    const budgets = [{ scope: 'user', period: 'day', unit: 'tokens', limit: 1 }]
    await at.done(admin.put('/configurations/ai-configuration', { metadata: { budgets } }))
    try {
      const { status, headers, body } = await client.post(path, hello)
      expect([status, body.code, body.error.type]).toEqual([402, 'BUDGET_EXCEEDED', 'insufficient_quota'])
      expect(headers.get('retry-after')).toBeNull()
      expect((await client.post('/ai/v1/embeddings', { model: 'Librarian', input: 'x' })).status).toBe(402)
      // Our own routes say it as before.
      expect((await user.post(`/ai/${agent}/chat-completion`, hello)).status).toBe(429)
    } finally {
      await at.done(admin.put('/configurations/ai-configuration', { metadata: { budgets: [] } }))
    }
  })
})

describe('credentials', () => {
  test('credentials are API tokens as Bearer or x-api-key; a token without the scope is 403', async () => {
    expect((await user.post(path, hello)).status).toBe(200)
    const token = async (...scopes: string[]) =>
      (await issueApiToken(at.tenant, at.users.user, { nickname: 'x', scopes })).token
    expect((await withKey(await token('ai:write')).post(path, hello)).status).toBe(200)
    expect(statusAndCode(await withKey(await token('entities:read')).post(path, hello))).toEqual([403, 'FORBIDDEN'])
    const reader = withKey(await token('ai:read'))
    expect((await reader.get('/ai/v1/models')).status).toBe(200)
    expect((await reader.post(path, hello)).status).toBe(403)
  })

  test('an API token as Bearer is refused elsewhere, with a hint', async () => {
    const { status, body } = await client.get('/ai/agents')
    expect([status, body.error]).toEqual([401, undefined])
    expect(body.message).toContain('x-api-key')
  })
})
