// engine: sqlite
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { explainFailure } from '../../src/commands/failure'
import { toStorageError } from '../../src/storage/errors'
import { apiCaller, createTempFolder, createTenantByCli, readMetric, signIn, startAtoll } from '../fakes/cli'
import { mountDisk } from '../fakes/small-disk'
import { waitUntil } from '../wait-until'

setDefaultTimeout(60_000)

const probeDisk = mountDisk(createTempFolder(), '1m')
probeDisk?.[Symbol.dispose]()
if (!probeDisk) console.warn('SKIPPED: the tests of a full disk, because none can be mounted here. Run them as root.')

describe.skipIf(!probeDisk)('a server with a full disk', () => {
  test('a server with a full disk answers writes with 507 STORAGE_FULL, keeps reading, and recovers with free space', async () => {
    const at = { at: createTempFolder(), env: { ATOLL_DURABILITY: 'full', ATOLL_RATE_LIMITS: 'off' } }
    using _ = mountDisk(at.at, '24m')!
    await createTenantByCli(at, 'acme')
    const ballast = join(at.at, 'ballast')
    writeFileSync(ballast, Buffer.alloc(6 << 20))
    await using server = await startAtoll(at)
    const call = apiCaller(server.url, await signIn(server.url, 'acme'))
    const things = { key: 'things', name: 'Things', fields: [{ key: 'text', type: 'string' }] }
    expect((await call('POST', '/api/blueprints', things)).status).toBe(201)
    const path = '/api/blueprints/things/entities'
    const made: string[] = []
    const refused: (string | number | null)[][] = []
    let maxWalSize = 0
    const writer = async () => {
      while (refused.length < 40) {
        const { status, body, headers } = await call('POST', path, { text: 'x'.repeat(20_000) })
        maxWalSize = Math.max(maxWalSize, statSync(join(at.at, 'tenants/acme/data.db-wal')).size)
        if (status === 201) made.push(body._id)
        else refused.push([status, body.code, headers.get('retry-after')])
      }
    }
    await Promise.all(Array.from({ length: 8 }, writer))
    for (const refusal of refused) expect(refusal).toEqual([507, 'STORAGE_FULL', '30'])
    expect(made.length).toBeGreaterThan(20)
    // The log is limited by the size of the disk, so that most of the disk is left for data.
    expect(maxWalSize).toBeLessThan(10 << 20)
    for (const id of [made[0], made.at(-1)]) expect((await call('GET', `${path}/${id}`)).status).toBe(200)
    expect((await call('GET', `${path}?$limit=5`)).body).toHaveLength(5)
    rmSync(ballast)
    expect((await call('POST', path, { text: 'y' })).status).toBe(201)
    await server.end('SIGTERM')
    const lines = (await server.logged).split('\n').filter(Boolean)
    expect(lines.filter((line) => line.includes('STORAGE_FULL')).length).toBeLessThan(3)
    expect(lines.filter((line) => line.includes('INTERNAL'))).toEqual([])
    await using again = await startAtoll(at)
    const ask = apiCaller(again.url, await signIn(again.url, 'acme'))
    for (const id of made) expect((await ask('GET', `${path}/${id}`)).status).toBe(200)
  })
})

const strace = Bun.which('strace')
if (!strace) console.warn('SKIPPED: the test of a failing disk, because strace is not installed.')

test.skipIf(!strace)(
  'a server whose disk fails answers writes with 503 STORAGE_FAILED and reopens the database by itself',
  async () => {
    const at = { at: createTempFolder(), env: { ATOLL_DURABILITY: 'full' } }
    await createTenantByCli(at, 'acme')
    await using server = await startAtoll(at)
    const call = apiCaller(server.url, await signIn(server.url, 'acme'))
    const create = (key: string) => call('POST', '/api/blueprints', { key, name: key, fields: [] })
    expect((await create('before')).status).toBe(201)
    const failing = Bun.spawn(
      [strace!, '-f', '-qq', '-o', '/dev/null', '-e', 'inject=fdatasync:error=EIO', '-p', `${server.pid}`],
      { stdout: 'ignore', stderr: 'ignore' },
    )
    try {
      const failed = await waitUntil(
        () => create(`during-${crypto.randomUUID()}`),
        ({ status }) => status !== 201,
      )
      expect([failed.status, failed.body.code]).toEqual([503, 'STORAGE_FAILED'])
      expect(await readMetric(server.url, 'atoll_storage_failing_tenants')).toBe(1)
      const unready = await waitUntil(
        () => call('GET', '/ready'),
        ({ status }) => status !== 200,
      )
      expect([unready.status, unready.body.code]).toEqual([503, 'NOT_READY'])
      expect((await call('GET', '/api/blueprints/before')).status).toBe(200)
    } finally {
      failing.kill('SIGTERM')
      await failing.exited
    }
    expect(
      (
        await waitUntil(
          () => create('after'),
          ({ status }) => status !== 503,
        )
      ).status,
    ).toBe(201)
    await waitUntil(
      () => call('GET', '/ready'),
      ({ status }) => status === 200,
    )
    await server.end('SIGKILL')
    expect(await server.logged).toContain('"what":"STORAGE_FAILED"')
    await using again = await startAtoll(at)
    const ask = apiCaller(again.url, await signIn(again.url, 'acme'))
    for (const key of ['before', 'after']) expect((await ask('GET', `/api/blueprints/${key}`)).status).toBe(200)
  },
)

test('toStorageError maps the codes of every engine for a full disk to 507 STORAGE_FULL', () => {
  for (const code of ['SQLITE_FULL', '53100', 'ENOSPC', 'EDQUOT'])
    expect(toStorageError(Object.assign(new Error('full'), { code }))).toMatchObject({
      status: 507,
      code: 'STORAGE_FULL',
    })
})

test('a command that finds the disk full fails with STORAGE_FULL and exit code 1', () => {
  const failure = explainFailure(Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' }))
  expect(failure).toMatchObject({ code: 'STORAGE_FULL', exitCode: 1 })
})
