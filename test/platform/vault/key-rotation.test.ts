import { expect, setDefaultTimeout, test } from 'bun:test'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { binaryPath } from '../../fakes/binary'
import {
  apiCaller,
  createTempFolder,
  createTenantByCli,
  type RunOptions,
  runAtoll,
  signIn,
  startAtoll,
} from '../../fakes/cli'
import { createDatabase, queryDatabase } from '../../fakes/postgres'
import { databaseUrl } from '../../storage/engines'
import { waitUntil } from '../../wait-until'

setDefaultTimeout(60_000)

/** Starts a server with two tenants, each with encrypted data of its admin. */
async function startInstallation(rows = 3) {
  const at: RunOptions = { at: createTempFolder() }
  if (databaseUrl) {
    at.env = { ATOLL_DATABASE_URL: await createDatabase(databaseUrl) }
    await runAtoll('postgres init', at)
  }
  const ids = ['one', 'two'].map((name) => `${name}-${crypto.randomUUID().slice(0, 8)}`)
  for (const id of ids) await createTenantByCli(at, id)
  const server = await startAtoll(at)
  const tenants = await Promise.all(
    ids.map(async (id) => {
      const headers = await signIn(server.url, id)
      const user = (await apiCaller(server.url, headers)('GET', '/api/me')).body._id
      const named = (name: string) => apiCaller(server.url, { ...headers, 'x-encrypted-id': name })
      const path = `/api/users/${user}/encrypted`
      const put = async (name: string, body: object) => (await named(name)('POST', path, body)).status
      const get = async (name: string) => (await named(name)('GET', path)).body
      await Promise.all(Array.from({ length: rows }, (_, n) => put(`${n}`, { of: id, n })))
      return { id, put, get }
    }),
  )
  const expectReadable = async () => {
    for (const { id, get } of tenants) for (let n = 0; n < rows; n++) expect(await get(`${n}`)).toEqual({ of: id, n })
  }
  return { at, server, tenants, expectReadable }
}

async function readSecrets({ at, env }: RunOptions) {
  const file = join(at, 'tenants', 'secrets.json')
  if (!databaseUrl) return JSON.parse(readFileSync(file, 'utf8'))
  const [row] = await queryDatabase(
    env!.ATOLL_DATABASE_URL!,
    "select value from atoll_registry.secrets where name = 'keys'",
  )
  return JSON.parse(row.value)
}
const rotateKey = (at: RunOptions) => runAtoll('vault rotate --json', at)

test('vault rotate re-encrypts the data of all tenants with a new key while they are served, and forgets the old key', async () => {
  const { at, server, tenants, expectReadable } = await startInstallation(60)
  await using _ = server
  const before = await readSecrets(at)
  const { code, json } = await rotateKey(at)
  expect([code, json]).toEqual([0, { key: 2, tenants: 2, sealed: 120, lost: 0, failed: [] }])
  const after = await readSecrets(at)
  expect(after).toEqual({ signingKey: before.signingKey, vaultKey: expect.any(String), vaultKeyNumber: 2 })
  expect(after.vaultKey).not.toBe(before.vaultKey)
  if (!databaseUrl) expect(statSync(join(at.at, 'tenants', 'secrets.json')).mode & 0o777).toBe(0o600)
  await expectReadable()
  expect(await tenants[0]!.put('new', { a: 1 })).toBe(200)
  expect(await tenants[0]!.get('new')).toEqual({ a: 1 })
  expect((await rotateKey(at)).json.key).toBe(3)
  await expectReadable()
})

test('data that is written during rotations stays readable', async () => {
  const { at, server, tenants, expectReadable } = await startInstallation(20)
  await using _ = server
  const written: { tenant: (typeof tenants)[number]; name: string }[] = []
  let running = true
  const writing = tenants.map(async (tenant) => {
    for (let n = 0; running; n++) {
      const name = `during-${n}`
      if ((await tenant.put(name, { n })) === 200) written.push({ tenant, name })
      if (n % 3 === 0) expect(await tenant.get(name)).toEqual({ n })
    }
  })
  for (let n = 0; n < 3; n++) expect((await rotateKey(at)).json.failed).toEqual([])
  running = false
  await Promise.all(writing)
  expect(written.length).toBeGreaterThan(20)
  for (const { tenant, name } of written) expect(await tenant.get(name)).toEqual({ n: Number(name.split('-')[1]) })
  await expectReadable()
})

test('an interrupted rotation keeps the former key, and the next rotation completes it', async () => {
  const { at, server, expectReadable } = await startInstallation(60)
  await using _ = server
  let interrupted = 0
  for (let n = 0; n < 4; n++) {
    const before = await readSecrets(at)
    const child = Bun.spawn([binaryPath(), 'vault', 'rotate'], {
      cwd: at.at,
      env: { PATH: process.env.PATH ?? '', ATOLL_DURABILITY: 'normal', ...at.env },
      stdout: 'ignore',
      stderr: 'ignore',
    })
    const begun = await waitUntil(
      async () => !!(await readSecrets(at)).formerVaultKeys || child.exitCode !== null,
      (so) => so,
    )
    expect(begun).toBe(true)
    await Bun.sleep(n * 5)
    child.kill('SIGKILL')
    await child.exited
    const after = await readSecrets(at)
    if (!after.formerVaultKeys) continue
    interrupted++
    // The keys of data that is not yet re-encrypted are kept.
    if (before.formerVaultKeys) expect(after).toEqual(before)
    else expect(after.formerVaultKeys).toEqual({ [before.vaultKeyNumber ?? 1]: before.vaultKey })
    await expectReadable()
  }
  expect(interrupted).toBeGreaterThan(0)
  const { code, json } = await rotateKey(at)
  expect([code, json.failed, json.lost]).toEqual([0, [], 0])
  expect((await readSecrets(at)).formerVaultKeys).toBeUndefined()
  await expectReadable()
})

test('three simultaneous rotations end with one key that decrypts everything', async () => {
  const { at, server, expectReadable } = await startInstallation(60)
  await using _ = server
  const results = await Promise.all([rotateKey(at), rotateKey(at), rotateKey(at)])
  expect(results.map(({ code }) => code)).toEqual([0, 0, 0])
  expect((await readSecrets(at)).formerVaultKeys).toBeUndefined()
  await expectReadable()
})

test('a suspended tenant is rotated, too, and a tenant that cannot be opened is reported and keeps the old key', async () => {
  const { at, server, tenants, expectReadable } = await startInstallation()
  await using _ = server
  await runAtoll(`tenant suspend ${tenants[0]!.id}`, at)
  expect((await rotateKey(at)).json.failed).toEqual([])
  await runAtoll(`tenant resume ${tenants[0]!.id}`, at)
  await waitUntil(
    () => tenants[0]!.get('0'),
    (body) => !body.code,
  )
  await expectReadable()
  if (databaseUrl) return
  // The database file of the second tenant is replaced by a file that is not a database.
  const { chmodSync, renameSync, writeFileSync } = await import('node:fs')
  const file = join(at.at, 'tenants', tenants[1]!.id, 'data.db')
  await server.end('SIGTERM')
  renameSync(file, `${file}.away`)
  writeFileSync(file, 'this is no database, and never was one '.repeat(200))
  chmodSync(file, 0o600)
  const refused = await rotateKey(at)
  expect([refused.code, refused.json.failed]).toMatchObject([1, [{ tenant: tenants[1]!.id }]])
  expect(Object.keys((await readSecrets(at)).formerVaultKeys)).toEqual([`${refused.json.key - 1}`])
  renameSync(`${file}.away`, file)
  expect((await rotateKey(at)).json).toMatchObject({ key: refused.json.key, failed: [] })
  expect((await readSecrets(at)).formerVaultKeys).toBeUndefined()
})
