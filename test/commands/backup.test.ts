// engine: sqlite
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { binaryPath } from '../fakes/binary'
import { apiCaller, createTempFolder, createTenantByCli, runAtoll, signIn, startAtoll } from '../fakes/cli'
import { startS3Server } from '../fakes/s3-server'
import { waitUntil } from '../wait-until'

setDefaultTimeout(60_000)
// The tests mostly wait for their commands, so they wait at once.

const thingsBlueprint = {
  key: 'things',
  name: 'Things',
  fields: ['half', 'text'].map((key) => ({ key, type: 'text' })),
  permissions: ['create', 'read'].map((operation) => ({ operation, scope: 'tenant', roleBased: ['admin'] })),
}
const THINGS = '/api/blueprints/things/entities'

async function countThings(url: string, headers: Record<string, string>, half?: string) {
  const filter = half ? `&half=${half}` : ''
  const { headers: answered } = await apiCaller(url, headers)('GET', `${THINGS}?$count=true&$limit=1${filter}`)
  return Number(answered.get('x-total-count'))
}

describe('backups of a server at work', () => {
  test.concurrent('each backup is one state of the tenant, which has all writes that were acknowledged before', async () => {
    const at = { at: createTempFolder() }
    await createTenantByCli(at, 'acme')
    await createTenantByCli(at, 'other')
    await using server = await startAtoll(at)
    const headers = await signIn(server.url, 'acme')
    const call = apiCaller(server.url, headers)
    await call('POST', '/api/blueprints', thingsBlueprint)
    let [pairs, isWriting] = [0, true]
    const text = 'x'.repeat(2_000)
    const writers = Array.from({ length: 4 }, async () => {
      while (isWriting) {
        const operations = ['left', 'right'].map((half) => ({ op: 'create', data: { half, text } }))
        const { status } = await call('POST', `${THINGS}/batch`, { operations })
        expect(status).toBe(200)
        pairs++
      }
    })
    const copies: { as: string; atLeast: number; atMost: number }[] = []
    for (let number = 0; number < 2; number++) {
      const atLeast = pairs
      const made = await runAtoll(`backup acme --to backups/${number} --json`, at)
      expect([made.code, made.json.failed]).toEqual([0, []])
      copies.push({ as: `copy${number}`, atLeast, atMost: pairs + writers.length })
      await runAtoll(`restore backups/${number}/acme --as copy${number} --json`, at)
    }
    isWriting = false
    await Promise.all(writers)
    for (const { as, atLeast, atMost } of copies) {
      await runAtoll(`user password ${as} root --password 87654321`, at)
      const copyHeaders = await signIn(server.url, as, 'root', '87654321')
      const [left, right] = [
        await countThings(server.url, copyHeaders, 'left'),
        await countThings(server.url, copyHeaders, 'right'),
      ]
      expect(left).toBe(right)
      expect(left).toBeWithin(atLeast, atMost + 1)
    }
    expect((await runAtoll('doctor --deep', at)).code).toBe(0)
  })

  test.concurrent('a backup that is killed leaves nothing that counts as one, and the next removes its rest in time', async () => {
    const at = { at: createTempFolder() }
    await createTenantByCli(at, 'acme')
    mkdirSync(join(at.at, 'backups'))
    for (const delay of [150, 250, 350]) {
      const child = Bun.spawn([binaryPath(), 'backup', '--to', 'backups'], {
        cwd: at.at,
        stderr: 'ignore',
        stdout: 'ignore',
      })
      await Bun.sleep(delay)
      child.kill('SIGKILL')
      await child.exited
    }
    const { json: listed } = await runAtoll('backup --list --to backups --json', at)
    const made = await runAtoll('backup acme --to backups --json', at)
    expect(made.code).toBe(0)
    for (const { place } of [...listed, ...made.json.backups])
      if (!place.includes('.installation')) expect((await runAtoll(['restore', place, '--yes'], at)).code).toBe(0)
  })
})

test.concurrent('a whole installation is restored from an encrypted backup in S3 into an empty folder, with its keys', async () => {
  await using store = await startS3Server('backups')
  const env = { ...store.env, ATOLL_BACKUP_TO: 's3://backups/atoll', ATOLL_BACKUP_PASSPHRASE: 'a long passphrase' }
  const at = { at: createTempFolder(), env }
  await createTenantByCli(at, 'acme')
  await createTenantByCli(at, 'other')
  const made = await runAtoll('backup --json', { ...at, timeout: 90_000 })
  expect([made.code, made.err.includes('"step":"copying"')]).toEqual([0, true])
  expect(made.json.backups.map(({ place }: { place: string }) => place.slice(0, 23))).toEqual([
    's3://backups/atoll/acme',
    's3://backups/atoll/othe',
  ])
  const empty = { at: createTempFolder(), env }
  const restored = await runAtoll('restore s3://backups/atoll --json', { ...empty, timeout: 90_000 })
  expect([restored.code, restored.json.missing, restored.json.failed]).toEqual([0, [], []])
  expect((await runAtoll('doctor', empty)).code).toBe(0)
  await using server = await startAtoll(empty)
  expect((await apiCaller(server.url, await signIn(server.url, 'acme'))('GET', '/api/me')).body.username).toBe('root')
  expect((await apiCaller(server.url, { host: 'other.test' })('GET', '/api/me')).body.code).toBe('UNAUTHENTICATED')
  const again = await runAtoll('restore s3://backups/atoll --json', empty)
  expect([again.code, JSON.parse(again.err.trim().split('\n').at(-1)!).code]).toEqual([1, 'INSTALLATION_EXISTS'])
  const list = await runAtoll('backup --list', at)
  expect(list.out).toMatch(/installation +\S+ +[\d.]+ KiB +encrypted +s3:\/\/backups\/atoll\/.installation\//)
})

test.concurrent('a backup without encryption has no keys, and a restored installation asks for them', async () => {
  const at = { at: createTempFolder() }
  await createTenantByCli(at, 'acme')
  const made = await runAtoll('backup --to backups', at)
  expect(made.out).toContain('Unencrypted backups do not include the keys (secrets.json).')
  renameSync(join(at.at, 'tenants'), join(at.at, 'before'))
  const refused = await runAtoll('restore backups', at)
  expect([refused.code, refused.err]).toEqual([1, expect.stringContaining('Put the secrets.json of its origin into')])
  mkdirSync(join(at.at, 'tenants'), { recursive: true })
  renameSync(join(at.at, 'before/secrets.json'), join(at.at, 'tenants/secrets.json'))
  const restored = await runAtoll('restore backups', at)
  expect([restored.code, restored.out]).toEqual([0, expect.stringContaining('Restored the tenant "acme"')])
  expect((await runAtoll('doctor', at)).code).toBe(0)
})

test.concurrent('a target that cannot be reached or written is told, and ends with exit code 1', async () => {
  const at = { at: createTempFolder() }
  await createTenantByCli(at, 'acme')
  await Bun.write(join(at.at, 'file'), 'x')
  const results = [
    [await runAtoll('backup acme --to file/below', at), 'a part of its path is not a folder'],
    [await runAtoll('backup acme --to s3://backups', at), 'set S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY'],
  ] as const
  for (const [{ code, out }, reason] of results) expect([code, out]).toEqual([1, expect.stringContaining(reason)])
  for (const [to, reason] of [
    ['nowhere', 'cannot be read: there is no such folder'],
    ['file/below', 'cannot be read: a part of its path is not a folder'],
    ['s3://backups', 'cannot be read: set S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY'],
  ])
    for (const tenant of ['', 'acme']) {
      const { code, err } = await runAtoll(`backup ${tenant} --list --to ${to} --json`, at)
      const { code: name, message } = JSON.parse(err)
      expect([code, name, message]).toEqual([1, 'BACKUP_TARGET_FAILED', expect.stringContaining(`${reason}`)])
    }
  expect(await runAtoll('backup acme --to ftp://x', at)).toMatchObject({ code: 1 })
  expect(await runAtoll('backup acme', at)).toMatchObject({ code: 2, err: expect.stringContaining('ATOLL_BACKUP_TO') })
  expect(await runAtoll('restore nowhere', at)).toMatchObject({
    code: 1,
    err: expect.stringContaining('There is no backup'),
  })
  expect(await runAtoll('restore nowhere --at yesterday', at)).toMatchObject({ code: 2 })
})

test.concurrent('a server makes scheduled backups, removes old ones, and ends at once while it makes one', async () => {
  const backups = join(createTempFolder(), 'backups')
  const env = { ATOLL_BACKUP_TO: backups, ATOLL_BACKUP_SCHEDULE: '* * * * * *' }
  const at = { at: createTempFolder(), env: { ...env, ATOLL_BACKUP_KEEP: 'daily=1 weekly=0 monthly=0' } }
  await createTenantByCli(at, 'acme')
  const refused = await runAtoll('serve', { ...at, env: { ATOLL_BACKUP_SCHEDULE: '0 3 * * *' } })
  expect([refused.code, refused.err]).toEqual([2, expect.stringContaining('Set ATOLL_BACKUP_TO, too.')])
  const invalid = await runAtoll('serve', { ...at, env: { ...env, ATOLL_BACKUP_SCHEDULE: '99 3 * * *' } })
  expect([invalid.code, invalid.err]).toEqual([2, expect.stringContaining('is not a valid schedule')])
  const old = join(backups, 'acme/2020-01-31T00-00-00.000Z')
  await runAtoll('backup acme', at)
  const [name] = readdirSync(join(backups, 'acme'))
  renameSync(join(backups, 'acme', name!), old)
  await using server = await startAtoll(at)
  const isDone = () => !existsSync(old) && readdirSync(join(backups, '.installation')).length > 0
  expect(await waitUntil(async () => isDone(), Boolean)).toBe(true)
  expect(await server.end('SIGTERM')).toBe(0)
  rmSync(backups, { recursive: true })
})
