import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import { createS3Store } from '../../src/files/stores/s3'
import { runThumbnailProcess } from '../../src/files/thumbnails/thumbnail-process'
import { createTenantByCli, runAtoll } from '../fakes/cli'
import { startFaultyProxy } from '../fakes/faulty-proxy'
import { startS3Server } from '../fakes/s3-server'
import { readMetricsText } from '../metrics-text'
import { recordLog } from '../recorded-log'
import { errorOf } from '../rejections'
import { createTempFolder } from '../temp-folder'
import { waitUntil } from '../wait-until'
import { sha256Of } from './fixtures'
import { inspect, makeJpeg } from './pictures'

setDefaultTimeout(60_000)

let server: Awaited<ReturnType<typeof startS3Server>>
let store: ReturnType<typeof createS3Store>
const draft = join(createTempFolder('draft'), 'draft')
beforeAll(async () => {
  server = await startS3Server('files')
  store = openStore()
})
afterAll(() => server[Symbol.asyncDispose]())

const openStore = (endpoint = server.env.S3_ENDPOINT) =>
  createS3Store('s3://files/some/prefix', {
    retryDelaysMs: [20, 40, 80],
    endpoint,
    accessKeyId: server.env.S3_ACCESS_KEY_ID,
    secretAccessKey: server.env.S3_SECRET_ACCESS_KEY,
    region: server.env.S3_REGION,
  })

test('a content of several parts is stored, read in ranges and removed, apart from those of other tenants', async () => {
  const bytes = crypto.getRandomValues(Buffer.alloc(20 << 20).subarray(0, 65_536))
  const content = Buffer.concat(Array.from({ length: 320 }, () => bytes))
  const hash = sha256Of(content)
  await Bun.write(draft, content)
  expect(await store.has('first', hash)).toBeFalse()
  await store.put('first', hash, draft)
  expect([await store.has('first', hash), await store.has('second', hash)]).toEqual([true, false])
  const opened = (await store.open('first', hash))!
  expect(sha256Of(Buffer.from(await opened.arrayBuffer()))).toBe(hash)
  expect(
    Buffer.from(await opened.slice(65_530, 65_546).arrayBuffer()).equals(content.subarray(65_530, 65_546)),
  ).toBeTrue()
  await store.remove('first', hash)
  expect(await store.open('first', hash)).toBeUndefined()
})

test('a thumbnail is made of a picture in a store, and stored beside it', async () => {
  const picture = await makeJpeg(1_200, 600)
  await Bun.write(draft, picture)
  const hash = sha256Of(picture)
  await store.put('first', hash, draft)
  const opened = (await store.open('first', hash))!
  const order = { width: 100, height: 50, fit: 'cover', from: 'jpeg', to: 'jpeg' } as const
  await runThumbnailProcess({ tenant: 'first', caller: 'one' }, opened, order, async (bytes) => {
    await Bun.write(draft, Buffer.concat(await Array.fromAsync(bytes)))
    await store.put('first', `${hash}.100x50.jpeg`, draft)
  })
  const thumbnail = await (await store.open('first', `${hash}.100x50.jpeg`))!.bytes()
  expect(await inspect(thumbnail)).toMatchObject({ width: 100, height: 50, quarters: 'RGBW' })
})

test('a store that cannot be reached is told by 503, in the log, by doctor and in a metric', async () => {
  using recorded = recordLog()
  const lost = openStore('http://127.0.0.1:1')
  await Bun.write(draft, 'x')
  const hash = sha256Of('x')
  for (const step of [() => lost.has('a', hash), () => lost.put('a', hash, draft), () => lost.open('a', hash)])
    expect(await step().catch((error) => error)).toMatchObject({ status: 503, code: 'FILE_STORE_UNAVAILABLE' })
  expect(recorded.find('FILE_STORE_UNAVAILABLE')).toMatchObject([{ cause: expect.any(String) }])
  const metrics = await readMetricsText()
  expect(metrics).toMatch(/^atoll_faults_total\{fault="FILE_STORE_UNAVAILABLE"\} [1-9]/m)
  const at = createTempFolder()
  await createTenantByCli({ at }, 'acme')
  const check = async (S3_ENDPOINT: string) => {
    const env = { ...server.env, S3_ENDPOINT, ATOLL_FILES_URL: 's3://files/some/prefix' }
    const { json } = await runAtoll('doctor --json', { at, env })
    return json.checks.find((each: { check: string }) => each.check === 'file store')
  }
  expect(await check('http://127.0.0.1:1')).toEqual({
    ...{ check: 'file store', ok: false },
    message: expect.stringMatching(/^s3:\/\/files\/some\/prefix cannot be read: .*ECONNREFUSED/),
  })
  expect(await check(server.env.S3_ENDPOINT)).toMatchObject({ ok: true })
})

test('a content is copied to another tenant, and one that is missing is told', async () => {
  const hash = sha256Of('something')
  await Bun.write(draft, 'something')
  await store.put('first', hash, draft)
  expect(await store.copy('first', 'copy', hash)).toBeTrue()
  expect(await (await store.open('copy', hash))!.text()).toBe('something')
  expect(await store.copy('first', 'copy', sha256Of('nothing'))).toBeFalse()
})

test('a copy whose connections break in the middle is told by 503, and leaves nothing that counts', async () => {
  await using proxy = await startFaultyProxy({ port: Number(new URL(server.env.S3_ENDPOINT).port) })
  const faulty = openStore(`http://127.0.0.1:${proxy.port}`)
  const content = 'x'.repeat(300_000)
  const hash = sha256Of(content)
  await Bun.write(draft, content)
  await store.put('first', hash, draft)
  proxy.setMode({ cutAfterReceived: 900 }) // the head, and a part of the content
  const before = proxy.countRequests()
  const copying = faulty.copy('first', 'torn', hash).catch((error) => error)
  await waitUntil(() => proxy.countRequests() > before + 5) // it goes on where it broke
  proxy.setMode({ status: 503 })
  const failure = await copying
  expect(failure).toMatchObject({ status: 503, code: 'FILE_STORE_UNAVAILABLE' })
  expect([await store.has('torn', hash), await store.open('torn', hash)]).toEqual([false, undefined])
  proxy.setMode({ cutAfterSent: 2_000 })
  expect(await faulty.put('torn', hash, draft).catch(({ code }) => code)).toBe('FILE_STORE_UNAVAILABLE')
  expect(await store.has('torn', hash)).toBeFalse()
  expect(await store.copy('first', 'torn', hash)).toBeTrue()
  expect(await (await store.open('torn', hash))!.text()).toBe(content)
})

test('a content of which the store has only a part counts as missing, so that an upload brings it back', async () => {
  const hash = sha256Of('the whole')
  await Bun.write(draft, 'the')
  await store.put('part', hash, draft)
  expect([await store.has('part', hash, 3), await store.has('part', hash, 9)]).toEqual([true, false])
})

test('a text that is no hash never becomes a part of a key', async () => {
  for (const name of ['../other/secret', '', 'A'.repeat(64)])
    expect(await errorOf(store.open('first', name))).toMatchObject({ status: 404, code: 'FILE_CONTENT_MISSING' })
})
