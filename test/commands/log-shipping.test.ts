import { Database } from 'bun:sqlite'
import { expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { apiCaller, createTempFolder, createTenantByCli, runAtoll, signIn, startAtoll } from '../fakes/cli'
import { waitUntil } from '../wait-until'

setDefaultTimeout(300_000)

const thingsBlueprint = {
  key: 'things',
  name: 'Things',
  fields: ['name', 'text'].map((key) => ({ key, type: 'text' })),
  permissions: ['create', 'read'].map((operation) => ({ operation, scope: 'tenant', roleBased: ['admin'] })),
}
const THINGS = '/api/blueprints/things/entities'
const SLOW_MS = 100_000 // a backup is made by another process with a low priority
const RESTORE_TIMEOUT_MS = 180_000 // each file with a passphrase takes some seconds of the processor
const PASSPHRASE = 'a long passphrase'

/** A passphrase is derived anew for each file, which takes long. */
async function createInstallation(passphrase = '') {
  const env = { ATOLL_BACKUP_TO: 'backups', ATOLL_BACKUP_CONTINUOUS: 'on', ATOLL_BACKUP_PASSPHRASE: passphrase }
  const at = { at: createTempFolder(), env }
  await createTenantByCli(at, 'acme')
  await createTenantByCli(at, 'other')
  const log = join(at.at, 'backups/acme/log')
  const listSegments = () => {
    try {
      return readdirSync(log).flatMap((generation) =>
        readdirSync(join(log, generation)).flatMap((name) =>
          name.includes('.log.') ? join(log, generation, name) : [],
        ),
      )
    } catch {
      return [] // there is no log yet
    }
  }
  const countBackups = (folder: string) => {
    const own = join(at.at, 'backups', folder)
    return existsSync(own) ? readdirSync(own).filter((name) => existsSync(join(own, name, 'manifest.json'))).length : 0
  }
  const hasBackups = () => ['acme', 'other', '.installation'].every((folder) => countBackups(folder) > 0)
  return { at, listSegments, hasBackups, countBackups }
}

/** Restores the tenant as it was at a time, or at last, and returns the names of its things. */
async function restoreNames({ at }: { at: { at: string; env: object } }, as: string, time?: number) {
  const here = { at: at.at, env: { ATOLL_BACKUP_PASSPHRASE: PASSPHRASE }, timeout: RESTORE_TIMEOUT_MS }
  const when = time === undefined ? [] : ['--at', new Date(time).toISOString()]
  const restored = await runAtoll(['restore', 'backups/acme', '--as', as, ...when, '--json'], here)
  if (restored.code) throw new Error(restored.err)
  const database = new Database(join(at.at, 'tenants', as, 'data.db'))
  const rows = database.query('select shown from entities order by created, seq').values()
  database.close()
  const doctor = await runAtoll('doctor --deep', here)
  return {
    names: rows.map(([shown]) => /"name":"([\d-]+)"/.exec(String(shown))![1]!),
    restored: restored.json.restored[0],
    doctor,
  }
}

test('a killed server loses the writes of its last seconds at most, and any moment before can be restored', async () => {
  const installation = await createInstallation(PASSPHRASE)
  const { at, hasBackups } = installation
  const written: { name: string; at: number }[] = []
  {
    await using server = await startAtoll(at)
    const call = apiCaller(server.url, await signIn(server.url, 'acme'))
    expect((await call('POST', '/api/blueprints', thingsBlueprint)).status).toBe(201)
    const text = 'x'.repeat(1_000)
    // Enough for several checkpoints, after which the log begins anew, and long enough after the backups for segments.
    let backedUpAt: number | undefined
    for (let batch = 0; !backedUpAt || performance.now() < backedUpAt + 8_000; batch++) {
      if (hasBackups()) backedUpAt ??= performance.now()
      const operations = Array.from({ length: 100 }, (_, n) => ({
        op: 'create',
        data: { name: `${batch}-${n}`, text },
      }))
      expect((await call('POST', `${THINGS}/batch`, { operations })).status).toBe(200)
      written.push({ name: `${batch}`, at: Date.now() })
      // Backups may take long beside other work, and what is written meanwhile has to be restored, too.
      await Bun.sleep(backedUpAt ? 50 : 300)
    }
    await server.end('SIGKILL')
  }
  const killedAt = written.at(-1)!.at
  renameSync(join(at.at, 'tenants'), join(at.at, 'lost'))
  const secrets = { ATOLL_BACKUP_PASSPHRASE: PASSPHRASE }
  const whole = await runAtoll('restore backups --json', { ...at, env: secrets, timeout: RESTORE_TIMEOUT_MS })
  expect(whole.code, whole.err).toBe(0)
  expect([whole.json.missing, whole.json.failed]).toEqual([[], []])
  const last = await restoreNames(installation, 'last')
  const batchesOf = (names: string[]) => {
    const counts = Map.groupBy(names, (name) => name.split('-')[0]!)
    expect([...counts.values()].every((batch) => batch.length === 100)).toBe(true)
    return counts.size
  }
  const expectedAtLeast = written.filter(({ at }) => at < killedAt - 5_000).length
  expect(batchesOf(last.names)).toBeWithin(expectedAtLeast, written.length + 1)
  const middle = Date.parse(last.restored.until) - 2_000
  const then = await restoreNames(installation, 'then', middle)
  const writtenUntil = (time: number) => written.filter(({ at }) => at <= time).length
  expect(batchesOf(then.names)).toBeWithin(writtenUntil(middle - 1_500), writtenUntil(middle) + 2)
  expect(then.doctor.out).toContain(
    'tenant then: active, its database opens and is up to date, and all of it can be read',
  )
})

test('a log goes on after clean stops and kills without a new backup, and a gap in it is refused', async () => {
  const installation = await createInstallation()
  const { at, listSegments, countBackups } = installation
  for (const [start, signal] of (['SIGTERM', 'SIGKILL', 'SIGTERM'] as const).entries()) {
    await using server = await startAtoll(at)
    const call = apiCaller(server.url, await signIn(server.url, 'acme'))
    if (!start) {
      await call('POST', '/api/blueprints', thingsBlueprint)
      await waitUntil(async () => countBackups('acme'), Boolean, SLOW_MS)
    }
    for (let segment = 1; segment <= 2; segment++) {
      const before = listSegments().length
      expect((await call('POST', THINGS, { name: `${start}-${segment}` })).status).toBe(201)
      await waitUntil(
        async () => listSegments().length,
        (count) => count > before,
        SLOW_MS,
      )
    }
    // What a killed server has not stored any more, the next start stores.
    if (signal === 'SIGKILL') expect((await call('POST', THINGS, { name: `${start}-3` })).status).toBe(201)
    await server.end(signal)
  }
  const generations = new Set(listSegments().map((path) => path.split('/').at(-2)))
  expect([generations.size, countBackups('acme')]).toEqual([1, 1])
  const all = ['0-1', '0-2', '1-1', '1-2', '1-3', '2-1', '2-2']
  expect((await restoreNames(installation, 'all')).names).toEqual(all)
  rmSync(listSegments().sort().at(-2)!)
  const here = { at: at.at, env: { ATOLL_BACKUP_PASSPHRASE: PASSPHRASE }, timeout: RESTORE_TIMEOUT_MS }
  const refused = await runAtoll(['restore', 'backups/acme', '--as', 'part', '--json'], here)
  const { code, message } = JSON.parse(refused.err.trim().split('\n').at(-1)!)
  expect([refused.code, code, message]).toEqual([1, 'BACKUP_GAP', expect.stringContaining('--until-gap')])
  const until = /Everything until (\S+) can/.exec(message)![1]!
  const part = await runAtoll(['restore', 'backups/acme', '--as', 'part', '--until-gap', '--json'], here)
  expect([part.code, part.json.restored[0].until]).toEqual([0, until])
})

test('a target that is emptied while a tenant is written to gets new backups, and stays the target of its installation', async () => {
  const installation = await createInstallation()
  const { at, hasBackups, countBackups, listSegments } = installation
  const target = join(at.at, 'backups')
  await using server = await startAtoll(at)
  const call = apiCaller(server.url, await signIn(server.url, 'acme'))
  await call('POST', '/api/blueprints', thingsBlueprint)
  let written = 0
  const writeOne = async () => {
    expect((await call('POST', THINGS, { name: `${++written}` })).status).toBe(201)
  }
  const writeUntil = (isReached: () => boolean) => {
    const writeAndLook = async () => {
      await writeOne()
      return isReached()
    }
    return waitUntil(writeAndLook, Boolean, SLOW_MS)
  }
  await writeUntil(() => hasBackups() && listSegments().length > 1)
  for (const name of readdirSync(target)) rmSync(join(target, name), { recursive: true })
  // The log makes the folder of the tenant again, without a backup.
  await writeUntil(() => hasBackups() && countBackups('acme') > 0 && existsSync(join(target, 'installation.json')))
  await writeOne()
  const segments = listSegments().length
  await writeUntil(() => listSegments().length > segments)
  await server.end('SIGKILL')
  const { names } = await restoreNames(installation, 'emptied')
  expect(names).toEqual(Array.from({ length: names.length }, (_, index) => `${index + 1}`))
  expect(names.length).toBeGreaterThan(segments)
})

test('continuous backups need a target, and the health of the installation tells when it fails and when it is back', async () => {
  const at = createTempFolder()
  const refused = await runAtoll('serve', { at, env: { ATOLL_BACKUP_CONTINUOUS: 'on' } })
  expect([refused.code, refused.err]).toEqual([2, expect.stringContaining('Set ATOLL_BACKUP_TO, too.')])
  const target = join(at, 'backups')
  await Bun.write(target, 'a file in place of the folder')
  const token = 'the-operator-token-of-continuous-backups'
  const env = { ATOLL_BACKUP_TO: target, ATOLL_BACKUP_CONTINUOUS: 'on', ATOLL_OPERATOR_TOKEN: token }
  await using server = await startAtoll({ at, env })
  const operator = apiCaller(server.url, { authorization: `Bearer ${token}` })
  await operator('POST', '/operator/tenants', { id: 'acme' })
  const findCheck = async () => {
    const { body } = await operator('GET', '/operator/health')
    return body.checks.find(({ check }: { check: string }) => check === 'continuous backup')
  }
  const failing = await waitUntil(findCheck, (check) => !check.ok, SLOW_MS)
  expect(failing.message).toContain('cannot be written')
  rmSync(target)
  const listBackups = () => (existsSync(join(target, 'acme')) ? readdirSync(join(target, 'acme')) : [])
  await waitUntil(listBackups, (names) => names.some((name) => name !== 'log'), SLOW_MS)
  await waitUntil(findCheck, (check) => check.ok, SLOW_MS)
})
