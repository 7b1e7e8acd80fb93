import { afterAll, beforeAll, describe, expect, spyOn, test } from 'bun:test'
import { config } from '../../src/config'
import { listen } from '../../src/gateway'
import { costlyWork } from '../../src/tenancy/fair-queue'
import { expectToTakeTurns } from '../costly-reads'
import { createThingsFixture } from '../entities/fixtures'
import { sendRaw } from '../fakes/cli'
import { errorOf } from '../rejections'
import { callApi, fullAccessRules, statusAndCode } from '../test-tenant'
import { waitUntil } from '../wait-until'

const FILLER = 'Of this there is a sentence "or two", 😀.\n'.repeat(6_000) // more than 64 KiB
const fields = [
  { key: 'name', type: 'string', max: 100 },
  { key: 'worth', type: 'number' },
  { key: 'notes', type: 'text' },
  { key: 'parts', type: 'object' },
]
let own: Awaited<ReturnType<typeof createThingsFixture>>
beforeAll(async () => {
  own = await createThingsFixture(fields, fullAccessRules('tenant', 'user'))
})

const json = { 'content-type': 'application/json' }
const send = (path: string, raw: string | Uint8Array | ReadableStream, headers: Record<string, string> = json) =>
  callApi('POST', `${own.origin}/api${path}`, { raw, headers: { 'x-api-key': own.tokens.user, ...headers } })
const toStream = (text: string) => new Blob([text]).stream()

/** Keeps the only turn of the tenant until `release` is called. `countWaiting` returns how many have queued since. */
function holdTurn() {
  const held = Promise.withResolvers<void>()
  const acquired = spyOn(costlyWork, 'acquireSlot')
  const occupant = costlyWork.run({ tenant: own.id, caller: 'another caller' }, () => held.promise, { whole: true })
  return {
    countWaiting: () => acquired.mock.calls.length,
    release: async () => {
      acquired.mockRestore()
      held.resolve()
      await occupant
    },
  }
}

describe('bodies of more than 64 KiB', () => {
  const chat = '/ai/sources/echo/chat-completion/plain'
  /** Bodies with one flaw. Words in capitals stand for long texts. */
  const FLAWED: [path: string, body: string][] = [
    ['things', '{"name":"Ada","notes":"FILLER"'],
    ['things', '{"name":"Ada","notes":"FILLER",}'],
    ['things', '{"name":"Ada",,"notes":"FILLER"}'],
    ['things', '{"name":"Ada","notes":"FILLER"} {}'],
    ['things', '[{"notes":"FILLER"}]'],
    ['things', '"FILLER"'],
    ['things', '{"name":"Ada","notes":"FILLER\\u0000"}'],
    ['things', '{"name":"Ada","notes":"FILLER\\ud800"}'],
    ['things', '{"name":"Ada","notes":"FILLER","__proto__":{"admin":true}}'],
    ['things', '{"name":"Ada","notes":"FILLER","worth":1e999}'],
    ['things', '{"name":"Ada","notes":"FILLER","worth":"much"}'],
    ['things', '{"name":"Ada","notes":"FILLER","unknown":1}'],
    ['things', '{"notes":"FILLER","parts":NESTED}'],
    [chat, '{"messages":[{"role":"user","content":"FILLER"},{"role":"user","content":7}]}'],
    [chat, '{"messages":[{"role":"user","content":"FILLER"}],"mesages":[]}'],
    [chat, '{"messages":[{"role":"user","content":"FILLER"},{"role":"nobody","content":"a"}]}'],
    [chat, '{"messages":[{"role":"user","content":"FILLER"},MANY]}'],
    [chat, '{"messages":[{"role":"user","content":"FILLER"}],"temperature":9}'],
  ]
  const toPath = (path: string) => (path === 'things' ? own.path : path)

  const NESTED = `${'{"a":['.repeat(40)}1${']}'.repeat(40)}`
  const MANY = Array(2_001).fill('{}').join(',')

  test.each(FLAWED)('a large body is refused at %s with the same words as a small one: %s', async (path, text) => {
    const body = text.replace('NESTED', NESTED).replace('MANY', MANY)
    const refusalOf = async (text: string | ReadableStream) => {
      const { status, body: problem } = await send(toPath(path), text)
      const { requestId, ...refusal } = problem
      return { status, refusal }
    }
    const small = await refusalOf(body.replace('FILLER', 'a'))
    expect(small.status).toBe(400)
    const large = body.replace('FILLER', JSON.stringify(FILLER).slice(1, -1))
    expect(await refusalOf(large)).toEqual(small)
    expect(await refusalOf(toStream(large))).toEqual(small)
  })

  test('a large body is refused with 415 and 413 as a small one is', async () => {
    const body = JSON.stringify({ notes: FILLER })
    expect(statusAndCode(await send(own.path, body, { 'content-type': 'text/plain' }))).toEqual([
      415,
      'UNSUPPORTED_MEDIA_TYPE',
    ])
    const tooLarge = JSON.stringify({ notes: 'x'.repeat(config.ATOLL_BODY_LIMIT) })
    for (const raw of [tooLarge, toStream(tooLarge)])
      expect(statusAndCode(await send(own.path, raw))).toEqual([413, 'BODY_TOO_LARGE'])
  })

  test('a large entity is stored as it was sent, with every kind of value', async () => {
    const parts = {
      list: Array.from({ length: 300 }, (_, n) => [n, `${n}`.repeat(30), null, { n: n % 2 === 0 }]),
      '7': 'a',
      '1': { toString: 1, '': -0.5e-7 },
    }
    for (const toBody of [(text: string) => text, toStream]) {
      const created = await send(own.path, toBody(JSON.stringify({ name: 'Ada', notes: FILLER, parts })))
      expect([created.status, created.body.details]).toEqual([201, undefined])
      const { body } = await own.as('user').get(`${own.path}/${created.body._id}`)
      expect([body.notes, body.parts]).toEqual([FILLER, parts])
    }
  })

  test('a large body waits for its turn', async () => {
    const answer = await expectToTakeTurns(own.id, () => send(own.path, JSON.stringify({ notes: FILLER })))
    expect(answer.status).toBe(201)
  })

  test('a large body is refused with 503 BUSY while 50 of its caller wait, and those are answered', async () => {
    const turn = holdTurn()
    const bodies = Array.from({ length: 50 }, () => send(own.path, JSON.stringify({ notes: FILLER })))
    await waitUntil(() => turn.countWaiting() === 50)
    const refused = await send(own.path, JSON.stringify({ notes: FILLER }))
    expect([...statusAndCode(refused), refused.headers.get('retry-after')]).toEqual([503, 'BUSY', '1'])
    await turn.release()
    expect((await Promise.all(bodies)).map(({ status }) => status)).toEqual(Array(50).fill(201))
  })

  test('a large body is not parsed any more once its client has left', async () => {
    const turn = holdTurn()
    const server = listen('127.0.0.1', 0)
    const aborter = new AbortController()
    const headers = { ...json, host: `${own.id}.test`, 'x-api-key': own.tokens.user }
    const name = 'who has left'
    const sent = fetch(`${server.url}api${own.path}`, {
      ...{ method: 'POST', headers, body: JSON.stringify({ name, notes: FILLER }), signal: aborter.signal },
    })
    await waitUntil(() => turn.countWaiting() === 1)
    aborter.abort()
    await errorOf(sent)
    await Bun.sleep(20) // until the server knows
    await turn.release()
    expect((await send(own.path, JSON.stringify({ notes: FILLER }))).status).toBe(201)
    expect((await own.as('user').get(`${own.path}?name=${encodeURIComponent(name)}`)).body).toEqual([])
    await server.stop(true)
  })

  test('a large body that is broken off is not stored, and others are answered', async () => {
    const server = listen('127.0.0.1', 0)
    const body = JSON.stringify({ name: 'broken off', notes: FILLER })
    const head = [
      `POST /api${own.path} HTTP/1.1`,
      ...[`host: ${own.id}.test`, `x-api-key: ${own.tokens.user}`, 'content-type: application/json'],
      ...[`content-length: ${body.length * 2}`, '', ''],
    ]
    await sendRaw(server.port!, [head.join('\r\n') + body], 200)
    expect((await send(own.path, JSON.stringify({ notes: FILLER }))).status).toBe(201)
    expect((await own.as('user').get(`${own.path}?name=broken off`)).body).toEqual([])
    await server.stop(true)
  })
})

describe('large chats', () => {
  const limit = config.ATOLL_AI_BODY_LIMIT
  afterAll(() => {
    config.ATOLL_AI_BODY_LIMIT = limit
  })

  test('a chat of 16 MiB takes turns, and is answered with its number of tokens', async () => {
    config.ATOLL_AI_BODY_LIMIT = 16 << 20
    const earlier = Array.from({ length: 400 }, () => ({ role: 'assistant', content: 'x"é'.repeat(7_000) }))
    const messages = [...earlier, { role: 'user', content: 'Is that all?' }]
    const ask = () => send('/ai/sources/echo/chat-completion/plain', JSON.stringify({ messages }))
    const { status, body } = await expectToTakeTurns(own.id, ask)
    expect([status, body.choices?.[0].message.content]).toEqual([200, 'Is that all?'])
    // About a token for four bytes of text.
    expect(body.usage.prompt_tokens).toBeWithin(400 * 7_000, 400 * 7_100)
    expect((await ask()).body.usage).toEqual(body.usage)
  })
})
