import { describe, expect, test } from 'bun:test'
import { handleRequest } from '../../../src/gateway'
import { statusAndCode } from '../../test-tenant'
import { createBlueprintsFixture, identifiers } from '../fixtures'
import { createImportFixture, exportText, importBody, oddTexts, toNdjson } from './import-fixtures'

const splitLines = (text: string) => text.split('\n').filter(Boolean)
const parseLines = (text: string) => splitLines(text).map((line) => JSON.parse(line))

describe('exports', () => {
  test('an export contains all matching entities, the oldest first, as a list shows them', async () => {
    const own = await createImportFixture()
    const user = own.as('user')
    const many = Array.from({ length: 1_203 }, (_, n) => ({ identifier: `i${n}`, stock: n, tags: [`t${n % 3}`] }))
    expect((await importBody(own)(toNdjson(many))).body).toEqual({ imported: 1_203, failed: 0, errors: [] })
    const { status, headers, body } = await user.get(`${own.path}/export`)
    expect([status, headers.get('content-type')]).toEqual([200, 'application/x-ndjson'])
    expect(headers.get('content-disposition')).toBe('attachment; filename="things.ndjson"')
    const entities = parseLines(body)
    expect(identifiers(entities)).toEqual(many.map(({ identifier }) => identifier))
    expect(entities[7]).toEqual((await user.get(`${own.path}/i7`)).body)
    expect(parseLines(await exportText(user, own.path))[7]).toEqual((await user.get(`${own.path}/i7?$flat=false`)).body)
    const filtered = parseLines(await exportText(user, own.path, 'stock[$gte]=600&tags=t1&$select=stock'))
    expect(filtered.map(({ metadata }) => metadata)).toEqual(
      many.filter(({ stock, tags }) => stock >= 600 && tags[0] === 't1').map(({ stock }) => ({ stock })),
    )
  })

  test('an export with a filter value that no database can store gets 400', async () => {
    const own = await createImportFixture()
    for (const query of ['_id=%00', 'user[$in]=a,%00', 'workspace[$ne]=%00', 'title[$like]=%00%25', '$q=%00'])
      expect((await own.as('user').get(`${own.path}/export?${query}`)).status, query).toBe(400)
  })

  test('an export finds the same entities as a list for every filter', async () => {
    const own = await createImportFixture()
    const user = own.as('user')
    const texts = ['a', 'b', '\uffff', '😀', 'ä', '']
    const many = Array.from({ length: 60 }, (_, n) => ({
      identifier: `i${n}`,
      ...(n % 7 && { tags: texts.slice(n % 6, (n % 6) + 2), scores: [n, n % 5] }),
      ...(n % 5 && { data: { size: n % 4, names: texts.slice(0, n % 3), deep: { on: n % 2 === 0 } } }),
      title: texts[n % 6],
    }))
    await importBody(own)(toNdjson(many))
    for (const query of [
      'tags[$gt]=a',
      'tags[$lte]=b&tags[$gte]=b',
      'tags[$gt]=\uffff',
      'tags[$lt]=😀',
      'tags[$exists]=false',
      'tags[$exists]=true',
      'tags[$ne]=b',
      'scores[$gt]=3&scores[$lt]=20',
      'data.size[$gte]=2',
      'data.size[$lt]=b',
      'data.names[$exists]=true',
      'data.deep.on=true',
      'data.deep.on[$exists]=false',
      'title[$in]=a,b',
      'title[$exists]=true',
      'identifier[$gt]=i5',
      `created[$lte]=2999-01-01`,
    ]) {
      const listed = identifiers((await user.get(`${own.path}?$sort=created&$limit=1000&${query}`)).body)
      expect(identifiers(parseLines(await exportText(user, own.path, query))), query).toEqual(listed)
    }
  })

  test('a CSV export has a header line, quotes by RFC 4180, and escapes spreadsheet formulas', async () => {
    const own = await createImportFixture()
    const user = own.as('user')
    const entity = {
      identifier: 'a',
      title: '=1+1',
      notes: 'a "b",\r\nc',
      price: -1.5,
      cost: '-2.50',
      tags: ['-x', '=y'],
    }
    await user.post(own.path, { ...entity, data: { a: [1] }, active: false, mail: '+a@b.de' })
    const { headers, body } = await user.get(`${own.path}/export?format=csv`)
    expect(headers.get('content-type')).toStartWith('text/csv')
    const { _id, created } = (await user.get(`${own.path}/a`)).body
    expect(body).toBe(
      '_id,identifier,created,updated,user,workspace,title,notes,price,stock,cost,active,day,moment,clock,data,picture,' +
        'mail,link,parent,tags,scores,code\r\n' +
        `${_id},a,${created},${created},${own.users.user},,'=1+1,"a ""b"",\r\nc",-1.5,,-2.50,false,,,,"{""a"":[1]}",,` +
        `'+a@b.de,,,"[""-x"",""=y""]",,\r\n`,
    )
    expect((await user.get(`${own.path}/export?format=csv&$select=price`)).body).toBe(
      `_id,identifier,price\r\n${_id},a,-1.5\r\n`,
    )
    for (const cell of oddTexts.filter((text) => /^[=+\-@＝]/.test(text))) {
      await user.put(`${own.path}/a`, { title: cell })
      const { body } = await user.get(`${own.path}/export?format=csv&$select=title`)
      expect(body.split('\r\n')[1]).toMatch(/^[^,]+,a,"?'/)
    }
  })

  test('an export contains only entities and fields that its caller may read', async () => {
    const own = await createImportFixture(
      [{ key: 'secret', type: 'string', readRoles: ['admin'] }],
      [
        { operation: 'read', scope: 'user', roleBased: ['user'] },
        { operation: 'create', scope: 'user', roleBased: ['user'] },
      ],
    )
    const [user, admin] = [own.as('user'), own.as('admin')]
    await user.post(own.path, { identifier: 'mine', title: 'x' })
    await admin.post(own.path, { identifier: 'hers', title: 'y', secret: 's' })
    await admin.post(own.path, { identifier: 'given', title: 'z', secret: 's', user: own.users.user })
    expect(identifiers(parseLines(await exportText(user, own.path)))).toEqual(['mine', 'given'])
    expect(identifiers(parseLines(await exportText(admin, own.path)))).toEqual(['mine', 'hers', 'given'])
    expect(identifiers(parseLines(await exportText(admin, own.path, 'bypassAdmin=true')))).toEqual(['hers'])
    for (const format of ['csv', 'ndjson']) {
      const { body } = await user.get(`${own.path}/export?format=${format}`)
      expect(body).not.toContain('secret')
      expect((await admin.get(`${own.path}/export?format=${format}`)).body).toContain('secret')
    }
    expect(statusAndCode(await user.get(`${own.path}/export?secret=s`))).toEqual([400, 'INVALID_INPUT'])
    expect(statusAndCode(await own.anonymous.get(`${own.path}/export`))).toEqual([401, 'UNAUTHENTICATED'])
  })

  test('an export of nothing is empty, and invalid options get 400 INVALID_INPUT', async () => {
    const own = await createImportFixture()
    const user = own.as('user')
    expect(await exportText(user, own.path)).toBe('')
    expect(splitLines((await user.get(`${own.path}/export?format=csv`)).body).length).toBe(1)
    for (const query of [
      'format=xml',
      '$sort=title',
      '$limit=5',
      '$skip=1',
      '$page=2',
      '$count=true',
      'nothing=1',
      '$x=1',
    ])
      expect(statusAndCode(await user.get(`${own.path}/export?${query}`)), query).toEqual([400, 'INVALID_INPUT'])
    expect(statusAndCode(await user.get('/blueprints/none/entities/export'))).toEqual([404, 'BLUEPRINT_NOT_FOUND'])
  })

  test('an export is flat by default, wrapped with $flat=false, and flat for Accept-Version: v1', async () => {
    const own = await createImportFixture()
    const user = own.as('user')
    for (const title of ['Emma', 'Persuasion']) await user.post(own.path, { title })
    const shapeOf = async (query: string, more: Record<string, string> = {}) => {
      const { headers, body } = await user.get(`${own.path}/export?${query}`, more)
      return ['title' in parseLines(body)[0], headers.get('deprecation'), headers.get('link')]
    }
    expect(await shapeOf('')).toEqual([true, null, null])
    expect(await shapeOf('$flat=false')).toEqual([false, 'true', '</openapi>; rel="deprecation"'])
    expect(await shapeOf('$flat=false', { 'accept-version': 'v1' })).toEqual([true, null, null])
    expect(await shapeOf('format=undefined&$sort=undefined&$limit=&title=undefined')).toEqual([true, null, null])
  })

  test('an export reads from the database only as far as its client has read', async () => {
    const own = await createImportFixture()
    const big = 'x'.repeat(200_000)
    await importBody(own)(toNdjson(Array.from({ length: 40 }, (_, n) => ({ identifier: `i${n}`, notes: big }))))
    let reads = 0
    const { db } = own.tenant
    const watched = own.tenant as { db: typeof db }
    const { query: originalQuery } = db
    watched.db.query = (sql, params) => {
      if (sql.includes('e.shown from')) reads++
      return originalQuery(sql, params)
    }
    try {
      const url = `${own.origin}/api${own.path}/export`
      const response = await handleRequest(
        new Request(url, { headers: { host: `${own.id}.test`, 'x-api-key': own.tokens.user } }),
      )
      const reader = response.body!.getReader()
      await reader.read()
      await Bun.sleep(50)
      expect(reads).toBeLessThan(3)
      await reader.cancel()
      await Bun.sleep(20)
      expect(reads).toBeLessThan(4)
    } finally {
      db.query = originalQuery
    }
  })
})

test('an export with $populate or $outerPopulate contains the same entities as a list', async () => {
  const own = await createBlueprintsFixture(
    {
      key: 'authors',
      fields: [
        { key: 'name', type: 'string' },
        { key: 'born', type: 'date', readRoles: ['admin'] },
      ],
    },
    { key: 'secrets', permissions: [] },
    {
      key: 'books',
      fields: [
        { key: 'author', type: 'relation', target: 'authors' },
        { key: 'secret', type: 'relation', target: 'secrets' },
        { key: 'text', type: 'text' },
      ],
    },
  )
  const { user, admin, add, at } = own
  for (const name of ['ann', 'bob']) await add('authors', name, { name, born: '1900-01-01' })
  await add('secrets', 's')
  for (let n = 0; n < 30; n++)
    await add('books', `b${n}`, { author: n % 2 ? 'ann' : 'bob', secret: 's', text: `${n}`.repeat(10_000) })
  for (const [key, query] of [
    ['books', '$populate=true'],
    ['books', '$populate=author,secret&$flat=false&$select=author'],
    ['authors', '$outerPopulate=books:books:tenant&$populate=user'],
  ] as const)
    for (const client of [user, admin]) {
      const { body: list } = await client.get(at(key, `?${query}&$sort=created`))
      const { body } = await client.get(at(key, `/export?${query}`))
      expect(parseLines(body)).toEqual(list)
    }
  expect((await user.get(at('books', '/export?$populate=true'))).body).not.toContain('1900-01-01')
  expect(statusAndCode(await user.get(at('books', '/export?$populate=nothing')))).toEqual([400, 'INVALID_INPUT'])
})
