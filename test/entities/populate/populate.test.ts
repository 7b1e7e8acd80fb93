import { describe, expect, test } from 'bun:test'
import { fullAccessRules, statusAndCode } from '../../test-tenant'
import { createBlueprintsFixture, type Entity, identifiers, nextPagePath, recordStatements } from '../fixtures'

const countries = { key: 'countries', fields: [{ key: 'name', type: 'string' }] }
const authors = {
  key: 'authors',
  fields: [
    { key: 'name', type: 'string' },
    { key: 'country', type: 'relation', target: 'countries' },
    { key: 'salary', type: 'integer', readRoles: ['boss'] },
    { key: 'agent', type: 'relation', target: 'authors', readRoles: ['boss'] },
  ],
}
const books = {
  key: 'books',
  fields: [
    { key: 'title', type: 'string' },
    { key: 'author', type: 'relation', target: 'authors' },
    { key: 'editors', type: 'relation', target: 'authors', multi: true },
    { key: 'sequel', type: 'relation', target: 'books', indexed: false },
    { key: 'secret', type: 'relation', target: 'authors', readRoles: ['boss'] },
  ],
}

async function createBooksFixture() {
  const own = await createBlueprintsFixture(countries, authors, books)
  const { add } = own
  await add('countries', 'at', { name: 'Austria' })
  await add('authors', 'ann', { name: 'Ann', country: 'at', salary: 9 })
  await add('authors', 'bob', { name: 'Bob', agent: 'ann' })
  await add('books', 'one', { title: 'One', author: 'ann', editors: ['bob', 'ann'], secret: 'bob' })
  await add('books', 'two', { title: 'Two', author: 'bob', sequel: 'one', editors: [] })
  await add('books', 'three', { title: 'Three' })
  const list = async (query: string, who = own.user) => (await who.get(own.at('books', `?$sort=created&${query}`))).body
  const one = async (query: string, who = own.user) => (await who.get(own.at('books', `/one?${query}`))).body
  return { ...own, list, one }
}

describe('a populated relation', () => {
  test('is the flat entity that it leads to, in a list and in one, beside metadata and in it', async () => {
    const { list, one, user, at } = await createBooksFixture()
    const ann = (await user.get(at('authors', '/ann'))).body
    expect(ann.name).toBe('Ann')
    for (const book of [(await list('$populate=author'))[0], await one('$populate=author')]) {
      expect(book.author).toEqual(ann)
      expect(book.metadata.author).toEqual(ann)
      expect(book).toMatchObject({ title: 'One', editors: ['bob', 'ann'], metadata: { title: 'One' } })
    }
  })

  test('stays in its list, in order', async () => {
    const { list } = await createBooksFixture()
    const [one, two, three] = await list('$populate=editors')
    expect(identifiers(one.editors)).toEqual(['bob', 'ann'])
    expect(one.metadata.editors).toEqual(one.editors)
    expect(two.editors).toEqual([])
    expect(three).not.toHaveProperty('editors')
  })

  test('is under metadata only in the wrapped shape, and flat there', async () => {
    const { list, one } = await createBooksFixture()
    for (const book of [(await list('$populate=author&$flat=false'))[0], await one('$populate=author&$flat=false')]) {
      expect(book).not.toHaveProperty('author')
      expect(book.metadata.author).toMatchObject({ identifier: 'ann', name: 'Ann', metadata: { name: 'Ann' } })
    }
  })

  test('is there when it is selected, and costs nothing when it is not', async () => {
    const { list, origin } = await createBooksFixture()
    const [book] = await list('$populate=author,editors&$select=title,author')
    expect(Object.keys(book).sort()).toEqual(['_id', 'author', 'identifier', 'metadata', 'title'])
    expect(book.metadata).toEqual({ title: 'One', author: book.author })
    expect(book.author.name).toBe('Ann')
    expect((await list('$populate=author&$select=metadata'))[0].metadata.author.name).toBe('Ann')
    const without = await recordStatements(origin, () => list('$select=title&$limit=7'))
    expect(await recordStatements(origin, () => list('$populate=true&$select=title&$limit=7'))).toHaveLength(
      without.length,
    )
  })

  test('with true is every relation, and the owner', async () => {
    const { list, users, user } = await createBooksFixture()
    await user.post('/me', { firstName: 'Una', lastName: 'User', profileImage: '/una.png' })
    await user.post('/blueprints/books/entities', { identifier: 'mine', author: 'bob', sequel: 'two' })
    for (const flag of ['true', '1']) {
      const book = (await list(`$populate=${flag}`)).at(-1)
      expect(book.user).toEqual({ _id: users.user, fullName: 'Una User', profileImage: '/una.png' })
      expect([book.author.identifier, book.sequel.identifier]).toEqual(['bob', 'two'])
      expect(book.sequel.author).toBe('bob')
    }
    for (const flag of ['false', '0', '', 'undefined'])
      expect((await list(`$populate=${flag}`))[0], flag).toEqual((await list(''))[0])
  })

  test('may be the owner alone, also of what it leads to; what is gone stays an id', async () => {
    const { list, users, user, admin, at } = await createBooksFixture()
    await user.post(at('books'), { identifier: 'mine', author: 'ann' })
    const book = (await list('$populate=user,workspace,author.user')).at(-1)
    expect(book.user).toEqual({ _id: users.user, fullName: '', profileImage: null })
    expect(book.author.user._id).toBe(users.admin)
    expect(book.workspace).toBe(null)
    await admin.put(at('books', '/mine'), { user: 'nobody-any-more', workspace: 'w' })
    expect((await list('$populate=user,workspace')).at(-1)).toMatchObject({ user: 'nobody-any-more', workspace: 'w' })
  })

  test('goes on by dots, three relations deep', async () => {
    const { add, list, one } = await createBooksFixture()
    expect((await one('$populate=author.country')).author.country).toMatchObject({ identifier: 'at', name: 'Austria' })
    expect((await one('$populate=author.country')).author.metadata.country.name).toBe('Austria')
    await add('books', 'four', { sequel: 'two' })
    const four = (await list('$populate=sequel.sequel.author,sequel.author,author')).at(-1)
    expect(four.sequel.author.name).toBe('Bob')
    expect(four.sequel.sequel.author.name).toBe('Ann')
    expect(four.sequel.sequel.author.country).toBe('at')
  })

  test('may go in circles', async () => {
    const { admin, at, one } = await createBooksFixture()
    expect((await admin.put(at('books', '/one'), { sequel: 'one' })).status).toBe(200)
    const book = await one('$populate=sequel.sequel.sequel')
    expect(book.sequel.sequel.sequel).toMatchObject({ identifier: 'one', sequel: 'one' })
  })

  test('also answers who creates and changes', async () => {
    const { user, at } = await createBooksFixture()
    const made = await user.post(at('books', '?$populate=author'), { identifier: 'new', author: 'ann' })
    expect([made.status, made.body.author.name]).toEqual([201, 'Ann'])
    expect((await user.put(at('books', '/new?$populate=author'), { author: 'bob' })).body.author.name).toBe('Bob')
    expect(statusAndCode(await user.post(at('books', '?$populate=no'), { identifier: 'not' }))).toEqual([
      400,
      'INVALID_INPUT',
    ])
    expect((await user.get(at('books', '/not'))).status).toBe(404)
  })

  test('pages as the list does', async () => {
    const { user, at } = await createBooksFixture()
    const first = await user.get(at('books', '?$populate=author&$limit=2&$sort=created&$count=true'))
    expect([identifiers(first.body), first.headers.get('x-total-count')]).toEqual([['one', 'two'], '3'])
    const next = await user.get(nextPagePath(first.headers)!)
    expect(identifiers(next.body)).toEqual(['three'])
    expect((await user.get(at('books', '?$populate=true&$limit=0'))).body).toEqual([])
  })

  test('has no ETag, for it changes with what it leads to', async () => {
    const { user, at, one } = await createBooksFixture()
    const etag = (await user.get(at('books', '/one'))).headers.get('etag')!
    for (const known of [etag, '*']) {
      const answer = await user.get(at('books', '/one?$populate=author'), { 'if-none-match': known })
      expect([answer.status, answer.headers.get('etag')]).toEqual([200, null])
    }
    await user.put(at('authors', '/ann'), { name: 'Anna' })
    expect((await one('$populate=author')).author.name).toBe('Anna')
    expect((await user.get(at('books', '/one'), { 'if-none-match': etag })).status).toBe(304)
  })
})

describe('a relation that nobody can populate', () => {
  test('is named', async () => {
    const { user, at } = await createBooksFixture()
    for (const [query, name] of [
      ['$populate=nothing', 'nothing'],
      ['$populate=title', 'title'],
      ['$populate=author,title', 'title'],
      ['$populate=_id', '_id'],
      ['$populate=metadata', 'metadata'],
      ['$populate=author.name', 'name'],
      ['$populate=author.country.continent', 'continent'],
      ['$populate=title.author', 'title'],
      ['$populate=user.roles', 'user'],
      ['$populate=author.', ''],
      ['$populate=toString', 'toString'],
      ['$populate=__proto__', '__proto__'],
    ] as const)
      for (const path of [at('books', `?${query}`), at('books', `/one?${query}`)]) {
        const answer = await user.get(path)
        expect(statusAndCode(answer), path).toEqual([400, 'INVALID_INPUT'])
        expect(answer.body.details[0]).toMatchObject({ path: '$populate' })
        expect(answer.body.message).toContain(`"${name}"`)
      }
  })

  test('is one that is too deep', async () => {
    const { user, at } = await createBooksFixture()
    const answer = await user.get(at('books', '?$populate=sequel.sequel.sequel.sequel'))
    expect([...statusAndCode(answer), answer.body.message]).toEqual([
      400,
      'INVALID_INPUT',
      '"sequel.sequel.sequel.sequel" is nested more than 3 relations deep.',
    ])
  })

  test('is hidden, and as good as unknown', async () => {
    const { user, admin, at, list } = await createBooksFixture()
    const [hidden, unknown] = [
      await user.get(at('books', '?$populate=secret')),
      await user.get(at('books', '?$populate=absent')),
    ]
    expect(hidden.body.message).toBe(unknown.body.message.replace('absent', 'secret'))
    expect(statusAndCode(await user.get(at('books', '?$populate=author.agent')))).toEqual([400, 'INVALID_INPUT'])
    expect((await list('$populate=true'))[0]).not.toHaveProperty('secret')
    expect((await admin.get(at('books', '/one?$populate=secret.agent'))).body.secret.agent.name).toBe('Ann')
  })

  test('is one of more than anybody needs', async () => {
    const fields = Array.from({ length: 31 }, (_, n) => ({ key: `r${n}`, type: 'relation', target: 'countries' }))
    const { user, at, add } = await createBlueprintsFixture(countries, { key: 'many', fields })
    await add('countries', 'at')
    await add('many', 'one', { r0: 'at', r30: 'at' })
    expect(statusAndCode(await user.get(at('many', '?$populate=true')))).toEqual([400, 'INVALID_INPUT'])
    expect((await user.get(at('many', '/one?$populate=r30'))).body.r30.identifier).toBe('at')
  })
})

describe('what the caller may not read', () => {
  test('of the target’s fields is not there', async () => {
    const { one, admin } = await createBooksFixture()
    const { author } = await one('$populate=author')
    expect([author.salary, author.metadata.salary]).toEqual([undefined, undefined])
    expect((await one('$populate=author', admin)).author.salary).toBe(9)
  })

  test('stays an identifier: rows of others, and whole blueprints', async () => {
    const own = await createBlueprintsFixture(
      { key: 'notes', fields: [{ key: 'text', type: 'string' }], permissions: fullAccessRules('user', 'user') },
      { key: 'vaults', fields: [{ key: 'of', type: 'relation', target: 'notes' }], permissions: [] },
      {
        key: 'things',
        fields: [
          { key: 'notes', type: 'relation', target: 'notes', multi: true },
          { key: 'vault', type: 'relation', target: 'vaults' },
        ],
        permissions: [...fullAccessRules('tenant', 'user'), { operation: 'read', scope: 'tenant', guest: true }],
      },
    )
    const { add, user, other, admin, stranger, at } = own
    await add('notes', 'mine', { text: 'my secret' }, user)
    await add('notes', 'theirs', { text: 'their secret' }, other)
    await add('vaults', 'gold', { of: 'mine' })
    await add('things', 'thing', { notes: ['mine', 'theirs'], vault: 'gold' })
    const read = async (who = user, query = '$populate=notes,vault.of') =>
      (await who.get(at('things', `/thing?${query}`))).body as Entity & { notes: (string | Entity)[]; vault: Entity }
    const mine = await read()
    expect(mine.notes.map((note) => (typeof note === 'string' ? note : note.text))).toEqual(['my secret', 'theirs'])
    expect(mine.vault as unknown).toBe('gold')
    expect((await read(other)).notes).toMatchObject(['mine', { text: 'their secret' }])
    expect(await read(stranger)).toMatchObject({ notes: ['mine', 'theirs'], vault: 'gold' })
    expect(await read(stranger, '$populate=true')).toMatchObject({ notes: ['mine', 'theirs'], vault: 'gold' })
    expect((await read(admin)).vault.of).toMatchObject({ text: 'my secret' })
    expect((await read(admin, '$populate=notes,vault.of&bypassAdmin=true')).notes).toEqual(['mine', 'theirs'])
  })

  test('stays an identifier also when what it led to is gone', async () => {
    const { admin, list } = await createBooksFixture()
    expect((await admin.delete('/blueprints/authors?force=true')).status).toBe(200)
    expect((await list('$populate=author.country,editors'))[0]).toMatchObject({
      author: 'ann',
      editors: ['bob', 'ann'],
    })
    expect((await list('$populate=true'))[0]).toMatchObject({ author: 'ann', metadata: { author: 'ann' } })
  })

  test('is refused before what is asked for is looked at', async () => {
    const { stranger, at } = await createBooksFixture()
    expect(statusAndCode(await stranger.get(at('books', '?$populate=nothing')))).toEqual([401, 'UNAUTHENTICATED'])
  })
})

describe('a thousand rows', () => {
  test('are populated by one statement for each relation', async () => {
    const { addMany, user, at, origin } = await createBlueprintsFixture(countries, authors, books)
    await addMany('countries', 30, (n) => ({ name: `C${n}` }))
    await addMany('authors', 400, (n) => ({ name: `A${n}`, country: `countries${n % 30}` }))
    await addMany('books', 1_000, (n) => ({
      title: `B${n}`,
      author: `authors${n % 400}`,
      editors: [`authors${(n * 7) % 400}`, `authors${(n * 3) % 400}`],
      ...(n > 200 && { sequel: `books${n % 200}` }),
    }))
    const query = '$limit=1000&$sort=created&$populate=author.country,editors,sequel,user'
    let all: Entity[] = []
    const [few, many] = [
      await recordStatements(origin, () => user.get(at('books', query.replace('1000', '1').replace(/^/, '?')))),
      await recordStatements(origin, async () => {
        all = (await user.get(at('books', `?${query}`))).body
      }),
    ]
    expect(all).toHaveLength(1_000)
    for (const { identifier, author, editors, sequel } of all as (Entity & Record<string, Entity>)[]) {
      const n = Number(identifier.slice(5))
      expect(author).toMatchObject({ name: `A${n % 400}`, country: { name: `C${(n % 400) % 30}` } })
      expect((editors as unknown as Entity[]).map((one) => one.name)).toEqual([
        `A${(n * 7) % 400}`,
        `A${(n * 3) % 400}`,
      ])
      expect(sequel?.title).toBe(n > 200 ? `B${n % 200}` : undefined)
    }
    const related = (asked: string[]) => asked.filter((sql) => sql.includes('sum(octet_length(') || sql === 'select')
    expect(related(many)).toHaveLength(5)
    // The other statements are the list's own, which reads a hundred rows at a time.
    const plain = await recordStatements(origin, () => user.get(at('books', '?$limit=1000&$sort=created')))
    // What is remembered for some seconds may have to be read anew, by either.
    expect(Math.abs(many.length - plain.length - 5)).toBeLessThanOrEqual(1)
    expect(few.length).toBeLessThanOrEqual(many.length)
  })

  test('of small size that lead to something large end the page early, and lose nothing', async () => {
    const { add, addMany, user, at } = await createBlueprintsFixture(
      { key: 'blobs', fields: [{ key: 'text', type: 'text' }] },
      {
        key: 'rows',
        fields: [
          { key: 'n', type: 'integer' },
          { key: 'blob', type: 'relation', target: 'blobs' },
        ],
      },
    )
    for (const n of [0, 1, 2]) await add('blobs', `b${n}`, { text: `${n}`.repeat(900_000) })
    await addMany('rows', 12, (n) => ({ n, blob: `b${n % 3}` }))
    const seen: string[] = []
    for (let path = at('rows', '?$populate=blob&$sort=n'), pages = 0; path; pages++) {
      const { body, headers, status } = await user.get(path)
      expect(status).toBe(200)
      expect(JSON.stringify(body).length).toBeLessThan(17 << 20)
      for (const row of body) expect(row.blob.text).toBe(`${row.n % 3}`.repeat(900_000))
      seen.push(...identifiers(body))
      path = nextPagePath(headers) ?? ''
      expect(pages).toBeLessThan(12)
    }
    expect(seen).toEqual(Array.from({ length: 12 }, (_, n) => `rows${n}`))
  })

  test('is no way to an answer without end: what does not fit stays an identifier', async () => {
    const { add, addMany, user, at } = await createBlueprintsFixture(
      { key: 'blobs', fields: [{ key: 'text', type: 'text' }] },
      { key: 'rows', fields: [{ key: 'blobs', type: 'relation', target: 'blobs', multi: true }] },
    )
    await addMany('blobs', 30, (n) => ({ text: `${n}`.padEnd(900_000, 'x') }))
    const blobs = Array.from({ length: 300 }, (_, n) => `blobs${n % 30}`)
    await add('rows', 'one', { blobs })
    for (const [path, of] of [
      ['/one?$populate=true', (body: Entity) => body],
      ['?$populate=true', (body: Entity[]) => body[0]!],
    ] as const) {
      const { body } = await user.get(at('rows', path))
      expect(JSON.stringify(body).length).toBeLessThan(18 << 20)
      const shown = of(body as never).blobs as (string | Entity)[]
      expect(shown.map((one) => (typeof one === 'string' ? one : one.identifier))).toEqual(blobs)
      expect(shown.filter((one) => typeof one !== 'string').length).toBeGreaterThan(3)
    }
  })
})
