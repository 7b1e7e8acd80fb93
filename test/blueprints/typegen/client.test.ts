import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import { listen } from '../../../src/gateway'
import { errorOf } from '../../rejections'
import { createTestTenant, fullAccessRules } from '../../test-tenant'
import { COMPILES_CLEANLY, compileTypeScript } from './typescript-compiler'

setDefaultTimeout(60_000)

const EVERYBODY = { permissions: fullAccessRules('tenant', 'user') }
const blueprints = [
  { key: 'countries', name: 'Countries', fields: [{ key: 'name', type: 'string', required: true }], ...EVERYBODY },
  {
    key: 'authors',
    name: 'Authors',
    fields: [
      { key: 'name', type: 'string', required: true },
      { key: 'country', type: 'relation', target: 'countries' },
    ],
    ...EVERYBODY,
  },
  {
    key: 'order-items',
    name: 'Order items',
    fields: [
      { key: 'title', type: 'string', required: true },
      { key: 'price', type: 'decimal' },
      { key: 'count', type: 'integer', min: 0 },
      { key: 'done', type: 'boolean' },
      { key: 'size', type: 'string', enum: ['small', 'large'] },
      { key: 'tags', type: 'string', multi: true },
      { key: 'notes', type: 'text', multi: true, indexed: false },
      { key: 'address', type: 'object', schema: { type: 'object', properties: { city: { type: 'string' } } } },
      { key: 'author', type: 'relation', target: 'authors' },
      { key: 'others', type: 'relation', target: 'authors', multi: true },
      { key: 'format', type: 'string' },
      { key: 'sum', type: 'integer' },
      { key: 'mode', type: 'integer' },
    ],
    ...EVERYBODY,
  },
]

// biome-ignore lint/suspicious/noExplicitAny: the module was just generated, and another test covers its types
type ClientModule = { createClient: (options: object) => any; AtollError: new (...of: never[]) => Error }

/** A tenant behind a real server, with its generated client imported as a module. */
async function createClientFixture() {
  const testTenant = await createTestTenant()
  const admin = testTenant.as('admin')
  for (const blueprint of blueprints) expect((await admin.post('/blueprints', blueprint)).status).toBe(201)
  const text = (await admin.get('/blueprints/client.ts')).body as string
  const { folder } = await compileTypeScript({ 'client.ts': text })
  const clientModule: ClientModule = await import(join(folder, 'client.ts'))
  return { ...testTenant, admin, text, ...clientModule }
}

let server: ReturnType<typeof listen>
let fixture: Awaited<ReturnType<typeof createClientFixture>>
let url: string
beforeAll(async () => {
  server = listen('127.0.0.1', 0)
  url = `http://127.0.0.1:${server.port}`
  fixture = await createClientFixture()
})
afterAll(() => server.stop(true))

const clientOf = (apiKey = fixture.tokens.user, more: object = {}) =>
  fixture.createClient({ url, tenant: fixture.id, apiKey, ...more })
const orderItems = () => clientOf().entities('order-items')

/** The `[status, code]` of a rejected call. */
const statusAndCodeOf = (work: Promise<unknown>) =>
  work.then(
    () => [200],
    (error) => {
      expect(error).toBeInstanceOf(fixture.AtollError)
      return [error.status, error.code]
    },
  )

describe('the types of the client', () => {
  const use = `
    import { AtollError, createClient, type Authors, type Blueprints, type OrderItems } from './client'
    const atoll = createClient<Blueprints>({ url: 'https://a.test', tenant: 'a', token: async () => 'x' })
    const items = atoll.entities('order-items')
    export async function right() {
      const list: OrderItems[] = await items.list()
      const found = await items.list({
        title: 'a', price: { $gt: 12, $lte: '20.5' }, count: { $in: [1, 2], $exists: true }, done: true, size: { $ne: 'small' },
        tags: 'x', 'address.city': { $gte: 'A' }, author: 'x', created: { $gt: '2026-01-01' }, user: 'x',
        $sort: ['-price', 'created'], $limit: 10, $skip: 2, $q: 'words', $qProps: ['title'],
      })
      const title: string = found[0]!.title
      await items.list({ $sort: '-title' })
      const [chosen] = await items.list({ $select: ['title', 'created'] })
      const parts: string[] = [chosen!.title, chosen!.created, chosen!._id, chosen!.metadata.title]
      const [populated] = await items.list({ $populate: ['author.country', 'others'] })
      const author = populated!.author
      if (typeof author === 'object') {
        const name: string = author.name
        const country = author.country
        if (typeof country === 'object') parts.push(country.name, name)
      }
      for (const other of populated!.metadata.others ?? []) if (typeof other === 'object') parts.push(other.metadata.name)
      for await (const one of items.each({ size: 'large' }, { signal: AbortSignal.timeout(10) })) parts.push(one.title)
      for await (const one of items.export({ $select: ['title'] })) parts.push(one.title)
      const got = await items.get('x', { $populate: ['author'], $select: ['author', 'title'] })
      const authorName: string | undefined = typeof got.author === 'object' ? got.author.name : got.author
      const made = await items.create({ title: 'x', size: 'small', address: { city: 'y', more: 1 } })
      const changed: OrderItems = await items.change(made.identifier, { price: null })
      await items.change(made._id, changed)
      const removed: true = (await items.remove('x')).success
      const count: number = await items.count({ size: 'small' })
      const results = await items.batch([
        { op: 'create', data: { title: 'x' } }, { op: 'update', identifier: 'x', data: { count: 1 } },
        { op: 'upsert', identifier: 'y', data: { title: 'x' } }, { op: 'delete', identifier: 'z' },
      ])
      const report = await items.import([{ title: 'x' }], { mode: 'upsert', dryRun: true })
      const people: Authors[] = await atoll.entities('authors').list()
      const error = new AtollError(404, 'X', 'y')
      return [list, title, parts, authorName, removed, count, results[0]?.entity?.title, report.errors[0]?.line, people, error.details]
    }
    export async function wrong() {
      // @ts-expect-error there is no such blueprint
      atoll.entities('nothing')
      // @ts-expect-error there is no such field
      await items.list({ titel: 'x' })
      // @ts-expect-error it is a number
      await items.list({ count: 'x' })
      // @ts-expect-error it is one of two
      await items.list({ size: 'medium' })
      // @ts-expect-error there is no such operator
      await items.list({ title: { $like: 'x' } })
      // @ts-expect-error it is not in the index
      await items.list({ notes: 'x' })
      // @ts-expect-error an object is queried by its parts
      await items.list({ address: 'x' })
      // @ts-expect-error lists have no order
      await items.list({ $sort: 'tags' })
      // @ts-expect-error there is no such field
      await items.list({ $sort: ['-titel'] })
      // @ts-expect-error there is no such field
      await items.list({ $select: ['titel'] })
      // @ts-expect-error there is no such relation
      await items.list({ $populate: ['title'] })
      // @ts-expect-error it is no text
      await items.list({ $q: 'x', $qProps: ['count'] })
      // @ts-expect-error there is no such option
      await items.list({ $limits: 1 })
      // @ts-expect-error it was not selected
      ;(await items.get('x', { $select: ['title'] })).count
      // @ts-expect-error it is an identifier unless it is populated
      ;(await items.get('x')).author?.name
      // @ts-expect-error it may still be an identifier
      ;(await items.get('x', { $populate: ['author'] })).author?.name
      // @ts-expect-error it needs a title
      await items.create({ count: 1 })
      // @ts-expect-error it is one of two
      await items.create({ title: 'x', size: 'medium' })
      // @ts-expect-error it must be there
      await items.change('x', { title: null })
      // @ts-expect-error it lacks an identifier
      await items.batch([{ op: 'update', data: {} }])
      // @ts-expect-error it needs a title
      await items.import([{ count: 1 }])
      // @ts-expect-error an export has all that match
      items.export({ $limit: 1 })
      // @ts-expect-error a count has no order
      await items.count({ $sort: 'title' })
    }
  `

  test.each([
    ['a browser', { lib: ['ES2022', 'DOM', 'DOM.Iterable', 'DOM.AsyncIterable'] }],
    ['Bun', { lib: ['ESNext'], types: ['bun-types'], typeRoots: [join(process.cwd(), 'node_modules')] }],
    ['Node', { lib: ['ES2023'], types: ['node'], typeRoots: [join(process.cwd(), 'node_modules/@types')] }],
  ])('the types of the client accept valid uses and reject invalid ones in %s', async (_, options) => {
    expect(
      await compileTypeScript({ 'client.ts': fixture.text, 'use.ts': use }, { ...options, skipLibCheck: true }),
    ).toMatchObject(COMPILES_CLEANLY)
  })

  test('the file of the client imports nothing', () => {
    expect(fixture.text).not.toMatch(/^\s*import |(?<![.\w])(require|import)\(/m)
  })
})

describe('the generated client', () => {
  test('the client creates, reads, updates and deletes entities with any valid identifier', async () => {
    const made = await orderItems().create({ identifier: 'one', title: 'Öl, "&?#/%"', price: '1.50', tags: ['a', 'b'] })
    expect(made).toMatchObject({ identifier: 'one', title: 'Öl, "&?#/%"', metadata: { price: '1.50' } })
    expect(await orderItems().get('one')).toEqual(made)
    expect(await orderItems().get(made._id, { $select: ['price'] })).toEqual({
      _id: made._id,
      identifier: 'one',
      metadata: { price: '1.50' },
      price: '1.50',
    })
    expect(await orderItems().change('one', { price: null, count: 3 })).toMatchObject({ metadata: { count: 3 } })
    expect(await orderItems().get('one')).not.toHaveProperty('price')
    // Identifiers with special characters of URLs.
    for (const identifier of ['a?b', 'a#b', '%2e', 'ü&=', "'"]) {
      await orderItems().create({ identifier, title: 'x' })
      expect((await orderItems().get(identifier)).identifier).toBe(identifier)
      expect(await orderItems().remove(identifier)).toEqual({ success: true, identifier })
    }
    await orderItems().remove('one')
    expect(await statusAndCodeOf(orderItems().get('one'))).toEqual([404, 'ENTITY_NOT_FOUND'])
    for (const identifier of ['', '.', '..'])
      expect(await errorOf(orderItems().get(identifier))).toBeInstanceOf(TypeError)
  })

  test('list, export and count of the client agree on filters and full-text search, and list sorts, pages and populates', async () => {
    const authors = clientOf().entities('authors')
    await clientOf().entities('countries').create({ identifier: 'dk', name: 'Denmark' })
    await authors.create({ identifier: 'tove', name: 'Tove', country: 'dk' })
    const all = [
      {
        identifier: 'a',
        title: 'Red, bright',
        price: '9.50',
        count: 1,
        done: true,
        size: 'small',
        format: 'csv',
        sum: 1,
      },
      { identifier: 'b', title: 'Green', price: '10', count: 2, done: false, size: 'large', tags: ['x', 'y'], sum: 2 },
      { identifier: 'c', title: 'Blue', price: '11.25', address: { city: 'Århus' }, author: 'tove', others: ['tove'] },
    ]
    for (const one of all) await orderItems().create(one)
    const found = async (query: object) => {
      const [listed, exported, counted] = [
        await orderItems().list({ $sort: 'identifier', ...query }),
        [] as string[],
        await orderItems().count(query),
      ]
      for await (const one of orderItems().export(query)) exported.push(one.identifier)
      const names = listed.map(({ identifier }: { identifier: string }) => identifier).join('')
      expect([exported.sort().join(''), counted]).toEqual([names, names.length])
      return names
    }
    expect(await found({})).toBe('abc')
    expect(await found({ title: 'Red, bright' })).toBe('a')
    expect(await found({ title: undefined, price: { $gt: 9.5, $lte: '11.25' } })).toBe('bc')
    expect(await found({ price: { $gte: '10', $lt: undefined } })).toBe('bc')
    expect(await found({ count: { $in: [1, 2] } })).toBe('ab')
    expect(await found({ count: { $exists: false } })).toBe('c')
    expect(await found({ done: false })).toBe('b')
    expect(await found({ tags: 'y' })).toBe('b')
    expect(await found({ size: { $nin: ['small'] } })).toBe('bc')
    expect(await found({ 'address.city': 'Århus' })).toBe('c')
    expect(await found({ user: fixture.users.user, created: { $gt: '2026-01-01' } })).toBe('abc')
    expect(await found({ $q: 'gre' })).toBe('b')
    expect(await found({ $q: 'blue', $qProps: ['title'] })).toBe('c')
    // Fields with the names of query parameters of the server.
    expect(await found({ format: 'csv' })).toBe('a')
    expect(await found({ sum: 2 })).toBe('b')
    expect(await found({ mode: { $gt: 0 } })).toBe('')
    expect(await found({ mode: { $exists: false } })).toBe('abc')
    // Empty lists of options are not sent.
    expect(await found({ $qProps: [], $select: [] })).toBe('abc')
    const order = async (query: object) =>
      (await orderItems().list(query)).map((one: { identifier: string }) => one.identifier).join('')
    expect(await order({ $sort: ['-price'] })).toBe('cba')
    expect(await order({ $sort: 'title', $limit: 1, $skip: 1 })).toBe('b')
    const [c] = await orderItems().list({ $populate: ['author.country', 'others'], identifier: 'c' })
    expect([c.author.country.name, c.metadata.others[0].name, c.others[0].country]).toEqual(['Denmark', 'Tove', 'dk'])
  })

  test('the client throws a TypeError for values that a query cannot express, and an AtollError for unknown fields', async () => {
    for (const query of [{ title: '' }, { title: 'undefined' }, { title: null }, { title: { $gt: '' } }])
      expect(await errorOf(orderItems().list(query)), JSON.stringify(query)).toBeInstanceOf(TypeError)
    expect(await errorOf(orderItems().list({ title: { $in: [] } }))).toBeInstanceOf(TypeError)
    for (const list of [['a,b'], ['']]) expect(await orderItems().list({ title: { $in: list } })).toEqual([])
    expect(await statusAndCodeOf(orderItems().list({ nothing: 1 }))).toEqual([400, 'INVALID_INPUT'])
  })

  test('each() of the client iterates over all pages and can be stopped', async () => {
    const countries = clientOf().entities('countries')
    const names = Array.from({ length: 25 }, (_, n) => `land-${String(n).padStart(2, '0')}`)
    await countries.batch(names.map((name) => ({ op: 'create', identifier: name, data: { name } })))
    const iterated: string[] = []
    for await (const { identifier } of countries.each({ name: { $gte: 'land' }, $sort: 'name', $limit: 10 }))
      iterated.push(identifier)
    expect(iterated).toEqual(names)
    const firstTwelve: string[] = []
    for await (const { identifier } of countries.each({ $sort: 'name', $limit: 10 }))
      if (firstTwelve.push(identifier) === 12) break
    expect(firstTwelve).toHaveLength(12)
  })

  test('batch() of the client executes all operations or none', async () => {
    const [, changed] = await orderItems().batch([
      { op: 'create', identifier: 'batch', data: { title: 'x' } },
      { op: 'update', identifier: 'batch', data: { count: 7 } },
    ])
    expect(changed).toMatchObject({ op: 'update', status: 200, entity: { title: 'x', count: 7 } })
    const failing = [
      { op: 'delete', identifier: 'batch' },
      { op: 'delete', identifier: 'batch' },
    ]
    const error = await orderItems()
      .batch(failing)
      .catch((error: unknown) => error)
    expect(error).toMatchObject({ status: 404, code: 'ENTITY_NOT_FOUND', details: { index: 1 } })
    expect((await orderItems().get('batch')).count).toBe(7)
  })

  test('import() of the client returns the number of imported entities and the errors', async () => {
    const drafts = [{ identifier: 'imported', title: 'a\nb' }, { count: 1 }]
    expect(await orderItems().import(drafts, { dryRun: true })).toMatchObject({ imported: 1, failed: 1 })
    expect(await orderItems().import(drafts)).toMatchObject({
      imported: 1,
      failed: 1,
      errors: [{ line: 2, code: 'INVALID_INPUT' }],
    })
    expect(
      await orderItems().import([{ identifier: 'imported', title: 'c' }], { mode: 'upsert', atomic: true }),
    ).toMatchObject({ imported: 1 })
    expect((await orderItems().get('imported')).title).toBe('c')
    expect(await orderItems().import([])).toMatchObject({ imported: 0 })
  })

  test('the client signs in with an API key, a token or a token function, or sends no credentials', async () => {
    const { body } = await fixture.anonymous.post('/signup', {
      username: 'tess',
      password: 'correct horse',
      authType: 'oauth',
    })
    const token = body.payload.token as string
    const createAndReadUser = async (more: object) =>
      (
        await fixture
          .createClient({ url, tenant: fixture.id, ...more })
          .entities('authors')
          .create({ name: 'x' })
      ).user
    expect(await createAndReadUser({ apiKey: fixture.tokens.user })).toBe(fixture.users.user)
    expect(await createAndReadUser({ token })).toBe(body.payload.user._id)
    const tokens = [token]
    let tokenCalls = 0
    expect(await createAndReadUser({ token: async () => tokens[tokenCalls++] })).toBe(body.payload.user._id)
    expect(tokenCalls).toBe(1)
    expect(await statusAndCodeOf(createAndReadUser({}))).toEqual([401, 'UNAUTHENTICATED'])
    expect(await statusAndCodeOf(createAndReadUser({ apiKey: fixture.tokens.user, tenant: 'nobody' }))).toEqual([
      404,
      'TENANT_NOT_FOUND',
    ])
    expect(await statusAndCodeOf((await createForeignClient()).entities('authors').list())).toEqual([
      401,
      'UNAUTHENTICATED',
    ])
    const options = { headers: { 'idempotency-key': 'k' } }
    const [one, two] = [
      await orderItems().create({ title: 'x' }, options),
      await orderItems().create({ title: 'x' }, options),
    ]
    expect(one).toEqual(two)
  })

  /** A client of another tenant, with an API key of this one. */
  const createForeignClient = async () =>
    fixture.createClient({ url, tenant: (await createTestTenant()).id, apiKey: fixture.tokens.user })

  test('the client throws an AtollError for error answers, also without JSON, and passes on aborts and network errors', async () => {
    const error = await orderItems()
      .create({})
      .catch((error: unknown) => error)
    expect(error).toMatchObject({
      name: 'AtollError',
      status: 400,
      code: 'INVALID_INPUT',
      message: 'title is required.',
      details: [{ path: '/title' }],
    })
    const listWithAnswer = (status: number, body: string) =>
      clientOf('x', { fetch: async () => new Response(body, { status }) })
        .entities('authors')
        .list()
    expect(await statusAndCodeOf(listWithAnswer(502, '<html>'))).toEqual([502, 'HTTP_502'])
    expect(await statusAndCodeOf(listWithAnswer(500, 'null'))).toEqual([500, 'HTTP_500'])
    expect(await statusAndCodeOf(listWithAnswer(500, ''))).toEqual([500, 'HTTP_500'])
    const signal = AbortSignal.abort()
    expect((await errorOf(orderItems().list({}, { signal }))).message).toContain('abort')
    const unreachable = fixture.createClient({ url: 'http://127.0.0.1:1', tenant: fixture.id }).entities('authors')
    expect(await errorOf(unreachable.list())).not.toBeInstanceOf(fixture.AtollError)
  })

  test('the client accepts a server URL with trailing slashes', async () => {
    for (const path of ['/', '//'])
      expect(
        await clientOf(undefined, { url: `${url}${path}` })
          .entities('authors')
          .count(),
      ).toBeNumber()
  })
})
