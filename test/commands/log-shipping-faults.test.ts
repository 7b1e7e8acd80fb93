// engine: sqlite
import { expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { apiCaller, createTempFolder, createTenantByCli, readMetric, runAtoll, signIn, startAtoll } from '../fakes/cli'
import { startFaultyProxy } from '../fakes/faulty-proxy'
import { startS3Server } from '../fakes/s3-server'
import { waitUntil } from '../wait-until'

setDefaultTimeout(300_000)
// The tests mostly wait for the intervals of their servers, so they wait at once.

const SLOW_MS = 100_000 // a backup is made by another process with a low priority
const TARGET = 's3://backups/atoll'
const THINGS = '/api/blueprints/things/entities'
const thingsBlueprint = {
  key: 'things',
  name: 'Things',
  fields: [{ key: 'name', type: 'text' }],
  permissions: ['create', 'read'].map((operation) => ({ operation, scope: 'tenant', roleBased: ['admin'] })),
}

/** Starts a server that ships to a store behind a faulty proxy, with two tenants whose backups are there. */
async function startShipping() {
  const s3 = await startS3Server('backups')
  const proxy = await startFaultyProxy({ port: Number(new URL(s3.env.S3_ENDPOINT).port) })
  const token = 'the-operator-token-of-continuous-backups'
  const env = {
    ...{ ...s3.env, S3_ENDPOINT: `http://127.0.0.1:${proxy.port}`, ATOLL_OPERATOR_TOKEN: token },
    ...{ ATOLL_BACKUP_TO: TARGET, ATOLL_BACKUP_CONTINUOUS: 'on' },
  }
  const at = { at: createTempFolder(), env }
  for (const id of ['acme', 'other']) await createTenantByCli(at, id)
  const folder = join(s3.directory, 'backups/atoll')
  const listStored = (path: string, part: string) =>
    existsSync(join(folder, path))
      ? readdirSync(join(folder, path), { recursive: true }).filter((name) => String(name).includes(part))
      : []
  const countSegments = (id: string) => listStored(`${id}/log`, '.log.zst').length
  const start = async () => {
    const server = await startAtoll(at)
    const operator = apiCaller(server.url, { authorization: `Bearer ${token}` })
    const findCheck = async () => {
      const { body } = await operator('GET', '/operator/health')
      return body.checks.find(({ check }: { check: string }) => check === 'continuous backup')
    }
    const clients = {
      acme: apiCaller(server.url, await signIn(server.url, 'acme')),
      other: apiCaller(server.url, await signIn(server.url, 'other')),
    }
    const add = async (id: keyof typeof clients, name: string) =>
      expect((await clients[id]('POST', THINGS, { name })).status).toBe(201)
    return { ...server, clients, findCheck, add, read: (name: string) => readMetric(server.url, name) }
  }
  const started = await start()
  for (const call of Object.values(started.clients))
    expect((await call('POST', '/api/blueprints', thingsBlueprint)).status).toBe(201)
  await waitUntil(
    () => ['acme', 'other', '.installation'].every((id) => listStored(id, 'manifest.json').length),
    Boolean,
    SLOW_MS,
  )
  await waitUntil(
    () => started.read('atoll_backup_behind_tenants'),
    (count) => count === 0,
    SLOW_MS,
  )
  return {
    ...{ at, env, folder, proxy, started, start, countSegments },
    [Symbol.asyncDispose]: async () => {
      await started[Symbol.asyncDispose]()
      await proxy[Symbol.asyncDispose]()
      await s3[Symbol.asyncDispose]()
    },
  }
}

async function countRestored({ at, env }: { at: { at: string }; env: Record<string, string> }, id: string, as: string) {
  const restored = await runAtoll(`restore ${TARGET}/${id} --as ${as} --json`, { ...at, env, timeout: 60_000 })
  expect(restored.code, restored.err).toBe(0)
  return restored.json.restored[0]
}

test.concurrent('a store that hangs for one tenant holds up no other, is told also after a restart, and gets all once it answers', async () => {
  await using shipping = await startShipping()
  const { proxy, started, countSegments } = shipping
  const before = { acme: countSegments('acme'), other: countSegments('other') }
  proxy.setMode({ hangsAt: 'acme' })
  await started.add('acme', 'while the store hangs')
  await waitUntil(() => proxy.countHeld(), Boolean, SLOW_MS)
  await started.add('other', 'meanwhile')
  await waitUntil(
    () => countSegments('other'),
    (count) => count > before.other,
    SLOW_MS,
  )
  expect(countSegments('acme')).toBe(before.acme)
  // After four attempts the store has failed for the tenant, and others would have waited.
  expect(proxy.countHeld()).toBeLessThan(4)
  await started.end('SIGKILL')

  await using again = await shipping.start()
  const failing = await waitUntil(again.findCheck, (check) => !check.ok, SLOW_MS)
  expect(failing.message).toMatch(/writes cannot be restored from it of acme \(\d+ s, since 20/)
  expect(await again.read('atoll_backup_behind_tenants')).toBe(1)
  expect(await again.read('atoll_backup_behind_seconds')).toBeGreaterThan(10)
  expect(countSegments('acme')).toBe(before.acme)
  proxy.setMode({})
  await waitUntil(again.findCheck, (check) => check.ok, SLOW_MS)
  await waitUntil(
    () => again.read('atoll_backup_behind_seconds'),
    (seconds) => seconds === 0,
    SLOW_MS,
  )
  await again.end('SIGTERM')
  expect(await countRestored(shipping, 'acme', 'copy')).toMatchObject({ tenant: 'copy' })
  const server = await shipping.start()
  const copy = apiCaller(server.url, await signIn(server.url, 'copy'))
  expect((await copy('GET', THINGS)).body).toMatchObject([{ name: 'while the store hangs' }])
  await server.end('SIGKILL')
})

test.concurrent('a target whose backups are removed is noticed while the server runs, and gets new ones', async () => {
  await using shipping = await startShipping()
  const { at, env, folder, proxy, started } = shipping
  // The new backup waits, so that its absence can be seen.
  proxy.setMode({ hangsAt: 'PUT /backups/atoll/acme' })
  rmSync(join(folder, 'acme'), { recursive: true })
  const lost = await waitUntil(started.findCheck, (check) => /not in the target/.test(check.message), SLOW_MS)
  expect(lost).toMatchObject({
    ok: false,
    message: expect.stringContaining('the backups of acme are not in the target'),
  })
  const faults = await readMetric(started.url, 'atoll_faults_total', { fault: 'BACKUPS_MISSING' })
  expect(faults).toBeGreaterThan(0)
  const doctor = await runAtoll('doctor --json', { ...at, env, timeout: 60_000 })
  expect(doctor.json.checks).toContainEqual({
    ...{ check: 'backup target', ok: false },
    message: expect.stringContaining('lacks the backups of acme,'),
  })
  proxy.setMode({})
  await waitUntil(started.findCheck, (check) => check.ok, SLOW_MS)
  expect((await countRestored(shipping, 'acme', 'copy')).tenant).toBe('copy')
  await started.end('SIGTERM')
  expect(await started.logged).toContain('"what":"BACKUPS_MISSING","tenant":"acme"')
})

test.concurrent('a continuous backup that failed is retried, and the server is told to be fine once it was made', async () => {
  await using shipping = await startShipping()
  const { folder, proxy, started, countSegments } = shipping
  // Only backups of the tenant are refused, not its log: nothing but the pause after a failure leads to another attempt.
  proxy.setMode({ status: 403, at: '/backups/atoll/acme/2' })
  rmSync(join(folder, 'acme'), { recursive: true })
  const failed = await waitUntil(
    started.findCheck,
    (check) => /acme\/2.* cannot be written/.test(check.message),
    SLOW_MS,
  )
  expect(failed.ok).toBe(false)
  await started.add('acme', 'while backups fail')
  await waitUntil(() => countSegments('acme'), Boolean, SLOW_MS)
  expect((await started.findCheck()).ok).toBe(false)
  proxy.setMode({})
  await waitUntil(started.findCheck, (check) => check.ok, SLOW_MS)
  expect((await countRestored(shipping, 'acme', 'copy')).tenant).toBe('copy')
  await started.end('SIGTERM')
  expect(await started.logged).toContain('"what":"BACKUP_FAILED","tenant":"acme"')
})
