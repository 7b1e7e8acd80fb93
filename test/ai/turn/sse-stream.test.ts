import { afterAll, beforeEach, describe, expect, spyOn, test } from 'bun:test'
import { EventSourceParserStream } from 'eventsource-parser/stream'
import { OpenAI } from 'openai'
import { abortAllTurns, acquireTurnSlot } from '../../../src/ai/turn/completion'
import { config } from '../../../src/config'
import { handleRequest, listen } from '../../../src/gateway'
import { errorOf } from '../../rejections'
import { statusAndCode } from '../../test-tenant'
import { waitUntil } from '../../wait-until'
import { chatMessage, createAiFixture, joinContent, parseEvents, toolCalls } from '../fixtures'

const at = await createAiFixture()
const { user, openai, main, chat, tokens, id: tenant } = at
const server = listen('127.0.0.1', 0)
const base = `http://127.0.0.1:${server.port}/api`
const headers = { tenant, 'x-api-key': tokens.user, 'content-type': 'application/json' }
afterAll(async () => {
  await openai.stop()
  await server.stop(true)
})
beforeEach(() => openai.clear())

const postStream = (body: object = {}, signal?: AbortSignal, path = `/ai/${main}/chat-completion`) =>
  fetch(base + path, {
    ...{ method: 'POST', headers, signal },
    body: JSON.stringify({ messages: [chatMessage('Hello')], stream: true, ...body }),
  })

test('a tenant has at most 1,000 concurrent completions per process, 500 of one caller, and the next one gets 503 BUSY', async () => {
  const take = (caller: string) => acquireTurnSlot({ tenant, caller }, new AbortController())
  const slots = ['one', 'other'].flatMap((caller) => Array.from({ length: 500 }, () => take(caller)))
  for (const caller of ['one', 'another']) expect(() => take(caller)).toThrow('The server is busy')
  const refused = await chat()
  expect([...statusAndCode(refused), refused.headers.get('retry-after')]).toEqual([503, 'BUSY', '1'])
  for (const release of slots) release()
  expect((await chat()).status).toBe(200)
})

describe('a stream', () => {
  test('a stream has the exact headers and chunks of OpenAI’s format and ends with [DONE]', async () => {
    const { headers, body } = await chat(user, main, { stream: true })
    expect(headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    expect(headers.get('cache-control')).toContain('no-cache')
    for (const line of body.split('\n\n').slice(0, -1)) expect(line).toMatch(/^data: .+$/)
    const { events, end } = parseEvents(body)
    expect(end).toBe('[DONE]')
    const head = { id: events[0].id, object: 'chat.completion.chunk', created: events[0].created, model: 'model-1' }
    expect(head.id).toStartWith('chatcmpl-')
    const words = ['Hell', 'o th', 'ere!'].map((content, n) => ({
      ...head,
      choices: [{ index: 0, delta: { ...(!n && { role: 'assistant' }), content }, finish_reason: null }],
    }))
    const usage = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 }
    expect(events).toEqual([...words, { ...head, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], usage }])
  })

  test('a stream carries the finish_reason of the model', async () => {
    openai.reply({ finish: 'length' })
    expect(parseEvents((await chat(user, main, { stream: true })).body).events.at(-1).choices[0].finish_reason).toBe(
      'length',
    )
  })

  test('a stream is readable by the official OpenAI client', async () => {
    const own = at.agent()
    const reader = new OpenAI({
      baseURL: `${base}/ai/agents/${await own}`,
      apiKey: 'x',
      maxRetries: 0,
      defaultHeaders: headers,
      fetch: (url, init) => fetch(String(url).replace(/\/chat\/completions$/, '/chat'), init as RequestInit),
    })
    reader.apiKey = 'unused'
    const chatRequest = { model: 'model-1', messages: [{ role: 'user' as const, content: 'Hello' }] }
    const client = { chat: reader.chat }
    let text = ''
    let finish: string | null = null
    let used: unknown
    for await (const chunk of await client.chat.completions.create({ ...chatRequest, stream: true })) {
      // Clients rely on a choice in each chunk.
      text += chunk.choices[0]!.delta.content ?? ''
      finish = chunk.choices[0]!.finish_reason
      used = chunk.usage ?? used
    }
    expect([text, finish, used]).toEqual([
      'Hello there!',
      'stop',
      { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 },
    ])
    const completion = await client.chat.completions.create(chatRequest)
    expect(completion.choices[0]!.message.content).toBe('Hello there!')
    const final = await client.chat.completions.stream(chatRequest).finalChatCompletion()
    expect(final.choices[0]!.message.content).toBe('Hello there!')
    openai.reply({ cut: 2 })
    const broken = async () => {
      for await (const _ of await client.chat.completions.create({ ...chatRequest, stream: true }));
    }
    expect((await errorOf(broken())).message).toContain('broke off')
  })

  test('a stream passes text on while the model is still writing', async () => {
    openai.reply({ text: 'one two three', pieces: 13, pace: 20 })
    const response = await postStream()
    const events = response.body!.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream())
    const left: number[] = []
    for await (const { data } of events as unknown as AsyncIterable<{ data: string }>)
      if (data.includes('"content"')) left.push(openai.left.length)
    expect(left).toHaveLength(13)
    // The first words arrive before the model has finished.
    openai.reply({ hang: 3 })
    const unfinished = await postStream()
    const reader = unfinished.body!.getReader()
    const { value } = await reader.read()
    expect(new TextDecoder().decode(value)).toContain('"content":"Hell"')
    await reader.cancel()
  })

  test('a stream keeps any text intact, however it is split into pieces', async () => {
    const text = 'Zoë said: "👩‍👩‍👧 data: [DONE]\n\n\\ end\u2028" 🎉🎉🎉'
    for (const pieces of [1, 2, 7, 100]) {
      openai.reply({ text, pieces })
      const thread = await at.thread()
      const { events, end } = parseEvents((await chat(user, main, { stream: true }, thread)).body)
      expect(joinContent(events)).toBe(text)
      expect(end).toBe('[DONE]')
      expect((await at.threadOf(thread)).messages[1].content).toBe(text)
    }
  })

  test('a stream is kept open by comments while the model is silent, also before its first word', async () => {
    const { setInterval: every, setTimeout: later } = globalThis
    const shorten = (ms?: number) => (ms === 5_000 ? 5 : ms)
    const spies = [
      spyOn(globalThis, 'setInterval').mockImplementation(((work: () => void, ms?: number) =>
        every(work, shorten(ms))) as never),
      spyOn(globalThis, 'setTimeout').mockImplementation(((work: () => void, ms?: number) =>
        later(work, shorten(ms))) as never),
    ]
    try {
      for (const hang of [2, 0]) {
        openai.reply({ hang })
        const reader = (await postStream()).body!.getReader()
        if (hang) await reader.read()
        for (const _ of [1, 2]) expect(new TextDecoder().decode((await reader.read()).value)).toMatch(/^(: .*\n\n)+$/)
        await reader.cancel()
      }
    } finally {
      for (const spy of spies) spy.mockRestore()
    }
  })
})

describe('a client that disconnects', () => {
  test('a disconnect in mid-stream aborts the request to the model, and the partial answer is kept as incomplete', async () => {
    openai.reply({ hang: 3 })
    const thread = await at.thread()
    const ending = new AbortController()
    const response = await postStream({}, ending.signal, `/ai/${main}/chat-completion/${thread}`)
    const reader = response.body!.getReader()
    for (let text = ''; !text.includes('o th'); ) text += new TextDecoder().decode((await reader.read()).value)
    const began = performance.now()
    ending.abort()
    const [left] = await waitUntil(() => (openai.left.length ? openai.left : undefined))
    expect(left! - began).toBeLessThan(10_000)
    const { messages } = await waitUntil(async () => {
      const found = await at.threadOf(thread)
      return found.messages.length ? found : undefined
    })
    expect(messages).toMatchObject([chatMessage('Hello'), { role: 'assistant', content: 'Hello th', incomplete: true }])
    expect((await at.usage())[0]).toMatchObject({ status: 'aborted', thread, estimated: true, user: at.users.user })
  })

  test('a disconnect before the first word, or without a stream, aborts the request to the model', async () => {
    for (const stream of [true, false]) {
      openai.clear()
      openai.reply({ hang: 0 })
      const ending = new AbortController()
      const answer = postStream({ stream }, ending.signal).catch(() => 'gone')
      await waitUntil(() => openai.requests.length)
      const began = performance.now()
      ending.abort()
      expect(await answer).toBe('gone')
      const [left] = await waitUntil(() => (openai.left.length ? openai.left : undefined))
      expect(left! - began).toBeLessThan(10_000)
      await waitUntil(async () => (await at.usage())[0]!.status === 'aborted')
    }
  })

  test('a disconnect while a tool runs keeps the tool call with the result INTERRUPTED', async () => {
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
    const slow = Bun.serve({
      ...{ hostname: '127.0.0.1', port: 0 },
      async fetch() {
        begin()
        await Bun.sleep(60_000)
        return new Response()
      },
    })
    const target = { kind: 'http', url: `http://127.0.0.1:${slow.port}/` }
    const trigger = { kind: 'tool', name: 'slow', description: 'Is slow.' }
    const tools = [(await at.made('/integrations', { trigger, target }))._id]
    const id = await at.agent({ tools })
    openai.reply(toolCalls(['slow', {}, 'c1']))
    const thread = await at.thread(id)
    const ending = new AbortController()
    const answer = postStream({}, ending.signal, `/ai/${id}/chat-completion/${thread}`).catch(() => 'gone')
    await begun
    ending.abort()
    expect(await answer).toBe('gone')
    const { messages } = await waitUntil(async () => {
      const found = await at.threadOf(thread)
      return found.messages.length ? found : undefined
    })
    expect(messages).toMatchObject([
      chatMessage('Hello'),
      { role: 'assistant', incomplete: true, tool_calls: [{ id: 'c1' }] },
      { role: 'tool', tool_call_id: 'c1', content: expect.stringContaining('INTERRUPTED') },
    ])
    await slow.stop(true)
  })
})

test('a server that shuts down ends streams with the error BUSY, answers others with 503 BUSY, and keeps partial answers', async () => {
  openai.reply({ hang: 3 }, { hang: 0 })
  const thread = await at.thread()
  const response = await postStream({}, undefined, `/ai/${main}/chat-completion/${thread}`)
  const waiting = user.post(`/ai/${main}/chat-completion`, { messages: [chatMessage('Hello')] })
  const reader = response.body!.getReader()
  let body = ''
  const read = async () => {
    const { done, value } = await reader.read()
    body += new TextDecoder().decode(value)
    return !done
  }
  while (!body.includes('o th')) await read()
  await waitUntil(() => openai.requests.length === 2 || undefined)
  abortAllTurns()
  while (await read());
  const { events, end } = parseEvents(body)
  expect([events.at(-1), end]).toEqual([{ error: { code: 'BUSY', message: expect.any(String) } }, '[DONE]'])
  const { status, headers, body: refusal } = await waiting
  expect([status, refusal.code, headers.get('retry-after')]).toEqual([503, 'BUSY', '5'])
  const { messages } = await at.threadOf(thread)
  expect(messages).toMatchObject([chatMessage('Hello'), { role: 'assistant', content: 'Hello th', incomplete: true }])
  expect((await at.usage()).slice(0, 2).map(({ status }) => status)).toEqual(['aborted', 'aborted'])
})

test.each([
  ['while the model answers', { text: 'x'.repeat(100), pieces: 100, hang: 50 }, 'x'],
  ['after a heartbeat, while the model is silent', { hang: 1 }, ': still here'],
])('a stream whose client reads nothing for a minute is aborted: %s', async (_, plan, last) => {
  openai.own.always = plan
  const { length: rowsBefore } = await at.usage()
  const { ATOLL_AI_TIMEOUT } = config
  config.ATOLL_AI_TIMEOUT = 10 * 60_000
  const { setInterval: every, performance } = globalThis
  const spies = [
    spyOn(globalThis, 'setInterval').mockImplementation(((work: () => void) => every(work, 5)) as never),
    spyOn(performance, 'now'),
  ]
  try {
    const url = `${base}/ai/${main}/chat-completion`
    const body = JSON.stringify({ messages: [chatMessage('Hello')], stream: true })
    const { body: stream } = await handleRequest(
      new Request(url, { method: 'POST', headers: { host: `${tenant}.test`, ...headers }, body }),
    )
    const reader = stream!.getReader()
    for (let text = ''; !text.includes(last); ) text += new TextDecoder().decode((await reader.read()).value)
    const later = performance.now() + 61_000
    spies[1]!.mockImplementation((() => later) as never)
    await waitUntil(() => openai.left.length)
    spies[1]!.mockRestore()
    const [row] = await waitUntil(async () => {
      const rows = await at.usage()
      return rows.length > rowsBefore ? rows : undefined
    })
    expect(row!.status).toBe('aborted')
  } finally {
    for (const spy of spies) spy.mockRestore()
    config.ATOLL_AI_TIMEOUT = ATOLL_AI_TIMEOUT
    openai.own.always = {}
  }
})

test('a stream whose client does not read stops reading from the model', async () => {
  const size = 64 << 10
  openai.reply({ text: 'x'.repeat(400 * size), pieces: 400 })
  const ending = new AbortController()
  const request = new Request(`${base}/ai/${main}/chat-completion`, {
    ...{ method: 'POST', headers: { host: `${tenant}.test`, ...headers }, signal: ending.signal },
    body: JSON.stringify({ messages: [chatMessage('Hello')], stream: true }),
  })
  const response = await handleRequest(request)
  const reader = response.body!.getReader()
  const { value } = await reader.read()
  expect(value!.length).toBeGreaterThan(size)
  let before = -1
  while (openai.own.sent > before) {
    before = openai.own.sent
    await Bun.sleep(50)
  }
  // Network buffers hold some of the text, but by far not all of it.
  expect(openai.own.sent).toBeLessThan(200)
  await reader.cancel()
  await waitUntil(() => openai.left.length)
})
