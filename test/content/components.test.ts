import { describe, expect, test } from 'bun:test'
import { createTestTenant, statusAndCode } from '../test-tenant'
import { cardComponent, createComponentsFixture } from './fixtures'

const identifiers = (body: { identifier: string }[]) => body.map(({ identifier }) => identifier)

describe('CRUD of components', () => {
  test('an editor creates, reads, updates and deletes a component by its id or its identifier', async () => {
    const { as } = await createTestTenant()
    const [editor, user] = [as('editor'), as('user')]
    const created = await editor.post('/components', cardComponent())
    expect([created.status, created.body]).toEqual([
      201,
      {
        ...cardComponent(),
        _id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/),
        compiledContent: {
          js: 'import React from "react";\nexport const Card = ({ name }) => React.createElement("b", {\n  className: "card"\n}, name);\n',
          css: '.card { color: red }',
        },
        created: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        updated: created.body.created,
      },
    ])
    for (const name of ['card', created.body._id])
      expect((await user.get(`/components/${name}`)).body).toEqual(created.body)
    expect((await user.get('/components')).body).toEqual([created.body])

    const { updated: _, ...unchanged } = created.body
    const changed = await editor.put(`/components/${created.body._id}`, { description: 'Shows anybody' })
    expect([changed.status, changed.body]).toMatchObject([200, { ...unchanged, description: 'Shows anybody' }])
    const patched = await editor.patch('/components/card', { content: 'export const Card = 1', requiredProps: [] })
    expect(patched.body).toMatchObject({
      description: 'Shows anybody',
      compiledContent: { js: 'export const Card = 1;\n', css: '' },
      requiredProps: [],
    })
    expect((await user.get('/components/card')).body).toEqual(patched.body)

    expect((await editor.delete('/components/card')).body).toEqual({ success: true })
    for (const send of [user.get, editor.delete])
      expect(statusAndCode(await send('/components/card'))).toEqual([404, 'COMPONENT_NOT_FOUND'])
    expect(statusAndCode(await editor.put('/components/card', {}))).toEqual([404, 'COMPONENT_NOT_FOUND'])
    expect((await user.get('/components')).body).toEqual([])
  })

  test('a component needs a valid identifier and content, else 400 INVALID_INPUT, and has defaults for the rest', async () => {
    const editor = (await createTestTenant()).as('editor')
    const made = await editor.post('/components', { identifier: 'A-1.b_c', content: 'export const a = 1' })
    expect(made.body).toMatchObject({ componentName: 'A-1.b_c', description: '', requiredProps: [] })
    for (const wrong of [
      ...[{ identifier: '' }, { identifier: 'a/b' }, { identifier: '../a' }, { identifier: 'é' }, { identifier: 5 }],
      ...[{ identifier: 'a'.repeat(129) }, { identifier: '.a' }, { identifier: undefined }, { content: undefined }],
      ...[{ content: '' }, { content: 5 }, { requiredProps: 'name' }, { requiredProps: [5] }, { description: null }],
      ...[{ requiredProps: Array(101).fill('a') }, { componentName: 'a\nb' }, { content: ' '.repeat((256 << 10) + 1) }],
    ])
      expect(statusAndCode(await editor.post('/components', cardComponent(wrong)))).toEqual([400, 'INVALID_INPUT'])
    expect(statusAndCode(await editor.put('/components/A-1.b_c', { content: '' }))).toEqual([400, 'INVALID_INPUT'])
    expect(statusAndCode(await editor.post('/components', cardComponent({ content: '//'.repeat(1 << 19) })))).toEqual([
      413,
      'BODY_TOO_LARGE',
    ])
    expect(identifiers((await editor.get('/components')).body)).toEqual(['A-1.b_c'])
  })

  test('PUT accepts a component as it was read and ignores read-only properties', async () => {
    const { as } = await createTestTenant()
    const created = await as('editor').post('/components', cardComponent())
    const sent = await as('editor').put('/components/card', { ...created.body, _id: 'x', created: 'x', more: 1 })
    expect(sent.body).toEqual({ ...created.body, updated: sent.body.updated })
  })

  test('rejects an identifier that another component has with 409 COMPONENT_EXISTS', async () => {
    const editor = (await createTestTenant()).as('editor')
    await editor.post('/components', cardComponent())
    const otherComponent = await editor.post('/components', cardComponent({ identifier: 'Card' }))
    expect(otherComponent.status).toBe(201)
    expect(statusAndCode(await editor.post('/components', cardComponent()))).toEqual([409, 'COMPONENT_EXISTS'])
    expect(statusAndCode(await editor.put('/components/Card', { identifier: 'card' }))).toEqual([
      409,
      'COMPONENT_EXISTS',
    ])
    expect((await editor.get('/components/Card')).body).toEqual(otherComponent.body)
    const racing = await Promise.all(
      [1, 2, 3].map(() => editor.post('/components', cardComponent({ identifier: 'new' }))),
    )
    expect(racing.map(({ status }) => status).sort()).toEqual([201, 409, 409])
  })

  test('a component whose identifier is the id of another component does not replace it', async () => {
    const editor = (await createTestTenant()).as('editor')
    const { body } = await editor.post('/components', cardComponent())
    await editor.post('/components', cardComponent({ identifier: body._id }))
    expect((await editor.get(`/components/${body._id}`)).body.identifier).toBe('card')
  })

  test('PUT and DELETE of a component with an outdated If-Match answer 412 VERSION_MISMATCH', async () => {
    const editor = (await createTestTenant()).as('editor')
    const first = (await editor.post('/components', cardComponent())).headers.get('etag')!
    expect((await editor.get('/components/card')).headers.get('etag')).toBe(first)
    const second = (await editor.put('/components/card', { description: 'x' }, { 'if-match': first })).headers.get(
      'etag',
    )!
    expect(second).not.toBe(first)
    const stale = { 'if-match': first }
    expect(statusAndCode(await editor.put('/components/card', { description: 'y' }, stale))).toEqual([
      412,
      'VERSION_MISMATCH',
    ])
    expect(statusAndCode(await editor.delete('/components/card', stale))).toEqual([412, 'VERSION_MISMATCH'])
    const racing = await Promise.all(
      ['a', 'b', 'c'].map((description) => editor.put('/components/card', { description }, { 'if-match': second })),
    )
    expect(racing.map(({ status }) => status).sort()).toEqual([200, 412, 412])
    const { body } = racing.find(({ status }) => status === 200)!
    expect((await editor.get('/components/card')).body).toEqual(body)
  })

  test('components are read by signed-in users and written by admins and plugins, else 401 or 403', async () => {
    const { as, anonymous } = await createTestTenant()
    const made = await as('admin').post('/components', cardComponent())
    expect(made.status).toBe(201)
    for (const [client, code] of [
      [as('user'), [403, 'FORBIDDEN']],
      [anonymous, [401, 'UNAUTHENTICATED']],
    ] as const) {
      expect(statusAndCode(await client.post('/components', cardComponent({ identifier: 'b' })))).toEqual([...code])
      expect(statusAndCode(await client.post('/components/bulk', { components: [cardComponent()] }))).toEqual([...code])
      for (const send of [client.put, client.patch])
        expect(statusAndCode(await send('/components/card', { description: 'x' }))).toEqual([...code])
      expect(statusAndCode(await client.delete('/components/card'))).toEqual([...code])
    }
    for (const path of ['/components', '/components/card'])
      expect(statusAndCode(await anonymous.get(path))).toEqual([401, 'UNAUTHENTICATED'])
    expect((await as('user').get('/components')).body).toEqual([made.body])
  })

  test('components and their files answer 404 to another tenant', async () => {
    const [one, otherTenant] = [await createComponentsFixture(), await createComponentsFixture()]
    await one.make('export const a = 1')
    const { js } = await one.paths()
    expect((await otherTenant.editor.get('/components')).body).toEqual([])
    expect((await otherTenant.anonymous.get('/static')).body).toEqual([])
    for (const { status } of [
      await otherTenant.editor.get('/components/card'),
      await otherTenant.editor.put('/components/card', {}),
      await otherTenant.editor.delete('/components/card'),
      await otherTenant.fetch(js),
    ])
      expect(status).toBe(404)
    // The tenant header selects files at the same address, so caches must vary by it.
    const { body, headers } = await otherTenant.fetch(js, { tenant: one.id })
    expect([body, headers.get('vary')]).toEqual(['export const a = 1;\n', 'tenant'])
  })
})

test('requiredProps accepts names and names with types, and returns them as they were sent', async () => {
  const { editor } = await createComponentsFixture()
  const requiredProps = ['title', { prop: 'count', type: 'number' }]
  const made = await editor.post('/components', { identifier: 'props', content: 'export const a = 1', requiredProps })
  expect([made.status, made.body.requiredProps]).toEqual([201, requiredProps])
  expect((await editor.get('/components/props')).body.requiredProps).toEqual(requiredProps)
  const wrong = await editor.put('/components/props', { requiredProps: [{ prop: 'count' }] })
  expect([wrong.status, wrong.body.details]).toEqual([
    400,
    [{ path: '/requiredProps/0/type', message: 'requiredProps[0].type is required.' }],
  ])
})

describe('POST /components/bulk', () => {
  test('a bulk request creates or updates each component on its own and reports each failure', async () => {
    const { editor, make } = await createComponentsFixture()
    const card = await make('export const a = 1')
    const { status, body } = await editor.post('/components/bulk', {
      components: [
        { identifier: 'card', description: 'changed' },
        { identifier: 'new', content: 'export const b = 2', requiredProps: ['x'] },
        { identifier: 'empty' },
        { identifier: 'broken', content: 'let x = ;' },
        { identifier: 'a/b', content: '1' },
        ...[{ content: '1' }, 5, null],
        { identifier: 'new', content: 'export const b = 3' },
      ],
    })
    expect([status, body.total, body.succeeded, body.failed]).toEqual([200, 9, 3, 6])
    const { results } = body
    expect(identifiers(results)).toEqual(['card', 'new', 'empty', 'broken', 'a/b', null, null, null, 'new'] as never)
    const succeeded = results.filter(({ success }: { success: boolean }) => success)
    expect(succeeded.map(({ component, ...rest }: { component: object }) => Object.keys(rest))).toEqual(
      Array(3).fill(['identifier', 'success']),
    )
    expect(results[0].component).toMatchObject({ _id: card._id, content: 'export const a = 1', description: 'changed' })
    expect(results[3]).toEqual({
      ...{ identifier: 'broken', success: false, code: 'INVALID_INPUT' },
      error: 'Line 1, column 9: Unexpected ;.',
      details: [{ path: '/content', message: 'Line 1, column 9: Unexpected ;.', line: 1, column: 9 }],
    })
    expect(results[2].details).toEqual([{ path: '/content', message: 'A new component needs content.' }])
    for (const at of [4, 5, 6, 7])
      expect(results[at]).toMatchObject({ success: false, code: 'INVALID_INPUT', error: expect.any(String) })
    const listed = await editor.get('/components?sort=identifier')
    expect(identifiers(listed.body)).toEqual(['card', 'new'])
    expect(listed.body[1]).toEqual(results[8].component)
    expect(listed.body[1]).toMatchObject({ _id: results[1].component._id, requiredProps: ['x'] })
    expect(listed.body[1].compiledContent.js).toBe('export const b = 3;\n')
  })

  test('rejects a bulk request of more than 100 components with 400 INVALID_INPUT', async () => {
    const { editor } = await createComponentsFixture()
    const components = Array.from({ length: 101 }, (_, n) => ({
      identifier: `c${n}`,
      content: `export const c = ${n}`,
    }))
    expect(statusAndCode(await editor.post('/components/bulk', { components }))).toEqual([400, 'INVALID_INPUT'])
    for (const wrong of [{}, { components: 'x' }, { components: { 0: 1 } }])
      expect(statusAndCode(await editor.post('/components/bulk', wrong))).toEqual([400, 'INVALID_INPUT'])
    const { body } = await editor.post('/components/bulk', { components: components.slice(1) })
    expect([body.total, body.succeeded]).toEqual([100, 100])
    expect((await editor.post('/components/bulk', { components: [] })).body).toEqual({
      ...{ total: 0, succeeded: 0, failed: 0 },
      results: [],
    })
  })
})

test('rejects components beyond 1,000 per tenant or 16 MiB in total with 409 TOO_MANY_COMPONENTS', async () => {
  const { editor, tenant, make } = await createComponentsFixture()
  const small = await make('export const a = 1', 'small')
  // Set directly, because compiling 16 MiB takes long.
  const grow = (size: number) =>
    tenant.write(async (tx) => void (await tx.query('update components set size = ? where _id = ?', [size, small._id])))
  await grow((16 << 20) - 10)
  const large = { identifier: 'large', content: 'export const a = 1' }
  expect(statusAndCode(await editor.post('/components', large))).toEqual([409, 'TOO_MANY_COMPONENTS'])
  const { body } = await editor.post('/components/bulk', { components: [large] })
  expect(body.results[0].code).toBe('TOO_MANY_COMPONENTS')
  expect((await editor.put('/components/small', { content: 'export {}' })).status).toBe(200)
  expect((await editor.post('/components', large)).status).toBe(201)

  await tenant.write(async (tx) => {
    const columns =
      'path, builds, size, version, created, updated, component_name, description, required_props, content'
    for (let n = 0; n < 998; n++)
      await tx.query(
        `insert into components (_id, identifier, ${columns})
        select ?, ?, ${columns} from components where identifier = 'large'`,
        [`i${n}`, `n${n}`],
      )
  })
  expect(statusAndCode(await editor.post('/components', { ...large, identifier: 'more' }))).toEqual([
    409,
    'TOO_MANY_COMPONENTS',
  ])
})
