import { beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import fc from 'fast-check'
import { checkProperty, PROPERTY_TIMEOUT_MS } from '../../property-runner'
import type { ApiClient } from '../../test-tenant'
import { fullAccessRules, statusAndCode } from '../../test-tenant'
import { createThingsFixture, type Entity, identifiers, importThings, nextPagePath } from '../fixtures'
import { referenceModel, type Sort } from './reference-model'
import { withThresholds } from './small-thresholds'

setDefaultTimeout(PROPERTY_TIMEOUT_MS)

const types = { title: 'string', stock: 'integer', cost: 'decimal', active: 'boolean', plain: 'string', tags: 'string' }
const fields = Object.entries(types).map(([key, type]) => ({
  ...{ key, type, multi: key === 'tags' },
  ...(key === 'plain' && { indexed: false }),
}))
const SORTABLE = [
  'title',
  'stock',
  'cost',
  'active',
  'plain',
  'created',
  'updated',
  'identifier',
  '_id',
  'user',
  'workspace',
]
const { holds, sort } = referenceModel(types)

const anyOf = <T>(...values: T[]) => fc.constantFrom(...values)
/** Texts that agree in 255 characters, the last of which may be half of a character, or in 1,500. */
const LONG_TEXTS = [
  ...['1', '2', '3', ''].map((end) => `${'long '.repeat(60)}${end}`),
  ...['1', '2', '3'].map((end) => `${'longer '.repeat(300)}${end}`),
  ...['😀1', '😀2', '😁', ''].map((end) => `${'x'.repeat(255)}${end}`),
]
const anyThing = fc.record(
  {
    title: anyOf('a', 'A', 'ä', 'b', '😀', '\uffff', 'x'.repeat(256), ...LONG_TEXTS),
    stock: fc.integer({ min: -2, max: 2 }),
    cost: anyOf('1', '1.0', '-1.5', '10'),
    active: fc.boolean(),
    plain: anyOf('x', 'y', 'Z'),
    tags: fc.array(anyOf('red', 'blue'), { maxLength: 2 }),
  },
  { requiredKeys: [], noNullPrototype: true },
)
const anySort: fc.Arbitrary<Sort[]> = fc.uniqueArray(
  fc.record({ name: anyOf(...SORTABLE), descending: fc.boolean() }),
  { maxLength: 3, selector: ({ name }) => name },
)
const toSortText = (by: Sort[]) => by.map(({ name, descending }) => (descending ? '-' : '') + name).join(',')

async function createEntity(client: ApiClient, path: string, thing: object): Promise<Entity> {
  const { status, body } = await client.post(path, thing)
  expect([status, body.message]).toEqual([201, undefined])
  return body
}

/** Follows the links of a list to its end, and runs an action between two pages. */
async function followPages(client: ApiClient, start: string, between: () => Promise<unknown> = async () => {}) {
  const seen: Entity[] = []
  let pages = 0
  for (let at: string | undefined = start; at && pages < 500; pages++) {
    const { status, body, headers } = await client.get(at)
    expect([status, body.message]).toEqual([200, undefined])
    seen.push(...body)
    at = nextPagePath(headers)
    if (at) await between()
  }
  return seen
}

describe('paging by links', () => {
  test.each(['usual', 'small'] as const)(
    'paging by links returns each remaining entity once and in order during writes, with %s thresholds',
    (size) =>
      withThresholds(size, async () => {
        const { as, path } = await createThingsFixture(fields, fullAccessRules('user', 'user'))
        const [user, otherUser] = [as('user'), as('other')]
        await createEntity(otherUser, path, { title: 'a' })
        await checkProperty(
          40,
          fc.asyncProperty(
            fc.array(anyThing, { minLength: 3, maxLength: 25 }),
            fc.infiniteStream(fc.tuple(anyThing, fc.nat(30), fc.nat(2))),
            anySort,
            fc.integer({ min: 1, max: 7 }),
            anyOf(
              undefined,
              { name: 'stock', operator: '[$gte]', text: '0' },
              { name: 'tags', operator: '', text: 'red' },
            ),
            async (things, changes, by, limit, filter) => {
              await user.delete(`${path}/all?confirm=things`)
              const entities: Entity[] = []
              const stay: Entity[] = []
              for (const thing of things) entities.push(await createEntity(user, path, thing))
              const deleted = new Set<Entity>()
              // Between two pages, entities are created and deleted.
              const seen = await followPages(
                user,
                `${path}?$limit=${limit}&$sort=${toSortText(by)}${filter ? `&${filter.name}${filter.operator}=${filter.text}` : ''}`,
                async () => {
                  const [thing, at, what] = changes.next().value
                  if (what > 0) await createEntity(user, path, thing)
                  const leaving = entities[at]
                  if (what === 1 || !leaving || deleted.has(leaving)) return
                  deleted.add(leaving)
                  expect((await user.delete(`${path}/${leaving.identifier}`)).status).toBe(200)
                },
              )
              for (const entity of entities)
                if (!deleted.has(entity) && (!filter || holds(filter, entity))) stay.push(entity)
              const expected = sort(stay, by.length ? by : [{ name: 'created', descending: true }])
              const names = identifiers(seen)
              expect(new Set(names).size, 'none twice').toBe(names.length)
              const remaining = new Set(identifiers(expected))
              expect(names.filter((name) => remaining.has(name))).toEqual(identifiers(expected))
            },
          ),
        )
      }),
  )

  test('paging by links returns all entities in order, also across thousands with equal sort values', async () => {
    const { as, path, origin, tokens } = await createThingsFixture(fields)
    const lines = Array.from({ length: 5_200 }, (_, n) => {
      const active = n % 13 === 0 ? {} : { active: n % 2 > 0 }
      return { identifier: `n${n}`, stock: (n * 7) % 10, ...active, ...(n % 5 && { cost: `${n % 17}` }) }
    })
    await importThings({ origin, tokens, path }, lines)
    const { body: first } = await as('user').get(`${path}?$sort=created&$limit=1000`)
    expect(first).toHaveLength(1_000)
    const entities = await followPages(as('user'), `${path}?$sort=created&$limit=1000`)
    expect(entities).toHaveLength(5_200)
    for (const by of [
      'active,stock,cost',
      '-active,-created',
      'active,-cost',
      'active',
      '-stock,active',
      'workspace,-active',
    ]) {
      const sorts = by.split(',').map((name) => ({ name: name.replace('-', ''), descending: name.startsWith('-') }))
      const expected = identifiers(sort(entities, sorts))
      for (const size of by === 'active,stock,cost' ? (['middle', 'usual'] as const) : (['usual'] as const))
        await withThresholds(size, async () => {
          expect(identifiers(await followPages(as('user'), `${path}?$sort=${by}&$limit=410`)), by).toEqual(expected)
          for (const skip of [1_190, 5_190]) {
            const { body } = await as('user').get(`${path}?$sort=${by}&$limit=30&$skip=${skip}`)
            expect(identifiers(body), by).toEqual(expected.slice(skip, skip + 30))
          }
        })
    }
  })

  test('paging through a search returns the best matches first, and none twice', async () => {
    const { as, path } = await createThingsFixture(fields, fullAccessRules('tenant', 'user'))
    const user = as('user')
    const entities: Entity[] = []
    for (let n = 0; n < 340; n += 20)
      entities.push(
        ...(await Promise.all(
          Array.from({ length: 20 }, (_, more) =>
            createEntity(user, path, { title: `otter ${'word '.repeat((n + more) % 7)}`, plain: `p${n + more}` }),
          ),
        )),
      )
    const deleted = new Set<string>()
    let turn = 0
    const seen = await followPages(user, `${path}?$q=otter&$limit=45`, async () => {
      await createEntity(user, path, { title: 'otter otter', plain: 'new' })
      turn += 37
      const leaving = entities[turn % entities.length]!.identifier
      deleted.add(leaving)
      await user.delete(`${path}/${leaving}`)
    })
    const names = identifiers(seen)
    expect(new Set(names).size).toBe(names.length)
    const stayed = identifiers(entities).filter((name) => !deleted.has(name))
    expect(stayed.filter((name) => !names.includes(name))).toEqual([])
    const words = seen.slice(0, 45).map(({ title }) => (title as string).split(' ').length)
    expect(Math.max(...words)).toBeLessThan(5)
  })

  test('paging by links does not repeat an entity whose sort value changes between two pages', async () => {
    const { as, path } = await createThingsFixture(fields)
    const user = as('user')
    for (let n = 0; n < 9; n++) await createEntity(user, path, { identifier: `n${n}`, stock: n })
    const first = await user.get(`${path}?$sort=stock&$limit=4`)
    for (const name of ['n1', 'n2']) await user.put(`${path}/${name}`, { stock: -5 })
    await user.put(`${path}/n3`, { stock: null })
    const second = await user.get(nextPagePath(first.headers)!)
    expect([identifiers(first.body).join(), identifiers(second.body).join()]).toEqual(['n0,n1,n2,n3', 'n4,n5,n6,n7'])
  })
})

describe('a cursor', () => {
  const own = createThingsFixture(fields)
  let user: ApiClient
  let cursor: string
  const list = async (query: string) => user.get(`/blueprints/things/entities?${query}`)
  const cursorOf = (headers: Headers) => new URLSearchParams(nextPagePath(headers)!.split('?')[1]).get('$after')!

  beforeAll(async () => {
    const { as } = await own
    user = as('user')
    await as('admin').post('/blueprints', {
      key: 'others',
      name: 'Others',
      fields,
      permissions: fullAccessRules('tenant', 'user'),
    })
    for (const key of ['things', 'others'])
      for (let n = 0; n < 5; n++)
        await createEntity(user, `/blueprints/${key}/entities`, { identifier: `n${n}`, stock: n, title: `otter ${n}` })
    cursor = cursorOf((await list('$sort=stock&$limit=2')).headers)
  })

  test('a cursor continues a list, also with another limit, shape or filter', async () => {
    for (const [query, expected] of [
      ['$sort=stock', 'n2n3n4'],
      ['$sort=stock&$limit=1', 'n2'],
      ['$sort=%2Bstock&stock[$ne]=3', 'n2n4'],
      ['$sort=stock&$select=title&$flat=false', 'n2n3n4'],
      ['$sort=stock&$page=1&$skip=0', 'n2n3n4'],
    ])
      expect(identifiers((await list(`${query}&$after=${cursor}`)).body).join(''), query).toBe(expected!)
    const { headers } = await list(`$sort=stock&$after=${cursor}&$count=true`)
    expect(headers.get('x-total-count')).toBe('5')
    for (const nothing of ['', 'undefined']) expect((await list(`$sort=stock&$after=${nothing}`)).body).toHaveLength(5)
  })

  test('a cursor does not reveal what it encodes', () => {
    expect(Buffer.from(cursor, 'base64url').toString('latin1')).not.toMatch(/place|stock|\d{6}/)
  })

  test('a cursor of another tenant, blueprint, order or search gets 400 INVALID_INPUT', async () => {
    const otherTenant = await createThingsFixture(fields)
    for (let n = 0; n < 5; n++) await createEntity(otherTenant.as('user'), otherTenant.path, { stock: n })
    const search = cursorOf((await list('$q=otter&$limit=2')).headers)
    const answers = [
      ...['', '-stock', 'stock,title', 'title', 'cost', 'created'].map((sort) =>
        list(`$sort=${sort}&$after=${cursor}`),
      ),
      list(`$q=otter&$after=${cursor}`),
      list(`$q=ottern&$after=${search}`),
      list(`$sort=stock&$after=${search}`),
      user.get(`/blueprints/others/entities?$sort=stock&$after=${cursor}`),
      otherTenant.as('user').get(`${otherTenant.path}?$sort=stock&$after=${cursor}`),
    ]
    for (const answer of await Promise.all(answers)) {
      expect(statusAndCode(answer)).toEqual([400, 'INVALID_INPUT'])
      expect(answer.body.details[0].path).toBe('$after')
      expect(answer.body.message).toContain('Start without it')
    }
  })

  test('a cursor that was tampered with gets 400 INVALID_INPUT', async () => {
    const invalid = '%00,x,%20x,!,1,{},null,[],undefined1,%F0%9F%98%80'.split(',')
    const cut = [1, 10, 27, 28, 40, cursor.length - 1].map((length) => cursor.slice(0, length))
    const turned = [...cursor].map((one, at) => cursor.slice(0, at) + (one === 'A' ? 'B' : 'A') + cursor.slice(at + 1))
    const more = [`${cursor}A`, `${cursor}=`, `${cursor}%20`, cursor + cursor, 'A'.repeat(20_000)]
    for (const one of [...invalid, ...cut, ...turned, ...more])
      expect([one, ...statusAndCode(await list(`$sort=stock&$after=${one}`))]).toEqual([one, 400, 'INVALID_INPUT'])
  })

  test('a cursor gets 400 beside $skip or $page and outside of lists, and a count ignores it', async () => {
    for (const query of ['$skip=1', '$page=2']) {
      const answer = await list(`$sort=stock&${query}&$after=${cursor}`)
      expect([...statusAndCode(answer), answer.body.details[0].path]).toEqual([400, 'INVALID_INPUT', '$after'])
    }
    for (const path of ['entities/export', 'entities/n1', 'charts/bar'])
      expect(statusAndCode(await user.get(`/blueprints/things/${path}?x=stock&$after=${cursor}`))[0], path).toBe(400)
    const removal = await user.delete(`/blueprints/things/entities/all?confirm=things&$after=${cursor}`)
    expect(statusAndCode(removal)).toEqual([400, 'INVALID_INPUT'])
    // A count is always of the whole list.
    expect((await user.get(`/blueprints/things/charts/count?$after=${cursor}`)).body).toEqual({ count: 5 })
  })
})
