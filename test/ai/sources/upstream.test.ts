import { afterAll, afterEach, beforeEach, expect, spyOn, test } from 'bun:test'
import fc from 'fast-check'
import { config } from '../../../src/config'
import { logOutput } from '../../../src/core/log'
import type { ReplyPlan } from '../../fakes/openai-server'
import { checkProperty } from '../../property-runner'
import { statusAndCode } from '../../test-tenant'
import { chatMessage, createAiFixture, joinContent, parseEvents, toolCalls } from '../fixtures'

const at = await createAiFixture()
const { user, admin, openai, main, chat } = at
const originalTimeout = config.ATOLL_AI_TIMEOUT
afterAll(() => openai.stop())
beforeEach(() => openai.clear())
afterEach(() => {
  config.ATOLL_AI_TIMEOUT = originalTimeout
  openai.own.always = {}
})

const streamModes = [false, true]

const failingUpstreams: [string, ReplyPlan, [number, string]][] = [
  ['refuses our token', { status: 401 }, [502, 'AI_UPSTREAM_ERROR']],
  ['knows no such model', { status: 404 }, [502, 'AI_UPSTREAM_ERROR']],
  ['redirects', { status: 302, headers: { location: 'http://127.0.0.1:1/' } }, [502, 'AI_UPSTREAM_ERROR']],
  ['answers something other than JSON', { body: '<html>' }, [502, 'AI_UPSTREAM_ERROR']],
  ['answers null instead of choices', { body: '{"choices":null}' }, [502, 'AI_UPSTREAM_ERROR']],
  ['answers an empty list of choices', { body: '{"choices":[]}' }, [502, 'AI_UPSTREAM_ERROR']],
  ['answers an empty body', { body: '' }, [502, 'AI_UPSTREAM_ERROR']],
  ['answers null', { body: 'null' }, [502, 'AI_UPSTREAM_ERROR']],
  ['answers 504', { status: 504, headers: { 'x-should-retry': 'false' } }, [504, 'AI_UPSTREAM_TIMEOUT']],
]
for (const stream of streamModes)
  test.each(failingUpstreams)(
    `a chat fails, is recorded as failed, and can be repeated when the provider %s (stream: ${stream})`,
    async (_, plan, expected) => {
      openai.own.always = plan
      const thread = await at.thread()
      const answer = await chat(user, main, { stream }, thread)
      expect(statusAndCode(answer)).toEqual(expected)
      expect(answer.headers.get('content-type')).toStartWith('application/json')
      expect((await at.threadOf(thread)).messages).toEqual([])
      expect((await at.usage())[0]).toMatchObject({ status: 'failed', thread, estimated: true })
      const [event] = (await admin.get('/events?source=ai&limit=1')).body
      expect(event).toMatchObject({ eventName: 'failure', metadata: { code: expected[1], thread } })
      // The repeated message is stored once.
      openai.own.always = {}
      expect((await chat(user, main, { stream }, thread)).status).toBe(200)
      expect((await at.threadOf(thread)).messages).toHaveLength(2)
    },
  )

test.each(streamModes)(
  'a busy provider (429) is asked once, and the client gets 503 AI_UPSTREAM_BUSY with its Retry-After (stream: %p)',
  async (stream) => {
    openai.reply({ status: 429, headers: { 'retry-after': '17' } })
    const answer = await chat(user, main, { stream })
    expect(statusAndCode(answer)).toEqual([503, 'AI_UPSTREAM_BUSY'])
    expect(answer.headers.get('retry-after')).toBe('17')
    expect(openai.requests).toHaveLength(1)
    openai.reply({ status: 429, headers: { 'retry-after': new Date(Date.now() + 30_000).toUTCString() } })
    const wait = Number((await chat(user, main, { stream })).headers.get('retry-after'))
    expect(wait).toBeWithin(1, 31)
  },
)

test.each(streamModes)('a provider that fails with 500 or 503 is asked again (stream: %p)', async (stream) => {
  openai.reply({ status: 500, headers: { 'retry-after-ms': '1' } }, { status: 503, headers: { 'retry-after-ms': '1' } })
  expect((await chat(user, main, { stream })).status).toBe(200)
  expect(openai.requests).toHaveLength(3)
})

test.each(streamModes)(
  'a chat with a provider that never answers fails with 504 AI_UPSTREAM_TIMEOUT (stream: %p)',
  async (stream) => {
    config.ATOLL_AI_TIMEOUT = 100
    openai.reply({ hang: 0 })
    expect(statusAndCode(await chat(user, main, { stream }))).toEqual([504, 'AI_UPSTREAM_TIMEOUT'])
    expect(openai.requests).toHaveLength(1)
    expect((await at.usage())[0]).toMatchObject({ status: 'failed' })
  },
)

test('a provider that stops in mid-stream causes an error event, and the partial answer is kept as incomplete', async () => {
  for (const [plan, code] of [
    [{ hang: 2 }, 'AI_UPSTREAM_TIMEOUT'],
    [{ cut: 2 }, 'AI_UPSTREAM_ERROR'],
    [{ finish: '' }, 'AI_UPSTREAM_ERROR'],
  ] as const) {
    config.ATOLL_AI_TIMEOUT = 100
    openai.reply(plan)
    const thread = await at.thread()
    const { status, body } = await chat(user, main, { stream: true }, thread)
    expect(status).toBe(200)
    const { events, end } = parseEvents(body)
    expect(end).toBe('[DONE]')
    expect(events.at(-1)).toEqual({ error: { code, message: expect.any(String) } })
    const partial = joinContent(events)
    expect(partial).toStartWith('Hell')
    const { messages } = await at.threadOf(thread)
    expect(messages).toMatchObject([chatMessage('Hello'), { role: 'assistant', content: partial, incomplete: true }])
    expect((await at.usage())[0]).toMatchObject({ status: 'failed', thread })
  }
})

test('a provider that breaks off an unstreamed answer causes 502 AI_UPSTREAM_ERROR', async () => {
  openai.own.always = { cut: 0 }
  expect(statusAndCode(await chat())).toEqual([502, 'AI_UPSTREAM_ERROR'])
})

test('an unreachable provider causes 502 AI_UPSTREAM_ERROR, and a chat succeeds once its address is corrected', async () => {
  const metadata = { apiUrl: 'http://127.0.0.1:1/v1' }
  const { _id: sourceId } = await at.made('/integration-sources', { name: 'x', kind: 'openai', metadata })
  const id = await at.agent({ sourceId })
  expect(statusAndCode(await chat(user, id))).toEqual([502, 'AI_UPSTREAM_ERROR'])
  await at.done(admin.put(`/integration-sources/${sourceId}`, { metadata: { apiUrl: openai.url } }))
  expect((await chat(user, id)).status).toBe(200)
  // A source without a token sends no authorization header.
  expect(openai.last().headers.authorization).toBeUndefined()
})

test('a provider in a private network gets no request unless ATOLL_ALLOW_PRIVATE_NETWORK is on', async () => {
  config.ATOLL_ALLOW_PRIVATE_NETWORK = 'off'
  try {
    expect(statusAndCode(await chat())).toEqual([502, 'AI_UPSTREAM_ERROR'])
    expect(openai.requests).toEqual([])
  } finally {
    config.ATOLL_ALLOW_PRIVATE_NETWORK = 'on'
  }
})

test('tool results are kept when the provider fails in mid-turn, and the repeated message continues from them', async () => {
  const tools = [await at.tool('count', '({ body }) => ({ counted: body.n })')]
  const id = await at.agent({ tools })
  openai.reply(toolCalls(['count', { n: 3 }, 'c1']), { status: 401 })
  const thread = await at.thread(id)
  expect(statusAndCode(await chat(user, id, {}, thread))).toEqual([502, 'AI_UPSTREAM_ERROR'])
  const { messages } = await at.threadOf(thread)
  expect(messages).toMatchObject([
    chatMessage('Hello'),
    { role: 'assistant', tool_calls: [{ id: 'c1' }] },
    { role: 'tool', tool_call_id: 'c1', content: '{"counted":3}' },
  ])
  // The repeated message continues from the stored tool result.
  expect((await chat(user, id, {}, thread)).status).toBe(200)
  expect(openai.last().body.messages.map(({ role }: { role: string }) => role)).toEqual(['user', 'assistant', 'tool'])
})

test('prompts and answers appear in no log, even when the provider fails', async () => {
  const lines: string[] = []
  const spies = [
    ...(['error', 'log', 'warn', 'info', 'debug'] as const).map((name) =>
      spyOn(console, name).mockImplementation((...words) => void lines.push(words.join(' '))),
    ),
    spyOn(logOutput, 'write').mockImplementation((line) => void lines.push(line)),
  ]
  try {
    const secret = 'the secret of the prompt'
    const plans: ReplyPlan[] = [
      { status: 400, body: JSON.stringify({ error: { message: `You said: ${secret}` } }) },
      { body: secret },
      { text: secret, cut: 2 },
      { finish: '', text: secret },
    ]
    for (const stream of streamModes)
      for (const plan of plans) {
        openai.own.always = plan
        const { body } = await chat(user, main, { stream, messages: [chatMessage(secret)] })
        expect(JSON.stringify(body)).not.toContain('You said')
      }
    expect(lines.length).toBeGreaterThan(0)
    expect(lines.join('\n')).not.toContain('secret')
  } finally {
    for (const spy of spies) spy.mockRestore()
  }
})

test('arbitrary answers of a provider lead to a completion or to 502 AI_UPSTREAM_ERROR, never to an internal error', async () => {
  const anything = fc.jsonValue({ maxDepth: 3 })
  const call = fc.record({ index: fc.option(anything), id: fc.option(anything), function: fc.option(anything) })
  const message = fc.record({ content: anything, tool_calls: fc.oneof(anything, fc.array(call)) }, { requiredKeys: [] })
  const choice = fc.record(
    {
      delta: fc.oneof(message, anything),
      message: fc.oneof(message, anything),
      finish_reason: fc.oneof(fc.constant('stop'), anything),
    },
    { requiredKeys: [] },
  )
  const chunk = fc.oneof(
    anything,
    fc.record({ choices: fc.oneof(fc.array(fc.oneof(choice, anything)), anything), usage: anything, model: anything }),
  )
  await checkProperty(
    100,
    fc.asyncProperty(fc.array(chunk, { maxLength: 4 }), fc.boolean(), async (chunks, stream) => {
      const frames = chunks.map((one) => `data: ${JSON.stringify(one)}\n\n`).join('')
      openai.reply(
        stream
          ? { body: frames, headers: { 'content-type': 'text/event-stream' } }
          : { body: JSON.stringify(chunks[0] ?? null) },
      )
      const { status, body } = await chat(user, main, { stream })
      openai.clear()
      expect([status, body?.code]).toBeOneOf([
        [200, undefined],
        [502, 'AI_UPSTREAM_ERROR'],
      ] as never)
      if (stream && status === 200) expect(body).not.toContain('INTERNAL')
    }),
  )
})
