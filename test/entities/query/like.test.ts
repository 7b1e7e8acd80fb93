import { beforeAll, describe, expect, test } from 'bun:test'
import { fieldTypeNames } from '../../../src/blueprints/fields'
import { endOfPrefix, findPrefixes, matchesPattern, parsePattern } from '../../../src/entities/query/like-pattern'
import { compareBytes } from '../../blueprints/seeded-random'
import { statusAndCode } from '../../test-tenant'
import { createThingsFixture, identifiers, importThings, nextPagePath } from '../fixtures'
import { PATTERNED } from './reference-model'

const LONG = `Start ${'filler '.repeat(60)}`
/** The types of fields that `$like` rejects. */
const UNPATTERNED = ['number', 'integer', 'decimal', 'boolean', 'date', 'datetime', 'time']
const fields = [
  { key: 'title', type: 'string' },
  { key: 'notes', type: 'text' },
  { key: 'mail', type: 'email' },
  { key: 'link', type: 'url' },
  { key: 'picture', type: 'file' },
  { key: 'parent', type: 'relation', target: 'things' },
  { key: 'tags', type: 'string', multi: true },
  { key: 'place', type: 'object' },
  { key: 'plain', type: 'string', indexed: false },
  { key: 'secret', type: 'string', readRoles: ['boss'] },
  ...UNPATTERNED.map((type) => ({ key: type, type })),
]
const things = [
  { identifier: 'a', title: 'Äpfel & Birnen', notes: `${LONG}needle`, tags: ['Red', `${LONG}Ende`], secret: 'x' },
  { identifier: 'b', title: '100% sure', notes: `${LONG}straw`, mail: 'Ada@Example.com', picture: '/A.png' },
  { identifier: 'c', title: '100 percent_sure', link: 'https://a.de/Path?x=1', place: { city: 'Köln', zip: 50667 } },
  { identifier: 'd', title: 'a\\b*c?[d]', parent: 'a', place: { city: ['ULM', 'Bonn'], deep: { flag: true } } },
  { identifier: 'e', title: 'ΟΔΥΣΣΕΥΣ', notes: 'line\nbreak', tags: [], place: { city: `${LONG}Stadt` } },
  { identifier: 'f', title: '😀😀', notes: '' },
  { identifier: 'g' },
]

test('the tests of $like name every field type', () => {
  // Of an object, only the parts can be filtered.
  expect([...PATTERNED, ...UNPATTERNED, 'object'].sort()).toEqual([...fieldTypeNames].sort())
})

describe('$like', () => {
  const own = createThingsFixture(fields)
  beforeAll(async () => {
    const { as, path } = await own
    for (const thing of things) expect((await as('admin').post(path, thing)).status).toBe(201)
  })
  const get = async (query: string) => {
    const { as, path } = await own
    return as('user').get(`${path}?${query}&$sort=identifier`)
  }

  test.each([
    ['title', 'äPFEL & birnen', 'a'],
    ['title', 'äpfel', ''],
    ['title', 'äpfel%', 'a'],
    ['title', '%BIRNEN', 'a'],
    ['title', '%pfel%', 'a'],
    ['title', 'apfel%', ''],
    ['title', '%', 'abcdef'],
    ['title', '%%%', 'abcdef'],
    ['title', '100%sure', 'bc'],
    ['title', '100\\% sure', 'b'],
    ['title', '%\\_%', 'c'],
    ['title', '%\\\\%', 'd'],
    ['title', 'a\\b*c?[d]', 'd'],
    ['title', 'a_b*%', 'd'],
    ['title', '%[d]', 'd'],
    ['title', '%*%', 'd'],
    ['title', '[a-z]%', ''],
    ['title', 'οδυσσευς', 'e'],
    ['title', 'οδυσσευσ', 'e'],
    ['title', '__', 'f'],
    ['title', '____', ''],
    ['title', '_😀', 'f'],
    ['title', "' or 1=1 --%", ''],
    ['notes', '%NEEDLE', 'a'],
    ['notes', '%straw', 'b'],
    ['notes', 'start filler%', 'ab'],
    ['notes', '%needle%', 'a'],
    ['notes', `start %${'filler '.repeat(5)}%_eedle`, 'a'],
    ['notes', 'line_break', 'e'],
    ['notes', 'line%', 'e'],
    ['mail', '%@example.com', 'b'],
    ['link', 'HTTPS://a.de/%', 'c'],
    ['picture', '/a.___', 'b'],
    ['parent', 'A', 'd'],
    ['tags', 'r_d', 'a'],
    ['tags', '%ende', 'a'],
    ['place.city', 'k%', 'c'],
    ['place.city', 'ulm', 'd'],
    ['place.city', '%stadt', 'e'],
    ['place.zip', '5%', ''],
    ['place.deep.flag', 't%', ''],
    ['identifier', '_', 'abcdefg'],
    ['identifier', '[%', ''],
    ['_id', '0%', 'abcdefg'],
    ['user', '%-%', 'abcdefg'],
    ['workspace', '%', ''],
  ])('a pattern filter of %s like "%s" finds "%s"', async (name, pattern, expected) => {
    const answer = await get(`${name}[$like]=${encodeURIComponent(pattern)}&$count=true`)
    expect([answer.status, answer.body.message]).toEqual([200, undefined])
    expect(identifiers(answer.body).join('')).toBe(expected)
    expect(answer.headers.get('x-total-count')).toBe(`${expected.length}`)
  })

  test('$like combines with other filters, other patterns and sorting', async () => {
    expect(identifiers((await get('title[$like]=100%25&notes[$like]=%25straw')).body)).toEqual(['b'])
    expect(identifiers((await get('title[$like]=100%25&notes[$exists]=false')).body)).toEqual(['c'])
    const { as, path } = await own
    const { body } = await as('user').get(`${path}?title[$like]=%25e%25&$sort=-title`)
    expect(identifiers(body)).toEqual(['a', 'b', 'c'])
  })

  test('$like gets 400 INVALID_INPUT for fields that are no indexed texts, and for 101 characters', async () => {
    for (const [query, name] of [
      ...[...UNPATTERNED, 'created', 'updated'].map((name) => [`${name}[$like]=1%25`, name] as const),
      ['plain[$like]=a', 'plain'],
      ['place[$like]=a', 'place'],
      ['nowhere[$like]=a', 'nowhere'],
      ['secret[$like]=x', 'secret'],
      [`title[$like]=${'x'.repeat(101)}`, 'title[$like]'],
    ] as const) {
      const answer = await get(query)
      expect([query, ...statusAndCode(answer)]).toEqual([query, 400, 'INVALID_INPUT'])
      expect(JSON.stringify(answer.body)).toContain(name)
    }
    expect((await get('title[$like]=')).body).toHaveLength(things.length)
    expect((await get('title[$like]=undefined')).body).toHaveLength(things.length)
  })

  test('$like filters charts, exports and DELETE /all', async () => {
    const { as, path } = await createThingsFixture(fields)
    const admin = as('admin')
    for (const thing of things) await admin.post(path, thing)
    const pathOf = (rest: string) => `/blueprints/things/${rest}`
    expect((await admin.get(pathOf('charts/count?title[$like]=100%25'))).body).toEqual({ count: 2 })
    const { body } = await admin.get(pathOf('charts/pie?x=identifier&notes[$like]=start%25'))
    expect(body.series[0].data.map(({ name }: { name: string }) => name)).toEqual(['a', 'b'])
    const lines = (await admin.get(pathOf('entities/export?format=csv&$select=title&notes[$like]=%25needle'))).body
    expect(lines).toContain('Birnen')
    expect(lines).not.toContain('sure')
    const removed = await admin.delete(pathOf('entities/all?confirm=things&title[$like]=100%25'))
    expect(removed.body).toEqual({ success: true, deletedCount: 2 })
  })
})

describe('a pattern that thousands of different texts match', () => {
  const own = createThingsFixture(fields.slice(0, 9))
  const titleOf = (n: number) => `${n % 2 ? 'Even' : 'odd'} thing ${n}`
  beforeAll(async () => {
    const all = Array.from({ length: 4_600 }, (_, n) => ({
      identifier: `n${n}`,
      title: titleOf(n),
      tags: [titleOf(n), 'x'],
      notes: n % 46 ? 'note' : `${LONG}${n}`,
    }))
    await importThings(await own, all)
  })

  test('$like finds thousands of different texts, in order and page by page', async () => {
    const { as, path } = await own
    const user = as('user')
    for (const [filter, fitting] of [
      ['title[$like]=%25thing%25', () => true],
      ['title[$like]=EVEN%25', (n: number) => n % 2 > 0],
      ['tags[$like]=%25thing%25&notes[$like]=%25filler %250', (n: number) => n % 46 === 0 && n % 10 === 0],
      ['identifier[$like]=N%25&title[$like]=%257', (n: number) => n % 10 === 7],
      ['title[$like]=%25THING%25&notes[$like]=n_te', (n: number) => n % 46 > 0],
    ] as const) {
      const expected = Array.from({ length: 4_600 }, (_, n) => n)
        .filter(fitting)
        .map((n) => `n${n}`)
      const seen: string[] = []
      for (let at: string | undefined = `${path}?${filter}&$sort=created&$limit=900`; at; ) {
        const { status, body, headers } = await user.get(at)
        expect(status, filter).toBe(200)
        seen.push(...identifiers(body))
        at = nextPagePath(headers)
      }
      expect(seen, filter).toEqual(expected)
      const part = await user.get(`${path}?${filter}&$sort=-created&$limit=3&$skip=7&$count=true`)
      expect(identifiers(part.body), filter).toEqual(expected.toReversed().slice(7, 10))
      expect(part.headers.get('x-total-count'), filter).toBe(`${expected.length}`)
    }
    expect((await user.get('/blueprints/things/charts/count?title[$like]=%25thing%25')).body).toEqual({ count: 4_600 })
    const lines = (await user.get(`${path}/export?title[$like]=even%25&$select=title`)).body.trim().split('\n')
    expect(lines).toHaveLength(2_300)
  })

  test('charts by group and DELETE /all reject a pattern of too many matches with 400 INVALID_INPUT', async () => {
    const { as, path } = await own
    for (const answer of [
      await as('user').get('/blueprints/things/charts/bar?x=title&title[$like]=%25thing%25'),
      await as('user').delete(`${path}/all?confirm=things&title[$like]=%25thing%25`),
    ]) {
      expect(statusAndCode(answer)).toEqual([400, 'INVALID_INPUT'])
      expect(answer.body.details[0].path).toBe('title[$like]')
    }
  })
})

describe('characters in patterns', () => {
  const letters = Array.from({ length: 0x1f000 }, (_, code) => code)
    .filter((code) => (code < 0xd800 || code > 0xdfff) && !'%_\\'.includes(String.fromCodePoint(code)))
    .map((code) => String.fromCodePoint(code))

  test('a pattern matches characters in upper and lower case where they correspond one to one', async () => {
    for (const one of letters) {
      const [upper, lower] = [one.toUpperCase(), one.toLowerCase()]
      expect(matchesPattern(parsePattern(one), one), one).toBe(true)
      if ([...upper, ...lower].length === 2 && one !== 'ı' && one !== 'İ')
        expect([matchesPattern(parsePattern(one), upper), matchesPattern(parsePattern(upper), one)], one).toEqual([
          true,
          true,
        ])
    }
    expect([
      matchesPattern(parsePattern('ı'), 'i'),
      matchesPattern(parsePattern('ß'), 'SS'),
      matchesPattern(parsePattern('K'), 'k'),
    ]).toEqual([false, false, true])
  })

  test('findPrefixes returns the beginnings of a pattern in every case, with few lookups', async () => {
    for (const one of letters) {
      const { prefixes } = await findPrefixes(parsePattern(`${one}%`), async () => true)
      if (!prefixes.some((start) => one.startsWith(start))) expect(prefixes, one).toContain(one)
    }
    const lookups: string[] = []
    const { prefixes, areSufficient } = await findPrefixes(parsePattern('Product 1%2'), async (start) => {
      lookups.push(start)
      return 'Product 1'.startsWith(start)
    })
    expect([prefixes, areSufficient, lookups.length < 30]).toEqual([['Product 1'], false, true])
    expect(await findPrefixes(parsePattern('1%'), async () => true)).toEqual({ prefixes: ['1'], areSufficient: true })
  })

  test('endOfPrefix returns a text behind all texts with the prefix in byte order', () => {
    for (const start of ['a', 'z', 'ä', '\ud7ff', '\uffff', '😀', 'a\u{10ffff}', 'x\u007f']) {
      const end = endOfPrefix(start)!
      for (const after of ['', 'z', '\u{10ffff}']) expect(compareBytes(start + after, end), start).toBeLessThan(0)
    }
    expect(endOfPrefix('\u{10ffff}')).toBeUndefined()
  })
})

// A matcher that backtracks would practically never end here.
test('a pattern of many wildcards is matched without backtracking', () => {
  expect(matchesPattern(parsePattern(`${'%a'.repeat(49)}b`), 'a'.repeat(20_000))).toBe(false)
  expect(matchesPattern(parsePattern(`%${'a'.repeat(97)}b%`), 'a'.repeat(20_000))).toBe(false)
  expect(matchesPattern(parsePattern(`${'_%'.repeat(49)}b`), 'a'.repeat(20_000))).toBe(false)
})
