// engine: sqlite
import { expect, test } from 'bun:test'
import { assertIfMatch, etagOf, isNotModified } from '../../src/core/etag'

const at = '2026-01-02T03:04:05.678Z'
const etag = etagOf(3, at)
/** What proxies that compress answers make of the ETag. */
const compressed = [
  `W/${etag}`,
  ...['gzip', 'br', 'zstd'].flatMap((name) =>
    [1, 0].map((weak) => `${weak ? 'W/' : ''}${etag.replace(/"$/, `-${name}"`)}`),
  ),
]
const requestWith = (headers: Record<string, string>) => new Request('http://a.test/', { headers })

test('etagOf returns one ETag per version and time, and another for any other version or time', () => {
  expect(etag).toMatch(/^"[\w-]+"$/)
  expect(etagOf(3, Date.parse(at))).toBe(etag)
  expect(new Set([etag, etagOf(4, at), etagOf(3, Date.parse(at) + 1)]).size).toBe(3)
})

test('assertIfMatch accepts the current ETag and refuses any other with 412 VERSION_MISMATCH', () => {
  for (const wanted of [etag, `"x", ${etag}`, `"x",${etag},"y"`, '*', ...compressed])
    expect(() => assertIfMatch(wanted, etag), wanted).not.toThrow()
  expect(() => assertIfMatch(undefined, etag)).not.toThrow()
  const others = [
    '"x"',
    etagOf(2, at),
    etag.slice(1, -1),
    '"*"',
    etag.slice(0, -1),
    '"x", *',
    `w/${etag}`,
    `W/ ${etag}`,
  ]
  const suffixed = ['-lzma', '-gzip-x', 'gzip', '-GZIP', '-br ', '-gzip-br'].map((suffix) =>
    etag.replace(/"$/, `${suffix}"`),
  )
  for (const wanted of [...others, ...suffixed, etag.replace(/^"/, '"W/'), `${etag}-gzip`, '-gzip', '"-gzip"', 'W/'])
    expect(() => assertIfMatch(wanted, etag), wanted).toThrow(
      expect.objectContaining({ status: 412, code: 'VERSION_MISMATCH' }),
    )
})

test('isNotModified returns true for the current ETag in If-None-Match, strong or weak', () => {
  for (const header of [etag, `"x", W/${etag}`, '*', ...compressed])
    expect(isNotModified(requestWith({ 'if-none-match': header }), etag), header).toBeTrue()
  for (const header of ['"x"', etagOf(2, at)])
    expect(isNotModified(requestWith({ 'if-none-match': header }), etag)).toBeFalse()
  expect(isNotModified(requestWith({}), etag)).toBeFalse()
})
