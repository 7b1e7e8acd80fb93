// engine: sqlite
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { apiCaller, createTempFolder, createTenantByCli, runAtoll, signIn, startAtoll } from '../fakes/cli'
import { startFaultyProxy } from '../fakes/faulty-proxy'
import { startS3Server } from '../fakes/s3-server'
import { mountDisk } from '../fakes/small-disk'
import { waitUntil } from '../wait-until'

setDefaultTimeout(120_000)
// The tests mostly wait for their stores, so they wait at once.

const THINGS = '/api/blueprints/things/entities'
const thingsBlueprint = { key: 'things', name: 'Things', fields: [{ key: 'text', type: 'text' }] }

const probeDisk = mountDisk(createTempFolder(), '1m')
probeDisk?.[Symbol.dispose]()

/** Starts a server whose tenant has things of this many bytes that cannot be compressed. */
async function startServerWithThings(env: Record<string, string>, bytes = 1) {
  const at = { at: createTempFolder(), env }
  await createTenantByCli(at, 'acme')
  const server = await startAtoll(at)
  const call = apiCaller(server.url, await signIn(server.url, 'acme'))
  expect((await call('POST', '/api/blueprints', thingsBlueprint)).status).toBe(201)
  const add = (length: number) =>
    call('POST', THINGS, { text: crypto.getRandomValues(new Uint8Array(length >> 1)).toHex() })
  for (let left = bytes; left > 0; left -= 100_000) expect((await add(Math.min(left, 100_000))).status).toBe(201)
  return { at, server, add }
}

test.concurrent('a server goes on writing and ends when it is stopped, while its backups and its log wait for a store that hangs', async () => {
  await using s3 = await startS3Server('backups')
  await using proxy = await startFaultyProxy({ port: Number(new URL(s3.env.S3_ENDPOINT).port) })
  proxy.setMode('hang')
  const settings = {
    ATOLL_BACKUP_TO: 's3://backups/atoll',
    ATOLL_BACKUP_SCHEDULE: '* * * * * *',
    ATOLL_BACKUP_CONTINUOUS: 'on',
  }
  const env = { ...s3.env, S3_ENDPOINT: `http://127.0.0.1:${proxy.port}`, ...settings }
  const { at, server, add } = await startServerWithThings(env)
  await using _ = server
  await waitUntil(() => proxy.countRequests() >= 2, Boolean, 60_000)
  for (let n = 0; n < 100; n++) expect((await add(1_000)).status).toBe(201)
  expect(await server.end('SIGTERM')).toBe(0)
  // The store is back, and has nothing that looks like a backup.
  const there = { ...at, env: s3.env }
  expect((await runAtoll('backup acme --list --to s3://backups/atoll --json', there)).json).toEqual([])
  expect((await runAtoll('restore s3://backups/atoll/acme --as copy', there)).err).toContain('There is no backup')
})

test.concurrent('writes go on while a slow store takes a backup, which can be restored', async () => {
  await using s3 = await startS3Server('backups')
  await using proxy = await startFaultyProxy({ port: Number(new URL(s3.env.S3_ENDPOINT).port) })
  proxy.setMode({ bytesPerSecond: 1_000_000 })
  const env = { ...s3.env, S3_ENDPOINT: `http://127.0.0.1:${proxy.port}` }
  const { at, server, add } = await startServerWithThings(env, 3_000_000)
  await using _ = server
  let isRunning = true
  const making = runAtoll('backup acme --to s3://backups/atoll --json', { ...at, timeout: 60_000 }).finally(() => {
    isRunning = false
  })
  let written = 0
  for (; isRunning; written++) expect((await add(1_000)).status).toBe(201)
  expect(written).toBeGreaterThan(10)
  expect((await making).json.failed).toEqual([])
  const restored = await runAtoll('restore s3://backups/atoll/acme --as copy --json', { ...at, env: s3.env })
  expect([restored.code, restored.json.restored[0].tenant]).toEqual([0, 'copy'])
})

describe.skipIf(!probeDisk)('a target on a full disk', () => {
  test.concurrent('a backup to a full disk is told, leaves nothing that counts, and succeeds once there is room', async () => {
    const { at, server, add } = await startServerWithThings({}, 2_000_000)
    await using _ = server
    const folder = createTempFolder()
    using _disk = mountDisk(folder, '4m')!
    const ballast = join(folder, 'ballast')
    writeFileSync(ballast, Buffer.alloc(3_500_000))
    const failed = await runAtoll(`backup acme --to ${folder} --json`, at)
    expect([failed.code, failed.json.backups]).toEqual([1, []])
    expect(failed.json.failed).toEqual([
      { tenant: 'acme', code: 'BACKUP_TARGET_FAILED', message: expect.stringContaining('the disk is full') },
    ])
    expect((await add(1_000)).status).toBe(201)
    expect((await runAtoll(`backup acme --list --to ${folder} --json`, at)).json).toEqual([])
    expect((await runAtoll(`restore ${join(folder, 'acme')} --as copy`, at)).err).toContain('There is no backup')
    expect(existsSync(join(folder, 'acme')) ? readdirSync(join(folder, 'acme')) : []).toEqual([])
    rmSync(ballast)
    expect((await runAtoll(`backup acme --to ${folder} --json`, at)).code).toBe(0)
    expect((await runAtoll(`restore ${join(folder, 'acme')} --as copy --json`, at)).code).toBe(0)
  })
})
