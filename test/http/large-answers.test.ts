import { expect, test } from 'bun:test'
import { createJsonResponse, jsonHeaders } from '../../src/core/response'

const SMALL = JSON.stringify('ä'.repeat(1_000))
const LARGE = JSON.stringify('ä'.repeat(20_000))
const HUGE = JSON.stringify('ä'.repeat(200_000))

/** Asks a server whose answer comes in a later turn of the event loop. */
async function askLate(text: string, method = 'GET') {
  const answerLate = async () => {
    await Bun.sleep(1)
    return createJsonResponse(text, jsonHeaders, { status: 201, etag: '"v"', isLate: true })
  }
  await using server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: answerLate })
  const response = await fetch(server.url, { method })
  return { response, body: await response.text() }
}

test.each([
  ['small', SMALL],
  ['large', LARGE],
  ['huge', HUGE],
])('a %s answer that comes late has its status, its headers and its text', async (_, text) => {
  const { response, body } = await askLate(text)
  expect(body).toBe(text)
  expect(response.status).toBe(201)
  expect(response.headers.get('etag')).toBe('"v"')
  for (const [name, value] of jsonHeaders) expect(response.headers.get(name)).toBe(value)
})

test('a late response has Content-Length, and is chunked only if it is huge', async () => {
  for (const text of [SMALL, LARGE])
    expect((await askLate(text)).response.headers.get('content-length')).toBe(`${Buffer.byteLength(text)}`)
  const { headers } = (await askLate(HUGE)).response
  expect([headers.get('content-length'), headers.get('transfer-encoding')]).toEqual([null, 'chunked'])
})

test('HEAD of a large late response has no body', async () => {
  for (const text of [LARGE, HUGE]) expect((await askLate(text, 'HEAD')).body).toBe('')
})
