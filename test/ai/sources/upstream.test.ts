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
  ['sends us elsewhere', { status: 302, headers: { location: 'http://127.0.0.1:1/' } }, [502, 'AI_UPSTREAM_ERROR']],
  ['answers no JSON', { body: '<html>' }, [502, 'AI_UPSTREAM_ERROR']],
  ['answers no choices', { body: '{"choices":null}' }, [502, 'AI_UPSTREAM_ERROR']],
  ['answers an empty list of them', { body: '{"choices":[]}' }, [502, 'AI_UPSTREAM_ERROR']],
  ['answers nothing', { body: '' }, [502, 'AI_UPSTREAM_ERROR']],
  ['answers null', { body: 'null' }, [502, 'AI_UPSTREAM_ERROR']],
  [
    'says that it was too slow itself',
    { status: 504, headers: { 'x-should-retry': 'false' } },
    [504, 'AI_UPSTREAM_TIMEOUT'],
  ],
]
for (const stream of streamModes)
  test.each(failingUpstreams)(`a server that %s (stream: ${stream})`, async (_, plan, told) => {
    openai.own.always = plan
    const thread = await at.thread()
    const answer = await chat(user, main, { stream }, thread)
    expect(statusAndCode(answer)).toEqual(told)
    expect(answer.headers.get('content-type')).toStartWith('application/json')
    expect((await at.threadOf(thread)).messages).toEqual([])
    expect((await at.usage())[0]).toMatchObject({ status: 'failed', thread, estimated: true })
    const [event] = (await admin.get('/events?source=ai&limit=1')).body
    expect(event).toMatchObject({ eventName: 'failure', metadata: { code: told[1], thread } })
    // The same message again is one, once it is answered.
    openai.own.always = {}
    expect((await chat(user, main, { stream }, thread)).status).toBe(200)
    expect((await at.threadOf(thread)).messages).toHaveLength(2)
  })

test.each(streamModes)(
  'a server with too much to do says when to come again, and is not asked twice (stream: %p)',
  async (stream) => {
    openai.says({ status: 429, headers: { 'retry-after': '17' } })
    const answer = await chat(user, main, { stream })
    expect(statusAndCode(answer)).toEqual([503, 'AI_UPSTREAM_BUSY'])
    expect(answer.headers.get('retry-after')).toBe('17')
    expect(openai.asked).toHaveLength(1)
  },
)

test.each(streamModes)('what may pass is tried again (stream: %p)', async (stream) => {
  openai.says({ status: 500, headers: { 'retry-after-ms': '1' } }, { status: 503, headers: { 'retry-after-ms': '1' } })
  expect((await chat(user, main, { stream })).status).toBe(200)
  expect(openai.asked).toHaveLength(3)
})

test.each(streamModes)('a server that says nothing is given up in time (stream: %p)', async (stream) => {
  config.ATOLL_AI_TIMEOUT = 100
  openai.says({ hang: 0 })
  expect(statusAndCode(await chat(user, main, { stream }))).toEqual([504, 'AI_UPSTREAM_TIMEOUT'])
  expect(openai.asked).toHaveLength(1)
  expect((await at.usage())[0]).toMatchObject({ status: 'failed' })
})

test('one that stops in the middle is told of in the stream, and what it said is kept', async () => {
  for (const [plan, code] of [
    [{ hang: 2 }, 'AI_UPSTREAM_TIMEOUT'],
    [{ cut: 2 }, 'AI_UPSTREAM_ERROR'],
    [{ finish: '' }, 'AI_UPSTREAM_ERROR'],
  ] as const) {
    config.ATOLL_AI_TIMEOUT = 100
    openai.says(plan)
    const thread = await at.thread()
    const { status, body } = await chat(user, main, { stream: true }, thread)
    expect(status).toBe(200)
    const { events, end } = parseEvents(body)
    expect(end).toBe('[DONE]')
    expect(events.at(-1)).toEqual({ error: { code, message: expect.any(String) } })
    const said = joinContent(events)
    expect(said).toStartWith('Hell')
    const { messages } = await at.threadOf(thread)
    expect(messages).toMatchObject([chatMessage('Hello'), { role: 'assistant', content: said, incomplete: true }])
    expect((await at.usage())[0]).toMatchObject({ status: 'failed', thread })
  }
})

test('one that breaks off its only answer failed', async () => {
  openai.own.always = { cut: 0 }
  expect(statusAndCode(await chat())).toEqual([502, 'AI_UPSTREAM_ERROR'])
})

test('nobody is there', async () => {
  const metadata = { apiUrl: 'http://127.0.0.1:1/v1' }
  const { _id: sourceId } = await at.made('/integration-sources', { name: 'x', kind: 'openai', metadata })
  const id = await at.agent({ sourceId })
  expect(statusAndCode(await chat(user, id))).toEqual([502, 'AI_UPSTREAM_ERROR'])
  await at.done(admin.put(`/integration-sources/${sourceId}`, { metadata: { apiUrl: openai.url } }))
  expect((await chat(user, id)).status).toBe(200)
  // Without a token none is sent.
  expect(openai.last().headers.authorization).toBeUndefined()
})

test('a neighbour of the installation is asked only where that is allowed', async () => {
  config.ATOLL_ALLOW_PRIVATE_NETWORK = 'off'
  try {
    expect(statusAndCode(await chat())).toEqual([502, 'AI_UPSTREAM_ERROR'])
    expect(openai.asked).toEqual([])
  } finally {
    config.ATOLL_ALLOW_PRIVATE_NETWORK = 'on'
  }
})

test('in the middle of a turn, what tools did is kept', async () => {
  const tools = [await at.tool('count', '({ body }) => ({ counted: body.n })')]
  const id = await at.agent({ tools })
  openai.says(toolCalls(['count', { n: 3 }, 'c1']), { status: 401 })
  const thread = await at.thread(id)
  expect(statusAndCode(await chat(user, id, {}, thread))).toEqual([502, 'AI_UPSTREAM_ERROR'])
  const { messages } = await at.threadOf(thread)
  expect(messages).toMatchObject([
    chatMessage('Hello'),
    { role: 'assistant', tool_calls: [{ id: 'c1' }] },
    { role: 'tool', tool_call_id: 'c1', content: '{"counted":3}' },
  ])
  // Whoever sends it again goes on from there.
  expect((await chat(user, id, {}, thread)).status).toBe(200)
  expect(openai.last().body.messages.map(({ role }: { role: string }) => role)).toEqual(['user', 'assistant', 'tool'])
})

test('what is said goes to no log', async () => {
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

test('whatever a server answers, it is no failure of ours', async () => {
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
      openai.says(
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
