import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { messages } from '../../src/ai/tables'
import { now, toIsoString } from '../../src/core/clock'
import { createTestTenant, statusAndCode } from '../test-tenant'
import { chatMessage, createAiFixture, parseEvents, toolCalls } from './fixtures'

const at = await createAiFixture()
const { user, admin, openai, main, chat, anonymous } = at
const otherUser = at.as('other')
afterAll(() => openai.stop())
beforeEach(() => openai.clear())

const toLines = (messages: { role: string; content: string }[]) =>
  messages.map(({ role, content }) => `${role}: ${content}`)
const linesToModel = () => toLines(openai.last().body.messages)

describe('a thread', () => {
  test('POST /ai/threads creates an empty thread that belongs to its creator', async () => {
    const { status, body } = await user.post('/ai/threads', { integration: main, title: 'Plans' })
    expect(status).toBe(201)
    expect(body).toEqual({
      ...{ _id: expect.any(String), integration: main, title: 'Plans', messages: [], messageSummaries: [] },
      ...{ user: at.users.user, workspace: null, created: expect.any(String), updated: body.created },
    })
    expect((await user.get(`/ai/threads/${body._id}`)).body).toEqual(body)
  })

  test('POST /ai/threads needs a chat integration that the caller may use, or returns 400, 401, 403 or 404', async () => {
    const restricted = await at.agent({ roles: ['gardener'] })
    expect(statusAndCode(await user.post('/ai/threads', { integration: 'nothing' }))).toEqual([
      404,
      'INTEGRATION_NOT_FOUND',
    ])
    expect(statusAndCode(await user.post('/ai/threads', { integration: restricted }))).toEqual([403, 'FORBIDDEN'])
    expect(statusAndCode(await user.post('/ai/threads', {}))).toEqual([400, 'INVALID_INPUT'])
    expect(statusAndCode(await anonymous.post('/ai/threads', { integration: main }))).toEqual([401, 'UNAUTHENTICATED'])
  })

  test('a thread of another user gets 404 THREAD_NOT_FOUND, while admins may read it but not continue it', async () => {
    const id = await at.thread()
    await chat(user, main, {}, id)
    const otherClients = [otherUser, (await createTestTenant()).as('admin')]
    for (const client of otherClients) {
      expect(statusAndCode(await client.get(`/ai/threads/${id}`))).toEqual([404, 'THREAD_NOT_FOUND'])
      expect(statusAndCode(await client.delete(`/ai/threads/${id}`))).toEqual([404, 'THREAD_NOT_FOUND'])
      expect((await client.get('/ai/threads')).body).toEqual([])
    }
    expect(statusAndCode(await chat(otherUser, main, {}, id))).toEqual([404, 'THREAD_NOT_FOUND'])
    // Admins may read a thread but not write to it.
    expect((await admin.get(`/ai/threads/${id}`)).body.messages).toHaveLength(2)
    expect(statusAndCode(await chat(admin, main, {}, id))).toEqual([404, 'THREAD_NOT_FOUND'])
    // A thread continues only with its own agent.
    expect(statusAndCode(await chat(user, await at.agent(), {}, id))).toEqual([404, 'THREAD_NOT_FOUND'])
    expect(statusAndCode(await chat(user, main, {}, 'nothing'))).toEqual([404, 'THREAD_NOT_FOUND'])
    expect((await at.threadOf(id)).messages).toHaveLength(2)
  })

  test('DELETE /ai/threads/:id removes the thread and all its messages', async () => {
    const id = await at.thread()
    await chat(user, main, {}, id)
    expect((await user.delete(`/ai/threads/${id}`)).body).toEqual({ success: true })
    expect(statusAndCode(await user.get(`/ai/threads/${id}`))).toEqual([404, 'THREAD_NOT_FOUND'])
    expect(statusAndCode(await user.delete(`/ai/threads/${id}`))).toEqual([404, 'THREAD_NOT_FOUND'])
    expect(await at.tenant.db.query('select number from thread_messages where thread = ?', [id])).toEqual([])
  })

  test('a thread that is deleted while the model answers stays deleted', async () => {
    const id = await at.thread()
    openai.own.always = () => ({ pace: 30 })
    const answer = chat(user, main, { stream: true }, id)
    while (!openai.requests.length) await Bun.sleep(1)
    await at.done(user.delete(`/ai/threads/${id}`))
    openai.own.always = {}
    expect(parseEvents((await answer).body).end).toBe('[DONE]')
    expect(statusAndCode(await user.get(`/ai/threads/${id}`))).toEqual([404, 'THREAD_NOT_FOUND'])
    expect((await at.usage())[0]).toMatchObject({ status: 'completed', thread: id })
  })
})

describe('GET /ai/threads', () => {
  test('GET /ai/threads lists the caller’s threads by page, newest first; admins see all threads unless bypassAdmin is set', async () => {
    const own = await createAiFixture()
    const second = await own.agent()
    const ids = [await own.thread(), await own.thread(second), await own.thread()]
    const theirs = await own.thread(main && own.main, own.as('other'))
    const list = async (query = '', client = own.user) =>
      (await own.done(client.get(`/ai/threads${query}`))).map(({ _id }: { _id: string }) => _id)
    expect(await list()).toEqual(ids.toReversed())
    expect(await list('?sort=created')).toEqual(ids)
    expect(await list('?limit=1&page=2')).toEqual([ids[1]])
    expect(await list(`?integration=${second}`)).toEqual([ids[1]])
    expect(await list('?workspace=x')).toEqual([])
    expect(await list(`?user=${own.users.other}`)).toEqual([])
    expect(await list('', own.admin)).toHaveLength(4)
    expect(await list('?bypassAdmin=true', own.admin)).toEqual([])
    expect(await list(`?user=${own.users.other}`, own.admin)).toEqual([theirs])
    expect(statusAndCode(await own.user.get('/ai/threads?limit=-1'))).toEqual([400, 'INVALID_INPUT'])
    expect(statusAndCode(await own.user.get('/ai/threads?sort=content'))).toEqual([400, 'INVALID_INPUT'])
    const { headers, body } = await own.user.get('/ai/threads?limit=2&count=true')
    expect(headers.get('x-total-count')).toBe('3')
    expect(headers.get('link')).toContain('rel="next"')
    expect(body[0].messages).toEqual([])
    await own.openai.stop()
  })

  test('GET /ai/threads finds the threads that were created in a workspace', async () => {
    const { _id } = await at.done(user.post('/workspaces', { name: 'Office' }))
    await at.done(user.post(`/workspaces/${_id}/activate`))
    const id = await at.thread()
    expect((await user.get(`/ai/threads?workspace=${_id}`)).body).toMatchObject([{ _id: id, workspace: _id }])
  })
})

describe('the messages of a thread', () => {
  test.each([false, true])(
    'messages are stored, and sent to the model with the next message (stream: %p)',
    async (stream) => {
      const id = await at.thread()
      const before = Date.now()
      openai.reply({ text: 'Hello, Ada.' }, { text: 'You are Ada.' })
      await chat(
        user,
        main,
        {
          stream,
          messages: [
            chatMessage(
              'I am Ada,\n  and this is the first of many words that I am going to say to you today, dear model.',
            ),
          ],
        },
        id,
      )
      await chat(user, main, { stream, messages: [chatMessage('Who am I?')], rules: ['Be short.'] }, id)
      expect(linesToModel().slice(1)).toEqual([
        expect.stringContaining('user: I am Ada'),
        'assistant: Hello, Ada.',
        'user: Who am I?',
      ])
      const { messages, title } = await at.threadOf(id)
      expect(toLines(messages)).toEqual([...linesToModel().slice(1), 'assistant: You are Ada.'])
      for (const { timestamp } of messages) expect(Date.parse(timestamp)).toBeGreaterThanOrEqual(before)
      expect(title).toBe('I am Ada, and this is the first of many words that I am going to say to you…')
    },
  )

  test('messages that a client sends again are stored and sent to the model once, while a new message may repeat an old one', async () => {
    const id = await at.thread()
    openai.reply({ text: 'Yes?' }, { text: 'Yes!' }, { text: 'Still here.' })
    await chat(user, main, { messages: [chatMessage('Hey')] }, id)
    await chat(user, main, { messages: [chatMessage('Hey')] }, id)
    expect(linesToModel()).toEqual(['user: Hey', 'assistant: Yes?', 'user: Hey'])
    const all = [
      chatMessage('Hey'),
      chatMessage('Yes?', 'assistant'),
      chatMessage('Hey'),
      chatMessage('Yes!', 'assistant'),
    ]
    await chat(user, main, { messages: [...all, chatMessage('Hello?')] }, id)
    expect(linesToModel()).toEqual([...toLines(all), 'user: Hello?'])
    // Some clients send only the latest messages.
    await chat(user, main, { messages: [chatMessage('Still here.', 'assistant'), chatMessage('Bye')] }, id)
    expect(linesToModel()).toEqual([...toLines(all), 'user: Hello?', 'assistant: Still here.', 'user: Bye'])
    expect(toLines((await at.threadOf(id)).messages)).toEqual([...linesToModel(), 'assistant: Hello there!'])
  })

  test('clients see one answer for a turn of several tool rounds, and may send it again with the next message', async () => {
    const tools = [await at.tool('now', '() => "noon"')]
    const agent = await at.agent({ tools })
    const id = await at.thread(agent)
    openai.reply({ ...toolCalls(['now', {}, 'c1']), text: 'Let me see. ' }, { text: 'Noon.' })
    const { body } = await chat(user, agent, {}, id)
    const answer = body.choices[0].message
    expect(answer.content).toBe('Let me see. Noon.')
    await chat(user, agent, { messages: [chatMessage('Hello'), answer, chatMessage('Thanks')] }, id)
    expect(linesToModel()).toEqual([
      'user: Hello',
      'assistant: Let me see. ',
      'tool: noon',
      'assistant: Noon.',
      'user: Thanks',
    ])
  })

  test.each([false, true])(
    'a thread continues after the result of a client tool, however much of it is sent again (stream: %p)',
    async (stream) => {
      const tools = [await at.tool(`now${stream}`, '() => "noon"')]
      const agent = await at.agent({ tools })
      const clientTools = [{ name: 'pick' }]
      const resends = [
        (pause: { assistantToolCalls: object[] }) => [
          chatMessage('Hello'),
          { role: 'assistant', content: '', tool_calls: pause.assistantToolCalls },
        ],
        () => [],
      ]
      for (const before of resends) {
        const id = await at.thread(agent)
        openai.reply(
          toolCalls([`now${stream}`, {}, 'c1']),
          { ...toolCalls(['pick', {}, 'c2']), text: 'Choose!' },
          { text: 'Red.' },
        )
        const answer = await chat(user, agent, { stream, clientTools }, id)
        const pause = stream ? parseEvents(answer.body).events.at(-1) : answer.body
        expect(pause.functionCalls).toMatchObject([{ id: 'c2' }])
        const messages = [...before(pause), { role: 'tool', tool_call_id: 'c2', content: 'red' }]
        expect((await chat(user, agent, { stream, clientTools, messages }, id)).status).toBe(200)
        expect(linesToModel()).toEqual(['user: Hello', 'assistant: Choose!', 'tool: noon', 'tool: red'])
        const expectedLines = ['user: Hello', 'assistant: Choose!', 'tool: noon', 'tool: red', 'assistant: Red.']
        expect(toLines((await at.threadOf(id)).messages)).toEqual(expectedLines)
        // A client that lost the answer sends everything again, and nothing is stored twice.
        await chat(user, agent, { stream, clientTools, messages: [...messages, chatMessage('And now?')] }, id)
        expect(linesToModel().filter((one) => one === 'tool: red')).toHaveLength(1)
      }
    },
  )

  test('a client tool call without a result is completed with a placeholder, and the thread continues', async () => {
    const id = await at.thread()
    openai.reply(toolCalls(['pick', {}, 'c1']))
    await chat(user, main, { clientTools: [{ name: 'pick' }] }, id)
    expect((await chat(user, main, { messages: [chatMessage('Never mind.')] }, id)).status).toBe(200)
    expect(linesToModel()).toEqual([
      'user: Hello',
      expect.stringContaining('assistant'),
      'tool: This was not answered.',
      'user: Never mind.',
    ])
  })

  test('concurrent messages to one thread are stored one after the other, each with its answer', async () => {
    const id = await at.thread()
    await Promise.all(['a', 'b', 'c', 'd'].map((text) => chat(user, main, { messages: [chatMessage(text)] }, id)))
    const { messages } = await at.threadOf(id)
    expect(messages).toHaveLength(8)
    for (let n = 0; n < 8; n += 2)
      expect(toLines(messages.slice(n, n + 2))).toEqual([
        expect.stringMatching(/^user: [a-d]$/),
        'assistant: Hello there!',
      ])
  })

  test('an agent with recordThread creates a thread for each completion and returns its id', async () => {
    const agent = await at.agent({ recordThread: true })
    const { body } = await chat(user, agent)
    expect(toLines((await at.threadOf(body.threadId)).messages)).toEqual(['user: Hello', 'assistant: Hello there!'])
    const { events } = parseEvents((await chat(user, agent, { stream: true })).body)
    expect((await at.threadOf(events.at(-1).threadId)).title).toBe('Hello')
  })
})

describe('a long conversation', () => {
  test('a conversation longer than historyTokens is summarized, and each summary continues the previous one', async () => {
    const agent = await at.agent({ historyTokens: 300, systemPrompt: 'Be kind.' })
    const id = await at.thread(agent)
    const summaryRequests = () => openai.requests.filter(({ body }) => body.messages[0].content.startsWith('Sum up'))
    openai.own.always = ({ body }) => ({
      text: body.messages[0].content.startsWith('Sum up') ? 'They counted.' : 'Next.',
    })
    for (let n = 1; n <= 12; n++) {
      const { status } = await chat(user, agent, { messages: [chatMessage(`${n} ${'word '.repeat(40)}`)] }, id)
      expect(status).toBe(200)
      const { messages } = openai.last().body
      expect(JSON.stringify(messages).length).toBeLessThan(300 * 4 + 1_500)
      expect(messages.at(-1).content).toStartWith(`${n} `)
    }
    openai.own.always = {}
    const { messages, messageSummaries } = await at.threadOf(id)
    expect(messages).toHaveLength(24)
    expect(messageSummaries.length).toBe(summaryRequests().length)
    expect(messageSummaries.length).toBeGreaterThan(1)
    expect(messageSummaries[0]).toEqual({
      content: 'They counted.',
      upTo: expect.any(Number),
      created: expect.any(String),
    })
    // Each summary continues the previous one.
    expect(summaryRequests()[1]!.body.messages[1].content).toContain('They counted.')
    const [system, before, first] = openai.last().body.messages
    expect([system.content, before.content]).toEqual(['Be kind.', 'What was said before, in short:\nThey counted.'])
    expect(first.role).toBe('user')
  })

  test('a conversation continues without a summary when the model fails to write one', async () => {
    const agent = await at.agent({ historyTokens: 100 })
    const id = await at.thread(agent)
    const long = { messages: [chatMessage('word '.repeat(150))] }
    await chat(user, agent, long, id)
    openai.own.always = ({ body }) => (body.messages[0].content.startsWith('Sum up') ? { status: 400 } : {})
    expect((await chat(user, agent, long, id)).status).toBe(200)
    openai.own.always = {}
    expect((await at.threadOf(id)).messageSummaries).toEqual([])
  })
})

/** Inserts messages with these numbers into a thread, as if they had been sent. */
const insertMessages = (thread: string, numbers: number[], content: string) => {
  const row = { thread, role: 'user' as const, content, name: null, toolCalls: null, toolCallId: null }
  const rows = numbers.map((number) => ({
    ...row,
    number,
    ours: false,
    incomplete: false,
    created: toIsoString(now()),
  }))
  return at.tenant.write((tx) => tx.insert(messages).values(rows))
}

test.each([
  ['10,000 messages', [10_000], 1],
  ['32 MiB of text', Array.from({ length: 32 }, (_, n) => n + 1), 1 << 20],
])('a thread with %s takes no more and gets 409 THREAD_TOO_LONG', async (_, numbers, length) => {
  const thread = await at.thread()
  await insertMessages(thread, numbers, 'x'.repeat(length))
  expect(statusAndCode(await chat(user, main, {}, thread))).toEqual([409, 'THREAD_TOO_LONG'])
  expect(openai.requests).toHaveLength(0)
})

test('messages that a thread has already do not count when a client sends them again', async () => {
  const thread = await at.thread()
  await insertMessages(thread, [9_998, 9_999], 'x')
  const conversation = { messages: [chatMessage('x'), chatMessage('x'), chatMessage('y')] }
  expect((await chat(user, main, conversation, thread)).status).toBe(200)
  expect(statusAndCode(await chat(user, main, conversation, thread))).toEqual([409, 'THREAD_TOO_LONG'])
})
