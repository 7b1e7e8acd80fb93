import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { issueApiToken } from '../../../src/accounts/api-tokens'
import { assignIdentifiers } from '../../../src/blueprints/typegen/identifiers'
import { apiClient, callApi, createTestTenant, statusAndCode } from '../../test-tenant'
import { COMPILES_CLEANLY, compileTypeScript } from './typescript-compiler'

setDefaultTimeout(60_000)

const PATHS = ['/blueprints/types.d.ts', '/blueprints/client.ts']

async function createTypesFixture(...blueprints: object[]) {
  const testTenant = await createTestTenant()
  const [admin, editor] = [testTenant.as('admin'), testTenant.as('editor')]
  for (const blueprint of blueprints) {
    const { status, body } = await admin.post('/blueprints', { name: 'Things', ...blueprint })
    expect([status, body.details ?? body.message]).toEqual([201, undefined])
  }
  const text = async (path = PATHS[0]!) => (await editor.get(path)).body as string
  return { ...testTenant, admin, editor, text }
}

/** Every type of field, with each property that affects the TypeScript type. */
const EVERY_FIELD_TYPE = {
  key: 'things',
  name: 'All things',
  description: 'There is one of each.\nSome are more.',
  computed: { total: 'count * 2' },
  fields: [
    { key: 'title', type: 'string', required: true, title: 'Title', description: 'What it is called.' },
    { key: 'body', type: 'text' },
    { key: 'weight', type: 'number' },
    { key: 'count', type: 'integer', required: true, default: 1 },
    { key: 'price', type: 'decimal' },
    { key: 'done', type: 'boolean', required: true },
    { key: 'day', type: 'date' },
    { key: 'moment', type: 'datetime' },
    { key: 'hour', type: 'time' },
    { key: 'address', type: 'object' },
    { key: 'picture', type: 'file' },
    { key: 'mail', type: 'email' },
    { key: 'page', type: 'url' },
    { key: 'parent', type: 'relation', target: 'things' },
    { key: 'tags', type: 'string', multi: true, required: true },
    { key: 'size', type: 'string', enum: ['small', 'large'] },
    { key: 'level', type: 'integer', enum: [1, -2, 1e21 / 1e21], multi: true },
    { key: 'total', type: 'integer', required: true },
    { key: 'secret', type: 'string', required: true, readRoles: ['chief'] },
  ],
}

describe('the generated types of blueprints', () => {
  test('the types have for each field its type, whether it is optional, and what may be written', async () => {
    const { text } = await createTypesFixture(EVERY_FIELD_TYPE)
    const use = `
      import type { Blueprints, Entity, NewThings, Things, ThingsChange, ThingsProperties } from './atoll'
      type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
      const yes = (_: true) => {}
      type P = ThingsProperties
      yes(null! as Equal<P['title'], string>)
      yes(null! as Equal<P['body'], string | undefined>)
      yes(null! as Equal<P['weight'], number | undefined>)
      yes(null! as Equal<P['count'], number>)
      yes(null! as Equal<P['price'], string | undefined>)
      yes(null! as Equal<P['done'], boolean>)
      yes(null! as Equal<P['day' | 'moment' | 'hour' | 'picture' | 'mail' | 'page' | 'parent'], string | undefined>)
      yes(null! as Equal<P['address'], { [key: string]: unknown } | undefined>)
      yes(null! as Equal<P['tags'], string[]>)
      yes(null! as Equal<P['size'], 'small' | 'large' | undefined>)
      yes(null! as Equal<P['level'], (1 | -2)[] | undefined>)
      yes(null! as Equal<P['total'], number>)
      yes(null! as Equal<P['secret'], string | undefined>)
      declare const thing: Things
      const wrapped: Entity<P> = thing
      yes(null! as Equal<Things['metadata'], P>)
      yes(null! as Equal<typeof thing.title, string>)
      yes(null! as Equal<Things['user'], string | null>)
      yes(null! as Equal<Blueprints['things']['entity'], Things>)
      const least: NewThings = { title: '', done: true, tags: [], secret: '' }
      const more: NewThings = { ...least, count: 2, body: null, identifier: 'x', size: 'large', level: [1], user: null }
      const change: ThingsChange = { title: 'x', size: null }
      const none: ThingsChange = {}
      // An entity can be sent back exactly as returned.
      const back: ThingsChange = thing
      // @ts-expect-error it needs more
      const less: NewThings = { title: '' }
      // @ts-expect-error it is computed
      const computed: NewThings = { ...least, total: 1 }
      // @ts-expect-error it must be there
      const cleared: ThingsChange = { title: null }
      // @ts-expect-error there is a default, but it can't be taken away
      const unset: NewThings = { ...least, count: null }
      // @ts-expect-error it is one of two
      const medium: ThingsChange = { size: 'medium' }
      // @ts-expect-error there is no such field
      const unknown: ThingsChange = { titel: 'x' }
      // @ts-expect-error it is a list
      const single: ThingsChange = { tags: 'x' }
      // @ts-expect-error the system makes it
      const made: NewThings = { ...least, _id: 'x' }
      export { wrapped, least, more, change, none, back, less, computed, cleared, unset, medium, unknown, single, made }
    `
    expect(await compileTypeScript({ 'atoll.d.ts': await text(), 'use.ts': use })).toMatchObject(COMPILES_CLEANLY)
  })

  test('an object field has the type of its JSON schema', async () => {
    const schema = {
      type: 'object',
      required: ['street', 'unnamed'],
      properties: {
        street: { type: 'string' },
        number: { type: ['integer', 'null'] },
        kind: { enum: ['home', 'work', 1, null] },
        only: { const: { a: [1, 'x'] } },
        either: { anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'boolean' } }] },
        both: { allOf: [{ $ref: '#/definitions/a' }, { $ref: '#/definitions/b' }] },
        closed: { type: 'object', properties: { x: { type: 'number' } }, additionalProperties: false },
        map: { type: 'object', additionalProperties: { type: 'number' } },
        anything: {},
        'it\'s "quoted" */': { type: 'string' },
        class: { type: 'string', nullable: true },
      },
      definitions: {
        a: { type: 'object', required: ['a'], properties: { a: { type: 'string' } } },
        b: { type: 'object', required: ['b'], properties: { b: { type: 'number' } } },
      },
    }
    const { text } = await createTypesFixture({
      key: 'people',
      fields: [{ key: 'address', type: 'object', required: true, schema }],
    })
    const use = `
      import type { People } from './atoll'
      declare const { address }: People
      const street: string = address.street
      const unnamed: {} | null | undefined = address.unnamed
      const number: number | null | undefined = address.number
      const kind: 'home' | 'work' | 1 | null | undefined = address.kind
      const only: [1, 'x'] | undefined = address.only?.a
      const either: string | boolean[] | undefined = address.either
      const both: { a: string; b: number } | undefined = address.both
      const closed: { x?: number } | undefined = address.closed
      const map: number | undefined = address.map?.['any']
      const quoted: string | undefined = address['it\\'s "quoted" */']
      const nullable: string | null | undefined = address.class
      const other: unknown = address['whatever']
      // @ts-expect-error it could be absent
      const sure: number = address.number
      // @ts-expect-error it is closed
      address.closed?.['y']
      // @ts-expect-error its type is unknown
      const text: string = address.anything
      export { street, unnamed, number, kind, only, either, both, closed, map, quoted, nullable, other, sure, text }
    `
    expect(await compileTypeScript({ 'atoll.d.ts': await text(), 'use.ts': use })).toMatchObject(COMPILES_CLEANLY)
  })

  test('texts of hostile blueprints cannot inject code into the generated files', async () => {
    const hostile = [
      '*/ export const injected = 1 /*',
      '"; export const injected = 1; "',
      '`$\u007binjected}`',
      '\\',
      "\\' */",
      '@ts-expect-error',
      'first\n@ts-ignore\r\nlast\u2028*/ injected\u2029@ts-expect-error',
      '*\u200b/ injected',
      '\u202e/* injected',
      '// @ts-nocheck',
      '/// <reference path="injected" />',
      '*',
      '/',
      'constructor',
    ]
    const line = (text: string) => text.replace(/\p{Cc}/gu, ' ')
    const property = Object.fromEntries(
      hostile.map((text) => [text, { type: 'string', const: text, description: text }]),
    )
    const blueprints = hostile.map((text, n) => ({
      key: `hostile${n}`,
      name: line(text),
      description: text,
      fields: [
        { key: 'a', type: 'string', title: line(text), description: text, enum: hostile },
        { key: 'b', type: 'object', schema: { properties: property, required: hostile } },
        { key: 'c', type: 'object', enum: [{ [text]: text }] },
        ...['class', 'readonly', 'new', 'delete', 'await', 'type', 'get', 'static'].map((key) => ({
          key,
          type: 'string',
        })),
      ],
    }))
    const { text } = await createTypesFixture(...blueprints)
    for (const path of PATHS) {
      const source = await text(path)
      const use = `
        import type { Hostile0 } from './atoll'
        import * as all from './atoll'
        const a: ${hostile.map((one) => JSON.stringify(one)).join(' | ')} | undefined = (null! as Hostile0).a
        // @ts-expect-error nothing else
        const b: 'constructor' | undefined = (null! as Hostile0).a
        const key: keyof NonNullable<Hostile0['c']> = ${JSON.stringify(hostile[0])}
        // @ts-expect-error nothing was injected
        all.injected
        export { a, b, key }
      `
      expect(
        await compileTypeScript({ [path.endsWith('.d.ts') ? 'atoll.d.ts' : 'atoll.ts']: source, 'use.ts': use }),
      ).toMatchObject(COMPILES_CLEANLY)
      // Control and formatting characters could hide code.
      expect(source).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
    }
  })

  test('types have unique names, also for similar keys and for names that the file uses itself', async () => {
    const keys = [
      ...['a-b', 'a_b', 'ab', 'new-ab', 'ab-change', 'ab-properties', 'a--b-', 'a1', 'a-1'],
      ...['entity', 'blueprints', 'kind', 'promise', 'response', 'array', 'string', 'record', 'omit', 'error', 'json'],
      ...[
        'atoll-error',
        'url-search-params',
        'async-generator',
        'order-items',
        'types',
        'client',
        'all',
        'then',
        'words',
        'first',
        'bearer',
      ],
    ]
    const { text, admin } = await createTypesFixture(
      ...keys.map((key) => ({ key, fields: [{ key: key.replace(/\W/g, ''), type: 'string' }] })),
    )
    const use = `
      import { type Blueprints, createClient, type OrderItems } from './client'
      const { entities } = createClient<Blueprints>({ url: '' })
      export const all: [${keys.map(() => `Promise<string | undefined>`)}] = [
        ${keys.map((key) => `entities('${key}').get('x').then((one) => one.${key.replace(/\W/g, '')})`).join(',\n')}
      ]
      export const items: (_: OrderItems) => string | undefined = ({ orderitems }) => orderitems
    `
    expect(await compileTypeScript({ 'client.ts': await text(PATHS[1]), 'use.ts': use })).toMatchObject(
      COMPILES_CLEANLY,
    )
    // A later blueprint does not change the names of the earlier ones.
    const named = /interface (\w+) extends Entity<AB?\w*Properties>/g
    const names = [...(await text()).matchAll(named)].map(([, name]) => name!)
    await admin.post('/blueprints', { key: 'a-b_', name: 'x', fields: [] })
    expect([...(await text()).matchAll(named)].map(([, name]) => name!)).toEqual(expect.arrayContaining(names))
  })

  test('names are taken by identifiers of the file, and not by words of its comments and texts', async () => {
    const { text } = await createTypesFixture(...['words', 'bearer', 'entity'].map((key) => ({ key, fields: [] })))
    for (const path of PATHS) {
      const named = (await text(path)).matchAll(/interface (\w+) extends Entity</g)
      expect([...named].map(([, name]) => name!)).toEqual(['Bearer', 'Entity2', 'Words'])
    }
    const source = `
      /** Words of a Comment, don't count: "Text". */
      const first: First = 'Single' + "Double \\" Quoted" // Line
      type Both = \`Template \${First}\${infer Second} End\`
    `
    const keys = ['words', 'comment', 'text', 'single', 'quoted', 'line', 'template', 'end', 'first', 'second', 'both']
    const names = [...assignIdentifiers(keys, source).values()].map(({ entity }) => entity)
    expect(names.filter((name) => name.endsWith('2'))).toEqual(['First2', 'Second2', 'Both2'])
  })

  test('assignIdentifiers finds unique names for 20,000 similar keys', () => {
    const keys = Array.from({ length: 20_000 }, (_, n) => `a${n.toString(2).replaceAll('0', '-').replaceAll('1', '_')}`)
    const names = assignIdentifiers(keys, 'A A2')
    expect(names.size).toBe(new Set(keys).size)
    expect(new Set([...names.values()].map(({ entity }) => entity)).size).toBe(names.size)
  })

  test('a tenant without blueprints gets valid types and a valid client', async () => {
    const { text } = await createTypesFixture()
    const use = `
      import { createClient } from './client'
      // @ts-expect-error there is none
      createClient({ url: '' }).entities('things')
    `
    expect(
      await compileTypeScript({ 'types.d.ts': await text(), 'client.ts': await text(PATHS[1]), 'use.ts': use }),
    ).toMatchObject(COMPILES_CLEANLY)
  })

  test('types and client change with the blueprints, and answer 304 to the current ETag', async () => {
    const { admin, editor } = await createTypesFixture({ key: 'things', fields: [{ key: 'a', type: 'string' }] })
    for (const path of PATHS) {
      const first = await editor.get(path)
      expect([first.status, first.headers.get('content-type')]).toEqual([200, 'text/plain;charset=utf-8'])
      expect(first.headers.get('cache-control')).toBe('private, no-cache')
      const etag = first.headers.get('etag')!
      const known = await editor.get(path, { 'if-none-match': etag })
      expect([known.status, known.body, known.headers.get('etag')]).toEqual([304, undefined, etag])
      for (const change of [
        () => admin.put('/blueprints/things', { description: `now ${path}` }),
        () => admin.post('/blueprints', { key: 'more', name: 'More', fields: [] }),
        () => admin.delete('/blueprints/more'),
      ]) {
        const before = (await editor.get(path)).headers.get('etag')!
        expect((await change()).status).toBeOneOf([200, 201])
        const after = await editor.get(path, { 'if-none-match': before })
        expect([after.status, after.headers.get('etag') === before]).toEqual([200, false])
      }
    }
    const [types, client] = await Promise.all(PATHS.map((path) => editor.get(path)))
    expect(types!.headers.get('etag')).not.toBe(client!.headers.get('etag'))
    expect(types!.body).toContain('now /blueprints/client.ts')
  })

  test('types and client answer 401 or 403 to callers who may not edit blueprints', async () => {
    const { as, anonymous, origin, tenant, users } = await createTypesFixture(EVERY_FIELD_TYPE)
    const createLimitedClient = async (...scopes: string[]) =>
      apiClient(origin, { 'x-api-key': (await issueApiToken(tenant, users.admin, { nickname: 'x', scopes })).token })
    const [readsBlueprints, writesEntities] = [
      await createLimitedClient('blueprints:read'),
      await createLimitedClient('entities:write'),
    ]
    for (const path of PATHS) {
      expect(statusAndCode(await as('user').get(path))).toEqual([403, 'FORBIDDEN'])
      expect(statusAndCode(await anonymous.get(path))).toEqual([401, 'UNAUTHENTICATED'])
      expect(statusAndCode(await writesEntities.get(path))).toEqual([403, 'FORBIDDEN'])
      expect((await readsBlueprints.get(path)).status).toBe(200)
    }
  })

  test('types and client of one tenant contain no blueprints of another tenant', async () => {
    const [one, otherTenant] = [await createTypesFixture(EVERY_FIELD_TYPE), await createTypesFixture()]
    expect(await one.text()).toContain('interface Things ')
    for (const path of PATHS) expect(await otherTenant.text(path)).not.toContain('Things')
    const { status } = await callApi('GET', `${otherTenant.origin}/api${PATHS[0]}`, {
      headers: { 'x-api-key': one.tokens.admin },
    })
    expect(status).toBe(401)
  })

  test('types and client have paths that no blueprint key can take', async () => {
    const { admin, editor } = await createTypesFixture({ key: 'types', fields: [] }, { key: 'client', fields: [] })
    for (const key of ['types.d.ts', 'client.ts'])
      expect(statusAndCode(await admin.post('/blueprints', { key, name: 'x', fields: [] }))).toEqual([
        400,
        'INVALID_INPUT',
      ])
    for (const key of ['types', 'client']) expect((await editor.get(`/blueprints/${key}`)).body.key).toBe(key)
    expect(statusAndCode(await admin.put('/blueprints/types.d.ts', { name: 'x' }))).toEqual([
      404,
      'BLUEPRINT_NOT_FOUND',
    ])
    const described = (await callApi('GET', `${(await createTypesFixture()).origin}/openapi/json`)).body.paths
    for (const path of PATHS)
      expect(Object.keys(described[`/api${path}`].get.responses['200'].content)).toEqual(['text/plain'])
  })
})
