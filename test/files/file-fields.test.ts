import { beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { createTestTenant, fullAccessRules, statusAndCode } from '../test-tenant'
import { fileClient, PNG } from './fixtures'

setDefaultTimeout(60_000)

let tenant: Awaited<ReturnType<typeof createTestTenant>>
let user: ReturnType<typeof fileClient>
let other: ReturnType<typeof fileClient>
beforeAll(async () => {
  tenant = await createTestTenant()
  user = fileClient(tenant, tenant.tokens.user)
  other = fileClient(tenant, tenant.tokens.other)
  const { status } = await tenant.as('admin').post('/blueprints', {
    ...{ key: 'pages', name: 'Pages' },
    fields: [
      { key: 'title', type: 'string' },
      { key: 'cover', type: 'file', accept: ['image/*'], maxSize: '1K', thumbs: ['30x20'] },
      { key: 'papers', type: 'file', multi: true, accept: ['text/plain', 'application/pdf'] },
      { key: 'secret', type: 'file', readRoles: ['boss'] },
      { key: 'plain', type: 'file', indexed: false },
      { key: 'echo', type: 'file' },
    ],
    computed: { echo: 'plain' },
    permissions: fullAccessRules('user', '*'),
  })
  expect(status).toBe(201)
})
const pages = '/blueprints/pages/entities'
const path = (url: string) => url.replace('/api', '')
const messages = ({ body }: { body: { details: { path: string; message: string }[] } }) =>
  body.details.map(({ path, message }) => [path, message])

describe('values', () => {
  test('a file field takes the id or the URL of a file in any form, or a foreign URL, and shows the URL', async () => {
    const { body: file } = await user.upload(PNG, 'dot & x.png')
    for (const cover of [file._id, file.url, `/api/files/${file._id}`, `/api/files/${file._id}/other.png?download`]) {
      const { status, body } = await tenant.as('user').post(pages, { cover })
      expect([status, body.cover]).toEqual([201, `/api/files/${file._id}/dot%20%26%20x.png`])
    }
    const foreign = 'https://example.com/a.png'
    expect((await tenant.as('user').post(pages, { cover: foreign, papers: ['/static/a.pdf'] })).body).toMatchObject({
      ...{ cover: foreign, papers: ['/static/a.pdf'] },
    })
    const wrapped = await tenant.as('user').post(pages, { metadata: { cover: file._id } })
    expect(wrapped.body.cover).toBe(file.url)
  })

  test('a file of another type, and one that is too large, are refused by the path of their value', async () => {
    const { body: text } = await user.upload('text', 'a.txt')
    const { body: large } = await user.upload(Buffer.concat([PNG, Buffer.alloc(1_000)]), 'large.png')
    const { body: image } = await user.upload(PNG, 'dot.png')
    const refused = await tenant.as('user').post(pages, { cover: text._id, papers: [text._id, image._id] })
    expect(statusAndCode(refused)).toEqual([400, 'INVALID_INPUT'])
    expect(messages(refused)).toEqual([
      ['/cover', 'cover takes image/*; "a.txt" is text/plain.'],
      ['/papers/1', 'papers takes text/plain, application/pdf; "dot.png" is image/png.'],
    ])
    expect(messages(await tenant.as('user').post(pages, { cover: large.url }))).toEqual([
      ['/cover', 'cover takes files of up to 1 KiB; "large.png" is larger.'],
    ])
  })

  test('an unknown file, one of somebody else and one of another tenant are refused alike, however they are named', async () => {
    const { body: theirs } = await other.upload(PNG)
    const stranger = await createTestTenant()
    const { body: foreign } = await fileClient(stranger, stranger.tokens.user).upload(PNG)
    const ids = [theirs._id, foreign._id, Bun.randomUUIDv7(), 'nonsense', '..%2f..%2fregistry.db']
    for (const id of ids) {
      const { body: created } = await tenant.as('user').post(pages, { title: 'x' })
      for (const send of [
        (cover: string) => tenant.as('user').post(pages, { cover }),
        (cover: string) => tenant.as('user').put(`${pages}/${created._id}`, { cover }),
        (cover: string) =>
          tenant.as('user').post(`${pages}/batch`, { operations: [{ op: 'create', data: { cover } }] }),
        (cover: string) =>
          tenant.as('user').post(`${pages}/batch`, {
            operations: [
              { op: 'create', data: { title: 'a' } },
              { op: 'create', data: { metadata: { cover } } },
            ],
          }),
      ]) {
        const response = await send(`/api/files/${id}/a.png`)
        expect(statusAndCode(response)).toEqual([400, 'INVALID_INPUT'])
        expect(JSON.stringify(response.body)).toContain(`There is no file \\"${id}\\".`)
      }
    }
    expect(messages(await tenant.as('user').post(pages, { cover: theirs._id }))).toEqual([
      ['/cover', `There is no file "${theirs._id}".`],
    ])
    expect((await user.send('GET', path(theirs.url))).status).toBe(404)
  })

  test('an import takes files of its caller, and reports those of others by their line', async () => {
    const [{ body: own }, { body: theirs }] = [await user.upload(PNG, 'own.png'), await other.upload(PNG)]
    const lines = [{ cover: own._id }, { cover: theirs._id }, { cover: 'https://example.com/b.png' }]
    const body = lines.map((one) => JSON.stringify(one)).join('\n')
    for (const dryRun of ['true', 'false']) {
      const address = `${pages}/import?dryRun=${dryRun}`
      const response = await user.send('POST', address, { 'content-type': 'application/x-ndjson' }, body)
      const report = (await response.json()) as { imported: number; errors: { line: number; message: string }[] }
      expect(report).toMatchObject({ imported: 2, failed: 1, errors: [{ line: 2 }] })
      expect(report.errors[0]!.message).toContain(theirs._id)
    }
    const { body: found } = await tenant.as('user').get(`${pages}?cover=${encodeURIComponent(own.url)}`)
    expect(found).toHaveLength(1)
  })

  test('a list sorts by a file field and filters by its beginning', async () => {
    const island = await createTestTenant()
    await island
      .as('admin')
      .post('/blueprints', {
        ...{ key: 'pages', name: 'Pages', permissions: fullAccessRules('user', '*') },
        fields: [{ key: 'cover', type: 'file' }],
      })
    const client = fileClient(island, island.tokens.user)
    const urls: string[] = []
    for (const name of ['b.png', 'a.png']) {
      const { body } = await client.upload(PNG, name)
      urls.push(body.url)
      await island.as('user').post(pages, { cover: body._id })
    }
    await island.as('user').post(pages, { cover: 'https://example.com/c.png' })
    const covers = async (query: string) =>
      (await island.as('user').get(`${pages}?${query}`)).body.map(({ cover }: { cover: string }) => cover)
    expect(await covers('$sort=cover')).toEqual([...urls.toSorted(), 'https://example.com/c.png'])
    expect((await covers('cover[$like]=/api/files/%25')).toSorted()).toEqual(urls.toSorted())
    expect(await covers(`cover=${encodeURIComponent(urls[1]!)}`)).toEqual([urls[1]!])
  })

  test('a field without index and a computed one take no file of this server as such', async () => {
    const { body: theirs } = await other.upload(PNG)
    const { status, body } = await tenant.as('user').post(pages, { plain: theirs.url })
    expect([status, body.plain, body.echo]).toEqual([201, theirs.url, theirs.url])
    expect((await user.send('GET', path(theirs.url))).status).toBe(404)
  })

  test('an entity is sent back as it was read, although its file was removed meanwhile', async () => {
    const { body: file } = await user.upload(PNG)
    const { body: created } = await tenant.as('user').post(pages, { cover: file._id, title: 'a' })
    expect((await tenant.as('user').delete(`/files/${file._id}?force=true`)).status).toBe(200)
    const changed = await tenant.as('user').put(`${pages}/${created._id}`, { ...created, title: 'b' })
    expect([changed.status, changed.body.cover]).toEqual([200, file.url])
    expect(statusAndCode(await tenant.as('user').post(pages, { cover: file._id }))).toEqual([400, 'INVALID_INPUT'])
  })
})

describe('definitions', () => {
  test('the generated types say what a file field takes', async () => {
    const { body } = await tenant.as('admin').get('/blueprints/types.d.ts')
    expect(body).toContain(
      '/** The URL of a file. To write, also the `_id` of one. Files of this server: image/*, up to 1K. Thumbnails also of 30x20. */',
    )
    expect(body).toContain('cover?: string')
  })

  test('accept, maxSize and thumbs are refused where they make no sense, and a default cannot be a file of this server', async () => {
    const create = (field: object) =>
      tenant.as('admin').post('/blueprints', { key: 'bad', name: 'Bad', fields: [{ key: 'a', ...field }] })
    const paths = async (field: object) => (await create(field)).body.details.map(({ path }: { path: string }) => path)
    expect(await paths({ type: 'string', accept: ['image/*'], maxSize: 1 })).toEqual([
      '/fields/0/accept',
      '/fields/0/maxSize',
    ])
    expect(await paths({ type: 'string', thumbs: ['10x10'] })).toEqual(['/fields/0/thumbs'])
    expect(await paths({ type: 'file', indexed: false, thumbs: ['10x10'] })).toEqual(['/fields/0/thumbs'])
    expect(await paths({ type: 'file', thumbs: ['2001x10'] })).toEqual(['/fields/0/thumbs/0'])
    expect(await paths({ type: 'file', thumbs: ['10x10', '10x10'] })).toEqual(['/fields/0/thumbs'])
    expect(await paths({ type: 'file', accept: ['image'] })).toEqual(['/fields/0/accept/0'])
    expect(await paths({ type: 'file', maxSize: '10 MB' })).toEqual(['/fields/0/maxSize'])
    const { body: file } = await user.upload(PNG)
    expect(await paths({ type: 'file', default: file.url })).toEqual(['/fields/0/default'])
    expect(await paths({ type: 'file', multi: true, default: [file.url] })).toEqual(['/fields/0/default'])
  })

  test('a field that becomes a file field is refused while its values name files, so that nobody gets access by it', async () => {
    const { body: theirs } = await other.upload('secret')
    const admin = tenant.as('admin')
    const fields = [{ key: 'text', type: 'string' }]
    await admin.post('/blueprints', { key: 'notes', name: 'Notes', fields, permissions: fullAccessRules('user', '*') })
    const { body: note } = await tenant.as('user').post('/blueprints/notes/entities', { text: theirs.url })
    const toFile = { fields: [{ key: 'text', type: 'file' }] }
    expect(statusAndCode(await admin.put('/blueprints/notes', toFile))).toEqual([409, 'VALUES_DO_NOT_FIT'])
    await tenant.as('user').put(`/blueprints/notes/entities/${note._id}`, { text: 'https://example.com/a' })
    expect((await admin.put('/blueprints/notes', toFile)).status).toBe(200)
    const { body: own } = await user.upload(PNG)
    await tenant.as('user').put(`/blueprints/notes/entities/${note._id}`, { text: own._id })
    expect(statusAndCode(await tenant.as('user').delete(`/files/${own._id}`))).toEqual([409, 'FILE_IN_USE'])
    expect((await user.send('GET', path(theirs.url))).status).toBe(404)
  })
})
