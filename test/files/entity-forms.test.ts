import { beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { config } from '../../src/config'
import { DAY_MS, moveClock, now } from '../../src/core/clock'
import { removeUnusedFiles } from '../../src/files/unused-files'
import { handleRequest } from '../../src/gateway'
import { setQuotas } from '../../src/limits/quotas'
import { createTestTenant, fullAccessRules, statusAndCode, type TestResponse } from '../test-tenant'
import { fileClient, listStored, PNG, sha256Of } from './fixtures'

setDefaultTimeout(60_000)

const fields = [
  { key: 'title', type: 'string', required: true, unique: true },
  { key: 'count', type: 'integer' },
  { key: 'size', type: 'number' },
  { key: 'open', type: 'boolean' },
  { key: 'place', type: 'object' },
  { key: 'tags', type: 'string', multi: true },
  { key: 'cover', type: 'file', accept: ['image/*'], maxSize: '1M' },
  { key: 'papers', type: 'file', multi: true },
]
const pages = '/blueprints/pages/entities'

async function createTenantWithPages() {
  const tenant = await createTestTenant()
  const permissions = [...fullAccessRules('user', '*'), { operation: 'create', guest: true }]
  const { status } = await tenant.as('admin').post('/blueprints', { key: 'pages', name: 'Pages', fields, permissions })
  expect(status).toBe(201)
  return tenant
}

let tenant: Awaited<ReturnType<typeof createTenantWithPages>>
let client: ReturnType<typeof fileClient>
beforeAll(async () => {
  tenant = await createTenantWithPages()
  client = fileClient(tenant, tenant.tokens.user)
})

type Part = [name: string, value: string | File]

async function sendForm(parts: Part[], { method = 'POST', path = pages, by = client } = {}): Promise<TestResponse> {
  const form = new FormData()
  for (const [name, value] of parts) form.append(name, value)
  const encoded = new Response(form)
  const type = { 'content-type': encoded.headers.get('content-type')! }
  const response = await by.send(method, path, type, new Uint8Array(await encoded.arrayBuffer()))
  return { status: response.status, headers: response.headers, body: await response.json() }
}

const dot = (name = 'dot.png') => new File([PNG], name, { type: 'text/html' })
const read = async (url: string) => {
  const response = await client.send('GET', url.replace('/api', ''))
  return sha256Of(new Uint8Array(await response.arrayBuffer()))
}

describe('forms of entities', () => {
  test('a form creates an entity with a part for each property, and its files belong to the writer', async () => {
    const { body: paper } = await client.upload('paper', 'paper.txt')
    const { status, body } = await sendForm([
      ['title', 'All'],
      ['count', '3'],
      ['open', 'true'],
      ['place', '{"city": "Ulm"}'],
      ['tags', 'a'],
      ['tags', '["b"]'],
      ['cover', dot('ö.png')],
      ['papers', new File(['one'], '1.txt')],
      ['papers', paper._id],
      ['papers', new File(['two'], '2.txt')],
      ['papers', 'https://example.com/3.txt'],
      ['identifier', 'whole'],
    ])
    expect([status, body.details]).toEqual([201, undefined])
    expect(body).toMatchObject({ title: 'All', count: 3, open: true, place: { city: 'Ulm' }, tags: ['a', '["b"]'] })
    expect([body.identifier, body.papers.length, body.papers[1], body.papers[3]]).toEqual([
      ...['whole', 4, paper.url, 'https://example.com/3.txt'],
    ])
    expect([await read(body.cover), await read(body.papers[0]), await read(body.papers[2])]).toEqual([
      ...[sha256Of(PNG), sha256Of('one'), sha256Of('two')],
    ])
    const [, , , id] = body.cover.split('/')
    const { body: file } = await tenant.as('user').get(`/files/${id}`)
    expect(file).toMatchObject({ name: 'ö.png', type: 'image/png', owner: tenant.users.user })
  })

  test('files of one field keep their order, also where looking at one takes longer than at the next', async () => {
    const names = Array.from({ length: 20 }, (_, number) => `${number}.${number % 2 ? 'txt' : 'jpg'}`)
    const papers = names.map((name): Part => {
      const content = name.endsWith('jpg') ? new Uint8Array([0xff, 0xd8, 0xff, 0xe0, ...Array(30_000).fill(0)]) : 'x'
      return ['papers', new File([content], name)]
    })
    const { body } = await sendForm([['title', 'In order'], ...papers])
    expect(body.papers.map((url: string) => url.split('/').at(-1))).toEqual(names)
  })

  test('a form changes an entity by PUT and PATCH, an empty part clears a property, and an empty file input too', async () => {
    const { body: created } = await sendForm([
      ['title', 'Change'],
      ['count', '1'],
      ['cover', dot()],
    ])
    const path = `${pages}/${created._id}`
    const put = await sendForm([['cover', dot('other.png')]], { method: 'PUT', path })
    expect([put.status, put.body.title]).toEqual([200, 'Change'])
    expect(put.body.cover).toEndWith('/other.png')
    const patched = await sendForm(
      [
        ['count', ''],
        ['cover', new File([], '')],
        ['papers', dot()],
      ],
      { method: 'PATCH', path },
    )
    expect([patched.status, patched.body.count, patched.body.cover]).toEqual([200, undefined, undefined])
    expect(patched.body.papers).toHaveLength(1)
  })

  test('a form that is sent again with its idempotency key creates one entity and one file', async () => {
    const island = await createTenantWithPages()
    const by = fileClient(island, island.tokens.user)
    const head = 'content-disposition: form-data; name='
    const body = `--x\r\n${head}"title"\r\n\r\nOnce\r\n--x\r\n${head}"papers"; filename="a.txt"\r\n\r\ntext\r\n--x--\r\n`
    const headers = { 'content-type': 'multipart/form-data; boundary=x', 'idempotency-key': crypto.randomUUID() }
    const ids: string[] = []
    for (let n = 0; n < 2; n++) {
      const response = await by.send('POST', pages, headers, body)
      expect(response.status).toBe(201)
      ids.push(((await response.json()) as { _id: string })._id)
    }
    expect(ids[0]).toBe(ids[1]!)
    expect((await island.as('user').get('/files')).body).toHaveLength(1)
  })

  test('files of a form with the part keep stay when no entity names them, others are removed', async () => {
    const island = await createTenantWithPages()
    const by = fileClient(island, island.tokens.user)
    const { body: kept } = await sendForm(
      [
        ['title', 'a'],
        ['cover', dot('kept.png')],
        ['keep', 'true'],
      ],
      { by },
    )
    const { body: left } = await sendForm(
      [
        ['title', 'b'],
        ['cover', dot('left.png')],
      ],
      { by },
    )
    for (const { _id } of [kept, left]) await island.as('user').delete(`${pages}/${_id}`)
    const lease = { ...island.tenant, signal: new AbortController().signal } as never
    for (const ms of [0, 2 * DAY_MS]) {
      moveClock(now() + ms)
      await removeUnusedFiles(lease).finally(() => moveClock())
    }
    expect((await island.as('user').get('/files')).body.map(({ name }: { name: string }) => name)).toEqual(['kept.png'])
  })
})

describe('refused forms', () => {
  test('a refused form leaves no file and no content, whatever is wrong with it', async () => {
    const island = await createTenantWithPages()
    const by = fileClient(island, island.tokens.user)
    const refuse = async (parts: Part[], path: string) => {
      const response = await sendForm(parts, { by })
      expect(statusAndCode(response)).toEqual([400, 'INVALID_INPUT'])
      expect(response.body.details.map((flaw: { path: string }) => flaw.path)).toContain(path)
    }
    await refuse(
      [
        ['cover', dot()],
        ['title', 'a'],
        ['nothing', 'x'],
      ],
      '/nothing',
    )
    await refuse(
      [
        ['cover', dot()],
        ['title', dot()],
      ],
      '/title',
    )
    await refuse([['cover', dot()]], '/title')
    await refuse(
      [
        ['cover', dot()],
        ['title', 'a'],
        ['count', 'many'],
      ],
      '/count',
    )
    await refuse(
      [
        ['cover', dot()],
        ['cover', dot()],
        ['title', 'a'],
      ],
      '/cover',
    )
    await refuse(
      [
        ['cover', new File(['text'], 'a.png')],
        ['title', 'a'],
      ],
      '/cover',
    )
    await refuse(
      [
        ['cover', new File([PNG, new Uint8Array(1 << 20)], 'a.png')],
        ['title', 'a'],
      ],
      '/cover',
    )
    await refuse(
      [
        ['papers', new File([], 'empty.txt')],
        ['title', 'a'],
      ],
      '/papers',
    )
    await refuse(
      [
        ['papers', dot()],
        ['papers', Bun.randomUUIDv7()],
        ['title', 'a'],
      ],
      '/papers/1',
    )
    await refuse(
      [
        ['keep', 'perhaps'],
        ['title', 'a'],
      ],
      'keep',
    )
    expect(listStored(island.id)).toEqual([])
    await sendForm([['title', 'taken']], { by })
    expect(
      (
        await sendForm(
          [
            ['cover', dot()],
            ['title', 'taken'],
          ],
          { by },
        )
      ).body.code,
    ).toBe('UNIQUE_VIOLATION')
    const [list, others] = [await island.as('admin').get('/files'), await island.as('admin').get(pages)]
    expect([list.body, others.body.length]).toEqual([[], 1])
    expect(listStored(island.id).filter((path) => path.includes('.drafts'))).toEqual([])
  })

  test('a guest creates an entity by a form without files, and has to sign in for files', async () => {
    const send = async (parts: Part[]) => {
      const form = new FormData()
      for (const [name, value] of parts) form.append(name, value)
      const encoded = new Response(form)
      const headers = { 'content-type': encoded.headers.get('content-type')!, host: new URL(tenant.origin).host }
      const request = new Request(`${tenant.origin}/api${pages}`, {
        method: 'POST',
        headers,
        body: await encoded.blob(),
      })
      return handleRequest(request)
    }
    expect((await send([['title', 'By a guest']])).status).toBe(201)
    expect(
      (
        await send([
          ['title', 'Another'],
          ['cover', dot()],
        ])
      ).status,
    ).toBe(401)
  })

  test('a caller who may not create entities, or of an unknown blueprint, is refused before the form is read', async () => {
    const endless = () =>
      new ReadableStream({
        pull: async (controller) => {
          await Bun.sleep(5)
          controller.enqueue(new Uint8Array(1_000))
        },
      })
    const type = { 'content-type': 'multipart/form-data; boundary=x' }
    await tenant.as('admin').post('/blueprints', { key: 'closed', name: 'Closed', fields })
    expect((await client.send('POST', '/blueprints/closed/entities', type, endless())).status).toBe(403)
    expect((await client.send('POST', '/blueprints/nothing/entities', type, endless())).status).toBe(404)
  })

  test('a form whose file is larger than its field takes is refused without the rest of it, and leaves nothing', async () => {
    const island = await createTenantWithPages()
    const head = '--x\r\ncontent-disposition: form-data; name="cover"; filename="large.png"\r\n\r\n'
    let sent = 0
    const endless = new ReadableStream({
      pull(controller) {
        if (!sent) controller.enqueue(new TextEncoder().encode(head))
        sent += 1 << 16
        controller.enqueue(new Uint8Array(1 << 16))
      },
    })
    const type = { 'content-type': 'multipart/form-data; boundary=x' }
    const response = await fileClient(island, island.tokens.user).send('POST', pages, type, endless)
    const { code, details } = (await response.json()) as TestResponse['body']
    expect([response.status, code]).toEqual([400, 'INVALID_INPUT'])
    expect(details).toEqual([{ path: '/cover', message: 'cover takes files of up to 1 MiB; "large.png" is larger.' }])
    expect(sent).toBeLessThan(4 << 20)
    expect(listStored(island.id)).toEqual([])
  })

  test('a form that is broken off while its second file arrives is refused and leaves nothing', async () => {
    const island = await createTenantWithPages()
    const by = fileClient(island, island.tokens.user)
    const part = (name: string, content: string) =>
      `--x\r\ncontent-disposition: form-data; name="${name}"; filename="a.txt"\r\n\r\n${content}`
    const text = `${part('papers', 'whole')}\r\n${part('papers', 'x'.repeat(100_000))}`
    const bodies = [
      text,
      new ReadableStream({
        pull(controller) {
          controller.enqueue(new TextEncoder().encode(text))
          controller.error(new Error('broken off'))
        },
      }),
    ]
    for (const body of bodies) {
      const response = await by.send('POST', pages, { 'content-type': 'multipart/form-data; boundary=x' }, body)
      expect([response.status, ((await response.json()) as { code: string }).code]).toEqual([400, 'MALFORMED_BODY'])
    }
    expect(listStored(island.id)).toEqual([])
    expect((await island.as('admin').get('/files')).body).toEqual([])
  })

  test('a file beyond the limit, and one beyond a quota, are refused with the entity', async () => {
    const island = await createTenantWithPages()
    const by = fileClient(island, island.tokens.user)
    const limit = config.ATOLL_FILE_LIMIT
    config.ATOLL_FILE_LIMIT = 1_000
    try {
      const large = await sendForm(
        [
          ['title', 'a'],
          ['papers', new File(['x'.repeat(1_001)], 'a.txt')],
        ],
        { by },
      )
      expect(statusAndCode(large)).toEqual([413, 'FILE_TOO_LARGE'])
    } finally {
      config.ATOLL_FILE_LIMIT = limit
    }
    await setQuotas(island.id, { files: 1 })
    const two: Part[] = [
      ['title', 'a'],
      ['papers', dot('1.png')],
      ['papers', new File(['2'], '2.txt')],
    ]
    expect(statusAndCode(await sendForm(two, { by }))).toEqual([403, 'QUOTA_EXCEEDED'])
    expect((await island.as('admin').get(pages)).body).toEqual([])
    expect((await sendForm(two.slice(0, 2), { by })).status).toBe(201)
    expect(listStored(island.id)).toHaveLength(1)
  })

  test('200 forms with files at once all create their entities', async () => {
    const island = await createTenantWithPages()
    const by = fileClient(island, island.tokens.user)
    const responses = await Promise.all(
      Array.from({ length: 200 }, (_, n) =>
        sendForm(
          [
            ['title', `${n}`],
            ['papers', new File([`${n % 50}`], `${n}.txt`)],
            ['cover', dot()],
          ],
          { by },
        ),
      ),
    )
    expect(responses.map(({ status }) => status)).toEqual(Array(200).fill(201))
    expect(await island.tenant.db.query('select count(*) from files')).toEqual([[400]])
    expect(listStored(island.id)).toHaveLength(51)
  })

  test('memory does not grow with the size of the files of a form', async () => {
    const size = 64 << 20
    const head = `--x\r\ncontent-disposition: form-data; name="title"\r\n\r\nLarge\r\n--x\r\ncontent-disposition: form-data; name="papers"; filename="a.bin"\r\n\r\n`
    let sent = 0
    const encoder = new TextEncoder()
    const body = new ReadableStream({
      pull(controller) {
        if (!sent) controller.enqueue(encoder.encode(head))
        controller.enqueue(new Uint8Array(1 << 16))
        sent += 1 << 16
        if (sent < size) return
        controller.enqueue(encoder.encode('\r\n--x--\r\n'))
        controller.close()
      },
    })
    Bun.gc(true)
    let peak = 0
    const before = process.memoryUsage().rss
    const watch = setInterval(() => {
      peak = Math.max(peak, process.memoryUsage().rss - before)
    }, 5)
    const response = await client.send('POST', pages, { 'content-type': 'multipart/form-data; boundary=x' }, body)
    clearInterval(watch)
    expect(response.status).toBe(201)
    expect(peak).toBeLessThan(size / 2)
  })
})

test('a number of a form that would be changed is refused by its field, and an exact one is stored', async () => {
  for (const [name, text, path] of [
    ['count', '9007199254740993', '/count'],
    ['size', '-9007199254740993', '/size'],
    ['place', '{"at": [1, 9007199254740993]}', '/place/at/1'],
  ] as const) {
    const refused = await sendForm([
      ['title', `inexact ${name}`],
      [name, text],
    ])
    expect([...statusAndCode(refused), refused.body.details[0].path]).toEqual([400, 'INVALID_INPUT', path])
    expect(refused.body.message).toContain('cannot be held exactly')
  }
  const tooLarge = await sendForm([
    ['title', 'too large'],
    ['size', '1e400'],
  ])
  expect(statusAndCode(tooLarge)).toEqual([400, 'INVALID_INPUT'])
  const stored = await sendForm([
    ['title', 'exact'],
    ['count', '9007199254740991'],
    ['size', '9007199254740992'],
    ['place', '{"at": 0.1}'],
  ])
  const { count, size, place } = stored.body
  expect([stored.status, count, size, place]).toEqual([201, 9007199254740991, 9007199254740992, { at: 0.1 }])
})
