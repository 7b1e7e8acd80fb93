// engine: sqlite
import { Database } from 'bun:sqlite'
import { expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { generateIdentity, identityToRecipient } from 'age-encryption'
import { apiCaller, createTempFolder, createTenantByCli, readMetric, runAtoll, signIn, startAtoll } from '../fakes/cli'
import { waitUntil } from '../wait-until'

setDefaultTimeout(300_000)
// The tests mostly wait for the intervals of their servers, so they wait at once.

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

async function createInstallation(passphrase = '', settings: Record<string, string> = {}) {
  const own = { ATOLL_BACKUP_TO: 'backups', ATOLL_BACKUP_CONTINUOUS: 'on', ATOLL_BACKUP_PASSPHRASE: passphrase }
  const env = { ...own, ...settings }
  const at = { at: createTempFolder(), env }
  await createTenantByCli(at, 'acme')
  await createTenantByCli(at, 'other')
  const log = join(at.at, 'backups/acme/log')
  const listSegments = () => {
    try {
      return readdirSync(log).flatMap((generation) =>
        readdirSync(join(log, generation)).flatMap((name) =>
          name.includes('.log.') && !name.endsWith('.partial') ? join(log, generation, name) : [],
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
async function restoreNames(
  { at }: { at: { at: string; env: object } },
  as: string,
  time?: number,
  more: string[] = [],
) {
  const here = { at: at.at, env: { ATOLL_BACKUP_PASSPHRASE: PASSPHRASE }, timeout: RESTORE_TIMEOUT_MS }
  const when = time === undefined ? [] : ['--at', new Date(time).toISOString()]
  const restored = await runAtoll(['restore', 'backups/acme', '--as', as, ...when, ...more, '--json'], here)
  if (restored.code) throw new Error(restored.err)
  const database = new Database(join(at.at, 'tenants', as, 'data.db'))
  const rows = database.query('select shown from entities order by created, seq').values()
  database.close()
  return {
    names: rows.map(([shown]) => /"name":"([\d-]+)"/.exec(String(shown))![1]!),
    restored: restored.json.restored[0],
  }
}

/** Returns when the last transactions of a stored segment were read from the log (ms since 1970). */
const endOf = (segment: string) => Number(/-(\d+)\.log\./.exec(segment)![1])

test.concurrent('a killed server loses only writes since its last segment, and any moment before can be restored', async () => {
  // A passphrase takes seconds of the processor for each key, and many times as long beside other work.
  const identity = await generateIdentity()
  const installation = await createInstallation('', { ATOLL_BACKUP_RECIPIENTS: await identityToRecipient(identity) })
  const { at, hasBackups, listSegments } = installation
  const identityFile = join(at.at, 'identity.txt')
  await Bun.write(identityFile, identity)
  const withIdentity = ['--identity-file', identityFile]
  const written: { name: string; at: number }[] = []
  {
    await using server = await startAtoll(at)
    const call = apiCaller(server.url, await signIn(server.url, 'acme'))
    expect((await call('POST', '/api/blueprints', thingsBlueprint)).status).toBe(201)
    const text = 'x'.repeat(1_000)
    // Enough for several checkpoints, after which the log begins anew, and for segments after the backups.
    let segmentsBefore: number | undefined
    for (let batch = 0; segmentsBefore === undefined || listSegments().length < segmentsBefore + 3; batch++) {
      if (hasBackups()) segmentsBefore ??= listSegments().length
      const operations = Array.from({ length: 100 }, (_, n) => ({
        op: 'create',
        data: { name: `${batch}-${n}`, text },
      }))
      expect((await call('POST', `${THINGS}/batch`, { operations })).status).toBe(200)
      written.push({ name: `${batch}`, at: Date.now() })
      // Backups may take long beside other work, and what is written meanwhile has to be restored, too.
      await Bun.sleep(segmentsBefore === undefined ? 300 : 50)
    }
    await server.end('SIGKILL')
  }
  const [middle, end] = listSegments().map(endOf).sort().slice(-2) as [number, number]
  renameSync(join(at.at, 'tenants'), join(at.at, 'lost'))
  const here = { at: at.at, timeout: RESTORE_TIMEOUT_MS }
  const whole = await runAtoll(['restore', 'backups', ...withIdentity, '--json'], here)
  expect(whole.code, whole.err).toBe(0)
  expect([whole.json.missing, whole.json.failed]).toEqual([[], []])
  const [last, then] = await Promise.all([
    restoreNames(installation, 'last', undefined, withIdentity),
    restoreNames(installation, 'then', middle, withIdentity),
  ])
  const batchesOf = (names: string[]) => {
    const counts = Map.groupBy(names, (name) => name.split('-')[0]!)
    expect([...counts.values()].every((batch) => batch.length === 100)).toBe(true)
    return counts.size
  }
  // A batch may have been written before its answer was.
  const expectWrittenUntil = (time: number, names: string[]) => {
    const answered = written.filter(({ at }) => at <= time).length
    expect(batchesOf(names)).toBeWithin(answered, answered + 2)
  }
  expect(Date.parse(last.restored.until)).toBe(end)
  expectWrittenUntil(end, last.names)
  expectWrittenUntil(middle, then.names)
  const doctor = await runAtoll('doctor --deep', here)
  expect(doctor.out).toContain('tenant then: active, database opens and is up to date and fully readable')
})

/** Waits until all writes are stored, with the backup that they continue: a slow start makes two. */
const waitUntilProtected = (url: string) =>
  waitUntil(
    async () => (await fetch(`${url}/metrics`)).text(),
    (metrics) => /^atoll_backup_behind_tenants 0$/m.test(metrics),
    SLOW_MS,
  )

test.concurrent('a log goes on after clean stops and kills without a new backup, and a gap in it is refused', async () => {
  const installation = await createInstallation()
  const { at, listSegments, countBackups } = installation
  const countStored = () => ({
    generations: new Set(listSegments().map((path) => path.split('/').at(-2))).size,
    backups: countBackups('acme'),
  })
  // A slow first start may back up before the log begins, and once more after that.
  let stored: ReturnType<typeof countStored> | undefined
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
    if (!start) await waitUntilProtected(server.url)
    await server.end(signal)
    stored ??= countStored()
  }
  expect(countStored()).toEqual(stored!)
  const all = ['0-1', '0-2', '1-1', '1-2', '1-3', '2-1', '2-2']
  expect((await restoreNames(installation, 'all')).names).toEqual(all)
  const here = { at: at.at, env: { ATOLL_BACKUP_PASSPHRASE: PASSPHRASE }, timeout: RESTORE_TIMEOUT_MS }
  const refuse = async () => {
    const refused = await runAtoll(['restore', 'backups/acme', '--as', 'part', '--json'], here)
    const { code, message } = JSON.parse(refused.err.trim().split('\n').at(-1)!)
    expect([refused.code, code, message]).toEqual([1, 'BACKUP_GAP', expect.stringContaining('--until-gap')])
    return String(message)
  }
  const verify = () => runAtoll('backup verify backups acme --json', here)
  expect(await verify()).toMatchObject({ code: 0, json: { ok: true, tenants: [{ tenant: 'acme', problems: [] }] } })
  const segment = listSegments().sort().at(-2)!
  const bytes = readFileSync(segment)
  bytes[bytes.length >> 1]! ^= 1
  writeFileSync(segment, bytes)
  expect(await refuse()).toContain(`${segment} is torn or was changed`)
  const changed = await verify()
  expect([changed.code, changed.json.ok]).toEqual([1, false])
  expect(changed.json.tenants[0].problems).toEqual([expect.stringContaining(segment)])
  rmSync(segment)
  const message = await refuse()
  expect((await verify()).code).toBe(1)
  const until = /Everything until (\S+) can/.exec(message)![1]!
  const part = await runAtoll(['restore', 'backups/acme', '--as', 'part', '--until-gap', '--json'], here)
  expect([part.code, part.json.restored[0].until]).toEqual([0, until])
})

test.concurrent('a target that is emptied while a tenant is written to gets new backups, and stays the target of its installation', async () => {
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
  await waitUntilProtected(server.url)
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

test.concurrent('writes that were shipped while the clock was ahead are restored after it was set right', async () => {
  const token = 'the-operator-token-of-the-clock'
  const settings = { ATOLL_TEST_CLOCK: 'on', ATOLL_OPERATOR_TOKEN: token }
  const installation = await createInstallation(PASSPHRASE, settings)
  const { at, listSegments, countBackups } = installation
  const names: string[] = []
  {
    await using server = await startAtoll(at)
    const operator = apiCaller(server.url, { authorization: `Bearer ${token}` })
    const setClock = async (aheadMs: number) => {
      const { status } = await operator('POST', '/operator/clock', {
        now: new Date(Date.now() + aheadMs).toISOString(),
      })
      expect(status).toBe(200)
    }
    const DAYS_AHEAD_MS = 400 * 86_400_000
    for (const [part, aheadMs] of [0, DAYS_AHEAD_MS, 0].entries()) {
      await setClock(aheadMs)
      const call = apiCaller(server.url, await signIn(server.url, 'acme'))
      if (!part) {
        await call('POST', '/api/blueprints', thingsBlueprint)
        await waitUntil(async () => countBackups('acme'), Boolean, SLOW_MS)
      }
      for (let segment = 1; segment <= 2; segment++) {
        const before = listSegments().length
        names.push(`${part}-${segment}`)
        expect((await call('POST', THINGS, { name: names.at(-1) })).status).toBe(201)
        await waitUntil(
          async () => listSegments().length,
          (count) => count > before,
          SLOW_MS,
        )
      }
    }
    await server.end('SIGKILL')
  }
  expect(countBackups('acme')).toBe(1)
  const until = Date.now()
  const [latest, now] = await Promise.all([
    restoreNames(installation, 'latest'),
    restoreNames(installation, 'now', until),
  ])
  expect(latest.names.toSorted()).toEqual(names)
  expect(Date.parse(latest.restored.until)).toBeLessThan(until)
  // No moment hides what was written before it.
  expect(now.names.toSorted()).toEqual(names)
})

test.concurrent('continuous backups need a target, and the health of the installation tells when it fails and when it is back', async () => {
  const at = createTempFolder()
  const refused = await runAtoll('serve', { at, env: { ATOLL_BACKUP_CONTINUOUS: 'on' } })
  expect([refused.code, refused.err]).toEqual([2, expect.stringContaining('Set ATOLL_BACKUP_TO, too.')])
  const target = join(at, 'backups')
  await Bun.write(target, 'a file in place of the folder')
  const token = 'the-operator-token-of-continuous-backups'
  const settings = { ATOLL_BACKUP_CONTINUOUS: 'on', ATOLL_BACKUP_SCHEDULE: '*/5 * * * * *' }
  const env = { ...settings, ATOLL_BACKUP_TO: target, ATOLL_OPERATOR_TOKEN: token }
  await using server = await startAtoll({ at, env })
  const operator = apiCaller(server.url, { authorization: `Bearer ${token}` })
  await operator('POST', '/operator/tenants', { id: 'acme' })
  const findCheck = async () => {
    const { body } = await operator('GET', '/operator/health')
    return body.checks.find(({ check }: { check: string }) => check === 'continuous backup')
  }
  await waitUntil(findCheck, ({ ok, message }) => !ok && message.includes('cannot be written'), SLOW_MS)
  expect(await readMetric(server.url, 'atoll_backup_behind_seconds')).toBeGreaterThan(0)
  const readFailed = () => readMetric(server.url, 'atoll_backup_failed_tenants')
  // Those of the first tenant may have failed, too.
  await waitUntil(readFailed, (count) => count >= 1, SLOW_MS)
  await waitUntil(
    () => operator('GET', '/operator/events?tenant=acme&limit=1'),
    ({ body }) => body[0]?.eventName === 'backup-failed',
    SLOW_MS,
  )
  const doctor = await runAtoll('doctor --json', { at, env })
  expect(doctor.json.checks).toContainEqual({
    ...{ check: 'backup target', ok: false },
    message: expect.stringContaining(target),
  })
  rmSync(target)
  const listBackups = () => (existsSync(join(target, 'acme')) ? readdirSync(join(target, 'acme')) : [])
  await waitUntil(listBackups, (names) => names.some((name) => name !== 'log'), SLOW_MS)
  await waitUntil(findCheck, (check) => check.ok, SLOW_MS)
  await waitUntil(readFailed, (count) => count === 0, SLOW_MS)
  await server.end('SIGTERM')
  for (const code of ['LOG_NOT_SHIPPED', 'BACKUP_FAILED']) expect(await server.logged).toContain(`"what":"${code}"`)
})
