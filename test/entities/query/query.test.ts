import { beforeAll, describe, expect, test } from 'bun:test'
import { fullAccessRules, statusAndCode } from '../../test-tenant'
import { createThingsFixture, identifiers, nextPagePath } from '../fixtures'

const fields: { key: string; type: string; target?: string; multi?: true; indexed?: false }[] = [
  { key: 'title', type: 'string' },
  { key: 'notes', type: 'text' },
  { key: 'price', type: 'number' },
  { key: 'stock', type: 'integer' },
  { key: 'cost', type: 'decimal' },
  { key: 'active', type: 'boolean' },
  { key: 'day', type: 'date' },
  { key: 'moment', type: 'datetime' },
  { key: 'clock', type: 'time' },
  { key: 'mail', type: 'email' },
  { key: 'link', type: 'url' },
  { key: 'picture', type: 'file' },
  { key: 'parent', type: 'relation', target: 'things' },
  { key: 'tags', type: 'string', multi: true },
  { key: 'scores', type: 'number', multi: true },
  { key: 'place', type: 'object' },
  { key: 'steps', type: 'object', multi: true },
  { key: 'plain', type: 'string', indexed: false },
  { key: 'loose', type: 'string', multi: true, indexed: false },
]
const fixture = createThingsFixture(fields)

const things = [
  {
    ...{ identifier: 'a', title: 'Äpfel', notes: 'sweet', price: 1.5, stock: 10, cost: '1.50', active: true },
    ...{ day: '2026-01-31', moment: '2026-01-31T12:00:00Z', clock: '08:00', mail: 'a@b.de', link: 'https://a.de/' },
    ...{ picture: '/a.png', tags: ['red', 'sweet'], scores: [1, 5], plain: 'p', loose: ['l'] },
    ...{
      place: { city: 'Ulm', zip: 89073, geo: { at: [48.4, 10] }, open: true },
      steps: [{ name: 'wash' }, { name: 'eat' }],
    },
  },
  {
    ...{ identifier: 'b', title: 'banana', notes: 'long', price: -2, stock: 9, cost: '10', active: false },
    ...{ day: '2026-02-01', moment: '2026-01-31T14:00:00+02:00', clock: '08:00:01', mail: 'b@b.de' },
    ...{ link: 'https://b.de/?x=1&y=2', picture: 'https://b.de/b', tags: ['yellow', 'sweet'], scores: [-3] },
    ...{ place: { city: 'Bonn', zip: '53111', open: false }, steps: [{ name: 'peel' }], parent: 'a', plain: 'q' },
  },
  {
    ...{ identifier: 'c', title: 'Cherry, sour', price: 0, stock: 100, cost: '-3.25', day: '2025-12-31' },
    ...{ moment: '2026-01-31T12:00:00.001Z', clock: '23:59', tags: [], scores: [], parent: 'a', place: { city: null } },
  },
  { identifier: 'd' },
]
let start: string
let path: string

beforeAll(async () => {
  const { as, ...rest } = await fixture
  path = rest.path
  for (const thing of things) {
    const { status, body } = await as('user').post(path, thing)
    expect([status, body.message]).toEqual([201, undefined])
    start ??= body.created
  }
})

const get = async (query: string, headers?: Record<string, string>) =>
  (await fixture).as('user').get(path + query, headers)
/** Returns the identifiers of the things that a filter finds. */
const findIdentifiers = async (filter: string) => {
  const answer = await get(`?${filter}&$sort=identifier`)
  expect([answer.status, answer.body.message]).toEqual([200, undefined])
  return identifiers(answer.body).join('')
}
const sortIdentifiers = async (sort: string) => identifiers((await get(`?$sort=${sort}`)).body).join('')

describe('filters', () => {
  const filters: [string, string][] = [
    ['title=banana', 'b'],
    ['title=Banana', ''],
    ['title=%C3%84pfel', 'a'],
    ['title=Cherry, sour', 'c'],
    ['title[$ne]=banana', 'acd'],
    ['title[$gt]=a', 'ab'],
    ['title[$lt]=a', 'c'],
    ['title[$in]=banana,%C3%84pfel,other', 'ab'],
    ['title[$nin]=banana,%C3%84pfel', 'cd'],
    ['title[$exists]=true', 'abc'],
    ['title[$exists]=0', 'd'],
    ['notes=sweet', 'a'],
    ['price=1.5', 'a'],
    ['price=1.50e0', 'a'],
    ['price=-2.0', 'b'],
    ['price=-0', 'c'],
    ['price[$lt]=0', 'b'],
    ['price[$lte]=0', 'bc'],
    ['price[$gt]=-1e9', 'abc'],
    ['price[$gte]=1.5', 'a'],
    ['price[$ne]=0', 'abd'],
    ['price[$in]=0,1.5', 'ac'],
    ['stock[$gt]=9.5', 'ac'],
    ['stock[$lt]=100', 'ab'],
    ['stock[$gte]=9&stock[$lt]=10', 'b'],
    ['stock[$gte]=9&stock[$gt]=9', 'ac'],
    ['stock[$lt]=100&stock[$gt]=9&stock[$lte]=9', ''],
    ['stock[$gt]=10&stock[$lt]=9', ''],
    ['scores[$gt]=1&scores[$lt]=5', 'a'],
    ['scores[$gt]=4&scores[$lt]=2', 'a'],
    ['stock[$in]=9,10', 'ab'],
    ['cost=1.5', 'a'],
    ['cost=10.00', 'b'],
    ['cost[$lt]=1.51', 'ac'],
    ['cost[$gt]=9', 'b'],
    ['cost[$lte]=-3.25', 'c'],
    ['cost[$ne]=001.5', 'bcd'],
    ['active=true', 'a'],
    ['active=0', 'b'],
    ['active[$ne]=true', 'bcd'],
    ['active[$in]=true,false', 'ab'],
    ['active[$exists]=false', 'cd'],
    ['day=2026-01-31', 'a'],
    ['day[$gt]=2025-12-31', 'ab'],
    ['day[$gte]=2025-12-31&day[$lt]=2026-02-01', 'ac'],
    ['moment=2026-01-31T13:00:00%2B01:00', 'ab'],
    ['moment=2026-01-31T13:00:00+01:00', 'ab'],
    ['moment[$gt]=2026-01-31T12:00:00Z', 'c'],
    ['moment[$gte]=2026-01-31', 'abc'],
    ['moment[$lt]=2026-01-31', ''],
    ['clock=08:00', 'a'],
    ['clock=08:00:00', 'a'],
    ['clock[$gt]=08:00', 'bc'],
    ['clock[$lte]=08:00:01', 'ab'],
    ['mail=a@b.de', 'a'],
    ['mail[$ne]=a@b.de', 'bcd'],
    ['link=https%3A%2F%2Fb.de%2F%3Fx%3D1%26y%3D2', 'b'],
    ['picture=/a.png', 'a'],
    ['parent=a', 'bc'],
    ['parent[$ne]=a', 'ad'],
    ['parent[$exists]=true', 'bc'],
    ['tags=sweet', 'ab'],
    ['tags=sweet&tags=red', 'a'],
    ['tags[$ne]=red', 'bcd'],
    ['tags[$in]=red,yellow', 'ab'],
    ['tags[$nin]=red,yellow', 'cd'],
    ['tags[$gte]=sweet', 'ab'],
    ['tags[$gt]=t', 'b'],
    ['tags[$exists]=true', 'abc'],
    ['tags[$exists]=false', 'd'],
    ['scores=5', 'a'],
    ['scores[$lt]=1', 'b'],
    ['scores[$gt]=-3', 'a'],
    ['place.city=Ulm', 'a'],
    ['place.city[$ne]=Ulm', 'bcd'],
    ['place.city[$exists]=true', 'ab'],
    ['place.city[$exists]=false', 'cd'],
    ['place.city[$lt]=C', 'b'],
    ['place.zip=89073', 'a'],
    ['place.zip=53111', 'b'],
    ['place.zip[$gt]=1', 'a'],
    ['place.open=true', 'a'],
    ['place.open[$in]=true,false', 'ab'],
    ['place.geo.at=10', 'a'],
    ['place.geo.at[$gt]=48', 'a'],
    ['place.geo[$exists]=true', ''],
    ['place.nowhere=1', ''],
    ['place.constructor=1', ''],
    ['steps.name=eat', 'a'],
    ['steps.name[$in]=eat,peel', 'ab'],
    ['steps.name[$nin]=eat,peel', 'cd'],
    ['plain=p', 'a'],
    ['plain[$ne]=p', 'bcd'],
    ['plain[$gt]=p', 'b'],
    ['plain[$exists]=true', 'ab'],
    ['identifier=b', 'b'],
    ['identifier[$in]=b,d', 'bd'],
    ['identifier[$gt]=b', 'cd'],
    ['_id[$exists]=true', 'abcd'],
    ['workspace[$exists]=false', 'abcd'],
    ['workspace=w', ''],
    ['title=banana&active=false&tags=yellow&place.city=Bonn&price[$lt]=0', 'b'],
    ['title=banana&active=true', ''],
    ['', 'abcd'],
  ]
  test.each(filters)('the filter %s finds "%s"', async (filter, expected) => {
    expect(await findIdentifiers(filter)).toBe(expected)
  })

  test('filters on system fields find entities by owner, time and _id', async () => {
    const { users } = await fixture
    expect(await findIdentifiers(`user=${users.user}`)).toBe('abcd')
    expect(await findIdentifiers(`user[$ne]=${users.user}`)).toBe('')
    expect(await findIdentifiers('created[$lt]=2000-01-01')).toBe('')
    expect(await findIdentifiers('created[$gt]=2000-01-01&updated[$lt]=2999-12-31T00:00:00Z')).toBe('abcd')
    expect(await findIdentifiers(`created[$gte]=${start}`)).toBe('abcd')
    expect(await findIdentifiers(`created=${start}`)).toContain('a')
    const [{ _id }] = (await get('?identifier=c')).body
    expect(await findIdentifiers(`_id=${_id}`)).toBe('c')
  })

  test('filters on texts that are longer than the index keeps are exact', async () => {
    const { as, path: texts } = await createThingsFixture([{ key: 'title', type: 'string' }])
    const long = 'x'.repeat(300)
    for (const end of ['1', '2']) await as('user').post(texts, { identifier: end, title: long + end })
    const by = async (filter: string) => identifiers((await as('user').get(`${texts}?${filter}`)).body).join('')
    expect(await by(`title=${long}2`)).toBe('2')
    expect(await by(`title[$in]=${long}1,${long}3`)).toBe('1')
    expect(await by(`title[$ne]=${long}1`)).toBe('2')
  })

  test('filters follow every update and delete', async () => {
    const { as, path: changing } = await createThingsFixture(fields.filter(({ target }) => !target))
    const user = as('user')
    const queries = ['title=before', 'title=after', 'tags=one', 'tags=two', 'tags=three', 'place.a.b=1', 'place.a.c=1']
    queries.push('title[$exists]=false')
    const counts = async () => {
      const answers = await Promise.all(queries.map((query) => user.get(`${changing}?${query}`)))
      return answers.map(({ body }) => body.length)
    }
    await user.post(changing, { identifier: 'x', title: 'before', tags: ['one', 'two'], place: { a: { b: 1 } } })
    expect(await counts()).toEqual([1, 0, 1, 1, 0, 1, 0, 0])
    await user.put(`${changing}/x`, { title: 'after', tags: ['two', 'three'], place: { a: { c: 1 } } })
    expect(await counts()).toEqual([0, 1, 0, 1, 1, 0, 1, 0])
    await user.put(`${changing}/x`, { title: null, tags: null, place: null })
    expect(await counts()).toEqual([0, 0, 0, 0, 0, 0, 0, 1])
    await user.delete(`${changing}/x`)
    expect(await counts()).toEqual([0, 0, 0, 0, 0, 0, 0, 0])
  })

  test.each(['', 'undefined'])('a filter or option with the value "%s" is ignored', async (value) => {
    for (const name of [
      'title',
      'price',
      'price[$gt]',
      'day',
      'active',
      'place.city',
      'tags[$in]',
      'nonsense',
      'title[$bad]',
    ])
      expect(await findIdentifiers(`${name}=${value}`), name).toBe('abcd')
    for (const name of ['$limit', '$skip', '$page', '$select', '$count', '$flat', '$nonsense'])
      expect(await findIdentifiers(`${name}=${value}`), name).toBe('abcd')
    expect((await get(`?$sort=${value}`)).body).toHaveLength(4)
  })

  test('filters may be percent-encoded in any valid way', async () => {
    expect(await findIdentifiers('title%5B%24ne%5D=banana')).toBe('acd')
    expect(await findIdentifiers('%70rice=0')).toBe('c')
    expect(await findIdentifiers('title=Cherry%2C+sour')).toBe('c')
    expect(await findIdentifiers('bypassAdmin=true')).toBe('abcd')
  })

  test('filters on parts of objects compare by the type in the schema, and get 400 for values of another type', async () => {
    const part = (type: string) => ({ type })
    const properties = {
      ...{ zip: part('string'), size: part('integer'), open: part('boolean'), any: {} },
      rooms: { type: 'array', items: { type: 'object', properties: { name: part('string') } } },
    }
    const own = await createThingsFixture([{ key: 'place', type: 'object', schema: { type: 'object', properties } }])
    const user = own.as('user')
    for (const [identifier, place] of Object.entries({
      a: { zip: '0500', size: 9, open: true, any: '9', rooms: [{ name: '7' }, { name: 'true' }] },
      b: { zip: '12', size: 10, open: false, any: 9, rooms: [{ name: '10' }] },
      c: { zip: 'true' },
    }))
      expect((await user.post(own.path, { identifier, place })).status).toBe(201)
    for (const [query, expected] of [
      ['place.zip[$gte]=1', 'bc'],
      ['place.zip[$lt]=12', 'a'],
      ['place.zip=12', 'b'],
      ['place.zip=true', 'c'],
      ['place.zip[$gt]=true', ''],
      ['place.size[$lt]=10', 'a'],
      ['place.size=10.0', 'b'],
      ['place.open=true', 'a'],
      ['place.open=0', 'b'],
      ['place.any=9', 'ab'],
      ['place.any[$gte]=1', 'b'],
      ['place.rooms.name[$gte]=2', 'a'],
    ]) {
      const { body } = await user.get(`${own.path}?$sort=identifier&${query}`)
      expect([query, Array.isArray(body) ? identifiers(body).join('') : body]).toEqual([query!, expected!])
    }
    for (const query of ['place.size=big', 'place.size[$in]=1,big', 'place.open=maybe', 'place.open[$lt]=x'])
      expect(statusAndCode(await user.get(`${own.path}?${query}`)), query).toEqual([400, 'INVALID_INPUT'])
  })

  test('filters on parts of objects work for names with any characters', async () => {
    const { as, path: odd } = await createThingsFixture([{ key: 'place', type: 'object' }])
    const names = ['a"b', '\\', 'c\\d', 'e\nf', 'ü', '$', '"', 'a b', "'", '%', 'constructor', '0']
    const place = Object.fromEntries(names.map((name) => [name, 1]))
    for (const thing of [{ identifier: 'odd', place }, { identifier: 'even' }]) await as('user').post(odd, thing)
    for (const name of names)
      for (const [filter, expected] of [
        ['=1', 'odd'],
        ['[$gte]=1', 'odd'],
        ['[$ne]=1', 'even'],
        ['[$exists]=true', 'odd'],
        ['[$exists]=false', 'even'],
      ]) {
        const { body } = await as('user').get(`${odd}?place.${encodeURIComponent(name)}${filter}`)
        expect(Array.isArray(body) ? identifiers(body) : body, name + filter).toEqual([expected!])
      }
  })
})

describe('invalid queries', () => {
  const nonsense: [string, string][] = [
    ['colour=red', 'colour'],
    ['Title=x', 'Title'],
    ['title.part=x', 'title.part'],
    ['place=x', 'place'],
    ['place[$exists]=true', 'place'],
    ['place.=x', 'place'],
    ['loose=l', 'loose'],
    ['metadata=x', 'metadata'],
    ['metadata.title=x', 'metadata.title'],
    ['blueprint=x', 'blueprint'],
    ['__proto__=x', '__proto__'],
    ['constructor=x', 'constructor'],
    ['toString[$ne]=x', 'toString'],
    ['title[$regex]=x', '$regex'],
    ['title[$where]=x', '$where'],
    ['title[gt]=x', 'gt'],
    ['title[]=x', 'title[]'],
    ['title[$gt][$lt]=x', 'title[$gt][$lt]'],
    ['title[$gt=x', 'title[$gt'],
    ['price=cheap', 'price'],
    ['price=1,5', 'price'],
    ['price=NaN', 'price'],
    ['price=Infinity', 'price'],
    ['price=1e999', 'price'],
    ['price=0x10', 'price'],
    ['price[$in]=1,two', 'two'],
    ['stock=many', 'stock'],
    ['cost=1e5', 'cost'],
    ['active=yes', 'active'],
    ['active=TRUE', 'active'],
    ['day=2026-02-30', 'day'],
    ['day=today', 'day'],
    ['moment=noon', 'moment'],
    ['clock=25:00', 'clock'],
    ['scores=five', 'scores'],
    ['created=now', 'created'],
    ['title[$exists]=maybe', '$exists'],
    ['$sort=colour', 'colour'],
    ['$sort=title,-colour', 'colour'],
    ['$sort=place', 'place'],
    ['$sort=tags', 'tags'],
    ['$sort=-', '$sort'],
    [`$sort=${'title,'.repeat(12)}colour`, 'colour'],
    ['$sort=__proto__', '__proto__'],
    ['$select=colour', 'colour'],
    ['$select=title,constructor', 'constructor'],
    ['$limit=-1', '$limit'],
    ['$limit=ten', '$limit'],
    ['$limit=1.5', '$limit'],
    ['$limit=1e3', '$limit'],
    ['$skip=-1', '$skip'],
    ['$skip=x', '$skip'],
    ['$page=-1', '$page'],
    ['$page=x', '$page'],
    ['$flat=maybe', '$flat'],
    ['$count=many', '$count'],
    ['$nonsense=1', '$nonsense'],
    ['$where=1', '$where'],
  ]
  test.each(nonsense)('an invalid query gets 400 INVALID_INPUT that names the flaw: %s', async (query, name) => {
    const answer = await get(`?${query}`)
    expect(statusAndCode(answer)).toEqual([400, 'INVALID_INPUT'])
    expect(JSON.stringify([answer.body.message, answer.body.details])).toContain(name)
    expect(answer.body.details).toHaveLength(1)
  })

  test('an invalid query gets details for all of its flaws at once', async () => {
    const { body } = await get('?colour=red&price=x&title[$bad]=1&$sort=nothing&$limit=x&$select=no&title=fine')
    const paths = body.details.map((flaw: { path: string }) => flaw.path).sort()
    expect(paths).toEqual(['$limit', '$select', '$sort', 'colour', 'price', 'title[$bad]'])
  })

  test('a list gets 400 INVALID_INPUT for 200 filters or 5,000 values, but not for 15 or 400', async () => {
    const many = (count: number, one: string, by: string) => Array.from({ length: count }, () => one).join(by)
    expect((await get(`?${many(15, 'title=x', '&')}`)).status).toBe(200)
    expect(statusAndCode(await get(`?${many(200, 'title=x', '&')}`))).toEqual([400, 'INVALID_INPUT'])
    expect((await get(`?title[$in]=${many(400, 'x', ',')}`)).status).toBe(200)
    expect(statusAndCode(await get(`?title[$in]=${many(5_000, 'x', ',')}`))).toEqual([400, 'INVALID_INPUT'])
  })

  test('a value of the wrong type gets 400 INVALID_INPUT for every field type and operator', async () => {
    const wrong: Record<string, string> = {
      ...{
        price: 'cheap',
        stock: 'many',
        cost: '1e5',
        active: 'yes',
        day: '2026-02-30',
        moment: 'noon',
        clock: '25:00',
      },
      ...{ scores: 'five', created: 'now', updated: '2026-13-01' },
    }
    for (const [name, value] of Object.entries(wrong))
      for (const operator of [
        '',
        '[$lt]',
        '[$gt]',
        '[$lte]',
        '[$gte]',
        '[$ne]',
        '[$in]',
        '[$nin]',
        '[$exists]',
        '[$like]',
      ]) {
        const answer = await get(`?${name}${operator}=${value}`)
        expect([name + operator, ...statusAndCode(answer)]).toEqual([name + operator, 400, 'INVALID_INPUT'])
        expect(answer.body.details).toEqual([{ path: name + operator, message: expect.any(String) }])
      }
  })

  test('a huge query or one with special property names gets 400 INVALID_INPUT and a bounded answer', async () => {
    const many = (one: (n: number) => string, count: number, by: string) =>
      Array.from({ length: count }, (_, n) => one(n)).join(by)
    for (const query of [
      many(() => 'title=x', 10_000, '&'),
      many((n) => `f${n}=x`, 10_000, '&'),
      many((n) => `title[$like]=${n}`, 21, '&'),
      `place.${many(() => 'a', 10_000, '.')}=1`,
      `title[$in]=${many((n) => `${n}`, 100_000, ',')}`,
      `$sort=${many((n) => `place${n}`, 5_000, ',')}`,
      `$select=${many((n) => `no${n}`, 10_000, ',')}`,
      ...['__proto__', 'constructor', 'prototype', 'hasOwnProperty', '__defineGetter__', 'valueOf'].flatMap((name) => [
        `${name}=1`,
        `${name}[$in]=1`,
        `${name}.a=1`,
        `title[${name}]=1`,
        `$sort=-${name}`,
        `$select=${name}`,
        `$${name}=1`,
      ]),
    ]) {
      const answer = await get(`?${query}`)
      expect([query.slice(0, 60), ...statusAndCode(answer)]).toEqual([query.slice(0, 60), 400, 'INVALID_INPUT'])
      expect(JSON.stringify(answer.body).length).toBeLessThan(100_000)
    }
    expect(Object.keys({})).toEqual([])
  })

  test.each([
    ...[
      'title=%00',
      'title=%ED%A0%80',
      'title=%',
      '%=1',
      '=',
      '&&&',
      'place.%00=1',
      '$sort=%00',
      'identifier[$gt]=%00',
    ],
    ...['place.%5C[$exists]=true', 'place.%22[$exists]=true', '$select=%00', 'title[%00]=1', "title=' or 1=1 --"],
    ...['$page=999999999999999&$limit=1000', '$skip=999999999999999', 'place.a.b.c.d.e.f=1', 'title[$in]=,', '?=?'],
  ])('an unusual query gets 200 or 400: %s', async (query) => {
    expect((await get(`?${query}`)).status).toBeOneOf([200, 400])
  })
})

describe('$sort', () => {
  test.each([
    ['title', 'cbad', 'abcd'],
    ['price', 'bcad', 'acbd'],
    ['stock', 'bacd', 'cabd'],
    ['cost', 'cabd', 'bacd'],
    ['active', 'bacd', 'abdc'],
    ['day', 'cabd', 'bacd'],
    ['moment', 'abcd', 'cbad'],
    ['clock', 'abcd', 'cbad'],
    ['mail', 'abcd', 'badc'],
    ['plain', 'abcd', 'badc'],
    ['identifier', 'abcd', 'dcba'],
    ['created', 'abcd', 'dcba'],
    ['updated', 'abcd', 'dcba'],
  ])('a list sorted by %s has missing values last in both directions', async (key, up, down) => {
    expect(await sortIdentifiers(key)).toBe(up)
    expect(await sortIdentifiers(`%2B${key}`)).toBe(up)
    expect(await sortIdentifiers(`-${key}`)).toBe(down)
  })

  test('a list sorted by several keys applies the direction of each', async () => {
    const { as, path: several } = await createThingsFixture([
      { key: 'stock', type: 'integer' },
      { key: 'plain', type: 'string' },
    ])
    for (const [identifier, stock, plain] of [
      ['p', 1, 'x'],
      ['q', 1, 'y'],
      ['r', 2, 'x'],
      ['s', 2, undefined],
      ['t', undefined, 'x'],
      ['u', 1, 'x'],
    ])
      await as('user').post(several, { identifier, stock, plain })
    const by = async (sort: string) => identifiers((await as('user').get(`${several}?$sort=${sort}`)).body).join('')
    expect(await by('stock,plain,identifier')).toBe('puqrst')
    expect(await by('-stock,plain,identifier')).toBe('rspuqt')
    expect(await by('stock,-plain,-identifier')).toBe('quprst')
    expect(await by('-stock, -plain, identifier')).toBe('rsqput')
    expect(await by('plain,-stock,identifier')).toBe('rputqs')
    expect(await by('-plain,stock,-identifier')).toBe('quprts')
  })

  test.each(['$sort=,', '$sort=%20', '$sort=,&title[$gte]=A', '$sort=,&$explain=false'])(
    'a list with %s, which names no field, has the newest entities first, also for a caller who reads only their own',
    async (query) => {
      const own = await createThingsFixture([{ key: 'title', type: 'string' }], fullAccessRules('user', 'user'))
      for (const identifier of ['old', 'new']) await own.as('user').post(own.path, { identifier, title: 'T' })
      const { status, body } = await own.as('user').get(`${own.path}?${query}`)
      expect([status, identifiers(body)]).toEqual([200, ['new', 'old']])
    },
  )
  test('a list without $sort has the newest entities first', async () => {
    expect(identifiers((await get('')).body).join('')).toBe('dcba')
  })
})

describe('pages', () => {
  test('$limit, $skip and $page select the entities of a page', async () => {
    for (const [query, expected] of [
      ['$limit=2', 'ab'],
      ['$limit=2&$skip=1', 'bc'],
      ['$limit=3&$skip=3', 'd'],
      ['$skip=4', ''],
      ['$limit=0', ''],
      ['$limit=2&$page=0', 'ab'],
      ['$limit=2&$page=1', 'ab'],
      ['$limit=2&$page=2', 'cd'],
      ['$limit=2&$page=3', ''],
      ['$limit=1&$page=2&$skip=1', 'c'],
    ] as const)
      expect(await findIdentifiers(query), query).toBe(expected)
  })

  test('a page has 100 entities by default, and 1,000 at most', async () => {
    const { as, path: many } = await createThingsFixture([{ key: 'n', type: 'integer' }])
    const user = as('user')
    for (let n = 0; n < 1_005; n += 201)
      await Promise.all(Array.from({ length: 201 }, (_, more) => user.post(many, { n: n + more })))
    expect((await user.get(many)).body).toHaveLength(100)
    expect((await user.get(`${many}?$limit=`)).body).toHaveLength(100)
    const largest = await user.get(`${many}?$limit=5000&$count=true&$sort=n`)
    expect([largest.body.length, largest.headers.get('x-total-count')]).toEqual([1_000, '1005'])
    const next = nextPagePath(largest.headers)!
    expect((await user.get(next)).body.map(({ n }: { n: number }) => n)).toEqual([1_000, 1_001, 1_002, 1_003, 1_004])
  })

  test('each page links to the next one, and the last one has no link', async () => {
    for (const query of [
      '?$limit=1&$sort=title',
      '?$limit=3',
      '?$limit=1&$page=2&$sort=-price&stock[$gt]=1&$flat=false',
    ]) {
      let at: string | undefined = path + query
      const seen: string[] = []
      while (at && seen.length < 10) {
        const { body, headers } = await (await fixture).as('user').get(at)
        seen.push(...identifiers(body))
        at = nextPagePath(headers)
      }
      const whole = await get(query.replace(/\$limit=\d/, '$limit=100').replace('$page=2', '$skip=1'))
      expect(seen, query).toEqual(identifiers(whole.body))
    }
    expect((await get('?$limit=4')).headers.get('link')).toBeNull()
    expect((await get('?$limit=3')).headers.get('link')).toContain('rel="next"')
    const { headers } = await get('?$limit=1&$flat=0')
    expect(headers.get('link')).toContain('rel="deprecation"')
    expect(headers.get('link')).toContain('rel="next"')
  })

  test('a page of $limit=0 has no next link', async () => {
    const { body, headers } = await get('?$limit=0&$count=true')
    expect([body, headers.get('x-total-count'), headers.get('link')]).toEqual([[], '4', null])
  })

  test('a page has X-Total-Count only with $count=true', async () => {
    expect((await get('?$limit=1')).headers.get('x-total-count')).toBeNull()
    expect((await get('?$count=false')).headers.get('x-total-count')).toBeNull()
    for (const [query, total] of [
      ['$count=true', '4'],
      ['$count=1&$limit=1&$skip=2', '4'],
      ['$count=true&tags=sweet&$limit=1', '2'],
      ['$count=true&title=nothing', '0'],
      ['$count=true&$sort=price', '4'],
    ])
      expect((await get(`?${query}`)).headers.get('x-total-count'), query).toBe(total!)
  })
})

describe('$select', () => {
  test('$select limits an answer to the named properties, in flat and wrapped shape', async () => {
    const [one] = (await get('?identifier=a&$select=title,price')).body
    expect(one).toEqual({
      _id: one._id,
      identifier: 'a',
      metadata: { title: 'Äpfel', price: 1.5 },
      title: 'Äpfel',
      price: 1.5,
    })
    const [wrapped] = (await get('?identifier=a&$select=title,%20tags,&$flat=false')).body
    expect(wrapped).toEqual({ _id: one._id, identifier: 'a', metadata: { title: 'Äpfel', tags: ['red', 'sweet'] } })
    expect((await get('?identifier=d&$select=title')).body[0].metadata).toEqual({})
  })

  test('$select may name system fields, and works on a single entity', async () => {
    const { users } = await fixture
    const { body } = await (await fixture).as('user').get(`${path}/a?$select=user,created,stock`)
    expect(body).toMatchObject({ user: users.user, created: start, stock: 10, metadata: { stock: 10 } })
    expect(Object.keys(body).sort()).toEqual(['_id', 'created', 'identifier', 'metadata', 'stock', 'user'])
  })

  test('$select=metadata returns all properties', async () => {
    const [one] = (await get('?identifier=b&$select=metadata')).body
    expect(one.metadata.title).toBe('banana')
  })

  test('$select does not limit filters and sorting', async () => {
    expect(identifiers((await get('?tags=sweet&$sort=-price&$select=title')).body)).toEqual(['a', 'b'])
  })
})
