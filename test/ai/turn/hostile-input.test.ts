import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { abortAllTurns } from '../../../src/ai/turn/completion'
import type { Message } from '../../../src/ai/turn/conversation'
import { findNewMessages } from '../../../src/ai/turn/new-messages'
import { handleRequest } from '../../../src/gateway'
import { statusAndCode } from '../../test-tenant'
import { waitUntil } from '../../wait-until'
import { chatMessage, createAiFixture, parseEvents, toolCalls } from '../fixtures'

const at = await createAiFixture()
const { user, admin, openai, main, chat } = at
afterAll(() => openai.stop())
beforeEach(() => {
  openai.clear()
  openai.own.always = {}
})

const clientTools = [{ name: 'pick' }]
const lastRoles = () => openai.last().body.messages.map(({ role }: { role: string }) => role)
const toolResult = (id: string, content = 'ok') => ({ role: 'tool', tool_call_id: id, content })
const uploadFile = (integrationId: string) =>
  user.post(`/ai/sources/${at.source}/storage/upload`, { integrationId, content: 'Hello there' })

describe('a provider with hostile answers', () => {
  test.each([false, true])(
    'tool calls with invalid ids, names and arguments leave a thread that the client can continue (stream: %p)',
    async (stream) => {
      const thread = await at.thread()
      const long = 'x'.repeat(300)
      openai.reply(
        toolCalls(
          ['pick', {}, 'a\0b'],
          [long, {}, 'c\ud800'],
          ['', {}, long],
          ['pick', '"\0\ud800', 'e'],
          ['pick', {}, 'f'],
        ),
      )
      const { status, body } = await chat(user, main, { stream, clientTools }, thread)
      expect(status).toBe(200)
      const { functionCalls, assistantToolCalls } = stream ? parseEvents(body).events.at(-1) : body
      expect(functionCalls).toHaveLength(2)
      expect(assistantToolCalls).toHaveLength(5)
      const answers = functionCalls.map(({ id }: { id: string }) => toolResult(id))
      const messages = [
        chatMessage('Hello'),
        { role: 'assistant', content: '', tool_calls: assistantToolCalls },
        ...answers,
      ]
      expect((await chat(user, main, { clientTools, messages }, thread)).status).toBe(200)
      expect(lastRoles()).toEqual(['user', 'assistant', 'tool', 'tool', 'tool', 'tool', 'tool'])
      expect((await at.threadOf(thread)).messages).toHaveLength(8)
    },
  )

  test('a finish_reason that is no string causes 502, and a long one is cut to 64 characters', async () => {
    for (const [finish, expected] of [
      [{ a: 1 }, 502],
      [5, 502],
      ['y'.repeat(10_000), 'y'.repeat(64)],
    ] as [never, number | string][]) {
      openai.reply({ finish })
      const { status, body } = await chat()
      expect(status === 200 ? body.choices[0].finish_reason : status).toBe(expected)
    }
  })

  test('an impossible reported usage is replaced by an estimate, and sums of usage stay finite', async () => {
    const prices = { 'model-1': { prompt: 1e6, completion: 1e6 } }
    await at.done(admin.put('/configurations/ai-configuration', { metadata: { prices } }))
    const most = Number.MAX_SAFE_INTEGER
    openai.reply({ usage: { prompt_tokens: most, completion_tokens: most, total_tokens: most } })
    expect((await chat()).status).toBe(200)
    await at.done(admin.put('/configurations/ai-configuration', { metadata: { prices: {} } }))
    expect((await at.usage())[0]).toMatchObject({ status: 'completed', estimated: true })
    expect((await admin.get('/ai/usage?groupBy=day')).body[0].cost).toBeLessThan(1e6)
  })

  test('an impossible reported usage of a summary is replaced by an estimate, and NUL characters are removed from it', async () => {
    const id = await at.agent({ historyTokens: 100 })
    const thread = await at.thread(id)
    for (const word of ['w ', 'v ']) await chat(user, id, { messages: [chatMessage(word.repeat(300))] }, thread)
    openai.reply({ text: 'In \0short.', usage: { prompt_tokens: 'many', completion_tokens: -3 } as never })
    expect((await chat(user, id, { messages: [chatMessage('u')] }, thread)).status).toBe(200)
    expect((await at.usage())[0]).toMatchObject({ status: 'completed', estimated: true })
    expect((await at.threadOf(thread)).messageSummaries).toMatchObject([{ content: 'In short.' }])
  })

  test.each([
    'null',
    '[]',
    '{"data":[null]}',
    '{"data":[{"index":"length","embedding":[1,2]}]}',
    '{"data":[{"index":4294967294,"embedding":[1]}]}',
    '{"data":[{"index":0,"embedding":["x"]}]}',
  ])('an embedding answer of %s causes 502 AI_UPSTREAM_ERROR', async (body) => {
    openai.own.always = { body }
    expect(statusAndCode(await uploadFile(main))).toEqual([502, 'AI_UPSTREAM_ERROR'])
  })
})

describe('a completion with retrieval', () => {
  const readingAgent = at.agent({ vectorStores: ['user'] })

  test('a failed embedding adds one usage row for itself and one for the completion, and invalid requests add none', async () => {
    const id = await readingAgent
    await at.done(uploadFile(id))
    openai.own.always = { status: 401 }
    const before = (await at.usage()).length
    expect(statusAndCode(await chat(user, id))).toEqual([502, 'AI_UPSTREAM_ERROR'])
    const rows = await at.usage()
    expect(rows).toHaveLength(before + 2)
    const failed = { status: 'failed', integration: id }
    expect(rows[0]).toMatchObject({ ...failed, model: 'model-1', prompt: 0 })
    expect(rows[1]).toMatchObject({ ...failed, model: 'embedding-1' })
    // Invalid requests add no usage row.
    await chat(user, id, { messages: [toolResult('nobody')] })
    await chat(user, id, { context: { long: 'x'.repeat(20_000) } })
    expect(await at.usage()).toHaveLength(before + 2)
  })

  test('a disconnect during the embedding aborts it, and the model is not asked', async () => {
    const id = await readingAgent
    await at.done(uploadFile(id))
    openai.clear()
    openai.own.always = { hang: 0 }
    const leaving = new AbortController()
    const { host } = new URL(at.origin)
    const pending = handleRequest(
      new Request(`${at.origin}/api/ai/${id}/chat-completion`, {
        method: 'POST',
        headers: { host, 'content-type': 'application/json', 'x-api-key': at.tokens.user },
        body: JSON.stringify({ messages: [chatMessage('Hello')] }),
        signal: leaving.signal,
      }),
    )
    while (!openai.requests.length) await Bun.sleep(1)
    leaving.abort()
    await pending
    while (!openai.left.length) await Bun.sleep(1)
    expect(openai.requests.map(({ path }) => path)).toEqual(['/v1/embeddings'])
    expect((await at.usage())[0]).toMatchObject({ status: 'aborted', integration: id })
  })
})

describe('the continuation of a thread', () => {
  test('a thread continues without a late tool result whose call has been summarized', async () => {
    const id = await at.agent({ historyTokens: 200 })
    const thread = await at.thread(id)
    const say = async (message: object) => (await chat(user, id, { clientTools, messages: [message] }, thread)).status
    openai.reply(toolCalls(['pick', {}, 'c1']))
    expect(await say(chatMessage('z'.repeat(800)))).toBe(200)
    expect(await say(chatMessage('Never mind.'))).toBe(200)
    expect(await say(toolResult('c1', 'late'))).toBe(200)
    openai.reply({ text: 'In short.' })
    expect(await say(chatMessage('u'.repeat(300)))).toBe(200)
    expect(lastRoles()[0]).toBe('system')
    expect(await say(chatMessage('Go on.'))).toBe(200)
    expect(lastRoles()).not.toContain('tool')
  })

  test('a thread continues after a turn whose tool results are too long to be sent again', async () => {
    const big = await at.tool('big', '() => "x".repeat(65000)')
    const id = await at.agent({ tools: [big], maxToolRounds: 50, historyTokens: 1_000_000 })
    const thread = await at.thread(id)
    let rounds = 0
    openai.own.always = ({ body }) => (body.tools && rounds++ < 50 ? toolCalls(['big'], ['big']) : { text: 'Done.' })
    expect((await chat(user, id, {}, thread)).status).toBe(200)
    expect((await chat(user, id, { messages: [chatMessage('Go on.')] }, thread)).status).toBe(200)
  })
})

test('endless tool results are cut one by one, and all further results of the turn become TOO_MUCH', async () => {
  const talks = await at.tool('talks', '() => "x".repeat(200000)')
  const id = await at.agent({ tools: [talks], maxToolRounds: 2 })
  const many = toolCalls(...Array.from({ length: 30 }, (): [string, object] => ['talks', {}]))
  openai.reply(many, many, { text: 'Enough.' })
  expect((await chat(user, id)).status).toBe(200)
  const toolMessages = openai.last().body.messages.filter(({ role }: { role: string }) => role === 'tool')
  const texts: string[] = toolMessages.map(({ content }: { content: string }) => content)
  expect(texts).toHaveLength(60)
  expect(texts.join('').length).toBeLessThan((2 << 20) + (70 << 10))
  expect(texts[0]).toEndWith('… (cut: this is not all)')
  expect(JSON.parse(texts.at(-1)!).error.code).toBe('TOO_MUCH')
})

test('embeddings of more than 16,384 dimensions cause 502 AI_UPSTREAM_ERROR', async () => {
  const id = await at.agent({ vectorStores: ['user'] })
  openai.reply({ body: JSON.stringify({ data: [{ index: 0, embedding: Array(16_385).fill(1) }] }) })
  expect(statusAndCode(await uploadFile(id))).toEqual([502, 'AI_UPSTREAM_ERROR'])
  openai.reply({ body: JSON.stringify({ data: [{ index: 0, embedding: Array(16_384).fill(1) }] }) })
  expect((await uploadFile(id)).status).toBe(201)
})

test('the error of a failing tool is cut like a result before the model gets it', async () => {
  const body = 'x'.repeat(300_000)
  openai.reply(toolCalls(['remote', {}, 'c1']))
  const trigger = { kind: 'tool', name: 'remote', description: 'Far away.' }
  const target = { kind: 'http', url: `${openai.url}/far`, method: 'POST' }
  const id = await at.agent({ tools: [(await at.made('/integrations', { trigger, target }))._id] })
  openai.own.always = ({ path }) => (path.endsWith('/far') ? { status: 400, body } : {})
  expect((await chat(user, id)).status).toBe(200)
  const { content } = openai.last().body.messages.at(-1)
  expect(content).toContain('TOOL_FAILED')
  expect(content.length).toBeLessThan(70_000)
})

test('agents that call each other many times stop with TOO_MANY_AGENTS', async () => {
  const trigger = { kind: 'tool', name: 'expert', description: 'Knows.' }
  const target = { kind: 'ai', sourceId: at.source, model: 'm', maxToolRounds: 2 }
  const { _id } = await at.made('/integrations', { trigger, target })
  await at.done(admin.put(`/integrations/${_id}`, { target: { ...target, tools: [_id] } }))
  const id = await at.agent({ tools: [_id], maxToolRounds: 2 })
  const again = ['expert', { message: 'Again.' }] as [string, object]
  openai.own.always = ({ body }) => (body.tools ? toolCalls(again, again, again) : { text: 'Enough.' })
  const { status, body } = await chat(user, id)
  expect([status, body.choices?.[0].message.content]).toEqual([200, 'Enough.'])
  expect(openai.requests.length).toBeLessThan(160)
  expect(JSON.stringify(openai.requests)).toContain('TOO_MANY_AGENTS')
})

test('a conversation of 50,000 tool calls is accepted within the timeout', async () => {
  const call = (id: string) => ({ id, type: 'function', function: { name: 'a', arguments: '' } })
  const messages = Array.from({ length: 1_000 }, (_, n) => ({
    role: 'assistant',
    tool_calls: Array.from({ length: 50 }, (_, i) => call(`${n}.${i}`)),
  }))
  expect((await chat(user, main, { messages: [...messages, toolResult('0.0'), chatMessage('x')] })).status).toBe(200)
}, 20_000)

test('2,000 messages that match none of the 1,000 messages of a thread are compared in a moment', () => {
  const call = (id: string) => ({ id, type: 'function' as const, function: { name: 'a', arguments: '{}' } })
  const stored = Array.from({ length: 1_000 }, (_, n) => ({
    ...{ thread: 't', number: n + 1, role: 'assistant' as const, content: '', name: null, toolCallId: null },
    ...{ toolCalls: [call(`stored ${n}`)], ours: false, incomplete: false, original: null, created: '' },
  }))
  const sent = Array.from({ length: 2_000 }, (_, n) =>
    n % 2 ? chatMessage('x', 'assistant') : toolResult(`sent ${n}`),
  ) as Message[]
  const startTime = performance.now()
  expect(findNewMessages(stored, sent)).toEqual(sent)
  expect(performance.now() - startTime).toBeLessThan(100)
})

test('request parameters are accepted up to their exact bounds and rejected with 400 beyond them', async () => {
  const cases: [object, number][] = [
    [{ temperature: 2, frequency_penalty: -2, presence_penalty: 2, stop: ['a', 'b', 'c', 'd'] }, 200],
    ...[2.0001, -0.0001, '1', true].map((temperature): [object, number] => [{ temperature }, 400]),
    ...[2.0001, -2.0001, '0'].map((frequency_penalty): [object, number] => [{ frequency_penalty }, 400]),
    ...[2.0001, -2.0001, []].map((presence_penalty): [object, number] => [{ presence_penalty }, 400]),
    ...[5, [1], ['a', 'b', 'c', 'd', 'e'], {}].map((stop): [object, number] => [{ stop }, 400]),
    ...['json', {}, [], { type: 'json_schema' }, { type: 'xml' }].map((one): [object, number] => [
      { response_format: one },
      400,
    ]),
    ...['true', 1].map((stream): [object, number] => [{ stream }, 400]),
    ...[{}, [], ['x'], [null], [{ role: 'developer', content: 'x' }]].map((messages): [object, number] => [
      { messages },
      400,
    ]),
    ...[['x'], null, { text: 'x' }, 'a\0', 'a\ud800'].map((content): [object, number] => [
      { messages: [{ role: 'user', content }] },
      400,
    ]),
    [{ messages: Array(10_000).fill(chatMessage('x')) }, 400],
    [{ clientTools: [{ name: 'constructor' }, { name: 'toString' }] }, 200],
    [{ messages: [{ ...chatMessage('x'), constructor: 1, toString: 1 }] }, 200],
  ]
  for (const [body, status] of cases)
    expect([JSON.stringify(body).slice(0, 100), (await chat(user, main, body)).status]).toEqual([
      JSON.stringify(body).slice(0, 100),
      status,
    ])
})

describe('a provider with endless answers', () => {
  const pad = (size: number) => 'x'.repeat(size)
  const MIB = 1 << 20
  const words = '"choices":[{"finish_reason":"stop","message":{"content":"Hello"}}]'
  const chunk = 'data: {"choices":[{"finish_reason":"stop","delta":{"content":"Hello"}}]}\n\n'

  test.each([
    ['an answer above 16 MiB', false, `{${words},"more":"${pad(16 * MIB)}"}`, 502],
    ['an answer with a text of 5 MiB', false, `{${words.replace('Hello', pad(5 * MIB))}}`, 502],
    ['an answer of 8 MiB with a short text', false, `{${words},"more":"${pad(8 * MIB)}"}`, 200],
    ['an event of 9 MiB', true, `data: ${pad(9 * MIB)}`, 502],
    ['9 MiB of comments without an event', true, `:${pad(1_000)}\n`.repeat(9_000), 502],
    [
      'a million empty events before the text',
      true,
      `${'data: {}\n\n'.repeat(1_000_000)}${chunk}data: [DONE]\n\n`,
      200,
    ],
  ])(
    'an oversized answer causes 502 AI_UPSTREAM_ERROR, and a long answer with little text is read to its end: %s',
    async (_, stream, body, status) => {
      openai.own.always = { body, headers: { 'content-type': stream ? 'text/event-stream' : 'application/json' } }
      const answer = await chat(user, main, { stream })
      expect(answer.status).toBe(status)
      if (status === 502) expect(answer.body.code).toBe('AI_UPSTREAM_ERROR')
      expect(openai.last().headers.accept).toBe(stream ? 'text/event-stream' : 'application/json')
      expect((await at.usage())[0]).toMatchObject({ status: status === 200 ? 'completed' : 'failed' })
    },
  )

  test.each([false, true])(
    'invalid UTF-8 in an answer is stored with replacement characters (stream: %p)',
    async (stream) => {
      const thread = await at.thread()
      const [before, after] = (stream ? chunk : `{${words}}`).split('Hello') as [string, string]
      const raw = Buffer.concat([
        Buffer.from(before),
        Buffer.from([0x61, 0xff, 0xed, 0xa0, 0x80, 0x62]),
        Buffer.from(after),
      ])
      const headers = { 'content-type': stream ? 'text/event-stream' : 'application/json' }
      openai.reply({ body: raw as never, headers })
      expect((await chat(user, main, { stream }, thread)).status).toBe(200)
      const { content } = (await at.threadOf(thread)).messages.at(-1)
      expect(content).toMatch(/^a\ufffd+b$/)
    },
  )
})

test('the echo source gives up a message of 100,000 tool calls with 502 AI_UPSTREAM_ERROR', async () => {
  const echo = await at.agent({ sourceId: 'echo' })
  const messages = [chatMessage('call pick {}\n'.repeat(100_000))]
  expect(statusAndCode(await chat(user, echo, { messages, clientTools }))).toEqual([502, 'AI_UPSTREAM_ERROR'])
})

test('concurrent turns of one thread are all stored, each as a whole', async () => {
  const thread = await at.thread()
  openai.own.always = ({ body }) => ({ text: `to ${body.messages.at(-1).content}`, pieces: 3, pace: 5 })
  const questions = ['A', 'B', 'C', 'D']
  const all = await Promise.all(
    questions.map((one, n) => chat(user, main, { stream: n % 2 > 0, messages: [chatMessage(one)] }, thread)),
  )
  expect(all.map(({ status }) => status)).toEqual(questions.map(() => 200))
  const { messages } = await at.threadOf(thread)
  const pairs = questions.map((_, n) => [messages[n * 2].content, messages[n * 2 + 1].content])
  expect(pairs.toSorted()).toEqual(questions.map((one) => [one, `to ${one}`]))
})

test('a server that shuts down answers a completion that still waits for its embedding with 503 BUSY', async () => {
  const id = await at.agent({ vectorStores: ['user'] })
  await at.done(uploadFile(id))
  openai.clear()
  openai.own.always = { hang: 0 }
  const pending = [chat(user, id), chat(user, id, { stream: true })]
  await waitUntil(() => openai.requests.length === 2)
  abortAllTurns()
  for (const { status, headers, body } of await Promise.all(pending))
    expect([status, body.code, headers.get('retry-after')]).toEqual([503, 'BUSY', '5'])
  // The embeddings that nobody waits for any longer are recorded a moment later.
  await waitUntil(async () => (await at.usage()).slice(0, 4).every(({ status }) => status === 'aborted'))
})
