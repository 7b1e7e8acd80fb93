// engine: sqlite
import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { findTargetProblem } from '../../../src/backups/target-check'
import { createS3Target } from '../../../src/backups/targets/s3'
import { ObjectStore, PART_BYTES } from '../../../src/storage/object-store/object-store'
import type { StoreFailure } from '../../../src/storage/object-store/store-failure'
import { startFaultyProxy } from '../../fakes/faulty-proxy'
import { startS3Server } from '../../fakes/s3-server'
import { waitUntil } from '../../wait-until'
import { publishedStores, startPublishedStore } from './published-stores'

setDefaultTimeout(60_000)

let s3: Awaited<ReturnType<typeof startS3Server>>
let proxy: Awaited<ReturnType<typeof startFaultyProxy>>
beforeAll(async () => {
  s3 = await startS3Server('files')
  proxy = await startFaultyProxy({ port: Number(new URL(s3.env.S3_ENDPOINT).port) })
})
beforeEach(() => proxy.setMode({}))
afterAll(async () => {
  await proxy[Symbol.asyncDispose]()
  await s3[Symbol.asyncDispose]()
})

const openStore = (options: object = {}) =>
  new ObjectStore('files', {
    ...{ endpoint: `http://127.0.0.1:${proxy.port}`, region: s3.env.S3_REGION, retryDelaysMs: [5, 10, 20] },
    ...{ accessKeyId: s3.env.S3_ACCESS_KEY_ID, secretAccessKey: s3.env.S3_SECRET_ACCESS_KEY, ...options },
  })

const block = crypto.getRandomValues(Buffer.alloc(65_536))
const bytesOf = (length: number) =>
  Buffer.concat(Array.from({ length: Math.ceil(length / block.length) }, () => block)).subarray(0, length)
const readAll = async (stream: ReadableStream<Uint8Array> | undefined) =>
  stream && Buffer.from(await new Response(stream as never).arrayBuffer())
async function* inChunks(bytes: Buffer, breakAfter = Number.POSITIVE_INFINITY) {
  for (let start = 0; start < bytes.length; start += 100_000) {
    if (start >= breakAfter) throw new Error('the source broke')
    yield bytes.subarray(start, start + 100_000)
  }
}
const failureOf = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: StoreFailure) => error,
  )

/** What every store has to do. */
function testStore(name: string, open: () => ObjectStore) {
  test.each([0, 1, PART_BYTES - 1, PART_BYTES, PART_BYTES + 1])(
    `${name} keeps a content of %d bytes`,
    async (length) => {
      const store = open()
      const content = bytesOf(length)
      await store.upload('a/content', inChunks(content))
      expect((await store.find('a/content'))!.size).toBe(length)
      expect((await readAll(await store.read('a/content')))!.equals(content)).toBeTrue()
      const range = { start: Math.max(0, length - 10), end: length }
      expect((await readAll(await store.read('a/content', range)))!.equals(content.subarray(range.start))).toBeTrue()
      await store.remove('a/content')
      await store.remove('a/content')
      expect([await store.find('a/content'), await store.read('a/content')]).toEqual([undefined, undefined])
    },
  )

  test.each([10, PART_BYTES + 1_000_000])(
    `${name} has nothing of a content whose source breaks after %d bytes`,
    async (length) => {
      const store = open()
      const failure = await failureOf(store.upload('b/content', inChunks(bytesOf(2 * PART_BYTES), length)))
      expect(failure?.message).toBe('the source broke')
      expect(await store.find('b/content')).toBeUndefined()
    },
  )

  test(`${name} lists keys by folder, in pages and in their order`, async () => {
    const store = open()
    const keys = Array.from({ length: 5 }, (_, n) => `list/${n}/some-file.with & signs`)
    for (const key of [...keys, 'list/own', 'other']) await store.put(key, Buffer.from(key))
    const page = await store.list('list/', { delimiter: '/' })
    expect([page.objects.map(({ key, size }) => [key, size]), page.folders]).toEqual([
      [['list/own', 8]],
      keys.map((key) => key.slice(0, 7)),
    ])
    if (name === 's3rver') return // its pages have no order, and leave keys out
    const listed: string[] = []
    for (let token: string | undefined; ; ) {
      const { objects, next } = await store.list('list/', { limit: 2, token })
      listed.push(...objects.map(({ key }) => key))
      token = next
      if (!token) break
    }
    expect(listed).toEqual([...keys, 'list/own'])
  })
}

testStore('s3rver', openStore)

for (const { name, isInstalled } of publishedStores())
  describe.skipIf(!isInstalled)(`${name}, a published store`, () => {
    let running: Awaited<ReturnType<typeof startPublishedStore>>
    beforeAll(async () => {
      running = await startPublishedStore(name)
    })
    afterAll(() => running?.[Symbol.asyncDispose]())
    testStore(name, () => new ObjectStore('files', running.access))

    test('only one of two that create the same object does', async () => {
      const store = new ObjectStore('files', running.access)
      const created = await Promise.all(
        ['one', 'two'].map((text) => store.put('new', Buffer.from(text), { isNew: true })),
      )
      expect(created.toSorted()).toEqual([false, true])
      expect((await readAll(await store.read('new')))!.toString()).toBe(created[0] ? 'one' : 'two')
    })

    test('a bucket that is missing and a wrong key are told by the codes of the store', async () => {
      const missing = new ObjectStore('nowhere', running.access)
      expect(await failureOf(missing.list(''))).toMatchObject({ code: 'NoSuchBucket' })
      if (name === 'gofakes3') return // it checks no signatures
      const wrong = new ObjectStore('files', { ...running.access, secretAccessKey: 'wrong' })
      expect(await failureOf(wrong.put('x', Buffer.from('x')))).toMatchObject({ code: 'SignatureDoesNotMatch' })
    })
  })

test('an upload whose connections are cut at any place leaves the whole content or none', async () => {
  const content = bytesOf(PART_BYTES + 300_000)
  // Drawn once, so that every run tries the same ones.
  for (const cutAfterSent of [0, 400, 20_000, 300_000, PART_BYTES - 5_000]) {
    const key = `cut/${cutAfterSent}`
    proxy.setMode({ cutAfterSent })
    const failure = await failureOf(openStore().upload(key, inChunks(content)))
    proxy.setMode({})
    const stored = await openStore().find(key)
    if (failure) expect([key, stored]).toEqual([key, undefined])
    else expect([key, stored?.size]).toEqual([key, content.length])
    const { objects } = await openStore().list('cut/')
    for (const { size } of objects) expect(size).toBe(content.length)
  }
})

test('an upload whose connections are cut for a while goes on with the parts that are left', async () => {
  const content = bytesOf(PART_BYTES + 300_000)
  proxy.setMode({ cutAfterSent: 2_000_000 })
  const before = proxy.countRequests()
  const uploading = openStore({ retryDelaysMs: [50, 50, 50, 50] }).upload('while', inChunks(content))
  await waitUntil(() => proxy.countRequests() >= before + 3)
  proxy.setMode({})
  await uploading
  expect((await readAll(await openStore().read('while')))!.equals(content)).toBeTrue()
})

test('a read whose connection is cut goes on where it broke', async () => {
  const content = bytesOf(1_000_000)
  await openStore().put('read', content)
  for (const cutAfterReceived of [100, 5_000, 300_000]) {
    const before = proxy.countRequests()
    proxy.setMode({ cutAfterReceived })
    const reading = openStore({ retryDelaysMs: [60, 60, 60, 60] })
      .read('read')
      .then(readAll)
    await waitUntil(() => proxy.countRequests() >= before + 2)
    proxy.setMode({})
    expect((await reading)!.equals(content)).toBeTrue()
  }
})

test('a read of an object that was replaced meanwhile fails instead of joining two contents', async () => {
  await openStore().put('replaced', bytesOf(600_000))
  const before = proxy.countRequests()
  proxy.setMode({ cutAfterReceived: 100_000 })
  // Time enough to replace it, also on a busy machine.
  const reading = openStore({ retryDelaysMs: [1_500, 1_500] })
    .read('replaced')
    .then(readAll)
  reading.catch(() => {})
  await waitUntil(() => proxy.countRequests() > before)
  await Bun.sleep(50)
  proxy.setMode({})
  await openStore().put('replaced', bytesOf(700_000).reverse())
  expect(await failureOf(reading)).toMatchObject({
    code: expect.stringMatching(/PreconditionFailed|Http412|ObjectChanged/),
  })
})

test('each request is repeated after 503, and not before the time that the store asks for', async () => {
  const store = openStore()
  await store.put('busy', Buffer.from('x'))
  const steps = {
    list: () => store.list(''),
    find: () => store.find('busy'),
    read: async () => readAll(await store.read('busy')),
    put: () => store.put('busy', Buffer.from('x')),
    remove: () => store.remove('busy'),
  }
  for (const [name, step] of Object.entries(steps)) {
    const before = proxy.countRequests()
    proxy.setMode({ status: 503, headers: 'Retry-After: 1' })
    const began = performance.now()
    const done = step()
    await waitUntil(() => proxy.countRequests() > before)
    proxy.setMode({})
    await done
    expect([name, performance.now() - began > 950]).toEqual([name, true])
  }
})

test('a store that hangs is left after the time for a stall, and asked again', async () => {
  proxy.setMode('hang')
  const before = proxy.countRequests()
  const failure = await failureOf(openStore({ stallMs: 200 }).list(''))
  expect(failure).toMatchObject({ code: 'StoreStalled', message: expect.stringContaining('no progress') })
  expect(proxy.countRequests() - before).toBe(4)
})

test('a refusal of the store is not repeated, and a wrong clock is told', async () => {
  const answer = '<Error><Code>RequestTimeTooSkewed</Code><Message>Too different.</Message></Error>'
  let asked = 0
  using server = Bun.serve({
    port: 0,
    fetch() {
      asked++
      const date = new Date(Date.now() - 20 * 60_000).toUTCString()
      return new Response(answer, { status: 403, headers: { date } })
    },
  })
  const failure = await failureOf(openStore({ endpoint: `http://127.0.0.1:${server.port}` }).list(''))
  expect([failure?.message, asked]).toEqual([
    'the clock of this machine differs by 20 minutes from that of the store; set it right',
    1,
  ])
  const target = createS3Target('s3://files/backups', {
    ...{ endpoint: `http://127.0.0.1:${server.port}`, accessKeyId: 'key', secretAccessKey: 'secret' },
  })
  expect(await findTargetProblem(target)).toContain('the clock of this machine differs by 20 minutes')
})
