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
  const list = async (query: string, client = own.user) =>
    (await client.get(own.at('books', `?$sort=created&${query}`))).body
  const one = async (query: string, client = own.user) => (await client.get(own.at('books', `/one?${query}`))).body
  return { ...own, list, one }
}

describe('a populated relation', () => {
  test('a populated relation is the flat target entity, in lists and single answers, beside and inside metadata', async () => {
    const { list, one, user, at } = await createBooksFixture()
    const ann = (await user.get(at('authors', '/ann'))).body
    expect(ann.name).toBe('Ann')
    for (const book of [(await list('$populate=author'))[0], await one('$populate=author')]) {
      expect(book.author).toEqual(ann)
      expect(book.metadata.author).toEqual(ann)
      expect(book).toMatchObject({ title: 'One', editors: ['bob', 'ann'], metadata: { title: 'One' } })
    }
  })

  test('a populated list of relations keeps its order', async () => {
    const { list } = await createBooksFixture()
    const [one, two, three] = await list('$populate=editors')
    expect(identifiers(one.editors)).toEqual(['bob', 'ann'])
    expect(one.metadata.editors).toEqual(one.editors)
    expect(two.editors).toEqual([])
    expect(three).not.toHaveProperty('editors')
  })

  test('a populated relation is under metadata only with $flat=false, and is itself flat', async () => {
    const { list, one } = await createBooksFixture()
    for (const book of [(await list('$populate=author&$flat=false'))[0], await one('$populate=author&$flat=false')]) {
      expect(book).not.toHaveProperty('author')
      expect(book.metadata.author).toMatchObject({ identifier: 'ann', name: 'Ann', metadata: { name: 'Ann' } })
    }
  })

  test('a populated relation appears only when it is selected, and needs no statement when it is not', async () => {
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

  test('$populate=true populates every relation and the owner, one level deep', async () => {
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

  test('$populate=user,workspace populates owners, also of related entities, and leaves the ids of unknown ones', async () => {
    const { list, users, user, admin, at } = await createBooksFixture()
    await user.post(at('books'), { identifier: 'mine', author: 'ann' })
    const book = (await list('$populate=user,workspace,author.user')).at(-1)
    expect(book.user).toEqual({ _id: users.user, fullName: '', profileImage: null })
    expect(book.author.user._id).toBe(users.admin)
    expect(book.workspace).toBe(null)
    await admin.put(at('books', '/mine'), { user: 'nobody-any-more', workspace: 'w' })
    expect((await list('$populate=user,workspace')).at(-1)).toMatchObject({ user: 'nobody-any-more', workspace: 'w' })
  })

  test('$populate follows dotted paths up to three relations deep', async () => {
    const { add, list, one } = await createBooksFixture()
    expect((await one('$populate=author.country')).author.country).toMatchObject({ identifier: 'at', name: 'Austria' })
    expect((await one('$populate=author.country')).author.metadata.country.name).toBe('Austria')
    await add('books', 'four', { sequel: 'two' })
    const four = (await list('$populate=sequel.sequel.author,sequel.author,author')).at(-1)
    expect(four.sequel.author.name).toBe('Bob')
    expect(four.sequel.sequel.author.name).toBe('Ann')
    expect(four.sequel.sequel.author.country).toBe('at')
  })

  test('$populate follows a relation of an entity to itself', async () => {
    const { admin, at, one } = await createBooksFixture()
    expect((await admin.put(at('books', '/one'), { sequel: 'one' })).status).toBe(200)
    const book = await one('$populate=sequel.sequel.sequel')
    expect(book.sequel.sequel.sequel).toMatchObject({ identifier: 'one', sequel: 'one' })
  })

  test('POST and PUT answer with populated relations, and an invalid $populate gets 400 before anything is created', async () => {
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

  test('a populated list has the same pages and total count as a plain list', async () => {
    const { user, at } = await createBooksFixture()
    const first = await user.get(at('books', '?$populate=author&$limit=2&$sort=created&$count=true'))
    expect([identifiers(first.body), first.headers.get('x-total-count')]).toEqual([['one', 'two'], '3'])
    const next = await user.get(nextPagePath(first.headers)!)
    expect(identifiers(next.body)).toEqual(['three'])
    expect((await user.get(at('books', '?$populate=true&$limit=0'))).body).toEqual([])
  })

  test('a populated answer has no ETag, because it changes with its related entities', async () => {
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

describe('an invalid $populate', () => {
  test('an unknown relation in $populate gets 400 INVALID_INPUT with its name', async () => {
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

  test('a $populate path of four relations gets 400 INVALID_INPUT', async () => {
    const { user, at } = await createBooksFixture()
    const answer = await user.get(at('books', '?$populate=sequel.sequel.sequel.sequel'))
    expect([...statusAndCode(answer), answer.body.message]).toEqual([
      400,
      'INVALID_INPUT',
      '"sequel.sequel.sequel.sequel" is nested more than 3 relations deep.',
    ])
  })

  test('a hidden relation gets the same error as an unknown one, and is left out of $populate=true', async () => {
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

  test('$populate=true gets 400 INVALID_INPUT for 31 relations, while a single one can be populated', async () => {
    const fields = Array.from({ length: 31 }, (_, n) => ({ key: `r${n}`, type: 'relation', target: 'countries' }))
    const { user, at, add } = await createBlueprintsFixture(countries, { key: 'many', fields })
    await add('countries', 'at')
    await add('many', 'one', { r0: 'at', r30: 'at' })
    expect(statusAndCode(await user.get(at('many', '?$populate=true')))).toEqual([400, 'INVALID_INPUT'])
    expect((await user.get(at('many', '/one?$populate=r30'))).body.r30.identifier).toBe('at')
  })
})

describe('access to related entities', () => {
  test('a populated entity has no fields that the caller may not read', async () => {
    const { one, admin } = await createBooksFixture()
    const { author } = await one('$populate=author')
    expect([author.salary, author.metadata.salary]).toEqual([undefined, undefined])
    expect((await one('$populate=author', admin)).author.salary).toBe(9)
  })

  test('a relation to an entity or blueprint that the caller may not read stays an identifier', async () => {
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
    const { add, user, other, admin, anonymous, at } = own
    await add('notes', 'mine', { text: 'my secret' }, user)
    await add('notes', 'theirs', { text: 'their secret' }, other)
    await add('vaults', 'gold', { of: 'mine' })
    await add('things', 'thing', { notes: ['mine', 'theirs'], vault: 'gold' })
    const read = async (client = user, query = '$populate=notes,vault.of') =>
      (await client.get(at('things', `/thing?${query}`))).body as Entity & { notes: (string | Entity)[]; vault: Entity }
    const mine = await read()
    expect(mine.notes.map((note) => (typeof note === 'string' ? note : note.text))).toEqual(['my secret', 'theirs'])
    expect(mine.vault as unknown).toBe('gold')
    expect((await read(other)).notes).toMatchObject(['mine', { text: 'their secret' }])
    expect(await read(anonymous)).toMatchObject({ notes: ['mine', 'theirs'], vault: 'gold' })
    expect(await read(anonymous, '$populate=true')).toMatchObject({ notes: ['mine', 'theirs'], vault: 'gold' })
    expect((await read(admin)).vault.of).toMatchObject({ text: 'my secret' })
    expect((await read(admin, '$populate=notes,vault.of&bypassAdmin=true')).notes).toEqual(['mine', 'theirs'])
  })

  test('a relation to a deleted blueprint stays an identifier', async () => {
    const { admin, list } = await createBooksFixture()
    expect((await admin.delete('/blueprints/authors?force=true')).status).toBe(200)
    expect((await list('$populate=author.country,editors'))[0]).toMatchObject({
      author: 'ann',
      editors: ['bob', 'ann'],
    })
    expect((await list('$populate=true'))[0]).toMatchObject({ author: 'ann', metadata: { author: 'ann' } })
  })

  test('an anonymous caller gets 401 before $populate is validated', async () => {
    const { anonymous, at } = await createBooksFixture()
    expect(statusAndCode(await anonymous.get(at('books', '?$populate=nothing')))).toEqual([401, 'UNAUTHENTICATED'])
  })
})

describe('$populate of large lists', () => {
  test('a list of 1,000 entities is populated by one statement for each relation', async () => {
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
    const related = (statements: string[]) =>
      statements.filter((sql) => sql.includes('octet_length(') || sql.includes('from "users"'))
    // Some of them may be in the cache.
    expect(related(many).length).toBeWithin(3, 6)
    // The other statements are the list's own, which reads 100 rows at a time. Either request may have to reload what is
    // cached for some seconds, such as a blueprint.
    const countReads = (statements: string[]) => statements.filter((sql) => / entities e\b/.test(sql)).length
    const plain = await recordStatements(origin, () => user.get(at('books', '?$limit=1000&$sort=created')))
    expect(countReads(many)).toBeLessThanOrEqual(countReads(plain) + 4)
    expect(countReads(few)).toBeLessThanOrEqual(countReads(many))
  })

  test('a page of small rows with large related entities ends early, and its next link continues without gaps', async () => {
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

  test('related entities beyond the size limit of an answer stay identifiers', async () => {
    const { add, addMany, user, at } = await createBlueprintsFixture(
      { key: 'blobs', fields: [{ key: 'text', type: 'text' }] },
      { key: 'rows', fields: [{ key: 'blobs', type: 'relation', target: 'blobs', multi: true }] },
    )
    await addMany('blobs', 30, (n) => ({ text: `${n}`.padEnd(900_000, 'x') }))
    const blobs = Array.from({ length: 300 }, (_, n) => `blobs${n % 30}`)
    await add('rows', 'one', { blobs })
    for (const [path, rowOf] of [
      ['/one?$populate=true', (body: Entity) => body],
      ['?$populate=true', (body: Entity[]) => body[0]!],
    ] as const) {
      const { body } = await user.get(at('rows', path))
      expect(JSON.stringify(body).length).toBeLessThan(18 << 20)
      const shown = rowOf(body as never).blobs as (string | Entity)[]
      expect(shown.map((one) => (typeof one === 'string' ? one : one.identifier))).toEqual(blobs)
      expect(shown.filter((one) => typeof one !== 'string').length).toBeGreaterThan(3)
    }
  })
})
