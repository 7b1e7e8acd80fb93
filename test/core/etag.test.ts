import { expect, test } from 'bun:test'
import { assertIfMatch, etagOf, isNotModified, setEtag } from '../../src/core/etag'

const at = '2026-01-02T03:04:05.678Z'
const etag = etagOf(3, at)
const requestWith = (headers: Record<string, string>) => new Request('http://a.test/', { headers })

test('a state has one name, and other states have others', () => {
  expect(etag).toMatch(/^"[\w-]+"$/)
  expect(etagOf(3, Date.parse(at))).toBe(etag)
  expect(new Set([etag, etagOf(4, at), etagOf(3, Date.parse(at) + 1)]).size).toBe(3)
})

test('the name goes out as a header, beside those that are there', () => {
  const set = { headers: { 'x-other': '1' } as Record<string, string> }
  setEtag({ request: requestWith({}), set }, etag)
  expect(set.headers).toEqual({ 'x-other': '1', etag })
})

test('a write on what it has seen passes, one on an older state is refused', () => {
  for (const wanted of [etag, `"x", ${etag}`, `"x",${etag},"y"`, '*'])
    expect(() => assertIfMatch(requestWith({ 'if-match': wanted }), etag), wanted).not.toThrow()
  expect(() => assertIfMatch(requestWith({}), etag)).not.toThrow()
  for (const wanted of ['"x"', etagOf(2, at), etag.slice(1, -1), `W/${etag}`, '"*"', etag.slice(0, -1)])
    expect(() => assertIfMatch(requestWith({ 'if-match': wanted }), etag), wanted).toThrow(
      expect.objectContaining({ status: 412, code: 'VERSION_MISMATCH' }),
    )
})

test('what the caller has already is known, weakly named or not', () => {
  for (const known of [etag, `W/${etag}`, `"x", W/${etag}`, '*'])
    expect(isNotModified(requestWith({ 'if-none-match': known }), etag), known).toBeTrue()
  for (const known of ['"x"', etagOf(2, at)])
    expect(isNotModified(requestWith({ 'if-none-match': known }), etag)).toBeFalse()
  expect(isNotModified(requestWith({}), etag)).toBeFalse()
})
