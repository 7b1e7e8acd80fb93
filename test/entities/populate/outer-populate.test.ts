import { describe, expect, test } from 'bun:test'
import { type ApiClient, fullAccessRules, statusAndCode } from '../../test-tenant'
import { createBlueprintsFixture, type Entity, identifiers, recordStatements } from '../fixtures'

const authors = { key: 'authors', fields: [{ key: 'name', type: 'string' }] }
const books = {
  key: 'books',
  fields: [
    { key: 'title', type: 'string' },
    { key: 'author', type: 'relation', target: 'authors' },
    { key: 'editors', type: 'relation', target: 'authors', multi: true },
    { key: 'ghost', type: 'relation', target: 'authors', indexed: false, readRoles: ['boss'] },
    { key: 'price', type: 'integer', readRoles: ['boss'] },
  ],
}

async function createBooksFixture() {
  const own = await createBlueprintsFixture(authors, books)
  const { add, user, other } = own
  for (const name of ['ann', 'bob', 'cy', 'di']) await add('authors', name, { name })
  await add('books', 'one', { title: 'One', author: 'ann', editors: ['bob', 'ann'], price: 3 })
  await add('books', 'two', { title: 'Two', author: 'ann' }, user)
  await add('books', 'three', { title: 'Three', author: 'bob', editors: ['ann'] }, other)
  await add('books', 'four', { title: 'Four', ghost: 'cy' })
  const booksByAuthor = async (query: string, client: ApiClient = user): Promise<Record<string, string[]>> => {
    const { body } = await client.get(own.at('authors', `?$sort=created&$outerPopulate=${query}`))
    return Object.fromEntries(body.map((one: Entity & { books: Entity[] }) => [one.identifier, identifiers(one.books)]))
  }
  return { ...own, booksByAuthor }
}

describe('$outerPopulate', () => {
  test('$outerPopulate lists each entity that refers here by any relation once, the newest first', async () => {
    const { booksByAuthor } = await createBooksFixture()
    expect(await booksByAuthor('books:books:tenant')).toEqual({
      ann: ['three', 'two', 'one'],
      bob: ['three', 'one'],
      cy: [],
      di: [],
    })
  })

  test('$outerPopulate adds its list beside the fields of an entity, in every shape and with every selection', async () => {
    const { user, at } = await createBooksFixture()
    const one = (await user.get(at('books', '/one'))).body
    for (const query of ['', '&$flat=false', '&$select=name', '&$populate=true'])
      for (const path of [
        `?$sort=created&$outerPopulate=set:books:tenant${query}`,
        `/ann?$outerPopulate=set:books:tenant${query}`,
      ]) {
        const { body } = await user.get(at('authors', path))
        const ann = Array.isArray(body) ? body[0] : body
        expect(ann.set[2], path).toEqual(one)
        expect(ann.metadata, path).toEqual({ name: 'ann' })
        expect(ann.name, path).toBe(query.includes('flat') ? undefined : 'ann')
      }
  })

  test('$outerPopulate lists only entities of the given scope', async () => {
    const { booksByAuthor, user, other, anonymous, admin, at } = await createBooksFixture()
    expect((await booksByAuthor('books:books:user')).ann).toEqual(['two'])
    expect((await booksByAuthor('books:books:user', other)).ann).toEqual(['three'])
    expect((await booksByAuthor('books:books:user', admin)).ann).toEqual(['one'])
    expect((await booksByAuthor('books:books:workspace')).ann).toEqual([])
    expect(statusAndCode(await anonymous.get(at('authors', '?$outerPopulate=a:books:tenant')))).toEqual([
      401,
      'UNAUTHENTICATED',
    ])
    expect((await user.get(at('authors', '/ann?$outerPopulate=a:books:user,b:books:tenant'))).body).toMatchObject({
      a: [{ identifier: 'two' }],
      b: [{ identifier: 'three' }, { identifier: 'two' }, { identifier: 'one' }],
    })
  })

  test('an answer with $outerPopulate has no ETag', async () => {
    const { user, at } = await createBooksFixture()
    const { headers, status } = await user.get(at('authors', '/ann?$outerPopulate=b:books:tenant'), {
      'if-none-match': '*',
    })
    expect([status, headers.get('etag')]).toEqual([200, null])
  })

  test('$outerPopulate follows every change of a relation', async () => {
    const { booksByAuthor, user, at } = await createBooksFixture()
    await user.put(at('books', '/two'), { author: 'cy', editors: ['di', 'cy'] })
    await user.put(at('books', '/one'), { author: null })
    await user.delete(at('books', '/three'))
    expect(await booksByAuthor('books:books:tenant')).toEqual({ ann: ['one'], bob: ['one'], cy: ['two'], di: ['two'] })
  })

  test('$outerPopulate lists entities of the same blueprint', async () => {
    const { add, user, at } = await createBlueprintsFixture({
      key: 'folders',
      fields: [{ key: 'parent', type: 'relation', target: 'folders' }],
    })
    await add('folders', 'root')
    await add('folders', 'a', { parent: 'root' })
    await add('folders', 'b', { parent: 'a' })
    const { body } = await user.get(at('folders', '?$sort=created&$outerPopulate=children:folders:tenant'))
    expect(body.map(({ children }: { children: Entity[] }) => identifiers(children))).toEqual([['a'], ['b'], []])
  })
})

describe('access to entities of $outerPopulate', () => {
  test('$outerPopulate leaves out entities and fields that the caller may not read', async () => {
    const own = await createBlueprintsFixture(authors, { ...books, permissions: fullAccessRules('user', 'user') })
    const { add, user, other, at, admin } = own
    await add('authors', 'ann')
    await add('books', 'mine', { author: 'ann' }, user)
    await add('books', 'theirs', { author: 'ann' }, other)
    await add('books', 'priced', { author: 'ann', price: 3, user: own.users.user })
    const set = async (client: ApiClient, more = '') =>
      (await client.get(at('authors', `/ann?$outerPopulate=s:books:tenant${more}`))).body.s as Entity[]
    expect(identifiers(await set(user))).toEqual(['priced', 'mine'])
    expect((await set(user))[0]!.price).toBe(undefined)
    expect((await set(admin))[0]!.price).toBe(3)
    expect(identifiers(await set(other))).toEqual(['theirs'])
    expect(identifiers(await set(admin, '&bypassAdmin=true'))).toEqual([])
  })

  test('$outerPopulate leaves out entities that refer here by a relation that the caller may not read', async () => {
    const { booksByAuthor, admin } = await createBooksFixture()
    expect((await booksByAuthor('books:books:tenant')).cy).toEqual([])
    expect((await booksByAuthor('books:books:tenant', admin)).cy).toEqual(['four'])
  })

  test('$outerPopulate is an empty list for a blueprint that the caller may not read', async () => {
    const own = await createBlueprintsFixture(
      authors,
      { ...books, permissions: [] },
      { key: 'others', permissions: [] },
    )
    const { add, user, anonymous, admin, at } = own
    await admin.put('/blueprints/authors', {
      permissions: [...fullAccessRules('tenant', 'user'), { operation: 'read', scope: 'tenant', guest: true }],
    })
    await add('authors', 'ann')
    await add('books', 'one', { author: 'ann' })
    for (const client of [user, anonymous])
      for (const key of ['books', 'others'])
        expect((await client.get(at('authors', `?$outerPopulate=s:${key}:tenant`))).body[0].s, key).toEqual([])
  })
})

describe('an invalid $outerPopulate', () => {
  test('an invalid $outerPopulate gets 400 INVALID_INPUT, and an empty one is ignored', async () => {
    const { user, at, admin } = await createBooksFixture()
    for (const set of [
      'books',
      'books:books',
      ':books:tenant',
      'a::tenant',
      'a:books:',
      'a:books:all',
      'a:books:tenant:more',
      'a b:books:tenant',
      '_a:books:tenant',
      '1:books:tenant',
      'a.b:books:tenant',
      '__proto__:books:tenant',
      'constructor:books:tenant',
      'name:books:tenant',
      'user:books:tenant',
      'metadata:books:tenant',
      'identifier:books:tenant',
      'id:books:tenant',
      'a:nothing:tenant',
      'a:authors:tenant',
      'a:books:tenant,a:books:user',
      Array.from({ length: 11 }, (_, n) => `s${n}:books:tenant`).join(),
    ])
      for (const client of [user, admin]) {
        const answer = await client.get(at('authors', `/ann?$outerPopulate=${encodeURIComponent(set)}`))
        expect(statusAndCode(answer), set).toEqual([400, 'INVALID_INPUT'])
        expect(answer.body.details[0].path, set).toBe('$outerPopulate')
      }
    for (const empty of ['', 'undefined', ','])
      expect((await user.get(at('authors', `/ann?$outerPopulate=${empty}`))).status).toBe(200)
  })

  test('a list of $outerPopulate may have the name of a hidden field, but not of a visible one', async () => {
    const { user, admin, at, add } = await createBlueprintsFixture(
      { key: 'targets', fields: [{ key: 'set', type: 'string', readRoles: ['boss'] }] },
      { key: 'pointers', fields: [{ key: 'to', type: 'relation', target: 'targets' }] },
    )
    await add('targets', 't', { set: 'secret' })
    await add('pointers', 'p', { to: 't' })
    const path = at('targets', '/t?$outerPopulate=set:pointers:tenant')
    expect(identifiers((await user.get(path)).body.set)).toEqual(['p'])
    expect((await admin.get(path)).status).toBe(400)
  })
})

describe('$outerPopulate of large lists', () => {
  test('$outerPopulate needs as many statements for 100 rows as for one, and lists at most 100 entities each', async () => {
    const { addMany, add, user, at, origin } = await createBlueprintsFixture(authors, books)
    await addMany('authors', 100, (n) => ({ name: `${n}` }))
    await addMany('books', 400, (n) => ({ author: `authors${n % 50}`, editors: ['authors99', `authors${n % 99}`] }))
    await add('books', 'latest', { author: 'authors99' })
    const query = '$outerPopulate=books:books:tenant,again:books:user'
    await user.get(at('authors', `?$limit=100&${query}`)) // so that the credential and the authors are known
    let all: (Entity & { books: Entity[] })[] = []
    const many = await recordStatements(origin, async () => {
      all = (await user.get(at('authors', `?$limit=100&$sort=created,identifier&${query}`))).body
    })
    const few = await recordStatements(origin, () =>
      user.get(at('authors', `?$limit=1&$sort=created,identifier&${query}`)),
    )
    expect(all).toHaveLength(100)
    for (const { identifier, books } of all) {
      const n = Number(identifier.slice(7))
      expect(books, identifier).toHaveLength(
        n === 99
          ? 100
          : Array.from({ length: 400 }, (_, book) => book).filter((b) => b % 50 === n || b % 99 === n).length,
      )
      expect(books.map((one) => one.created)).toEqual(
        books
          .map((one) => one.created)
          .sort()
          .reverse(),
      )
    }
    expect(all.find(({ identifier }) => identifier === 'authors99')!.books[0]!.identifier).toBe('latest')
    expect(many).toHaveLength(few.length)
  })

  test('a page with large entities in $outerPopulate ends early, and has a next link', async () => {
    const { addMany, add, user, at } = await createBlueprintsFixture(authors, {
      key: 'blobs',
      fields: [
        { key: 'text', type: 'text' },
        { key: 'author', type: 'relation', target: 'authors' },
      ],
    })
    for (const name of ['a', 'b']) await add('authors', name)
    await addMany('blobs', 40, (n) => ({ text: 'x'.repeat(450_000), author: n % 2 ? 'a' : 'b' }))
    const { body, headers } = await user.get(at('authors', '?$sort=identifier&$outerPopulate=blobs:blobs:tenant'))
    expect(JSON.stringify(body).length).toBeLessThan(18 << 20)
    expect([body.length, body[0].blobs.length > 10, headers.get('link')]).toEqual([
      1,
      true,
      expect.stringContaining('next'),
    ])
  })
})
