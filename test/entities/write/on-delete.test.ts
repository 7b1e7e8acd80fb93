import { describe, expect, test } from 'bun:test'
import { type ApiClient, fullAccessRules, statusAndCode } from '../../test-tenant'
import { createBlueprintsFixture, recordStatements, withFullFormulaQueue } from '../fixtures'

const IN_USE = [409, 'ENTITY_IN_USE']
const TOO_MANY = [409, 'TOO_MANY_REFERENCES']
const BUSY = [503, 'BUSY']

/** Returns authors, and books that refer to them by a relation with these options. */
const createBooksFixture = async (options: object = {}, permissions: object[] = fullAccessRules('tenant', 'user')) => {
  const fields = [
    { key: 'title', type: 'string', indexed: true },
    { key: 'author', type: 'relation', target: 'authors', ...options },
  ]
  const own = await createBlueprintsFixture({ key: 'authors' }, { key: 'books', fields, permissions })
  const { add, at } = own
  for (const name of ['ann', 'bob']) await add('authors', name)
  const remove = (identifier: string, client: ApiClient = own.user) => client.delete(at('authors', `/${identifier}`))
  const indexed = async () => Number((await own.tenant.db.query('select count(*) from entity_index'))[0]![0])
  return { ...own, remove, indexed }
}

describe('onDelete: restrict', () => {
  test('an entity that others refer to gets 409 ENTITY_IN_USE by default and by restrict, indexed or not', async () => {
    for (const options of [
      {},
      { onDelete: 'restrict' },
      { indexed: false },
      { multi: true },
      { multi: true, indexed: false },
    ]) {
      const { add, remove, has, user, at } = await createBooksFixture(options)
      const value = 'multi' in options ? ['bob', 'ann'] : 'ann'
      await add('books', 'one', { author: value })
      await add('books', 'two', { author: value })
      const answer = await remove('ann')
      expect([...statusAndCode(answer), answer.body.message], JSON.stringify(options)).toEqual([
        ...IN_USE,
        'Other entities refer to this one: 2 of "books" by "author". Change or delete those first.',
      ])
      expect(answer.body.details).toEqual({ references: [{ blueprint: 'books', field: 'author', count: 2 }] })
      expect(await has('authors')).toEqual(['ann', 'bob'])
      await user.put(at('books', '/one'), { author: null })
      await user.delete(at('books', '/two'))
      expect((await remove('ann')).body).toEqual({ success: true, identifier: 'ann' })
    }
  })

  test('a batch that deletes several entities counts the references to the one that it names', async () => {
    const { add, user, at } = await createBooksFixture()
    await add('authors', 'cy')
    for (const [book, author] of Object.entries({ one: 'bob', two: 'cy', three: 'cy' }))
      await add('books', book, { author })
    const operations = ['ann', 'bob', 'cy'].map((identifier) => ({ op: 'delete', identifier }))
    const answer = await user.post(at('authors', '/batch'), { operations })
    expect(statusAndCode(answer)).toEqual(IN_USE)
    const references = [{ blueprint: 'books', field: 'author', count: 1 }]
    expect(answer.body.details).toEqual({ index: 1, details: { references } })
  })

  test('a delete by _id of an entity that others refer to gets 409 ENTITY_IN_USE', async () => {
    const { add, user, at } = await createBooksFixture()
    const { _id } = await add('authors', 'cy')
    await add('books', 'one', { author: 'cy' })
    expect(statusAndCode(await user.delete(at('authors', `/${_id}`)))).toEqual(IN_USE)
  })

  test('an ENTITY_IN_USE error counts references that the caller may not read without naming them', async () => {
    const own = await createBooksFixture({ readRoles: ['boss'] }, fullAccessRules('user', 'user'))
    const { add, remove, other, admin } = own
    await add('books', 'hidden-book', { author: 'ann' })
    const answer = await remove('ann')
    expect(statusAndCode(answer)).toEqual(IN_USE)
    expect(answer.body.details).toEqual({ references: [{ count: 1 }] })
    expect(JSON.stringify(answer.body)).not.toMatch(/book|author"/)
    await admin.put('/blueprints/books', { permissions: [] })
    expect((await remove('ann', other)).body.details).toEqual({ references: [{ count: 1 }] })
    expect((await remove('ann', admin)).body.details.references[0].blueprint).toBe('books')
  })

  test('an ENTITY_IN_USE error counts at most 1,000 references', async () => {
    const { addMany, remove } = await createBooksFixture()
    await addMany('books', 1_010, () => ({ author: 'ann' }))
    const { body } = await remove('ann')
    expect([body.code, body.details.references[0].count]).toEqual(['ENTITY_IN_USE', 1_000])
    expect(body.message).toContain('1000 or more of "books"')
  })

  test('an entity that only refers to itself can be deleted', async () => {
    const { add, user, at, has } = await createBlueprintsFixture({
      key: 'folders',
      fields: [{ key: 'parent', type: 'relation', target: 'folders' }],
    })
    await add('folders', 'root')
    await user.put(at('folders', '/root'), { parent: 'root' })
    expect((await user.delete(at('folders', '/root'))).status).toBe(200)
    expect(await has('folders')).toEqual([])
  })

  test('DELETE /all gets 409 ENTITY_IN_USE for a referenced entity, and deletes nothing of its slice', async () => {
    const { add, user, at, has } = await createBooksFixture()
    await add('books', 'one', { author: 'ann' })
    const answer = await user.delete(at('authors', '/all?confirm=authors'))
    expect(statusAndCode(answer)).toEqual(IN_USE)
    expect(answer.body.details).toEqual({
      references: [{ blueprint: 'books', field: 'author', count: 1 }],
      deletedCount: 0,
    })
    expect(await has('authors')).toEqual(['ann', 'bob'])
    expect((await user.delete(at('authors', '/all?confirm=authors&identifier=bob'))).body.deletedCount).toBe(1)
  })

  test('DELETE /all deletes entities that refer to each other, in whatever order it finds them', async () => {
    const { addMany, user, at, has, add } = await createBlueprintsFixture({
      key: 'folders',
      fields: [
        { key: 'kind', type: 'string' },
        { key: 'parent', type: 'relation', target: 'folders' },
      ],
    })
    await addMany('folders', 450, () => ({ kind: 'a' }))
    // Each refers to a newer one, which is found before it.
    for (let n = 0; n < 10; n++)
      expect((await user.put(at('folders', `/folders${n}`), { parent: `folders${440 + n}` })).status).toBe(200)
    await add('folders', 'b', { kind: 'b', parent: 'folders449' })
    expect(statusAndCode(await user.delete(at('folders', '/all?confirm=folders&kind=a')))).toEqual(IN_USE)
    await user.put(at('folders', '/b'), { parent: null })
    expect((await user.delete(at('folders', '/all?confirm=folders&kind=a'))).body.deletedCount).toBe(450)
    expect(await has('folders')).toEqual(['b'])
  })

  test('concurrent creates, updates and deletes leave no dangling references', async () => {
    const { user, at, add, has, remove } = await createBooksFixture()
    for (let round = 0; round < 15; round++) {
      await add('authors', `new${round}`)
      const make = (n: number) => user.post(at('books'), { identifier: `book${round}-${n}`, author: `new${round}` })
      const turn = (n: number) => user.put(at('books', `/book0-${n}`), { author: `new${round}` })
      await Promise.all([make(1), turn(1), remove(`new${round}`), make(2), remove(`new${round}`), turn(2)])
      const left = await has('authors')
      const { body } = await user.get(at('books', '?$limit=1000'))
      for (const { author } of body) expect(left).toContain(author)
    }
  })

  test('a delete respects relations that were just defined or changed', async () => {
    const { admin, user, at, add, remove } = await createBooksFixture()
    await add('authors', 'cy')
    await remove('cy')
    const fields = [{ key: 'by', type: 'relation', target: 'authors' }]
    await admin.post('/blueprints', { key: 'films', name: 'F', fields, permissions: fullAccessRules('tenant', 'user') })
    await user.post(at('films'), { by: 'ann' })
    expect(statusAndCode(await remove('ann'))).toEqual(IN_USE)
    await user.delete(at('films', '/all?confirm=films'))
    await admin.put('/blueprints/films', { fields: [{ ...fields[0], onDelete: 'cascade' }] })
    await user.post(at('films'), { by: 'ann' })
    expect((await remove('ann')).status).toBe(200)
    expect((await user.get(at('films'))).body).toEqual([])
  })
})

describe('onDelete: nullify', () => {
  test('nullify removes the value, and counts as an update of the entity', async () => {
    const { add, remove, user, at, indexed } = await createBooksFixture({ onDelete: 'nullify' })
    const before = await add('books', 'one', { title: 'One', author: 'ann' })
    await add('books', 'two', { title: 'Two', author: 'bob' })
    const etag = (await user.get(at('books', '/one'))).headers.get('etag')!
    expect((await remove('ann')).status).toBe(200)
    const { body, headers } = await user.get(at('books', '/one'))
    expect(body).toEqual({ ...before, updated: body.updated, author: undefined, metadata: { title: 'One' } })
    expect(body.updated >= before.updated).toBe(true)
    expect(headers.get('etag')).not.toBe(etag)
    expect((await user.get(at('books', '?author=ann'))).body).toEqual([])
    expect((await user.get(at('books', '?author[$exists]=false'))).body).toHaveLength(1)
    expect((await user.get(at('books', '/two'))).body.author).toBe('bob')
    expect(await indexed()).toBe(3)
    await user.delete(at('books', '/one'))
    expect(await indexed()).toBe(2)
  })

  test('nullify removes the value from every place in a list', async () => {
    for (const indexed of [undefined, false]) {
      const { add, remove, user, at } = await createBooksFixture({ onDelete: 'nullify', multi: true, indexed })
      await add('books', 'one', { author: ['ann', 'bob', 'ann'] })
      await add('books', 'two', { author: ['ann'] })
      await remove('ann')
      expect((await user.get(at('books', '/one'))).body).toMatchObject({
        author: ['bob'],
        metadata: { author: ['bob'] },
      })
      expect((await user.get(at('books', '/two'))).body.author).toEqual([])
      expect((await user.get(at('books', '?author=bob'))).body).toHaveLength(1)
      expect((await user.put(at('books', '/one'), { title: 'still good' })).status).toBe(200)
    }
  })

  test('a delete gets 409 ENTITY_IN_USE when nullify would empty a required list', async () => {
    for (const options of [{ required: true }, { min: 1 }]) {
      const { add, remove, has, user, at } = await createBooksFixture({ onDelete: 'nullify', multi: true, ...options })
      await add('books', 'one', { author: ['ann', 'bob'] })
      expect((await remove('ann')).status).toBe(200)
      expect(statusAndCode(await remove('bob'))).toEqual(IN_USE)
      expect(await has('authors')).toEqual(['bob'])
      expect((await user.get(at('books', '/one'))).body.author).toEqual(['bob'])
    }
  })

  test('DELETE /all deletes entities together with those whose required lists refer to them', async () => {
    const { add, user, at, has } = await createBlueprintsFixture({
      key: 'people',
      fields: [
        { key: 'friends', type: 'relation', target: 'people', multi: true, onDelete: 'nullify', min: 1 },
        { key: 'n', type: 'integer' },
      ],
    })
    await add('people', 'last', { n: 0 })
    for (let n = 1; n < 250; n++) await add('people', `p${n}`, { n, friends: [n > 1 ? `p${n - 1}` : 'last'] })
    expect(statusAndCode(await user.delete(at('people', '/all?confirm=people&n[$gt]=100&n[$lt]=200')))).toEqual(IN_USE)
    expect((await user.delete(at('people', '/all?confirm=people&$sort=n'))).body.success).toBe(true)
    expect(await has('people')).toEqual([])
  })

  test('nullify needs no permission for the referring entity or its field', async () => {
    const { add, remove, admin, at } = await createBooksFixture({ onDelete: 'nullify', writeRoles: ['boss'] }, [])
    await add('books', 'one', { author: 'ann' })
    expect((await remove('ann')).status).toBe(200)
    expect((await admin.get(at('books', '/one'))).body).not.toHaveProperty('author')
  })

  test('nullify updates an entity once when it loses several values', async () => {
    const { add, user, at } = await createBooksFixture({ onDelete: 'nullify', multi: true })
    await add('books', 'one', { author: ['ann', 'bob'] })
    expect((await user.delete(at('authors', '/all?confirm=authors'))).body.deletedCount).toBe(2)
    const { body, headers } = await user.get(at('books', '/one'))
    expect([body.author, headers.get('etag')!.startsWith('"2-')]).toEqual([[], true])
  })

  const createCreditsFixture = (more: object = {}, formula = "$exists(author) ? 'by ' & author : 'by nobody'") =>
    createBlueprintsFixture(
      { key: 'authors', fields: [{ key: 'name', type: 'string' }] },
      {
        key: 'books',
        fields: [
          { key: 'author', type: 'relation', target: 'authors', onDelete: 'nullify' },
          { key: 'credit', type: 'string', ...more },
        ],
        computed: { credit: formula },
      },
    )

  test('nullify computes formulas anew, and updates filters and full-text search', async () => {
    const { add, user, at } = await createCreditsFixture()
    for (const name of ['ann', 'bob', 'cat']) await add('authors', name)
    const names = Array.from({ length: 120 }, (_, n) => `b${n}`)
    await Promise.all(names.map((name, n) => add('books', name, { author: n % 2 ? 'ann' : 'bob' })))
    const found = async (query: string) =>
      (await user.get(at('books', `?${query}&$count=true&$limit=1`))).headers.get('x-total-count')
    expect(await found('$q=ann')).toBe('60')
    expect((await user.delete(at('authors', '/ann'))).status).toBe(200)
    expect((await user.get(at('books', '/b1'))).body.metadata).toEqual({ credit: 'by nobody' })
    for (const query of ['credit=by nobody', '$q=nobody']) expect(await found(query)).toBe('60')
    for (const query of ['credit=by ann', '$q=ann']) expect(await found(query)).toBe('0')
    expect(await found('credit=by bob')).toBe('60')

    await add('books', 'last', { author: 'cat' })
    const removals = ['bob', 'cat'].map((identifier) => ({ op: 'delete', identifier }))
    expect((await user.post(at('authors', '/batch'), { operations: removals })).status).toBe(200)
    expect(await found('credit=by nobody')).toBe('121')
  })

  test('a delete gets 409 ENTITY_IN_USE when nullify would make a formula result missing or a duplicate', async () => {
    const required = await createCreditsFixture({ required: true }, "$exists(author) ? 'by ' & author")
    const unique = await createCreditsFixture({ unique: true })
    for (const { add, user, at } of [required, unique]) {
      await add('authors', 'ann')
      await add('books', 'one', { author: 'ann' })
      if (user === unique.user) await add('books', 'other')
      expect(statusAndCode(await user.delete(at('authors', '/ann')))).toEqual(IN_USE)
      expect((await user.get(at('books', '/one'))).body.metadata).toEqual({ author: 'ann', credit: 'by ann' })
    }
    // This does not prevent the deletion of the whole blueprint.
    const { admin, at, user } = unique
    expect((await admin.delete('/blueprints/authors?force=true')).status).toBe(200)
    expect((await user.get(at('books', '/one'))).status).toBe(200)
  })

  test('a delete with nullify gets 503 BUSY and changes nothing while the queue of formulas is full', async () => {
    const { id, add, admin, user, at, has } = await createCreditsFixture()
    for (const name of ['ann', 'bob']) await add('authors', name)
    for (const name of ['ann', 'bob']) await add('books', `by-${name}`, { author: name })
    const removeAnn = () => user.delete(at('authors', '/ann'))
    const removeBlueprint = () => admin.delete('/blueprints/authors?force=true')
    const metadataOf = async (name: string) => (await user.get(at('books', `/by-${name}`))).body.metadata
    const refused = await withFullFormulaQueue(id, async () => [await removeAnn(), await removeBlueprint()])
    expect(refused.map(statusAndCode)).toEqual([BUSY, BUSY])
    expect(refused.map(({ headers }) => headers.get('retry-after'))).toEqual(['1', '1'])
    expect(await has('authors')).toEqual(['ann', 'bob'])
    for (const name of ['ann', 'bob']) expect(await metadataOf(name)).toEqual({ author: name, credit: `by ${name}` })

    expect((await removeAnn()).status).toBe(200)
    expect((await removeBlueprint()).status).toBe(200)
    for (const name of ['ann', 'bob']) expect(await metadataOf(name)).toEqual({ credit: 'by nobody' })
  })

  test('a delete with nullify of 1,010 references gets 409 TOO_MANY_REFERENCES and changes nothing', async () => {
    const { addMany, remove, user, at } = await createBooksFixture({ onDelete: 'nullify' })
    await addMany('books', 1_010, () => ({ author: 'ann' }))
    const answer = await remove('ann')
    expect([...statusAndCode(answer), answer.body.message]).toEqual([
      ...TOO_MANY,
      expect.stringContaining('"books" by "author"'),
    ])
    expect((await user.get(at('books', '?author=ann&$count=true&$limit=1'))).headers.get('x-total-count')).toBe('1010')
    await user.delete(at('books', '/all?confirm=books&author=ann&title[$exists]=false'))
    expect((await remove('ann')).status).toBe(200)
  })
})

describe('onDelete: cascade', () => {
  test('cascade deletes entities that refer to the deleted one directly or indirectly, without permission for them', async () => {
    const own = await createBlueprintsFixture(
      { key: 'authors' },
      {
        key: 'books',
        fields: [{ key: 'author', type: 'relation', target: 'authors', onDelete: 'cascade' }],
        permissions: [],
      },
      {
        key: 'comments',
        fields: [
          { key: 'on', type: 'relation', target: 'books', multi: true, indexed: false, onDelete: 'cascade' },
          { key: 'by', type: 'relation', target: 'authors', onDelete: 'nullify' },
        ],
      },
    )
    const { add, user, at, has, tenant, admin } = own
    for (const name of ['ann', 'bob']) await add('authors', name)
    await add('books', 'one', { author: 'ann' })
    await add('books', 'two', { author: 'bob' })
    await add('comments', 'first', { on: ['two', 'one'], by: 'ann' })
    await add('comments', 'second', { on: ['two'], by: 'ann' })
    expect((await user.delete(at('authors', '/ann'))).status).toBe(200)
    expect([await has('authors'), await has('books'), await has('comments')]).toEqual([['bob'], ['two'], ['second']])
    expect((await admin.get(at('comments', '/second'))).body.metadata).toEqual({ on: ['two'] })
    expect(Number((await tenant.db.query('select count(*) from entity_index'))[0]![0])).toBe(2)
  })

  test('a delete gets 409 ENTITY_IN_USE and deletes nothing when another entity restricts its cascade', async () => {
    const own = await createBlueprintsFixture(
      { key: 'authors' },
      { key: 'books', fields: [{ key: 'author', type: 'relation', target: 'authors', onDelete: 'cascade' }] },
      { key: 'loans', fields: [{ key: 'of', type: 'relation', target: 'books' }] },
    )
    const { add, user, at, has } = own
    await add('authors', 'ann')
    await add('books', 'one', { author: 'ann' })
    await add('books', 'two', { author: 'ann' })
    await add('loans', 'loan', { of: 'two' })
    const answer = await user.delete(at('authors', '/ann'))
    expect([...statusAndCode(answer), answer.body.details.references]).toEqual([
      ...IN_USE,
      [{ blueprint: 'loans', field: 'of', count: 1 }],
    ])
    expect([await has('authors'), await has('books')]).toEqual([['ann'], ['one', 'two']])
  })

  test('cascade follows circular references to their end', async () => {
    const link = (target: string) => [{ key: 'to', type: 'relation', target, onDelete: 'cascade' }]
    const own = await createBlueprintsFixture({ key: 'as' }, { key: 'bs', fields: link('as') })
    const { add, admin, user, at, has } = own
    await admin.put('/blueprints/as', { fields: link('bs') })
    for (const n of [0, 1, 2]) await add('as', `a${n}`)
    for (const n of [0, 1, 2]) await add('bs', `b${n}`, { to: `a${n}` })
    for (const n of [0, 1, 2]) await user.put(at('as', `/a${n}`), { to: `b${(n + 1) % 3}` })
    expect((await user.delete(at('bs', '/b1'))).status).toBe(200)
    expect([await has('as'), await has('bs')]).toEqual([[], []])
  })

  test('cascade deletes an entity that is restricted only by entities of the same cascade', async () => {
    const fields = [
      { key: 'parent', type: 'relation', target: 'nodes', onDelete: 'cascade' },
      { key: 'before', type: 'relation', target: 'nodes' },
    ]
    const { add, user, at, has } = await createBlueprintsFixture({ key: 'nodes', fields })
    await add('nodes', 'root')
    await add('nodes', 'a', { parent: 'root' })
    await add('nodes', 'b', { parent: 'root', before: 'a' })
    expect(statusAndCode(await user.delete(at('nodes', '/a')))).toEqual(IN_USE)
    expect((await user.delete(at('nodes', '/root'))).status).toBe(200)
    expect(await has('nodes')).toEqual([])
  })

  test('a delete gets 409 TOO_MANY_REFERENCES when its cascade has 1,010 entities or 110 levels', async () => {
    const fields = [{ key: 'parent', type: 'relation', target: 'nodes', onDelete: 'cascade' }]
    const { add, addMany, user, at } = await createBlueprintsFixture({ key: 'nodes', fields })
    await add('nodes', 'root')
    await addMany('nodes', 1_010, () => ({ parent: 'root' }))
    expect(statusAndCode(await user.delete(at('nodes', '/root')))).toEqual(TOO_MANY)
    const count = async () => (await user.get(at('nodes', '?$count=true&$limit=1'))).headers.get('x-total-count')
    expect(await count()).toBe('1011')
    expect((await user.delete(at('nodes', '/all?confirm=nodes&parent=root'))).body.deletedCount).toBe(1_010)
    for (let n = 0, parent = 'root'; n < 110; parent = `deep${n++}`) await add('nodes', `deep${n}`, { parent })
    expect(statusAndCode(await user.delete(at('nodes', '/root')))).toEqual(TOO_MANY)
    expect((await user.delete(at('nodes', '/deep50'))).status).toBe(200)
    expect((await user.delete(at('nodes', '/root'))).status).toBe(200)
    expect(await count()).toBe('0')
  })

  test('DELETE /all with cascade deletes more referring entities than a single write may', async () => {
    const { addMany, add, user, at, has } = await createBooksFixture({ onDelete: 'cascade' })
    await addMany('authors', 40, () => ({}))
    await addMany('books', 1_400, (n) => ({ author: `authors${n % 40}` }))
    await add('books', 'left', {})
    expect((await user.delete(at('authors', '/all?confirm=authors'))).body).toEqual({ success: true, deletedCount: 42 })
    expect([await has('authors'), await has('books')]).toEqual([[], ['left']])
  })
})

describe('onDelete and DELETE of a blueprint with force=true', () => {
  test('DELETE of a blueprint with force=true ignores restrict, and applies nullify and cascade', async () => {
    const to = (onDelete: string) => ({ type: 'relation', target: 'authors', onDelete })
    const own = await createBlueprintsFixture(
      { key: 'authors' },
      { key: 'books', fields: [{ key: 'author', ...to('cascade') }] },
      { key: 'films', fields: [{ key: 'author', ...to('nullify') }] },
      { key: 'songs', fields: [{ key: 'author', ...to('restrict') }] },
    )
    const { add, admin, user, at, has } = own
    await add('authors', 'ann')
    for (const key of ['books', 'films', 'songs']) await add(key, 'one', { author: 'ann' })
    expect(statusAndCode(await admin.delete('/blueprints/authors'))).toEqual([409, 'BLUEPRINT_NOT_EMPTY'])
    expect((await admin.delete('/blueprints/authors?force=true')).body).toEqual({ success: true })
    expect([await has('books'), await has('films'), await has('songs')]).toEqual([[], ['one'], ['one']])
    expect((await user.get(at('films', '/one'))).body.metadata).toEqual({})
    expect((await user.get(at('songs', '/one'))).body.author).toBe('ann')
  })

  test('DELETE of a blueprint with force=true gets 409 ENTITY_IN_USE when its cascade is restricted', async () => {
    const own = await createBlueprintsFixture(
      { key: 'authors' },
      { key: 'books', fields: [{ key: 'author', type: 'relation', target: 'authors', onDelete: 'cascade' }] },
      { key: 'loans', fields: [{ key: 'of', type: 'relation', target: 'books' }] },
    )
    const { add, admin, has } = own
    await add('authors', 'ann')
    await add('books', 'one', { author: 'ann' })
    await add('loans', 'loan', { of: 'one' })
    const answer = await admin.delete('/blueprints/authors?force=true')
    expect([...statusAndCode(answer), answer.body.details.references]).toEqual([
      ...IN_USE,
      [{ blueprint: 'loans', field: 'of', count: 1 }],
    ])
    expect([await has('authors'), await has('books')]).toEqual([['ann'], ['one']])
  })
})

test('the target of a relation cannot change while there are entities, and an identifier never', async () => {
  const { admin, user, at, add } = await createBooksFixture()
  await add('books', 'one', { author: 'ann' })
  const fields = [
    { key: 'title', type: 'string' },
    { key: 'author', type: 'relation', target: 'books' },
  ]
  expect(statusAndCode(await admin.put('/blueprints/books', { fields }))).toEqual([409, 'FIELD_IN_USE'])
  expect((await user.put(at('authors', '/ann'), { identifier: 'anna' })).body.identifier).toBe('ann')
})

test('a relation accepts identifiers, and rejects an _id that is not one with 400 INVALID_INPUT', async () => {
  const { user, at, add } = await createBooksFixture()
  const { _id } = await add('authors', 'cy')
  expect(statusAndCode(await user.post(at('books'), { author: _id }))).toEqual([400, 'INVALID_INPUT'])
  const nameless = (await user.post(at('authors'), {})).body
  const book = (await user.post(at('books', '?$populate=author'), { author: nameless._id })).body
  expect(book.author._id).toBe(nameless._id)
  expect(statusAndCode(await user.delete(at('authors', `/${nameless._id}`)))).toEqual(IN_USE)
})

test('a delete sends no statements for relations that are cached', async () => {
  const { add, remove, origin } = await createBooksFixture()
  await add('authors', 'cy')
  await remove('bob')
  expect(await recordStatements(origin, () => remove('cy'))).toEqual([])
})
