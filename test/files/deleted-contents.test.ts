import { afterAll, afterEach, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import { config } from '../../src/config'
import { DAY_MS, moveClock, now } from '../../src/core/clock'
import { removeDeletedContents } from '../../src/files/deleted-contents'
import { createS3Store, type S3ContentStore } from '../../src/files/stores/s3'
import { beginRemoval, listContentRemains } from '../../src/tenancy/content-remains'
import { purgeRemains } from '../../src/tenancy/purge'
import { prepareRestoredTenant } from '../../src/tenancy/restored-tenants'
import { createTenant, deleteTenant } from '../../src/tenancy/tenants'
import { startS3Server } from '../fakes/s3-server'
import { errorOf } from '../rejections'
import { createTempFolder } from '../temp-folder'
import { sha256Of } from './fixtures'

setDefaultTimeout(60_000)

const WEEK_MS = 7 * DAY_MS
const folder = createTempFolder('deleted-contents')
const NOT_ABORTED = new AbortController().signal
let server: Awaited<ReturnType<typeof startS3Server>>
let client: Bun.S3Client
let contents: S3ContentStore

beforeAll(async () => {
  server = await startS3Server('kept')
  const { S3_ENDPOINT: endpoint, S3_ACCESS_KEY_ID: accessKeyId, ...rest } = server.env
  const access = { endpoint, accessKeyId, secretAccessKey: rest.S3_SECRET_ACCESS_KEY, region: rest.S3_REGION }
  client = new Bun.S3Client({ ...access, bucket: 'kept' })
  config.ATOLL_FILES_URL = 's3://kept/some/prefix'
  contents = createS3Store(config.ATOLL_FILES_URL, access)
})
afterEach(() => moveClock())
afterAll(async () => {
  config.ATOLL_FILES_URL = ''
  await server[Symbol.asyncDispose]()
})

const freshId = () => `d${Bun.randomUUIDv7().replaceAll('-', '').slice(-20)}`

async function store(tenant: string, text: string, name = sha256Of(text)) {
  const draft = join(folder, Bun.randomUUIDv7())
  await Bun.write(draft, text)
  await contents.put(tenant, name, draft)
  return name
}

const list = async (tenant: string) =>
  ((await client.list({ prefix: `some/prefix/${tenant}/` })).contents ?? []).map(({ key }) => key.split('/').at(-1))

/** Runs the job as if it were so much later. */
async function removeAfter(ms: number, signal = NOT_ABORTED) {
  moveClock(now() + ms)
  await removeDeletedContents(contents, signal).finally(() => moveClock())
}

test('the contents of a tenant and their thumbnails are removed a week after it was deleted, and nothing else is', async () => {
  const id = freshId()
  const [longer, other] = [`${id}b`, freshId()]
  for (const tenant of [id, longer]) await createTenant(tenant)
  const content = await store(id, 'own')
  await store(id, 'thumbnail', `${content}.100x50.webp`)
  const [ofLonger, ofOther] = [await store(longer, 'own'), await store(other, 'own')]
  await client.write(`some/prefix/${id}/manifest.json`, '{}')
  await client.write(`some/prefix/${id}/backups/${content}`, 'a backup')
  await deleteTenant(id)
  await removeAfter(WEEK_MS - 60_000)
  expect(await list(id)).toHaveLength(4)
  // What is left in buckets is purged apart from it.
  if (config.ATOLL_DATABASE_URL) await purgeRemains(0)
  await removeAfter(WEEK_MS + 60_000)
  expect((await list(id)).sort()).toEqual([content, 'manifest.json'].sort())
  expect(await client.exists(`some/prefix/${id}/${content}`)).toBeFalse()
  expect([await list(longer), await list(other)]).toEqual([[ofLonger], [ofOther]])
  expect((await createTenant(id)).tenant).toBe(id)
})

test('a removal that was interrupted goes on, and nobody gets the id meanwhile', async () => {
  const id = freshId()
  await createTenant(id)
  for (const text of ['one', 'two', 'three']) await store(id, text)
  await deleteTenant(id)
  const controller = new AbortController()
  const until = new Date(now() + 60_000).toISOString()
  const [remains] = (await listContentRemains(until)).filter(({ tenant }) => tenant === id)
  expect(await beginRemoval(remains!, until)).toBeTrue()
  controller.abort()
  await errorOf(removeAfter(WEEK_MS + 60_000, controller.signal))
  expect(await list(id)).toHaveLength(3)
  const refusal = { status: 409, code: 'TENANT_EXISTS', message: expect.stringContaining('still being removed') }
  expect(await errorOf(createTenant(id))).toMatchObject(refusal)
  expect(await errorOf(prepareRestoredTenant(id, false))).toMatchObject(refusal)
  await removeAfter(WEEK_MS + 60_000)
  expect(await list(id)).toEqual([])
  await createTenant(id)
})

test('a tenant that is created or restored under the id of a deleted one keeps the contents', async () => {
  const [created, restored] = [freshId(), freshId()]
  for (const id of [created, restored]) {
    await createTenant(id)
    await store(id, 'own')
    await deleteTenant(id)
  }
  await createTenant(created)
  moveClock(now() + WEEK_MS - 60_000)
  // Its contents are placed before it is registered.
  await prepareRestoredTenant(restored, false)
  await removeAfter(120_000)
  expect([(await list(created)).length, (await list(restored)).length]).toEqual([1, 1])
  await removeAfter(2 * WEEK_MS)
  expect([(await list(created)).length, (await list(restored)).length]).toEqual([1, 0])
})

test('a removal of two pages that is ended after the first goes on with the second', async () => {
  const id = freshId()
  await createTenant(id)
  const names = Array.from({ length: 101 }, (_, number) => sha256Of(`${number}`))
  for (let at = 0; at < names.length; at += 50)
    await Promise.all(names.slice(at, at + 50).map((name) => client.write(`some/prefix/${id}/${name}`, 'x')))
  await deleteTenant(id)
  const controller = new AbortController()
  const removePage = async (tenant: string, after: string) =>
    contents.removePage(tenant, after).finally(() => controller.abort())
  moveClock(now() + WEEK_MS + 60_000)
  expect(await errorOf(removeDeletedContents({ removePage }, controller.signal))).toMatchObject({ name: 'AbortError' })
  expect(await list(id)).toHaveLength(1)
  expect(await errorOf(createTenant(id))).toMatchObject({ status: 409, code: 'TENANT_EXISTS' })
  await removeDeletedContents(contents, NOT_ABORTED)
  expect(await list(id)).toEqual([])
  expect((await createTenant(id)).tenant).toBe(id)
})
