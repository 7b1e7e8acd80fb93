import { afterAll, afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { moveClock, now } from '../../../src/core/clock'
import { housekeepingTasks } from '../../../src/jobs/housekeeping'
import { withLease } from '../../../src/jobs/with-lease'
import type { ReplyPlan } from '../../fakes/openai-server'
import { statusAndCode } from '../../test-tenant'
import { chatMessage, createAiFixture, parseEvents } from '../fixtures'

const at = await createAiFixture()
const { user, openai, main, chat } = at
const clientTools = [{ name: 'pick' }]
const count = await at.tool('count', '({ body }) => ({ counted: body.n })')
const agent = await at.agent({ tools: [count] })
afterAll(() => openai.stop())
beforeEach(() => openai.clear())

const callOf = (id: string, name: string, more: object = {}) => ({
  ...{ id, type: 'function', function: { name, arguments: '{"n": 1}' } },
  ...more,
})
const signed = { extra_content: { google: { thought_signature: 'c2ln' } } }

/** A reply with members that only the provider knows, whole or streamed in pieces. */
function reply(
  stream: boolean,
  message: { reasoning_content: string; content?: string; tool_calls?: object[] },
): ReplyPlan {
  const finish_reason = message.tool_calls ? 'tool_calls' : 'stop'
  if (!stream)
    return { body: JSON.stringify({ choices: [{ message: { role: 'assistant', ...message }, finish_reason }] }) }
  const { reasoning_content: thinking, tool_calls: calls, ...others } = message
  const deltas = [
    { role: 'assistant', reasoning_content: thinking.slice(0, 3) },
    { reasoning_content: thinking.slice(3) },
    others,
    ...(calls ? [{ tool_calls: calls.map((call, index) => ({ index, ...call })) }] : []),
  ]
  const chunks = [...deltas.map((delta) => ({ choices: [{ delta }] })), { choices: [{ delta: {}, finish_reason }] }]
  return {
    body: `${chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('')}data: [DONE]\n\n`,
    headers: { 'content-type': 'text/event-stream' },
  }
}

const sentMessages = () => openai.last().body.messages

describe.each([false, true])('the words of a provider go back unchanged (stream: %p)', (stream) => {
  const thought = {
    role: 'assistant',
    content: null,
    reasoning_content: 'I have to count.',
    tool_calls: [callOf('c1', 'count', signed)],
  }
  const counted = { role: 'tool', tool_call_id: 'c1', content: '{"counted":1}' }

  test('the rounds of a turn have it, and clients do not see it', async () => {
    openai.reply(
      reply(stream, { reasoning_content: 'I have to count.', tool_calls: [callOf('c1', 'count', signed)] }),
      reply(stream, { reasoning_content: 'Now I know.', content: 'One.' }),
    )
    const { status, body } = await chat(user, agent, { stream })
    expect(status).toBe(200)
    expect(sentMessages()).toEqual([chatMessage('Hello'), thought, counted])
    expect(JSON.stringify(body)).not.toMatch(/reasoning|thought_signature|I have to/)
  })

  test('the later turns of a thread have it, and clients do not see it', async () => {
    const thread = await at.thread(agent)
    openai.reply(
      reply(stream, { reasoning_content: 'I have to count.', tool_calls: [callOf('c1', 'count', signed)] }),
      reply(stream, { reasoning_content: 'Now I know.', content: 'One.' }),
    )
    await chat(user, agent, { stream }, thread)
    openai.reply(reply(stream, { reasoning_content: 'Easy.', content: 'Two.' }))
    expect((await chat(user, agent, { stream, messages: [chatMessage('And now?')] }, thread)).status).toBe(200)
    expect(sentMessages()).toEqual([
      chatMessage('Hello'),
      thought,
      counted,
      { role: 'assistant', content: 'One.', reasoning_content: 'Now I know.' },
      chatMessage('And now?'),
    ])
    const { messages } = await at.threadOf(thread)
    expect(JSON.stringify(messages)).not.toMatch(/reasoning|thought_signature|I have to/)
    expect(messages[1].tool_calls).toEqual([callOf('c1', 'count')])
  })

  test.each(['a thread', 'no thread'])(
    'the turn after a client tool was run has it round by round, with %s',
    async (place) => {
      const thread = place === 'a thread' ? await at.thread(agent) : ''
      openai.reply(
        reply(stream, { reasoning_content: 'I have to count.', tool_calls: [callOf('c1', 'count', signed)] }),
        reply(stream, {
          reasoning_content: 'Now ask.',
          content: 'Choose! ',
          tool_calls: [callOf('c2', 'pick', signed)],
        }),
      )
      const { body } = await chat(user, agent, { stream, clientTools }, thread)
      const pause = stream ? parseEvents(body).events.at(-1) : body
      expect(pause.assistantToolCalls).toEqual([callOf('c1', 'count'), callOf('c2', 'pick')])
      openai.reply({ text: 'Red.' })
      // Clients may write the arguments anew.
      const rewritten = pause.assistantToolCalls.map((call: { function: object }) => ({
        ...call,
        function: { ...call.function, arguments: '{"n":1}' },
      }))
      const messages = [
        chatMessage('Hello'),
        { role: 'assistant', tool_calls: rewritten },
        { role: 'tool', tool_call_id: 'c2', content: 'red' },
      ]
      expect((await chat(user, agent, { stream, clientTools, messages }, thread)).status).toBe(200)
      expect(sentMessages()).toEqual([
        chatMessage('Hello'),
        thought,
        counted,
        {
          ...{ role: 'assistant', content: 'Choose! ', reasoning_content: 'Now ask.' },
          tool_calls: [callOf('c2', 'pick', signed)],
        },
        { role: 'tool', tool_call_id: 'c2', content: 'red' },
      ])

      // Another user, and another agent, get none of it.
      if (thread) return
      await chat(at.as('other'), agent, { clientTools, messages })
      expect(JSON.stringify(sentMessages())).not.toMatch(/reasoning|counted/)
      await chat(user, main, { clientTools, messages })
      expect(JSON.stringify(sentMessages())).not.toMatch(/reasoning|counted/)
    },
  )
})

test('words of a model in one conversation do not come back in another one with an equal call', async () => {
  const answered = (question: string) => [
    chatMessage(question),
    { role: 'assistant', tool_calls: [callOf('call_0', 'pick')] },
    { role: 'tool', tool_call_id: 'call_0', content: 'red' },
  ]
  const ask = (question: string) => chat(user, agent, { clientTools, messages: [chatMessage(question)] })
  const goOn = async (question: string) => {
    openai.reply({ text: 'Red.' })
    await chat(user, agent, { clientTools, messages: answered(question) })
    return JSON.stringify(sentMessages())
  }
  const call = { tool_calls: [callOf('call_0', 'pick', signed)] }
  openai.reply(reply(false, { reasoning_content: 'Of the first.', ...call }))
  await ask('The first')
  expect(await goOn('The second')).not.toContain('Of the first.')
  expect(await goOn('The first')).toContain('Of the first.')
  // The same question again, whose answer has no such members.
  const message = { role: 'assistant', content: null, tool_calls: [callOf('call_0', 'pick')] }
  openai.reply({ body: JSON.stringify({ choices: [{ message, finish_reason: 'tool_calls' }] }) })
  await ask('The first')
  expect(await goOn('The first')).not.toContain('Of the first.')
})

describe('the words that are kept for a turn without a thread', () => {
  const question = 'What is kept?'
  const pause = async (thinking: string) => {
    openai.reply(reply(false, { reasoning_content: thinking, tool_calls: [callOf('call_k', 'pick')] }))
    await chat(user, agent, { clientTools, messages: [chatMessage(question)] })
  }
  const goOn = async () => {
    openai.reply({ text: 'Red.' })
    const answer = { role: 'tool', tool_call_id: 'call_k', content: 'red' }
    const said = { role: 'assistant', tool_calls: [callOf('call_k', 'pick')] }
    await chat(user, agent, { clientTools, messages: [chatMessage(question), said, answer] })
    return sentMessages()[1].reasoning_content
  }
  const countRows = async () => Number((await at.tenant.db.query('select count(*) from tool_results'))[0]![0])
  const keepHouse = () => withLease(at.tenant, crypto.randomUUID(), housekeepingTasks().get('old turns')!)
  afterEach(() => moveClock())

  test('they are forgotten after a day', async () => {
    await pause('I think.')
    moveClock(now() + 23 * 3_600_000)
    await keepHouse()
    expect(await goOn()).toBe('I think.')
    moveClock(now() + 2 * 3_600_000)
    await keepHouse()
    expect(await goOn()).toBeUndefined()
  })

  test('more than 512 KiB of them are not kept', async () => {
    await pause('x'.repeat(500 << 10))
    expect(await goOn()).toHaveLength(500 << 10)
    await pause('x'.repeat(513 << 10))
    expect(await goOn()).toBeUndefined()
  })

  test('the oldest are forgotten when there are more than 20,000', async () => {
    await at.tenant.write((tx) => tx.query('delete from tool_results'))
    await pause('The oldest.')
    moveClock(now() + 1_000)
    const created = now()
    const rows = Array.from({ length: 20_000 }, (_, n) => [`row${n}`, 'null', created])
    await at.tenant.write((tx) =>
      tx.executeMany('insert into tool_results (_id, content, created) values (?, ?, ?)', rows.slice(1)),
    )
    expect([await countRows(), await goOn()]).toEqual([20_000, 'The oldest.'])
    moveClock(now() + 1_000)
    openai.reply(reply(false, { reasoning_content: 'Another.', tool_calls: [callOf('call_other', 'pick')] }))
    await chat(user, agent, { clientTools, messages: [chatMessage('Another question')] })
    expect([await countRows(), await goOn()]).toEqual([20_000, undefined])
  })
})

test('members of a provider that a client sends reach it, and are shown in the thread; members of user interfaces are dropped', async () => {
  const thread = await at.thread()
  const known = { role: 'assistant', content: 'Hi.', reasoning_content: 'A greeting.' }
  const messages = [
    { ...chatMessage('Hello'), id: 'm1' },
    { ...known, id: 'm2', createdAt: '2026-01-01', refusal: null, annotations: [] },
    chatMessage('And?'),
  ]
  expect((await chat(user, main, { messages }, thread)).status).toBe(200)
  expect(sentMessages()).toEqual([chatMessage('Hello'), known, chatMessage('And?')])
  const stored = (await at.threadOf(thread)).messages
  expect(stored[1]).toEqual({ ...known, timestamp: expect.any(String) })
  await chat(user, main, { messages: [chatMessage('So?')] }, thread)
  expect(sentMessages()[1]).toEqual(known)
})

test('content as a list of texts is one text, and the role developer is system', async () => {
  const polite = await at.agent({ allowSystemMessages: true })
  const text = (...texts: string[]) => texts.map((one) => ({ type: 'text', text: one }))
  const messages = [
    { role: 'developer', content: text('Be kind.') },
    { role: 'user', content: text('Hello ', 'there') },
    { role: 'assistant', content: text('Hi.'), tool_calls: [callOf('c1', 'pick')] },
    { role: 'tool', tool_call_id: 'c1', content: text('undefined') },
  ]
  expect((await chat(user, polite, { messages, clientTools })).status).toBe(200)
  expect(sentMessages()).toEqual([
    chatMessage('Be kind.', 'system'),
    chatMessage('Hello there'),
    { role: 'assistant', content: 'Hi.', tool_calls: [callOf('c1', 'pick')] },
    { role: 'tool', tool_call_id: 'c1', content: 'undefined' },
  ])
})

describe('pictures', () => {
  const picture = { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=', detail: 'low' } }
  const question = { role: 'user', content: [{ type: 'text', text: 'What is this?' }, picture] }

  test('pictures reach the model unchanged, also in the later turns of a thread', async () => {
    const thread = await at.thread()
    expect((await chat(user, main, { messages: [question] }, thread)).status).toBe(200)
    expect(sentMessages()).toEqual([question])
    await chat(user, main, { messages: [chatMessage('Are you sure?')] }, thread)
    expect(sentMessages()[0]).toEqual(question)
    expect((await at.threadOf(thread)).messages[0].content).toBe('What is this?')
  })

  test.each([false, true])('pictures are 400 where the model has no sight (stream: %p)', async (stream) => {
    const echo = await at.agent({ sourceId: 'echo' })
    const refused = await chat(user, echo, { stream, messages: [question] })
    expect(statusAndCode(refused)).toEqual([400, 'INVALID_INPUT'])
    expect(refused.body.details[0].path).toBe('/messages/0/content')
    openai.reply({ status: 400 })
    expect(statusAndCode(await chat(user, main, { stream, messages: [question] }))).toEqual([400, 'INVALID_INPUT'])
    openai.reply({ status: 400 })
    expect(statusAndCode(await chat(user, main, { stream }))).toEqual([502, 'AI_UPSTREAM_ERROR'])
  })
})

describe('tools of an OpenAI client', () => {
  const tools = [
    {
      type: 'function',
      function: {
        name: 'pick',
        parameters: { $schema: 'https://json-schema.org/draft/2020-12/schema', type: 'object' },
      },
    },
  ]

  test('tools of an OpenAI client are client tools', async () => {
    openai.reply({ calls: [{ id: 'c1', name: 'pick', arguments: '{}' }] })
    const { body } = await chat(user, main, { tools })
    expect(body).toMatchObject({ type: 'client_tool_calls', functionCalls: [{ id: 'c1' }] })
    expect(openai.last().body.tools).toMatchObject(tools)
  })

  test('tools may not have the names of other tools', async () => {
    const taken = await chat(user, main, { tools, clientTools })
    expect(statusAndCode(taken)).toEqual([400, 'TOOL_NAME_TAKEN'])
    expect(taken.body.details[0].path).toBe('/tools/0')
  })
})

describe('an answer that ends amid a call', () => {
  test.each([
    ['without a finish reason', ''],
    ['at its limit', 'length'],
  ])('an answer that ends amid a call is a clear error, and nothing of it is stored: %s', async (_, finish) => {
    for (const stream of [false, true]) {
      const thread = await at.thread(agent)
      openai.reply({ text: 'Wait.', calls: [{ id: 'c1', name: 'count', arguments: '{"n":' }], finish })
      const answer = await chat(user, agent, { stream }, thread)
      const error = stream ? parseEvents(answer.body).events.at(-1).error : answer.body
      expect(error).toMatchObject({ code: 'AI_UPSTREAM_ERROR', message: expect.stringMatching(/broke off|cut amid/) })
      expect((await at.threadOf(thread)).messages).toEqual([])
      expect(openai.requests.splice(0)).toHaveLength(1)
    }
  })
})
