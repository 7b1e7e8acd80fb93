import { describe, expect, test } from 'bun:test'
import { callApi, createTestTenant, fullAccessRules, statusAndCode } from '../test-tenant'

const notesBlueprint = (more: object = {}) => ({
  key: 'notes',
  name: 'Notes',
  fields: [{ key: 'title', type: 'string' }],
  permissions: fullAccessRules('tenant', 'user'),
  ...more,
})
const sharedTenant = createTestTenant()
let keyCount = 0
/** A key that no other test of this file uses. */
const freshKey = () => `b${++keyCount}`
const errorPaths = (body: { details?: { path: string }[] }) => body.details?.map(({ path }) => path)

describe('CRUD of blueprints', () => {
  test('an editor creates, reads, updates and deletes a blueprint', async () => {
    const { as } = await createTestTenant()
    const editor = as('editor')
    const created = await editor.post('/blueprints', notesBlueprint({ description: 'What I think' }))
    expect(created.status).toBe(201)
    expect(created.body).toEqual({
      _id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/),
      key: 'notes',
      name: 'Notes',
      description: 'What I think',
      fields: [{ key: 'title', type: 'string', required: false }],
      permissions: fullAccessRules('tenant', 'user'),
      permissionScope: 'user',
      limitations: [],
      computed: {},
      dispatchers: {},
      warnings: [],
      created: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      updated: created.body.created,
    })
    expect((await editor.get('/blueprints/notes')).body).toEqual(created.body)
    expect((await editor.get('/blueprints')).body).toEqual([created.body])

    const changed = await editor.put('/blueprints/notes', { name: 'My notes' })
    expect(changed.status).toBe(200)
    expect(changed.body).toEqual({ ...created.body, name: 'My notes', updated: changed.body.updated })
    const patched = await editor.patch('/blueprints/notes', { description: '', permissionScope: 'tenant' })
    expect(patched.body).toMatchObject({ name: 'My notes', description: '', permissionScope: 'tenant' })
    expect((await editor.get('/blueprints/notes')).body).toEqual(patched.body)

    const removed = await editor.delete('/blueprints/notes')
    expect([removed.status, removed.body]).toEqual([200, { success: true }])
    expect(statusAndCode(await editor.get('/blueprints/notes'))).toEqual([404, 'BLUEPRINT_NOT_FOUND'])
    expect((await editor.get('/blueprints')).body).toEqual([])
  })

  test('a blueprint is returned as it was defined, with its defaults, bounds and schemas', async () => {
    const editor = (await sharedTenant).as('editor')
    const schema = { type: 'object', properties: { zip: { type: 'string', pattern: '^\\d+$' } }, required: ['zip'] }
    const fields = [
      {
        key: 'a',
        type: 'number',
        required: true,
        min: -1.5,
        max: 1e6,
        default: 0,
        title: 'A',
        description: 'one\ntwo',
      },
      { key: 'b', type: 'decimal', required: false, min: '0.10', enum: ['0.10', '19.90'], default: '19.90' },
      { key: 'c', type: 'object', required: false, schema, default: { zip: '1', deep: { er: [1, null, 'x'] } } },
      {
        key: 'd',
        type: 'string',
        required: false,
        multi: true,
        pattern: '^a',
        max: 3,
        default: ['ab'],
        indexed: false,
      },
      { key: 'e', type: 'string', required: false, unique: true, readRoles: ['boss'], writeRoles: ['boss', 'admin'] },
      { key: 'f', type: 'boolean', required: false, default: false },
    ]
    const key = freshKey()
    const { status, body } = await editor.post('/blueprints', notesBlueprint({ key, fields }))
    expect([status, body.fields]).toEqual([201, fields])
    expect((await editor.get(`/blueprints/${key}`)).body.fields).toEqual(fields)
  })

  test('PUT accepts a blueprint as it was read, ignores unknown properties and keeps the key', async () => {
    const editor = (await sharedTenant).as('editor')
    const key = freshKey()
    const { body } = await editor.post('/blueprints', notesBlueprint({ key }))
    const changed = await editor.put(`/blueprints/${key}`, { ...body, name: 'Renamed', key: 'another', nonsense: 1 })
    expect(changed.status).toBe(200)
    expect(changed.body).toEqual({ ...body, name: 'Renamed', updated: changed.body.updated })
    expect(statusAndCode(await editor.get('/blueprints/another'))).toEqual([404, 'BLUEPRINT_NOT_FOUND'])
  })

  test('rejects a key that is taken with 409 BLUEPRINT_EXISTS, also for concurrent requests', async () => {
    const editor = (await sharedTenant).as('editor')
    const key = freshKey()
    const answers = await Promise.all([1, 2, 3].map(() => editor.post('/blueprints', notesBlueprint({ key }))))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409])
    expect(statusAndCode(await editor.post('/blueprints', notesBlueprint({ key })))).toEqual([409, 'BLUEPRINT_EXISTS'])
  })

  test.each(['a', 'a-b_c9', 'x'.repeat(63)])('accepts the blueprint key %s', async (key) => {
    const editor = (await sharedTenant).as('editor')
    expect((await editor.post('/blueprints', notesBlueprint({ key: key.replace(/^a$/, freshKey()) }))).status).toBe(201)
  })

  test.each(['', 'A', 'aB', '1a', '-a', '_a', 'a b', 'a/b', 'a.b', 'ä', '__proto__', 'x'.repeat(64)])(
    'rejects the blueprint key "%s" with 400 INVALID_INPUT',
    async (key) => {
      const answer = await (await sharedTenant).as('editor').post('/blueprints', notesBlueprint({ key }))
      expect(statusAndCode(answer)).toEqual([400, 'INVALID_INPUT'])
      expect(errorPaths(answer.body)).toContain('/key')
    },
  )

  test.each([
    'nowhere',
    'UPPER',
    '__proto__',
    'constructor',
    'a%2Fb',
    '%20',
    '%00',
    '%zz',
    '%ED%A0%80',
    'x'.repeat(9_000),
  ])('GET, PUT and DELETE of a missing blueprint answer 404 BLUEPRINT_NOT_FOUND: %s', async (key) => {
    const { as } = await sharedTenant
    for (const answer of [
      await as('editor').get(`/blueprints/${key}`),
      await as('editor').put(`/blueprints/${key}`, { name: 'x' }),
      await as('editor').delete(`/blueprints/${key}`),
    ])
      expect(statusAndCode(answer)).toEqual([404, 'BLUEPRINT_NOT_FOUND'])
  })

  test('a blueprint that is deleted and created again has no entities', async () => {
    const { as, tenant } = await createTestTenant()
    const editor = as('admin')
    await editor.post('/blueprints', notesBlueprint())
    await editor.post('/blueprints/notes/entities', { title: 'old' })
    await editor.delete('/blueprints/notes?force=true')
    await editor.post(
      '/blueprints',
      notesBlueprint({
        fields: [
          { key: 'text', type: 'text' },
          { key: 'title', type: 'string' },
        ],
      }),
    )
    expect((await editor.get('/blueprints/notes/entities')).body).toEqual([])
    expect((await editor.get('/blueprints/notes/entities?title=old')).body).toEqual([])
    expect(await tenant.db.query('select count(*) from entity_index')).toEqual([[0]])
  })
})

describe('invalid blueprint definitions', () => {
  const rejected = async (definition: object) => {
    const answer = await (await sharedTenant)
      .as('editor')
      .post('/blueprints', notesBlueprint({ key: freshKey(), ...definition }))
    expect(statusAndCode(answer)).toEqual([400, 'INVALID_INPUT'])
    return errorPaths(answer.body)
  }
  const field = (more: object) => rejected({ fields: [{ key: 'a', type: 'string', ...more }] })

  test.each(['_id', 'identifier', 'created', 'updated', 'user', 'workspace', 'metadata', 'blueprint', 'tenant', 'id'])(
    'rejects a field with the name of the system field %s with 400 INVALID_INPUT',
    async (key) => {
      expect(await field({ key })).toEqual(['/fields/0/key'])
    },
  )

  test.each(['', '1a', '_a', 'a-b', 'a.b', '$a', 'ä', 'a b', '__proto__', 'constructor', 'toString', 'a'.repeat(64)])(
    'rejects the field key "%s" with 400 INVALID_INPUT',
    async (key) => {
      expect(await field({ key })).toContain('/fields/0/key')
    },
  )

  test.each([
    ['an unknown type', { type: 'colour' }, '/fields/0/type'],
    ['a pattern on a number', { type: 'number', pattern: '1' }, '/fields/0/pattern'],
    ['an invalid pattern', { pattern: '(' }, '/fields/0/pattern'],
    ['a pattern with a backreference', { pattern: '(a)\\1' }, '/fields/0/pattern'],
    ['a pattern that is too complex', { pattern: '((a{1,1000}){1,1000}){1,1000}' }, '/fields/0/pattern'],
    ['a schema on a string', { schema: { type: 'string' } }, '/fields/0/schema'],
    ['an invalid schema', { type: 'object', schema: { type: 'colour' } }, '/fields/0/schema/type'],
    [
      'a schema with an external reference',
      { type: 'object', schema: { $ref: 'http://x.test/y' } },
      '/fields/0/schema',
    ],
    [
      'a schema of more than 20,000 characters',
      { type: 'object', schema: { x: 'x'.repeat(20_000) } },
      '/fields/0/schema',
    ],
    ['a target on a string', { target: 'notes' }, '/fields/0/target'],
    ['a relation without a target', { type: 'relation' }, '/fields/0/target'],
    ['a relation to a missing blueprint', { type: 'relation', target: 'nowhere' }, '/fields/0/target'],
    ['onDelete on a string', { onDelete: 'cascade' }, '/fields/0/onDelete'],
    ['a unique multi field', { multi: true, unique: true }, '/fields/0/unique'],
    ['a unique object', { type: 'object', unique: true }, '/fields/0/unique'],
    ['a minimum of a boolean', { type: 'boolean', min: 1 }, '/fields/0/min'],
    ['a fractional length', { min: 1.5 }, '/fields/0/min'],
    ['a negative length', { max: -1 }, '/fields/0/max'],
    ['a length that is a string', { max: 'long' }, '/fields/0/max'],
    ['a number bound that is no number', { type: 'number', max: '9' }, '/fields/0/max'],
    ['a date bound that is no date', { type: 'date', min: '2026-02-30' }, '/fields/0/min'],
    ['a decimal bound that is no decimal', { type: 'decimal', min: '1,5' }, '/fields/0/min'],
    ['a decimal bound in exponential notation', { type: 'decimal', min: 1e-7 }, '/fields/0/min'],
    ['a minimum above the maximum', { type: 'number', min: 5, max: 1 }, '/fields/0/min'],
    ['an enum value of another type', { type: 'integer', enum: [1, 'two'] }, '/fields/0/enum/1'],
    ['an empty enum', { enum: [] }, '/fields/0/enum'],
    ['a default of another type', { default: 5 }, '/fields/0/default'],
    ['a default outside of the enum', { enum: ['a'], default: 'b' }, '/fields/0/default'],
    ['a default beyond the bounds', { type: 'number', max: 1, default: 2 }, '/fields/0/default'],
    ['a default that breaks the pattern', { pattern: '^a$', default: 'b' }, '/fields/0/default'],
    ['a default of a multi field that is no list', { multi: true, default: 'a' }, '/fields/0/default'],
    ['a default list with one invalid value', { multi: true, default: ['a', 1] }, '/fields/0/default/1'],
    [
      'a default that violates its schema',
      { type: 'object', schema: { required: ['x'] }, default: {} },
      '/fields/0/default/x',
    ],
  ])('rejects %s with 400 INVALID_INPUT at its path', async (_, more, path) => {
    const [found] = (await field(more)) ?? []
    expect(found).toBe(path)
  })

  test('rejects two fields with the same key with 400 INVALID_INPUT', async () => {
    const fields = ['a', 'b', 'a'].map((key) => ({ key, type: 'string' }))
    expect(await rejected({ fields })).toEqual(['/fields/2/key'])
  })

  test('rejects a permission rule without audience, with an unknown operation or scope with 400 INVALID_INPUT', async () => {
    expect(await rejected({ permissions: [{ operation: 'read' }] })).toEqual(['/permissions/0'])
    expect(await rejected({ permissions: [{ operation: 'fly', guest: true }] })).toContain('/permissions/0/operation')
    const permissions = [{ operation: 'read', guest: true, scope: 'world' }]
    expect(await rejected({ permissions })).toContain('/permissions/0/scope')
  })

  test('rejects a definition with several errors with 400 and the path of each error', async () => {
    const paths = await rejected({
      fields: [
        { key: 'user', type: 'string', target: 'x', onDelete: 'cascade' },
        { key: 'fine', type: 'string' },
        { key: 'fine', type: 'boolean', min: 1, pattern: 'x' },
        { key: 'b', type: 'date', min: 'soon', max: 'later', enum: ['never'] },
      ],
      permissions: [{ operation: 'read', roleBased: [] }],
    })
    expect(paths?.sort()).toEqual([
      ...['/fields/0/key', '/fields/0/onDelete', '/fields/0/target', '/fields/2/key', '/fields/2/min'],
      ...['/fields/2/pattern', '/fields/3/enum/0', '/fields/3/max', '/fields/3/min', '/permissions/0'],
    ])
  })

  test('rejects an invalid change with 400 INVALID_INPUT and changes nothing', async () => {
    const editor = (await sharedTenant).as('editor')
    const key = freshKey()
    const { body } = await editor.post('/blueprints', notesBlueprint({ key }))
    const answer = await editor.put(`/blueprints/${key}`, { name: 'X', fields: [{ key: 'user', type: 'string' }] })
    expect(statusAndCode(answer)).toEqual([400, 'INVALID_INPUT'])
    expect((await editor.get(`/blueprints/${key}`)).body).toEqual(body)
  })

  test('rejects a body that is no definition with 400 INVALID_INPUT, 400 MALFORMED_BODY or 415 UNSUPPORTED_MEDIA_TYPE', async () => {
    const { as, origin, tokens } = await sharedTenant
    for (const body of [
      [],
      'x',
      1,
      null,
      {},
      { key: 'x' },
      notesBlueprint({ fields: {} }),
      notesBlueprint({ name: '' }),
    ])
      expect(statusAndCode(await as('editor').post('/blueprints', body))).toEqual([400, 'INVALID_INPUT'])
    const send = (raw: string, type: string) =>
      callApi('POST', `${origin}/api/blueprints`, {
        raw,
        headers: { 'x-api-key': tokens.editor, 'content-type': type },
      })
    expect(statusAndCode(await send('{"key":', 'application/json'))).toEqual([400, 'MALFORMED_BODY'])
    expect(statusAndCode(await send(JSON.stringify(notesBlueprint()), 'text/plain'))).toEqual([
      415,
      'UNSUPPORTED_MEDIA_TYPE',
    ])
  })

  test('accepts a relation of a blueprint to itself', async () => {
    const editor = (await sharedTenant).as('editor')
    const key = freshKey()
    const fields = [{ key: 'parent', type: 'relation', target: key, onDelete: 'nullify' }]
    expect((await editor.post('/blueprints', notesBlueprint({ key, fields }))).status).toBe(201)
    expect((await editor.delete(`/blueprints/${key}`)).status).toBe(200)
  })
})

describe('access to blueprints', () => {
  test('POST, PUT, PATCH and DELETE of blueprints answer 403 to users and 401 to anonymous callers', async () => {
    const { as, anonymous } = await sharedTenant
    const key = freshKey()
    await as('admin').post('/blueprints', notesBlueprint({ key }))
    for (const [caller, expected] of [
      [as('user'), [403, 'FORBIDDEN']],
      [anonymous, [401, 'UNAUTHENTICATED']],
    ] as const) {
      expect(statusAndCode(await caller.post('/blueprints', notesBlueprint({ key: freshKey() })))).toEqual([
        ...expected,
      ])
      expect(statusAndCode(await caller.put(`/blueprints/${key}`, { name: 'x' }))).toEqual([...expected])
      expect(statusAndCode(await caller.patch(`/blueprints/${key}`, { name: 'x' }))).toEqual([...expected])
      expect(statusAndCode(await caller.delete(`/blueprints/${key}`))).toEqual([...expected])
    }
    expect(statusAndCode(await anonymous.get('/blueprints'))).toEqual([401, 'UNAUTHENTICATED'])
    expect(statusAndCode(await anonymous.get(`/blueprints/${key}`))).toEqual([401, 'UNAUTHENTICATED'])
  })

  test('users see blueprints with a rule that applies to them, without the rules, and editors see all blueprints', async () => {
    const { as } = await createTestTenant()
    const permissions: Record<string, object[]> = {
      admins: [],
      bosses: fullAccessRules('tenant', 'boss'),
      every: [{ operation: 'read', roleBased: ['*'] }],
      guests: [{ operation: 'create', guest: true }],
      users: [{ operation: 'delete', roleBased: ['user'] }],
    }
    for (const [key, permission] of Object.entries(permissions))
      await as('editor').post('/blueprints', notesBlueprint({ key, permissions: permission }))

    const seen = (await as('user').get('/blueprints')).body
    expect(seen.map(({ key }: { key: string }) => key)).toEqual(['every', 'guests', 'users'])
    for (const blueprint of [...seen, (await as('user').get('/blueprints/every')).body])
      expect(Object.keys(blueprint).sort()).toEqual([
        ...['_id', 'created', 'description', 'fields', 'key', 'name', 'updated'],
      ])
    for (const key of ['admins', 'bosses'])
      expect(statusAndCode(await as('user').get(`/blueprints/${key}`))).toEqual([404, 'BLUEPRINT_NOT_FOUND'])
    for (const name of ['admin', 'editor'] as const) {
      const all = (await as(name).get('/blueprints')).body
      expect(all.map(({ key }: { key: string }) => key)).toEqual(Object.keys(permissions))
      expect(all[1].permissions).toEqual(permissions.bosses)
    }
  })

  test('fields that a caller may not read are missing from the blueprint', async () => {
    const { as } = await sharedTenant
    const key = freshKey()
    const fields = [
      { key: 'open', type: 'string' },
      { key: 'closed', type: 'string', readRoles: ['boss'] },
      { key: 'mine', type: 'string', readRoles: ['boss', 'user'] },
    ]
    await as('editor').post('/blueprints', notesBlueprint({ key, fields }))
    const keys = (body: { fields: { key: string }[] }) => body.fields.map((field) => field.key)
    const { body } = await as('user').get(`/blueprints/${key}`)
    expect(keys(body)).toEqual(['open', 'mine'])
    expect(JSON.stringify((await as('user').get('/blueprints')).body)).not.toContain('closed')
    expect(keys((await as('editor').get(`/blueprints/${key}`)).body)).toEqual(['open', 'closed', 'mine'])
  })

  test('a blueprint is invisible to another tenant, which may use its key, and tokens are valid for their own tenant only', async () => {
    const [one, otherTenant] = [await sharedTenant, await createTestTenant()]
    const key = freshKey()
    await one.as('admin').post('/blueprints', notesBlueprint({ key }))
    expect((await otherTenant.as('admin').get('/blueprints')).body).toEqual([])
    expect(statusAndCode(await otherTenant.as('admin').get(`/blueprints/${key}`))).toEqual([404, 'BLUEPRINT_NOT_FOUND'])
    for (const headers of [{ host: `${otherTenant.id}.test` }, { tenant: otherTenant.id }] as Record<string, string>[])
      expect(statusAndCode(await one.as('admin').with(headers).get('/blueprints'))).toEqual([401, 'UNAUTHENTICATED'])
    expect((await otherTenant.as('admin').post('/blueprints', notesBlueprint({ key }))).status).toBe(201)
  })
})

describe('versions of blueprints', () => {
  test('PUT, PATCH and DELETE of a blueprint with an outdated If-Match answer 412 VERSION_MISMATCH', async () => {
    const editor = (await sharedTenant).as('editor')
    const key = freshKey()
    const firstEtag = (await editor.post('/blueprints', notesBlueprint({ key }))).headers.get('etag')!
    expect(firstEtag).toMatch(/^".+"$/)
    expect((await editor.get(`/blueprints/${key}`)).headers.get('etag')).toBe(firstEtag)

    const changed = await editor.put(`/blueprints/${key}`, { name: 'Second' }, { 'if-match': firstEtag })
    expect(changed.status).toBe(200)
    const latest = changed.headers.get('etag')!
    expect(latest).not.toBe(firstEtag)
    const stale = { 'if-match': firstEtag }
    for (const answer of [
      await editor.put(`/blueprints/${key}`, { name: 'Third' }, stale),
      await editor.patch(`/blueprints/${key}`, { name: 'Third' }, stale),
      await editor.delete(`/blueprints/${key}`, stale),
    ])
      expect(statusAndCode(answer)).toEqual([412, 'VERSION_MISMATCH'])
    expect((await editor.get(`/blueprints/${key}`)).body.name).toBe('Second')

    expect((await editor.patch(`/blueprints/${key}`, { name: 'Third' }, { 'if-match': '*' })).status).toBe(200)
    const { headers } = await editor.get(`/blueprints/${key}`)
    const etags = `"1-x", ${headers.get('etag')}`
    expect((await editor.delete(`/blueprints/${key}`, { 'if-match': etags })).status).toBe(200)
  })

  test('two simultaneous DELETE of a blueprint answer 200 and 404 BLUEPRINT_NOT_FOUND', async () => {
    const editor = (await sharedTenant).as('editor')
    const path = `/blueprints/${freshKey()}`
    await editor.post('/blueprints', notesBlueprint({ key: path.slice('/blueprints/'.length) }))
    const answers = await Promise.all([editor.delete(path), editor.delete(path)])
    expect(answers.map(statusAndCode).sort()).toEqual([
      [200, undefined],
      [404, 'BLUEPRINT_NOT_FOUND'],
    ])
  })

  test('a blueprint that is created again has a new ETag, so that the former one answers 412 VERSION_MISMATCH', async () => {
    const editor = (await sharedTenant).as('editor')
    const key = freshKey()
    const first = (await editor.post('/blueprints', notesBlueprint({ key }))).headers.get('etag')!
    await editor.delete(`/blueprints/${key}`)
    await Bun.sleep(2)
    await editor.post('/blueprints', notesBlueprint({ key }))
    expect(statusAndCode(await editor.delete(`/blueprints/${key}`, { 'if-match': first }))).toEqual([
      412,
      'VERSION_MISMATCH',
    ])
  })
})

describe('blueprints with entities', () => {
  const fields = [
    { key: 'title', type: 'string', required: true, max: 10 },
    { key: 'count', type: 'integer' },
    { key: 'tags', type: 'string', multi: true },
    { key: 'plain', type: 'string', indexed: false },
  ]
  /** The fields with one of them changed. */
  const fieldsWith = (key: string, more: object) =>
    fields.map((field) => (field.key === key ? { ...field, ...more } : field))
  const createBlueprintWithEntity = async () => {
    const editor = (await sharedTenant).as('admin')
    const path = `/blueprints/${freshKey()}`
    await editor.post('/blueprints', notesBlueprint({ key: path.slice('/blueprints/'.length), fields }))
    await editor.post(`${path}/entities`, { identifier: 'one', title: 'One', count: 1, tags: ['a'] })
    return { editor, path }
  }
  test('rejects a change that existing values do not fit with 409 VALUES_DO_NOT_FIT and changes nothing', async () => {
    const { editor, path } = await createBlueprintWithEntity()
    const { body } = await editor.get(path)
    const changed = { name: 'New', fields: fieldsWith('count', { type: 'string' }) }
    expect(statusAndCode(await editor.put(path, changed))).toEqual([409, 'VALUES_DO_NOT_FIT'])
    expect((await editor.get(path)).body).toEqual(body)
    await editor.delete(`${path}/entities/one`)
    expect((await editor.put(path, changed)).status).toBe(200)
  })

  test.each([
    ['the name, the rules and the order of fields', { name: 'New', permissions: [], fields: [...fields].reverse() }],
    ['new optional fields', { fields: [...fields, { key: 'new', type: 'string', unique: true, default: 'x' }] }],
    [
      'the title, description and roles of a field',
      { fields: fieldsWith('title', { title: 'Heading', description: 'short', writeRoles: ['x'] }) },
    ],
    ['looser bounds and an optional field', { fields: fieldsWith('title', { max: 20, required: false }) }],
    [
      'explicit defaults of properties',
      { fields: fieldsWith('count', { indexed: true, unique: false, multi: false }) },
    ],
  ])('a blueprint with entities accepts a change of %s', async (_, changed) => {
    const { editor, path } = await createBlueprintWithEntity()
    expect((await editor.put(path, changed)).status).toBe(200)
    expect((await editor.get(`${path}/entities?title=One&count=1&tags=a`)).body).toHaveLength(1)
    expect((await editor.put(`${path}/entities/one`, { count: 2 })).status).toBe(200)
    expect((await editor.get(`${path}/entities?count=2`)).body).toHaveLength(1)
  })

  test('DELETE of a blueprint with entities answers 409 BLUEPRINT_NOT_EMPTY without force=true', async () => {
    const { editor, path } = await createBlueprintWithEntity()
    for (const query of ['', '?force=false', '?force=0', '?force='])
      expect(statusAndCode(await editor.delete(path + query))).toEqual([409, 'BLUEPRINT_NOT_EMPTY'])
    expect((await editor.get(`${path}/entities`)).body).toHaveLength(1)
    expect((await editor.delete(`${path}?force=true`)).status).toBe(200)
    expect(statusAndCode(await editor.get(`${path}/entities`))).toEqual([404, 'BLUEPRINT_NOT_FOUND'])
  })

  test('force=1 forces the deletion of a blueprint, and an empty or undefined force does not', async () => {
    const { editor, path } = await createBlueprintWithEntity()
    for (const force of ['', 'undefined', 'false', '0'])
      expect(statusAndCode(await editor.delete(`${path}?force=${force}`))).toEqual([409, 'BLUEPRINT_NOT_EMPTY'])
    expect((await editor.delete(`${path}?force=1`)).status).toBe(200)
  })

  test('DELETE with If-Match answers 412 VERSION_MISMATCH when the blueprint changes while its entities are removed', async () => {
    const { editor, path } = await createBlueprintWithEntity()
    const lines = Array.from({ length: 3_000 }, (_, n) => JSON.stringify({ title: 'One', count: n })).join('\n')
    const headers = { 'content-type': 'application/x-ndjson', 'x-api-key': (await sharedTenant).tokens.admin }
    const url = `${(await sharedTenant).origin}/api${path}/entities/import`
    expect((await callApi('POST', url, { headers, raw: lines })).body.imported).toBe(3_000)
    const etag = (await editor.get(path)).headers.get('etag')!
    const removing = editor.delete(`${path}?force=true`, { 'if-match': etag })
    expect((await editor.put(path, { name: 'Second' })).status).toBe(200)
    expect(statusAndCode(await removing)).toEqual([412, 'VERSION_MISMATCH'])
    expect((await editor.get(path)).body.name).toBe('Second')
  })
})

describe('relations to a blueprint', () => {
  const createRelatedBlueprints = async () => {
    const editor = (await sharedTenant).as('editor')
    const [target, source] = [freshKey(), freshKey()]
    await editor.post('/blueprints', notesBlueprint({ key: target }))
    const fields = [{ key: 'to', type: 'relation', target }]
    await editor.post('/blueprints', notesBlueprint({ key: source, fields }))
    return { editor, target: `/blueprints/${target}`, source: `/blueprints/${source}` }
  }

  test('DELETE of a blueprint that is the target of a relation answers 409 BLUEPRINT_NOT_EMPTY without force', async () => {
    const { editor, target } = await createRelatedBlueprints()
    expect(statusAndCode(await editor.delete(target))).toEqual([409, 'BLUEPRINT_NOT_EMPTY'])
    expect((await editor.delete(`${target}?force=true`)).status).toBe(200)
  })

  test('a blueprint can be deleted after the relation to it is removed', async () => {
    const { editor, target, source } = await createRelatedBlueprints()
    await editor.put(source, { fields: [] })
    expect((await editor.delete(target)).status).toBe(200)
  })

  test('a blueprint can be changed after the target of its relation was deleted by force', async () => {
    const { editor, target, source } = await createRelatedBlueprints()
    await (await sharedTenant).as('admin').post(`${source}/entities`, {})
    await editor.delete(`${target}?force=true`)
    expect((await editor.put(source, { name: 'Still mine' })).status).toBe(200)
  })
})

describe('hostile blueprint definitions', () => {
  const createObjectEntity = async (schema: object, value: unknown) => {
    const admin = (await sharedTenant).as('admin')
    const key = freshKey()
    const created = await admin.post(
      '/blueprints',
      notesBlueprint({ key, fields: [{ key: 'a', type: 'object', schema }] }),
    )
    return created.status === 201 ? admin.post(`/blueprints/${key}/entities`, { a: value }) : created
  }

  test('rejects an endlessly recursive schema or its value with 400 INVALID_INPUT', async () => {
    expect(statusAndCode(await createObjectEntity({ allOf: [{ $ref: '#' }] }, {}))).toEqual([400, 'INVALID_INPUT'])
  })

  test('rejects a schema with $async with 400 INVALID_INPUT', async () => {
    const admin = (await sharedTenant).as('admin')
    const asyncSchema = { $async: true, required: ['x'] }
    for (const schema of [asyncSchema, { $defs: { later: asyncSchema }, allOf: [{ $ref: '#/$defs/later' }] }]) {
      const fields = [{ key: 'a', type: 'object', schema }]
      expect(statusAndCode(await admin.post('/blueprints', notesBlueprint({ key: freshKey(), fields })))).toEqual([
        400,
        'INVALID_INPUT',
      ])
    }
  })

  test('a pattern in a schema is checked in linear time', async () => {
    const properties = { text: { pattern: '^(a+)+$' } }
    const answer = await createObjectEntity(
      { properties, patternProperties: { '^(x+)+$': {} } },
      { text: `${'a'.repeat(1_500)}!` },
    )
    expect(statusAndCode(answer)).toEqual([400, 'INVALID_INPUT'])
    expect((await createObjectEntity({ properties }, { text: 'a'.repeat(1_500) })).status).toBe(201)
  })
})
