// engine: sqlite
import { expect, test } from 'bun:test'
import { readJson } from '../../src/core/body'

type Raw = string | Uint8Array<ArrayBuffer> | ReadableStream
const json = { 'content-type': 'application/json' }
const readBody = (
  body: Raw,
  headers: Record<string, string> = json,
  limit = 1 << 20,
  inspector?: Parameters<typeof readJson>[2],
) => readJson(new Request('http://a.test/', { method: 'POST', body, headers }), limit, inspector)
const outcomeOf = (body: Raw, headers?: Record<string, string>, limit?: number) =>
  readBody(body, headers, limit).then(
    () => 'accepted',
    ({ status, code }) => `${status} ${code}`,
  )
const streamOfChunks = (...chunks: (string | Uint8Array)[]) =>
  new ReadableStream({
    start(controller) {
      for (const chunk of chunks)
        controller.enqueue(typeof chunk === 'string' ? new TextEncoder().encode(chunk) : chunk)
      controller.close()
    },
  })

test('readJson returns JSON values of every type unchanged', async () => {
  const values = [{ a: [1, 'zwölf 🏝', null, true, { b: 1e300 }] }, [], {}, 'text', 0, null, false, -1.5]
  for (const value of values) expect(await readBody(JSON.stringify(value))).toEqual(value)
})

test('readJson returns undefined for an empty body of any content type', async () => {
  for (const headers of [json, { 'content-type': 'text/plain' }, { 'content-type': 'application/json;charset=x' }, {}])
    expect(await readBody('', headers as Record<string, string>)).toBeUndefined()
  expect(await readJson(new Request('http://a.test/', { method: 'POST' }), 10)).toBeUndefined()
})

test('readJson accepts every JSON media type and refuses others with 415 UNSUPPORTED_MEDIA_TYPE', async () => {
  const good = [
    'application/json',
    'Application/JSON',
    'application/json; charset=utf-8',
    'application/json;charset=UTF-8',
  ]
  for (const type of [...good, 'application/ld+json', 'application/merge-patch+json ;x=y'])
    expect(await readBody('{"a":1}', { 'content-type': type })).toEqual({ a: 1 })
  const bad = ['text/plain', 'application/jsonp', 'application/json5', 'text/json', 'x-application/json', 'json']
  for (const type of [
    ...bad,
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'text/x; application/json',
  ])
    expect(await outcomeOf('{"a":1}', { 'content-type': type }), type).toBe('415 UNSUPPORTED_MEDIA_TYPE')
  expect(await outcomeOf(new TextEncoder().encode('{}'), {})).toBe('415 UNSUPPORTED_MEDIA_TYPE')
})

test('a body with invalid JSON is refused with 400 MALFORMED_BODY', async () => {
  for (const body of ['{', '{"a":}', "{'a':1}", '{"a":1,}', 'undefined', 'NaN', '[1] 2', ' ', '\u0000', '// x\n{}'])
    expect(await outcomeOf(body), body).toBe('400 MALFORMED_BODY')
})

test('a body with hundreds of thousands of nested brackets is refused with 400', async () => {
  for (const body of ['['.repeat(500_000), '{"a":'.repeat(150_000), '['.repeat(400_000) + ']'.repeat(400_000)])
    expect(await outcomeOf(body)).toStartWith('400 ')
})

test('U+0000 and lone surrogates in values or keys are refused with 400 INVALID_INPUT', async () => {
  for (const text of ['"\\u0000"', '"\\ud83c"', '"\\udfdd"', '"\\udfdd\\ud83c"'])
    for (const body of [text, `[${text}]`, `{"a":{"b":${text}}}`, `{${text}:1}`])
      expect(await outcomeOf(body), body).toBe('400 INVALID_INPUT')
  expect(await readBody('"\\ud83c\\udfdd"')).toBe('🏝')
})

test('the key __proto__ is refused with 400 INVALID_INPUT, and Object.prototype stays unchanged', async () => {
  for (const body of ['{"__proto__":{"admin":true}}', '[{"a":{"__proto__":1}}]'])
    expect(await outcomeOf(body)).toBe('400 INVALID_INPUT')
  expect(await readBody('{"constructor":1,"toString":2}')).toEqual({ constructor: 1, toString: 2 })
  expect(({} as { admin?: boolean }).admin).toBeUndefined()
})

test('a body nested 64 levels deep is accepted, and the 65th level is refused with 400 INVALID_INPUT', async () => {
  const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)
  expect(await outcomeOf(nested(64))).toBe('accepted')
  expect(await outcomeOf(nested(65))).toBe('400 INVALID_INPUT')
})

test('a body above the limit is refused with 413 BODY_TOO_LARGE, with or without Content-Length', async () => {
  const text = JSON.stringify('ä'.repeat(50)) // 102 bytes
  expect(await outcomeOf(text, json, 102)).toBe('accepted')
  expect(await outcomeOf(text, { ...json, 'content-length': '102' }, 102)).toBe('accepted')
  expect(await outcomeOf(text, json, 101)).toBe('413 BODY_TOO_LARGE')
  expect(await outcomeOf(text, { ...json, 'content-length': '102' }, 101)).toBe('413 BODY_TOO_LARGE')
  expect(await outcomeOf(streamOfChunks(text.slice(0, 20), text.slice(20)), json, 102)).toBe('accepted')
  expect(await outcomeOf(streamOfChunks(text.slice(0, 20), text.slice(20)), json, 101)).toBe('413 BODY_TOO_LARGE')
})

test('an endless body is refused with 413 BODY_TOO_LARGE as soon as it exceeds the limit', async () => {
  let sent = 0
  const endless = new ReadableStream({
    pull(controller) {
      sent++
      controller.enqueue(new Uint8Array(100))
    },
  })
  expect(await outcomeOf(endless, json, 1_000)).toBe('413 BODY_TOO_LARGE')
  expect(sent).toBeLessThan(1_000)
})

test('characters that are split across chunks of a body are joined again', async () => {
  const bytes = new TextEncoder().encode('"zwölf 🏝"')
  expect(await readBody(streamOfChunks(...[...bytes].map((byte) => Uint8Array.of(byte))))).toBe('zwölf 🏝')
})

test('readJson reports every byte of a large body, of an announced length or not, and none of a small one', async () => {
  const countReported = async (text: string, isAnnounced: boolean) => {
    const headers = { ...json, ...(isAnnounced && { 'content-length': `${text.length}` }) }
    const request = new Request('http://a.test/', { method: 'POST', body: streamOfChunks(text, ''), headers })
    let count = 0
    await readJson(request, 1 << 20, { onChunk: (bytes) => (count += bytes) })
    return count
  }
  const large = JSON.stringify('x'.repeat(100_000))
  expect([await countReported(large, true), await countReported(large, false)]).toEqual([100_002, 100_002])
  expect(await countReported('"x"', true)).toBe(0)
})

test('a body waits for the turn of its sender after each 128 KiB, and a smaller one never does', async () => {
  const chunk = new Uint8Array(64 << 10).fill(32)
  const countTurns = async (chunks: number) => {
    let turns = 0
    const inspector = { waitForTurn: async () => void turns++ }
    const body = streamOfChunks(...Array.from({ length: chunks }, () => chunk), '{}')
    expect(await readBody(body, json, 16 << 20, inspector)).toEqual({})
    return turns
  }
  expect([await countTurns(1), await countTurns(64)]).toEqual([0, 32])
})

test('others have the thread after each 128 KiB of a large body that arrives at once', async () => {
  const chunks = Array.from({ length: 128 }, () => new Uint8Array(64 << 10).fill(32))
  const body = () => streamOfChunks(...chunks, '{}')
  for (const headers of [json, { ...json, 'content-length': `${(8 << 20) + 2}` }]) {
    let [turns, isOver] = [0, false]
    const counted = (async () => {
      for (; !isOver; turns++) await new Promise(setImmediate)
    })()
    expect(await readBody(body(), headers, 16 << 20)).toEqual({})
    isOver = true
    await counted
    expect(turns, JSON.stringify(headers)).toBeGreaterThanOrEqual(64)
  }
})
