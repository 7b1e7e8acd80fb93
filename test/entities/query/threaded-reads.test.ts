import { afterAll, beforeAll, describe, expect, spyOn, test } from 'bun:test'
import { readdirSync, readlinkSync } from 'node:fs'
import { config } from '../../../src/config'
import { logOutput } from '../../../src/core/log'
import { recordSpans, type SpanAttributes, type Trace } from '../../../src/core/trace'
import { columnLimits } from '../../../src/entities/columns/column-limits'
import { entityReads } from '../../../src/entities/entity-reads'
import { readFairly } from '../../../src/entities/query/fair-reads'
import { clusterReadMs, freeReadMs } from '../../../src/entities/query/read-costs'
import { databaseStatistics, engineOf } from '../../../src/storage/database-statistics'
import {
  countThreads,
  hasReaderThreads,
  readerThreads,
  readInThread,
  startThread,
  ThreadFailed,
} from '../../../src/tenancy/reader-threads'
import { deleteTenant } from '../../../src/tenancy/tenants'
import { errorOf } from '../../rejections'
import { fullAccessRules, statusAndCode } from '../../test-tenant'
import { waitUntil } from '../../wait-until'
import { createThingsFixture, importThings, indexWords } from '../fixtures'

const columnBytes = columnLimits.bytes
const defaults = { ...freeReadMs }
const clusterDefaults = { ...clusterReadMs }
// Every read is costly from its second statement on.
beforeAll(() => {
  Object.assign(freeReadMs, { thread: 0, waiting: 0 })
  clusterReadMs.thread = 0
  readerThreads.count = 2
  columnLimits.bytes = 0
})
afterAll(() => {
  columnLimits.bytes = columnBytes
  Object.assign(freeReadMs, defaults)
  Object.assign(clusterReadMs, clusterDefaults)
  readerThreads.count = 0
})

const fields = [
  { key: 'name', type: 'string' },
  { key: 'stage', type: 'string' },
  { key: 'worth', type: 'number' },
  { key: 'secret', type: 'string', readRoles: ['boss'] },
  { key: 'next', type: 'relation', target: 'things' },
]
const PATHS = [
  'entities?stage=won&worth[$gte]=10&$count=true&$limit=3',
  'entities?stage=won&worth[$gte]=10&$count=true&$limit=3&$sort=-worth',
  'entities?name[$like]=%25name 1%25',
  'entities?$populate=next&$limit=5',
  'entities?$q=name&$limit=5',
  'entities/thing-7?$outerPopulate=before:things:tenant&$populate=next',
  'entities/missing?$outerPopulate=before:things:tenant',
  'entities?worth=1&bypassAdmin=true',
  'charts/pie?x=stage&worth[$gte]=10&$count=true&$limit=1',
  'charts/sum?sum=worth&groupBy=stage',
  'charts/count?stage=won&worth[$gte]=11',
  'charts/count?identifier[$ne]=thing-9',
  'entities/export?format=ndjson&worth[$gte]=10',
  'entities/export?format=csv',
  'entities?secret=x',
  'entities?worth[$gte]=many',
  'charts/sum?sum=name',
]

/** Headers that all responses of the API have. */
const COMMON = ['x-api-version', 'x-content-type-options', 'vary', 'content-security-policy', 'x-frame-options']

async function createFilledFixture() {
  const own = await createThingsFixture(fields, fullAccessRules('tenant', 'user'))
  const things = Array.from({ length: 300 }, (_, n) => ({
    identifier: `thing-${n}`,
    name: `Name ${n}`,
    stage: ['won', 'lost'][n % 2],
    worth: n,
    secret: 'x',
    next: n ? `thing-${n - 1}` : undefined,
  }))
  await importThings(own, things)
  // Threads read the words of an index that is being built, too.
  await indexWords(own)
  return own
}

/** Ends the threads that earlier reads have started. */
async function endThreads({ tenant, origin }: Awaited<ReturnType<typeof createFilledFixture>>) {
  const { idleMs } = readerThreads
  readerThreads.idleMs = 10
  const read = { name: 'count', args: ['things'], isStreamed: false, actor: undefined, url: origin, headers: [] }
  const countInThread = () => readInThread({ ...read, place: tenant.place! }, new AbortController().signal)
  // Each thread reads once more, because the last read decides how long it stays idle.
  await Promise.allSettled([countInThread(), countInThread()])
  await waitUntil(() => countThreads() === 0)
  readerThreads.idleMs = idleMs
}

async function withoutThreads<T>(work: () => Promise<T>): Promise<T> {
  readerThreads.count = 0
  return work().finally(() => {
    readerThreads.count = 2
  })
}

describe('reads that a thread answers', () => {
  test('lists, charts, counts, exports and refusals are the same as without threads, for each kind of caller', async () => {
    const own = await createFilledFixture()
    expect(hasReaderThreads(own.tenant.place)).toBe(true)
    const sent = spyOn(Worker.prototype, 'postMessage')
    for (const client of [own.as('admin'), own.as('user'), own.anonymous])
      for (const path of PATHS) {
        const read = async () => {
          const { status, headers, body } = await client.get(`/blueprints/things/${path}`)
          const names = [
            'x-total-count',
            'content-type',
            'content-disposition',
            'cache-control',
            'deprecation',
            ...COMMON,
          ]
          // A cursor is encrypted anew each time.
          return { status, body, head: names.map((name) => headers.get(name)), link: !!headers.get('link') }
        }
        expect([path, await read()]).toEqual([path, await withoutThreads(read)])
      }
    const threaded = new Set(sent.mock.calls.flatMap(([order]) => (order.act === 'read' ? [order.read.name] : [])))
    sent.mockRestore()
    const { words: _, ...ofRequests } = entityReads
    const names = config.ATOLL_DATABASE_URL ? ['export', 'get', 'list'] : Object.keys(ofRequests).sort()
    expect([...threaded].sort()).toEqual(names)
  })

  test.skipIf(!!config.ATOLL_DATABASE_URL)(
    'a costly chart whose filter finds few entities is answered here, and one of all entities in a thread',
    async () => {
      const own = await createFilledFixture()
      const sent = spyOn(Worker.prototype, 'postMessage')
      const reads = () => sent.mock.calls.filter(([order]) => order.act === 'read').length
      for (const chart of ['charts/sum?sum=worth&groupBy=stage', 'charts/count?']) {
        const read = async (filter: string) =>
          (await own.as('user').get(`/blueprints/things/${chart}${filter}`, {})).body
        // The first one turns out to be costly.
        const first = await read('&next=thing-7')
        const before = reads()
        expect(await read('&next=thing-7')).toEqual(first)
        expect(reads()).toBe(before)
        for (let n = 0; n < 2; n++) await read('&identifier[$ne]=thing-9')
        expect(reads()).toBeGreaterThan(before)
      }
      sent.mockRestore()
    },
  )

  test('a query plan of a thread has the headers of all responses', async () => {
    const own = await createFilledFixture()
    const sent = spyOn(Worker.prototype, 'postMessage')
    const { status, headers } = await own
      .as('admin')
      .get('/blueprints/things/entities?stage=won&worth[$gte]=10&$explain=true')
    expect(sent.mock.calls.some(([order]) => order.act === 'read')).toBe(!config.ATOLL_DATABASE_URL)
    sent.mockRestore()
    expect(status).toBe(200)
    expect(COMMON.filter((name) => !headers.has(name))).toEqual([])
  })

  test('a next link of a thread continues the list here, and the other way round', async () => {
    const own = await createFilledFixture()
    const follow = async (path: string) => {
      const { body, headers } = await own.as('user').get(path)
      const next = /<\/api([^>]+)>/.exec(headers.get('link') ?? '')?.[1]
      return { names: body.map(({ name }: { name: string }) => name), next }
    }
    const first = await follow(`${own.path}?stage=won&worth[$gte]=0&$sort=-worth&$limit=3`)
    const second = await withoutThreads(() => follow(first.next!))
    const third = await follow(second.next!)
    expect([...first.names, ...second.names, ...third.names]).toEqual(
      [298, 296, 294, 292, 290, 288, 286, 284, 282].map((n) => `Name ${n}`),
    )
  })

  test('a thread shows every write that was acknowledged before, and no longer what was deleted', async () => {
    const own = await createFilledFixture()
    const user = own.as('user')
    const count = async () => (await user.get('/blueprints/things/charts/count?stage[$like]=new')).body.count
    expect(await count()).toBe(0)
    for (let written = 1; written <= 40; written++) {
      const created = await user.post(own.path, { name: `New ${written}`, stage: 'new', worth: written })
      expect([created.status, await count()]).toEqual([201, written])
      const { body: found } = await user.get(`${own.path}?name[$like]=%25EW ${written}`)
      expect(found.map(({ name }: { name: string }) => name)).toEqual([`New ${written}`])
    }
    const [{ _id }] = (await user.get(`${own.path}?stage=new&$limit=1`)).body
    await user.delete(`${own.path}/${_id}`)
    expect(await count()).toBe(39)
  })

  test('a thread reads with the blueprint as it was changed just now', async () => {
    const own = await createFilledFixture()
    const path = '/blueprints/things/charts/sum?sum=worth&groupBy=stage'
    expect((await own.as('user').get(path)).status).toBe(200)
    const { body } = await own.as('admin').get('/blueprints/things')
    const guarded = fields.map((field) => (field.key === 'worth' ? { ...field, readRoles: ['boss'] } : field))
    const { permissions } = body
    const changed = await own.as('admin').put('/blueprints/things', { name: 'Things', fields: guarded, permissions })
    expect(changed.status).toBe(200)
    expect(statusAndCode(await own.as('user').get(path))).toEqual([400, 'INVALID_INPUT'])
  })

  test('a thread knows the permissions of a blueprint that were changed just now', async () => {
    const own = await createFilledFixture()
    const { signal } = new AbortController()
    const place = own.tenant.place!
    const count = () =>
      readInThread(
        { name: 'count', args: ['things'], isStreamed: false, place, actor: undefined, url: own.origin, headers: [] },
        signal,
      ).catch((problem) => problem)
    for (let round = 0; round < 5; round++) {
      const permissions = fullAccessRules('tenant', 'user')
      const open = [...permissions, { operation: 'read', guest: true }]
      for (const [rules, status] of [
        [open, 200],
        [permissions, 401],
      ] as const) {
        const changed = await own.as('admin').put('/blueprints/things', { name: 'Things', fields, permissions: rules })
        expect([changed.status, (await count()).status]).toEqual([200, status])
      }
    }
  })

  test('a read that fails in a thread is repeated here', async () => {
    const { tenant } = await createFilledFixture()
    const request = new Request('http://anybody.test/')
    const read = {
      name: 'unknown',
      args: [],
      isStreamed: false,
      place: tenant.place!,
      actor: undefined,
      url: request.url,
      headers: [],
    }
    expect(await errorOf(readInThread(read, request.signal))).toBeInstanceOf(ThreadFailed)
    const threaded = { ...read, receive: async () => [[0]] }
    const result = await readFairly(
      tenant,
      request,
      async (db) => [...(await db.query('select 1')), ...(await db.query('select 2'))],
      threaded,
    )
    expect(result).toEqual([[1], [2]])
  })

  test('a read whose caller has left is refused, and others are answered', async () => {
    const own = await createFilledFixture()
    for (let attempt = 0; attempt < 60; attempt++) {
      const aborter = new AbortController()
      const request = new Request('http://anybody.test/', { signal: aborter.signal })
      const args = ['things']
      const url = `http://anybody.test/?worth[$gte]=${attempt}`
      const read = {
        name: 'list',
        args,
        isStreamed: false,
        place: own.tenant.place!,
        actor: undefined,
        url,
        headers: [],
      }
      const answer = readInThread(read, request.signal)
      aborter.abort()
      expect(await errorOf(answer)).toMatchObject({ status: 503, code: 'BUSY' })
    }
    expect((await own.as('user').get(`/blueprints/things/${PATHS[0]}`)).status).toBe(200)
  })

  test.each(['entities/export?format=ndjson', PATHS[3]!])(
    'the statements of a thread for %s are in the metrics and in the trace of the request',
    async (path) => {
      const own = await createFilledFixture()
      const spans: { name: string; attributes: SpanAttributes; parent?: Trace; ms?: number }[] = []
      recordSpans({
        startSpan: (name, _, attributes, parent, startedMs) => ({
          trace: { traceId: parent?.traceId ?? 'b'.repeat(32), spanId: 'c'.repeat(16), flags: 1 },
          describe: () => {},
          end: (_, endedMs = 0) => void spans.push({ name, attributes, parent, ms: startedMs && endedMs - startedMs }),
        }),
      })
      const { reads } = databaseStatistics[engineOf(own.tenant.place!)]
      const countBefore = reads.count
      const traceId = 'a'.repeat(32)
      const answer = await own
        .as('user')
        .get(`/blueprints/things/${path}`, { traceparent: `00-${traceId}-${'1'.repeat(16)}-01` })
      recordSpans(undefined)
      expect(answer.status).toBe(200)
      const threaded = spans.filter(({ ms }) => ms !== undefined)
      expect(threaded.length).toBeGreaterThan(1)
      expect(reads.count - countBefore).toBeGreaterThanOrEqual(threaded.length)
      for (const { name, attributes, parent, ms } of threaded) {
        expect([name, parent?.traceId]).toEqual(['SELECT', traceId])
        expect(attributes['atoll.tenant']).toBeOneOf([own.id, 'registry'])
        expect(ms).toBeGreaterThanOrEqual(0)
      }
      expect(JSON.stringify(threaded)).toContain('from entities')
    },
  )

  test('a read whose thread dies meanwhile is repeated here', async () => {
    const own = await createFilledFixture()
    await endThreads(own)
    startThread()
    const sent = spyOn(Worker.prototype, 'postMessage')
    const log = spyOn(logOutput, 'write').mockImplementation(() => {})
    // No index serves it, and its count is not cached yet, so it takes several statements.
    const path = '/blueprints/things/entities?identifier[$ne]=thing-9&$count=true&$limit=2&$populate=next'
    const expected = await withoutThreads(() => own.as('user').get(`${path}&updated[$gte]=2000-01-01`))
    const answer = own.as('user').get(path)
    await waitUntil(() => sent.mock.calls.some(([order]) => order.act === 'read'))
    for (const worker of sent.mock.contexts as unknown as Worker[]) worker.terminate()
    expect((await answer).body).toEqual(expected.body)
    await waitUntil(() => countThreads() === 0)
    expect(log.mock.calls.join('')).toContain('READER_THREAD_FAILED')
    for (const spy of [sent, log]) spy.mockRestore()
    expect((await own.as('user').get(path)).body).toEqual(expected.body)
    expect(countThreads()).toBe(1)
  })

  test('threads that have read nothing for long end, and others start when they are needed', async () => {
    const own = await createFilledFixture()
    const read = async () => (await own.as('user').get(`/blueprints/things/${PATHS[3]}`)).body
    const expected = await read()
    for (let round = 0; round < 3; round++) {
      expect(await read()).toEqual(expected)
      await endThreads(own)
    }
    expect(await read()).toEqual(expected)
    expect(countThreads()).toBe(1)
  })

  test.skipIf(!!config.ATOLL_DATABASE_URL)(
    'the first costly read goes on where it is, beside others in threads, and leaves a thread for the next',
    async () => {
      const own = await createFilledFixture()
      await endThreads(own)
      const sent = spyOn(Worker.prototype, 'postMessage')
      const reads = () => sent.mock.calls.filter(([order]) => order.act === 'read').length
      const read = (n: number) =>
        own.as('user').get(`/blueprints/things/entities?worth[$gte]=${n}&$sort=-worth&$limit=2`)
      expect((await read(1)).status).toBe(200)
      expect([reads(), countThreads()]).toEqual([0, 1])
      expect((await read(2)).status).toBe(200)
      expect(reads()).toBe(1)
      sent.mockRestore()
    },
  )

  test.skipIf(!config.ATOLL_DATABASE_URL)(
    'concurrent reads of a tenant in PostgreSQL are answered by one thread, where they take turns',
    async () => {
      const own = await createFilledFixture()
      const sent = spyOn(Worker.prototype, 'postMessage')
      const answers = await Promise.all(
        Array.from({ length: 12 }, (_, n) => own.as('user').get(`/blueprints/things/${PATHS[3]}&$skip=${n}`)),
      )
      expect(answers.map(({ status }) => status)).toEqual(Array(12).fill(200))
      const threads = sent.mock.contexts.filter((_, at) => sent.mock.calls[at]![0].act === 'read')
      sent.mockRestore()
      expect([threads.length, new Set(threads).size]).toEqual([12, 1])
    },
  )

  test.skipIf(!!config.ATOLL_DATABASE_URL)('a thread closes the database of a tenant that is deleted', async () => {
    const own = await createFilledFixture()
    expect((await own.as('user').get(`/blueprints/things/${PATHS[0]}`)).status).toBe(200)
    const openFiles = () =>
      readdirSync('/proc/self/fd').filter((descriptor) => {
        try {
          return readlinkSync(`/proc/self/fd/${descriptor}`).includes(`/${own.id}/`)
        } catch {
          return false
        }
      })
    if (process.platform === 'linux') expect(openFiles().length).toBeGreaterThan(3)
    await deleteTenant(own.id)
    if (process.platform === 'linux') await waitUntil(() => openFiles().length === 0)
  })
})
