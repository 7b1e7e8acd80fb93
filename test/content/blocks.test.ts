import { describe, expect, test } from 'bun:test'
import { nextPagePath } from '../entities/fixtures'
import { createTestTenant, statusAndCode } from '../test-tenant'

const heroBlock = (more: object = {}) => ({
  name: 'hero',
  description: 'On top of the first page',
  content: '<h1 onclick="steal()">Hello</h1><script>steal()</script>',
  contentType: 'html',
  ...more,
})
const SANITIZED_CONTENT = '<h1>Hello</h1>'

const joinNames = ({ body }: { body: { name: string }[] }) => body.map(({ name }) => name).join(' ')
const setContentEditors = async (
  testTenant: Awaited<ReturnType<typeof createTestTenant>>,
  ...contentEditors: string[]
) =>
  expect((await testTenant.as('admin').put('/configurations/app-configuration', { contentEditors })).status).toBe(200)

describe('CRUD of blocks', () => {
  test('a signed-in user creates, reads, updates and deletes a block', async () => {
    const user = (await createTestTenant()).as('user')
    const created = await user.post('/blocks', { name: 'hero', content: 'Hello & <welcome>' })
    expect([created.status, created.body]).toEqual([
      201,
      {
        _id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/),
        name: 'hero',
        description: '',
        content: 'Hello & <welcome>',
        contentType: 'content',
        created: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        updated: created.body.created,
      },
    ])
    const path = `/blocks/${created.body._id}`
    expect((await user.get(path)).body).toEqual(created.body)
    expect((await user.get('/blocks')).body).toEqual([created.body])

    const changed = await user.put(path, { description: 'On top' })
    expect([changed.status, changed.body]).toEqual([
      200,
      { ...created.body, description: 'On top', updated: changed.body.updated },
    ])
    const patched = await user.patch(path, { name: 'top', content: '' })
    expect(patched.body).toMatchObject({ name: 'top', description: 'On top', content: '' })
    expect((await user.get(path)).body).toEqual(patched.body)

    expect((await user.delete(path)).body).toEqual({ success: true })
    for (const answer of [await user.get(path), await user.put(path, {}), await user.delete(path)])
      expect(statusAndCode(answer)).toEqual([404, 'BLOCK_NOT_FOUND'])
    expect((await user.get('/blocks')).body).toEqual([])
    for (const id of ['x', '%00', 'é', 'a'.repeat(500), '%E0%A4%A'])
      expect(statusAndCode(await user.get(`/blocks/${id}`))).toEqual([404, 'BLOCK_NOT_FOUND'])
  })

  test('PUT and DELETE of a block with an outdated If-Match answer 412 VERSION_MISMATCH', async () => {
    const user = (await createTestTenant()).as('user')
    const created = await user.post('/blocks', heroBlock())
    const path = `/blocks/${created.body._id}`
    const first = created.headers.get('etag')!
    expect((await user.get(path)).headers.get('etag')).toBe(first)
    const second = (await user.put(path, { name: 'b' }, { 'if-match': first })).headers.get('etag')!
    expect(second).not.toBe(first)
    const stale = { 'if-match': first }
    expect(statusAndCode(await user.put(path, { name: 'c' }, stale))).toEqual([412, 'VERSION_MISMATCH'])
    expect(statusAndCode(await user.delete(path, stale))).toEqual([412, 'VERSION_MISMATCH'])
    const racing = await Promise.all(
      ['x', 'y', 'z'].map((content) => user.put(path, { content }, { 'if-match': second })),
    )
    expect(racing.map(({ status }) => status).sort()).toEqual([200, 412, 412])
    const { body } = racing.find(({ status }) => status === 200)!
    expect((await user.get(path)).body).toEqual(body)
  })

  test('concurrent changes of different properties of a block are all kept', async () => {
    const user = (await createTestTenant()).as('user')
    const { body } = await user.post('/blocks', heroBlock())
    const changes = [{ name: 'new' }, { description: 'other' }, { content: '<p onclick="x">New</p>' }]
    for (const { status } of await Promise.all(changes.map((change) => user.put(`/blocks/${body._id}`, change))))
      expect(status).toBe(200)
    expect((await user.get(`/blocks/${body._id}?raw=true`)).body).toMatchObject(Object.assign({}, ...changes))
  })

  test('every block route answers 401 to anonymous callers', async () => {
    const { as, anonymous } = await createTestTenant()
    const { body } = await as('user').post('/blocks', heroBlock())
    const path = `/blocks/${body._id}`
    for (const answer of [
      await anonymous.get('/blocks'),
      await anonymous.get(path),
      await anonymous.post('/blocks', heroBlock()),
      await anonymous.put(path, { name: 'x' }),
      await anonymous.patch(path, { name: 'x' }),
      await anonymous.delete(path),
    ])
      expect(statusAndCode(answer)).toEqual([401, 'UNAUTHENTICATED'])
    expect((await as('other').get(path)).body).toEqual(body)
  })

  test('blocks are written only by admins and by the roles in contentEditors, else 403 FORBIDDEN', async () => {
    const testTenant = await createTestTenant()
    const { as } = testTenant
    const { body } = await as('user').post('/blocks', heroBlock())
    const path = `/blocks/${body._id}`
    await setContentEditors(testTenant, 'plugin', 'writer')
    for (const answer of [
      await as('user').post('/blocks', heroBlock()),
      await as('user').put(path, { name: 'x' }),
      await as('user').patch(path, { name: 'x' }),
      await as('user').delete(path),
      await as('user').delete('/blocks/none'),
    ])
      expect(statusAndCode(answer)).toEqual([403, 'FORBIDDEN'])
    expect((await as('user').get(path)).body).toEqual(body)
    expect(joinNames(await as('user').get('/blocks'))).toBe('hero')
    expect((await as('editor').put(path, { name: 'by a plugin' })).status).toBe(200)
    expect((await as('admin').put(path, { name: 'by an admin' })).status).toBe(200)
    await setContentEditors(testTenant, '*')
    expect((await as('user').put(path, { name: 'by a user' })).status).toBe(200)
    await setContentEditors(testTenant, 'writer')
    expect((await as('user').put(path, { name: 'x' })).status).toBe(403)
    await setContentEditors(testTenant)
    expect((await as('user').delete(path)).status).toBe(200)
  })

  test('blocks and contentEditors of one tenant do not affect another tenant', async () => {
    const [one, otherTenant] = [await createTestTenant(), await createTestTenant()]
    const { body } = await one.as('user').post('/blocks', heroBlock())
    const admin = otherTenant.as('admin')
    expect((await admin.get('/blocks')).body).toEqual([])
    for (const answer of [
      await admin.get(`/blocks/${body._id}`),
      await admin.put(`/blocks/${body._id}`, { name: 'x' }),
      await admin.delete(`/blocks/${body._id}`),
    ])
      expect(statusAndCode(answer)).toEqual([404, 'BLOCK_NOT_FOUND'])
    await setContentEditors(otherTenant, 'nobody')
    expect((await one.as('user').put(`/blocks/${body._id}`, { name: 'still mine' })).status).toBe(200)
  })

  test('rejects a block without a valid name and content with 400 INVALID_INPUT', async () => {
    const user = (await createTestTenant()).as('user')
    for (const wrong of [
      ...[{ name: undefined }, { name: '' }, { name: 5 }, { name: 'a\nb' }, { name: 'a'.repeat(201) }],
      ...[{ content: undefined }, { content: 5 }, { content: null }, { content: 'a'.repeat((256 << 10) + 1) }],
      ...[{ contentType: 'text/html' }, { contentType: null }, { description: 5 }, { content: 'a\0b' }],
    ])
      expect([wrong, statusAndCode(await user.post('/blocks', heroBlock(wrong)))]).toEqual([
        wrong,
        [400, 'INVALID_INPUT'],
      ])
    for (const body of [[], 'x', null, 5]) expect((await user.post('/blocks', body)).status).toBe(400)
    expect((await user.get('/blocks?count=true')).headers.get('x-total-count')).toBe('0')
    const { body } = await user.post('/blocks', heroBlock())
    expect(statusAndCode(await user.put(`/blocks/${body._id}`, { name: '' }))).toEqual([400, 'INVALID_INPUT'])
  })

  test('a block that is sent twice with the same idempotency-key is created once', async () => {
    const user = (await createTestTenant()).as('user')
    const send = () => user.post('/blocks', heroBlock(), { 'idempotency-key': 'hero-1' })
    const [first, second] = [await send(), await send()]
    expect(second.body).toEqual(first.body)
    expect((await user.get('/blocks')).body).toHaveLength(1)
  })
})

describe('HTML of blocks', () => {
  test('HTML is returned sanitized by default and as it was written with raw=true', async () => {
    const testTenant = await createTestTenant()
    const [user, otherUser] = [testTenant.as('user'), testTenant.as('other')]
    const { body } = await user.post('/blocks', heroBlock())
    expect(body).toMatchObject({ content: SANITIZED_CONTENT, contentType: 'html' })
    const path = `/blocks/${body._id}`
    for (const query of ['', '?raw=false', '?raw=0', '?raw=']) {
      expect((await otherUser.get(`${path}${query}`)).body.content).toBe(SANITIZED_CONTENT)
      expect((await otherUser.get(`/blocks${query}`)).body[0].content).toBe(SANITIZED_CONTENT)
    }
    for (const query of ['?raw=true', '?raw=1']) {
      expect((await otherUser.get(`${path}${query}`)).body.content).toBe(heroBlock().content)
      expect((await otherUser.get(`/blocks${query}`)).body[0].content).toBe(heroBlock().content)
    }
    expect(statusAndCode(await user.get(`${path}?raw=maybe`))).toEqual([400, 'INVALID_INPUT'])
    expect((await user.post('/blocks?raw=true', heroBlock())).body.content).toBe(heroBlock().content)
    expect((await user.put(`${path}?raw=true`, { name: 'x' })).body.content).toBe(heroBlock().content)
    expect((await user.put(path, { name: 'x' })).body.content).toBe(SANITIZED_CONTENT)
  })

  test('HTML is returned raw only to callers who may write blocks', async () => {
    const testTenant = await createTestTenant()
    await setContentEditors(testTenant, 'plugin')
    const { body } = await testTenant.as('editor').post('/blocks', heroBlock())
    for (const [name, content] of [
      ['user', SANITIZED_CONTENT],
      ['editor', heroBlock().content],
      ['admin', heroBlock().content],
    ] as const) {
      expect((await testTenant.as(name).get(`/blocks/${body._id}?raw=true`)).body.content).toBe(content)
      expect((await testTenant.as(name).get('/blocks?raw=true')).body[0].content).toBe(content)
    }
  })

  test('a block with sanitized HTML can be sent back as it was read, which keeps the raw HTML', async () => {
    const user = (await createTestTenant()).as('user')
    const { body } = await user.post('/blocks', heroBlock())
    const path = `/blocks/${body._id}`
    const sent = await user.put(path, { ...body, name: 'renamed', more: 1 })
    expect(sent.body).toEqual({ ...body, name: 'renamed', updated: sent.body.updated })
    expect((await user.get(`${path}?raw=true`)).body.content).toBe(heroBlock().content)
    // With raw=true the sanitized HTML replaces the raw one.
    await user.put(`${path}?raw=true`, { content: SANITIZED_CONTENT })
    expect((await user.get(`${path}?raw=true`)).body.content).toBe(SANITIZED_CONTENT)
  })

  test('a change of the contentType switches between sanitized HTML and unchanged text', async () => {
    const user = (await createTestTenant()).as('user')
    const { body } = await user.post('/blocks', heroBlock({ contentType: 'content' }))
    const path = `/blocks/${body._id}`
    expect(body.content).toBe(heroBlock().content)
    expect((await user.put(path, { contentType: 'html' })).body.content).toBe(SANITIZED_CONTENT)
    expect((await user.put(path, { contentType: 'content' })).body.content).toBe(heroBlock().content)
  })

  test('rejects HTML with elements nested more than 128 levels deep with 400 INVALID_INPUT', async () => {
    const user = (await createTestTenant()).as('user')
    const deep = { content: '<b>'.repeat(200) }
    const answer = await user.post('/blocks', heroBlock(deep))
    expect([...statusAndCode(answer), answer.body.details]).toEqual([
      400,
      'INVALID_INPUT',
      [{ path: '/content', message: 'Elements are nested more than 128 levels deep.' }],
    ])
    expect((await user.get('/blocks')).body).toEqual([])
    const { body } = await user.post('/blocks', heroBlock())
    expect(statusAndCode(await user.put(`/blocks/${body._id}`, deep))).toEqual([400, 'INVALID_INPUT'])
    // The content is valid as text.
    expect((await user.post('/blocks', heroBlock({ ...deep, contentType: 'content' }))).status).toBe(201)
  })

  test('HTML that was sanitized by older rules is returned and stored sanitized by the current ones', async () => {
    const { as, tenant } = await createTestTenant()
    const [fine, deep] = [
      (await as('user').post('/blocks', heroBlock())).body,
      (await as('user').post('/blocks', heroBlock({ name: 'deep' }))).body,
    ]
    await tenant.write(async (tx) => {
      await tx.query("update blocks set rules = 'old', shown = null")
      await tx.query('update blocks set content = ? where _id = ?', ['<b>'.repeat(200), deep._id])
    })
    const shown = (body: { name: string; content: string }[]) =>
      Object.fromEntries(body.map(({ name, content }) => [name, content]))
    expect(shown((await as('other').get('/blocks')).body)).toEqual({ hero: SANITIZED_CONTENT, deep: '' })
    expect((await as('other').get(`/blocks/${fine._id}`)).body).toEqual(fine)
    const old = () => tenant.db.query("select _id from blocks where rules = 'old'")
    while ((await old()).length) await Bun.sleep(5)
    expect((await as('other').get(`/blocks/${deep._id}`)).body.content).toBe('')
    expect((await as('other').get(`/blocks/${deep._id}?raw=true`)).body.content).toBe('<b>'.repeat(200))
  })
})

describe('a list of blocks', () => {
  async function createListFixture() {
    const user = (await createTestTenant()).as('user')
    for (const name of ['c', 'a', 'b', 'a']) await user.post('/blocks', { name, content: name })
    await user.post('/blocks', heroBlock())
    return (query: string) => user.get(`/blocks${query}`)
  }

  test('GET /blocks lists the newest first, or sorts and filters as requested', async () => {
    const get = await createListFixture()
    for (const [query, order] of [
      ['', 'hero a b a c'],
      ['?sort=created', 'c a b a hero'],
      ['?sort=name', 'a a b c hero'],
      ['?sort=-name&limit=2', 'hero c'],
      ['?name=a', 'a a'],
      ['?name=A', ''],
      ['?name=&contentType=', 'hero a b a c'],
      ['?name=undefined&contentType=undefined', 'hero a b a c'],
      ['?contentType=html', 'hero'],
      ['?contentType=content&name=b', 'b'],
      ['?limit=2&page=2', 'b a'],
    ])
      expect([query, joinNames(await get(query!))]).toEqual([query!, order!])
    for (const query of ['?sort=content', '?limit=-1', '?contentType=text'])
      expect(statusAndCode(await get(query))).toEqual([400, 'INVALID_INPUT'])
  })

  test('GET /blocks links to the next page and counts with count=true', async () => {
    const get = await createListFixture()
    const pages = [await get('?name=a&limit=1&count=true')]
    expect(pages[0]!.headers.get('x-total-count')).toBe('2')
    for (let next = nextPagePath(pages[0]!.headers); next; next = nextPagePath(pages.at(-1)!.headers))
      pages.push(await get(next.slice('/blocks'.length)))
    expect(pages.map(joinNames)).toEqual(['a', 'a'])
  })

  test('GET /blocks returns up to 1,000 blocks at once', async () => {
    const { as, tenant } = await createTestTenant()
    const { body } = await as('user').post('/blocks', heroBlock())
    await copyBlock(tenant, body._id, 1_000)
    const { body: all, headers } = await as('user').get('/blocks?limit=1000')
    expect([all.length, nextPagePath(headers)]).toEqual([1_000, '/blocks?limit=1000&page=2'])
    for (const { content } of all) expect(content).toBe(SANITIZED_CONTENT)
  })
})

test('rejects blocks beyond 10,000 per tenant or 16 MiB in total with 409 TOO_MANY_BLOCKS', async () => {
  const { as, tenant } = await createTestTenant()
  const user = as('user')
  const { body } = await user.post('/blocks', { name: 'a', content: 'a' })
  const full = [409, 'TOO_MANY_BLOCKS']
  const grow = (size: number) => tenant.write(async (tx) => void (await tx.query('update blocks set size = ?', [size])))
  await grow((16 << 20) - 1)
  expect(statusAndCode(await user.post('/blocks', { name: 'b', content: 'bb' }))).toEqual(full)
  expect((await user.post('/blocks', { name: 'b', content: 'b' })).status).toBe(201)
  // A change that makes a block smaller is allowed even beyond the limit.
  await grow((16 << 20) - 5)
  expect((await user.put(`/blocks/${body._id}`, { content: 'less' })).status).toBe(200)
  expect(statusAndCode(await user.put(`/blocks/${body._id}`, { content: 'more than less' }))).toEqual(full)
  expect((await user.get(`/blocks/${body._id}`)).body.content).toBe('less')
  await grow(1)
  await copyBlock(tenant, body._id, 9_998)
  expect(statusAndCode(await user.post('/blocks', { name: 'b', content: 'b' }))).toEqual(full)
  expect((await user.delete(`/blocks/${body._id}`)).status).toBe(200)
  expect((await user.post('/blocks', { name: 'b', content: 'b' })).status).toBe(201)
}, 60_000)

/** Inserts this many copies of a block. */
const copyBlock = ({ write }: Awaited<ReturnType<typeof createTestTenant>>['tenant'], id: string, times: number) =>
  write(async (tx) => {
    const columns = 'name, content_type, size, version, created, updated, rules, description, content, shown'
    const [row = []] = await tx.query(`select ${columns} from blocks where _id = ?`, [id])
    await tx.executeMany(
      `insert into blocks (_id, ${columns}) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      Array.from({ length: times }, (_, n) => [`copy-${n}`, ...row]),
    )
  })
