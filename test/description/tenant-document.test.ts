import { beforeAll, describe, expect, test } from 'bun:test'
import { Ajv2020 } from 'ajv/dist/2020'
import { type FieldTypeName, fieldTypeNames } from '../../src/blueprints/fields'
import { freeReadMs } from '../../src/entities/query/read-costs'
import { costlyWork } from '../../src/tenancy/fair-queue'
import { callApi, createTestTenant } from '../test-tenant'
import { createAwkwardBlueprints } from './awkward-blueprints'

type Schema = { [word: string]: unknown }
type Document = {
  paths: Record<string, Record<string, { operationId: string; parameters?: { name?: string; schema?: Schema }[] }>>
  components: { schemas: Record<string, { properties: Record<string, Schema>; required: string[] }> }
}

let t: Awaited<ReturnType<typeof createTestTenant>>
const fetchDocument = async (name: 'admin' | 'editor' | 'user'): Promise<Document> =>
  (await callApi('GET', `${t.origin}/openapi/json?tenant=${t.id}`, { headers: { 'x-api-key': t.tokens[name] } })).body

const fields = [
  { key: 'title', type: 'string', required: true, min: 2, max: 80, title: 'What it is' },
  { key: 'stage', type: 'string', enum: ['open', 'won'], default: 'open' },
  { key: 'worth', type: 'decimal' },
  { key: 'seats', type: 'integer', min: 1, required: true },
  { key: 'tags', type: 'string', multi: true, max: 3 },
  { key: 'place', type: 'object', schema: { type: 'object', properties: { city: { type: 'string' } } } },
  { key: 'margin', type: 'number', readRoles: ['finance'] },
  { key: 'score', type: 'integer', writeRoles: ['finance'] },
  { key: 'total', type: 'number' },
]
const path = '/api/blueprints/big-deals/entities'

/** Returns a function that tells whether a value fits a schema of the document. */
function createFits({ schemas }: Document['components']) {
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  ajv.addSchema({ $id: 'api', components: { schemas } })
  return (name: string, value: unknown) => !!ajv.getSchema(`api#/components/schemas/${name}`)?.(value)
}

type Media = { content: { 'application/json': { example?: object; schema: { $ref: string } } } }
type OwnPath = {
  get: { parameters: { name: string; example?: unknown }[] }
  post: { requestBody: Media; responses: { 201: Media } }
}
const exampleIn = ({ content }: Media) => content['application/json'].example

const parcel = {
  type: 'object',
  required: ['size', 'lines', 'sent'],
  properties: {
    size: { enum: ['s', 'l'] },
    sent: { type: 'string', format: 'date' },
    lines: {
      type: 'array',
      minItems: 1,
      items: { type: 'object', required: ['n'], properties: { n: { type: 'integer', minimum: 3 } } },
    },
  },
}

type Example = { valid: unknown[]; invalid: unknown[]; schema: Schema }
const TEXT = { type: 'string' }
/** Values of each field type, values that also the schema refuses, and the schema. */
const examples: Record<FieldTypeName, Example> = {
  string: { valid: ['', 'Zwölf'], invalid: [1, true, {}], schema: TEXT },
  text: { valid: ['', 'two\nlines'], invalid: [1, []], schema: TEXT },
  number: { valid: [0, -1.5, 1e300], invalid: ['1', false], schema: { type: 'number' } },
  integer: { valid: [0, -7, 2 ** 53 - 1], invalid: [0.5, '1'], schema: { type: 'integer' } },
  decimal: { valid: ['0', '-19.90'], invalid: [19.9, '1,5', '.5', '1e3'], schema: TEXT },
  boolean: { valid: [true, false], invalid: ['true', 0], schema: { type: 'boolean' } },
  date: { valid: ['2026-01-31'], invalid: [20260131], schema: { ...TEXT, format: 'date' } },
  datetime: { valid: ['2026-01-31T12:00:00+02:00'], invalid: [0], schema: { ...TEXT, format: 'date-time' } },
  time: { valid: ['08:00', '23:59:59'], invalid: ['24:00', '8:00', 8], schema: TEXT },
  object: { valid: [{}, { a: { b: [1] } }], invalid: ['{}', 1], schema: { type: 'object' } },
  file: { valid: ['/a.png', 'https://a.test/b'], invalid: [1], schema: { ...TEXT, format: 'uri-reference' } },
  email: { valid: ['a@b.test'], invalid: [1], schema: { ...TEXT, format: 'email' } },
  url: { valid: ['https://a.test/?b=c'], invalid: [1], schema: { ...TEXT, format: 'uri' } },
  relation: { valid: ['one'], invalid: [1, {}], schema: TEXT },
}

beforeAll(async () => {
  t = await createTestTenant()
  const admin = t.as('admin')
  const deals = {
    ...{ key: 'big-deals', name: 'Big deals', fields, computed: { total: 'seats * 2' } },
    permissions: ['create', 'read'].map((operation) => ({ operation, scope: 'tenant', roleBased: ['user'] })),
  }
  expect((await admin.post('/blueprints', deals)).status).toBe(201)
  const secret = { key: 'secrets', name: 'Secrets', fields: [{ key: 'word', type: 'text' }] }
  expect((await admin.post('/blueprints', secret)).status).toBe(201)
})

describe('GET /openapi/json?tenant=', () => {
  test('the document of a tenant adds a schema and paths for each blueprint to the general document', async () => {
    const { paths, components } = await fetchDocument('admin')
    const plain = (await callApi('GET', `${t.origin}/openapi/json`)).body as Document
    expect(plain.paths[path]).toBeUndefined()
    expect(paths).toMatchObject({ '/api/signin': plain.paths['/api/signin'] })
    expect(Object.keys(paths[path] ?? {})).toEqual(['get', 'post'])
    expect(Object.keys(paths[`${path}/{identifier}`] ?? {}).sort()).toEqual(['delete', 'get', 'patch', 'put'])
    expect(paths[path]?.post?.operationId).toBe('createBigDealsEntity')
    expect(Object.keys(components.schemas)).toContainValues([
      'BigDeals',
      'BigDealsProperties',
      'NewBigDeals',
      'Secrets',
    ])
    expect(components.schemas.NewBigDeals?.required).toEqual(['title', 'seats'])
    expect(components.schemas.NewBigDeals?.properties.title).toEqual({
      ...{ title: 'What it is', type: 'string', minLength: 2, maxLength: 80 },
    })
    const ids = Object.values(paths).flatMap((one) => Object.values(one).map(({ operationId }) => operationId))
    expect(ids).toEqual([...new Set(ids)])
  })

  test('the document of a tenant omits fields that the caller may not read or write and operations without a rule', async () => {
    const { paths, components } = await fetchDocument('user')
    expect(Object.keys(paths[path] ?? {})).toEqual(['get', 'post'])
    expect(Object.keys(paths[`${path}/{identifier}`] ?? {})).toEqual(['get'])
    expect(Object.keys(paths).filter((one) => one.includes('secrets'))).toEqual([])
    expect(JSON.stringify(components.schemas)).not.toContain('"Secrets')
    expect(Object.keys(components.schemas.BigDeals?.properties ?? {})).not.toContain('margin')
    expect(Object.keys(components.schemas.BigDeals?.properties ?? {})).toContainValues(['score', 'total'])
    for (const computedOrGuarded of ['score', 'total'])
      expect(Object.keys(components.schemas.NewBigDeals?.properties ?? {})).not.toContain(computedOrGuarded)
    const filters = paths[path]?.get?.parameters?.map(({ name }) => name)
    expect(filters).toContainValues(['title', 'stage', 'seats', '$sort'])
    expect(filters).not.toContain('margin')
  })

  test('the schemas of a tenant accept exactly the entities that the server accepts, and match its answers', async () => {
    const { components } = await fetchDocument('admin')
    const fits = createFits(components)
    const drafts: [object, boolean][] = [
      [{ title: 'Ship', seats: 3, worth: '19.90', tags: ['a'], place: { city: 'Oslo' }, margin: 0.5 }, true],
      [{ title: 'Ship', seats: 3, worth: null }, true],
      [{ title: 'S', seats: 3 }, false],
      [{ title: 'Ship' }, false],
      [{ title: 'Ship', seats: 0 }, false],
      [{ title: 'Ship', seats: 1, stage: 'lost' }, false],
      [{ title: 'Ship', seats: 1, worth: '1,5' }, false],
      [{ title: 'Ship', seats: 1, tags: ['a', 'b', 'c', 'd'] }, false],
      [{ title: 'Ship', seats: 1, place: { city: 1 } }, false],
    ]
    for (const [draft, good] of drafts) {
      const { status, body } = await t.as('admin').post('/blueprints/big-deals/entities', draft)
      expect([status, fits('NewBigDeals', draft)], JSON.stringify(draft)).toEqual([good ? 201 : 400, good])
      if (good) expect(fits('BigDeals', body), JSON.stringify(body)).toBeTrue()
    }
  })

  test('the schemas of a tenant describe every field type, alone and in lists, as the server validates it', async () => {
    expect(Object.keys(examples)).toEqual(fieldTypeNames)
    const admin = t.as('admin')
    const target = { target: 'all-types' }
    const fields = fieldTypeNames.flatMap((type) => [
      { key: type, type, ...(type === 'relation' && target) },
      { key: `${type}List`, type, multi: true, ...(type === 'relation' && target) },
    ])
    expect((await admin.post('/blueprints', { key: 'all-types', name: 'All types', fields })).status).toBe(201)
    expect((await admin.post('/blueprints/all-types/entities', { identifier: 'one' })).status).toBe(201)
    const { components } = await fetchDocument('admin')
    const fits = createFits(components)
    for (const type of fieldTypeNames) {
      const { valid, invalid, schema } = examples[type]
      const { [type]: single, [`${type}List`]: list } = components.schemas.AllTypesProperties?.properties ?? {}
      expect(single, type).toMatchObject(schema)
      expect(list, type).toMatchObject({ type: 'array', items: schema })
      for (const [index, value] of [...valid, ...invalid].entries())
        for (const draft of [{ [type]: value }, { [`${type}List`]: [value, value] }]) {
          const isValid = index < valid.length
          const { status, body } = await admin.post('/blueprints/all-types/entities', draft)
          expect([status, fits('NewAllTypes', draft)], JSON.stringify(draft)).toEqual([isValid ? 201 : 400, isValid])
          if (isValid) expect(fits('AllTypes', body), JSON.stringify(body)).toBeTrue()
        }
    }
  })

  test('the document of a tenant shows which files a field takes, and the form that creates an entity with them', async () => {
    const island = await createTestTenant()
    await island.as('admin').post('/blueprints', {
      ...{ key: 'pages', name: 'Pages' },
      fields: [
        { key: 'title', type: 'string' },
        { key: 'cover', type: 'file', accept: ['image/*'], maxSize: '2M' },
        { key: 'papers', type: 'file', multi: true },
      ],
    })
    const { body } = await callApi('GET', `${island.origin}/openapi/json?tenant=${island.id}`, {
      headers: { 'x-api-key': island.tokens.admin },
    })
    expect(body.components.schemas.PagesProperties.properties.cover).toEqual({
      ...{ type: 'string', format: 'uri-reference' },
      description: 'The URL of a file. To write, also the `_id` of one. Files of this server: image/*, up to 2M.',
    })
    for (const [method, address] of [
      ['post', '/api/blueprints/pages/entities'],
      ['put', '/api/blueprints/pages/entities/{identifier}'],
    ] as const) {
      const { content } = body.paths[address][method].requestBody
      expect(content['multipart/form-data'].schema.properties).toMatchObject({
        title: { type: 'string' },
        cover: { type: 'string', format: 'binary' },
        papers: { type: 'array', items: { type: 'string', format: 'binary' } },
        keep: { type: 'boolean' },
      })
      expect(Object.keys(content)).toContain('application/json')
    }
  })

  test('every example of the document of a tenant does what it says, and fits its schema', async () => {
    const island = await createTestTenant()
    const admin = island.as('admin')
    await createAwkwardBlueprints(admin)
    const bounded = [
      { key: 'code', type: 'string', min: 12, max: 14, required: true },
      { key: 'short', type: 'text', max: 3 },
      { key: 'plate', type: 'string', pattern: '^[A-Z]{2}-\\d+$' },
      { key: 'from', type: 'date', min: '2040-05-01', required: true },
      { key: 'fee', type: 'decimal', min: '100', required: true },
      { key: 'seats', type: 'integer', max: -3 },
      { key: 'tags', type: 'string', multi: true, min: 2, required: true },
      { key: 'boss', type: 'relation', target: 'people', required: true },
      { key: 'sum', type: 'number' },
      { key: 'box', type: 'object', schema: parcel, required: true },
    ]
    await admin.post('/blueprints', { key: 'people', name: 'People', fields: [{ key: 'name', type: 'string' }] })
    const computed = { sum: '$number(fee) * 2' }
    const created = await admin.post('/blueprints', { key: 'bounded', name: 'Bounded', fields: bounded, computed })
    expect(created.status).toBe(201)
    await admin.post('/blueprints/people/entities', { identifier: 'people-1' })
    const { body } = await callApi('GET', `${island.origin}/openapi/json?tenant=${island.id}`, {
      headers: { 'x-api-key': island.tokens.admin },
    })
    const fits = createFits(body.components)
    const own = Object.entries<OwnPath>(body.paths).filter(([one]) => /^\/api\/blueprints\/[\w-]+\/entities$/.test(one))
    expect(own.length).toBeGreaterThan(10)
    for (const [listPath, { get, post }] of own) {
      const path = listPath.slice('/api'.length)
      const entity = body.paths[`${listPath}/{identifier}`]
      const answer = await admin.post(path, exampleIn(post.requestBody))
      expect([path, answer.status, answer.body.details]).toEqual([path, 201, undefined])
      const schema = post.responses[201].content['application/json'].schema.$ref.split('/').at(-1)!
      expect(fits(schema, exampleIn(post.responses[201])), path).toBeTrue()
      const changed = await admin.put(`${path}/${answer.body.identifier}`, exampleIn(entity.put.requestBody))
      expect([path, changed.status]).toEqual([path, 200])
      for (const { name, example } of get.parameters)
        if (example !== undefined && !/^\$after|^\$asOf/.test(name)) {
          const listed = await admin.get(`${path}?${new URLSearchParams({ [name]: String(example) })}`)
          expect([path, name, listed.status]).toEqual([path, name, 200])
        }
    }
  }, 60_000)

  test('the document of a tenant is refused with 401 to guests and users of another tenant', async () => {
    const url = `${t.origin}/openapi/json?tenant=${t.id}`
    const guest = await callApi('GET', url)
    expect([guest.status, guest.body.code]).toEqual([401, 'UNAUTHENTICATED'])
    const other = await createTestTenant()
    expect((await callApi('GET', url, { headers: { 'x-api-key': other.tokens.admin } })).status).toBe(401)
    const unknown = await callApi('GET', `${t.origin}/openapi/json?tenant=nobody`, {
      headers: { 'x-api-key': t.tokens.admin },
    })
    expect([unknown.status, unknown.body.code]).toEqual([404, 'TENANT_NOT_FOUND'])
  })

  test('the document of a tenant is answered with Cache-Control: no-store', async () => {
    const { headers } = await callApi('GET', `${t.origin}/openapi/json?tenant=${t.id}`, {
      headers: { 'x-api-key': t.tokens.user },
    })
    expect(headers.get('cache-control')).toContain('no-store')
  })

  test('every reference of the document of a tenant leads to a part of it', async () => {
    const document = await fetchDocument('admin')
    const references = new Set(JSON.stringify(document).match(/(?<="\$ref":")[^"]+/g))
    expect(references).toContain('#/components/schemas/BigDeals')
    const isMissing = (reference: string) =>
      reference
        .split('/')
        .slice(1)
        .reduce<unknown>((part, key) => (part as Schema | undefined)?.[key], document) === undefined
    expect([...references].filter(isMissing)).toEqual([])
  })

  test('the document of a tenant takes turns with other costly work of the tenant', async () => {
    const defaults = { ...freeReadMs }
    Object.assign(freeReadMs, { thread: 0, waiting: 0 })
    const held = Promise.withResolvers<void>()
    const occupant = costlyWork.run({ tenant: t.id, caller: 'another caller' }, () => held.promise)
    try {
      let hasAnswered = false
      const answer = fetchDocument('admin').finally(() => {
        hasAnswered = true
      })
      await Bun.sleep(100)
      expect(hasAnswered).toBe(false)
      held.resolve()
      expect(Object.keys((await answer).paths)).toContain(path)
    } finally {
      held.resolve()
      Object.assign(freeReadMs, defaults)
      await occupant
    }
  })
})
