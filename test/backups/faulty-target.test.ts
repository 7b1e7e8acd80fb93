import { afterAll, beforeAll, beforeEach, expect, setDefaultTimeout, test } from 'bun:test'
import { findLatest, listBackups } from '../../src/backups/backup-list'
import { restoreTenant } from '../../src/backups/restore'
import { createS3Target } from '../../src/backups/targets/s3'
import { backUpTenant } from '../../src/backups/tenant-backup'
import { isRegistered } from '../../src/tenancy/tenant-list'
import { startFaultyProxy } from '../fakes/faulty-proxy'
import { startS3Server } from '../fakes/s3-server'
import { errorOf } from '../rejections'
import { waitUntil } from '../wait-until'
import { createTenantWithThings, findRecord, freshId } from './fixtures'

setDefaultTimeout(120_000)

const STALL_MS = 500
const secrets = {}

let s3: Awaited<ReturnType<typeof startS3Server>>
let proxy: Awaited<ReturnType<typeof startFaultyProxy>>
beforeAll(async () => {
  s3 = await startS3Server('backups')
  proxy = await startFaultyProxy({ port: Number(new URL(s3.env.S3_ENDPOINT).port) })
})
beforeEach(() => proxy.setMode({}))
afterAll(async () => {
  await proxy[Symbol.asyncDispose]()
  await s3[Symbol.asyncDispose]()
})

const openSlowTarget = () =>
  createS3Target('s3://backups/atoll', {
    ...{
      endpoint: `http://127.0.0.1:${proxy.port}`,
      region: s3.env.S3_REGION,
      stallMs: STALL_MS,
      retryDelaysMs: [100, 200, 400],
    },
    ...{ accessKeyId: s3.env.S3_ACCESS_KEY_ID, secretAccessKey: s3.env.S3_SECRET_ACCESS_KEY },
  })

test('a backup to a store that fails for a while is repeated, and succeeds', async () => {
  const { id } = await createTenantWithThings()
  proxy.setMode({ status: 503 })
  const before = proxy.countRequests()
  const making = backUpTenant(await findRecord(id), openSlowTarget(), undefined)
  await waitUntil(() => proxy.countRequests() > before)
  proxy.setMode({})
  await making
  const backup = await findLatest(openSlowTarget(), id)
  const restored = await restoreTenant(backup!, { as: freshId(), secrets })
  expect(await isRegistered(restored.tenant)).toBe(true)
})

test('a backup to a slow store takes its time, and succeeds', async () => {
  const { id } = await createTenantWithThings()
  proxy.setMode({ bytesPerSecond: 100_000 })
  await backUpTenant(await findRecord(id), openSlowTarget(), undefined)
  expect(await listBackups(openSlowTarget(), id)).toHaveLength(1)
})

test('a backup to a store that hangs in the middle fails with a sentence, and nothing of it counts as a backup', async () => {
  const { id } = await createTenantWithThings()
  proxy.setMode({ bytesPerSecond: 50_000 })
  const before = proxy.countPassedBytes()
  const making = backUpTenant(await findRecord(id), openSlowTarget(), undefined)
  const failure = making.catch((error) => error)
  await waitUntil(() => proxy.countPassedBytes() > before)
  proxy.setMode('hang')
  expect(await failure).toMatchObject({
    code: 'BACKUP_TARGET_STALLED',
    message: expect.stringContaining('no progress'),
  })
  proxy.setMode({})
  expect(await listBackups(openSlowTarget(), id)).toEqual([])
  expect(await findLatest(openSlowTarget(), id)).toBeUndefined()
  await backUpTenant(await findRecord(id), openSlowTarget(), undefined)
  expect(await listBackups(openSlowTarget(), id)).toHaveLength(1)
})

test('a list or restore from a store that fails or hangs is refused with a sentence, and changes nothing', async () => {
  const { id } = await createTenantWithThings()
  await backUpTenant(await findRecord(id), openSlowTarget(), undefined)
  const backup = (await findLatest(openSlowTarget(), id))!
  for (const [mode, code] of [
    [{ status: 503 }, 'BACKUP_TARGET_FAILED'],
    ['hang', 'BACKUP_TARGET_STALLED'],
  ] as const) {
    proxy.setMode(mode)
    const as = freshId()
    expect(await errorOf(listBackups(openSlowTarget(), id))).toMatchObject({ code })
    expect(await errorOf(findLatest(openSlowTarget(), id))).toMatchObject({ code })
    expect(await errorOf(restoreTenant(backup, { as, secrets }))).toMatchObject({ code })
    expect(await isRegistered(as)).toBe(false)
  }
})
