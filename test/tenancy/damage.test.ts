import { Database } from 'bun:sqlite'
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import {
  apiCaller,
  createTempFolder,
  createTenantByCli,
  type RunningAtoll,
  readMetric,
  runAtoll,
  signIn,
  startAtoll,
} from '../fakes/cli'
import { createDatabase, queryDatabase } from '../fakes/postgres'
import { databaseUrl } from '../storage/engines'
import { waitUntil } from '../wait-until'

setDefaultTimeout(60_000)

const findCheck = (json: { checks: { check: string; ok: boolean; message: string }[] }, name: string) =>
  json.checks.find(({ check }) => check === name)
const statusAndCode = async (server: RunningAtoll, tenant: string) => {
  const { status, body } = await apiCaller(server.url, { tenant, 'x-api-key': `atl_${'0'.repeat(64)}` })(
    'GET',
    '/api/me',
  )
  return [status, body.code]
}

describe.skipIf(!!databaseUrl)('a tenant with a damaged database file', () => {
  const faults: [string, (file: string) => void][] = [
    ['missing', (file) => rmSync(file)],
    ['empty', (file) => writeFileSync(file, '')],
    ['not a database', (file) => writeFileSync(file, 'Hello, I am a text, and a long one. '.repeat(200))],
    ['that of another tenant', (file) => writeFileSync(file, readFileSync(file.replace('acme', 'other')))],
    ['missing together with its folder', (file) => rmSync(join(file, '..'), { recursive: true })],
  ]
  test.each(faults)(
    'a tenant whose database is %s answers 503 TENANT_DAMAGED, and doctor advises to restore it',
    async (_, damage) => {
      const at = { at: createTempFolder() }
      for (const id of ['acme', 'other']) await createTenantByCli(at, id)
      const file = join(at.at, 'tenants/acme/data.db')
      damage(file)
      const left = existsSync(file) ? readFileSync(file) : undefined
      const doctor = await runAtoll('doctor --json', at)
      expect(doctor.code).toBe(1)
      expect(findCheck(doctor.json, 'tenant acme')).toMatchObject({
        ok: false,
        message: expect.stringContaining('Restore it'),
      })
      expect(findCheck(doctor.json, 'tenant other')).toMatchObject({ ok: true })
      await using server = await startAtoll(at)
      expect(await statusAndCode(server, 'acme')).toEqual([503, 'TENANT_DAMAGED'])
      const body = { username: 'root', password: 'correct horse' }
      const signedIn = await apiCaller(server.url, { tenant: 'acme' })('POST', '/api/signin', body)
      expect([signedIn.status, signedIn.body.code]).toEqual([503, 'TENANT_DAMAGED'])
      expect(await statusAndCode(server, 'other')).toEqual([401, 'UNAUTHENTICATED'])
      expect(existsSync(file) ? readFileSync(file) : undefined).toEqual(left)
      expect(await readMetric(server.url, 'atoll_damaged_tenants')).toBe(1)
      await server.end('SIGTERM')
      const logLines = (await server.logged)
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line))
      expect(logLines).toMatchObject([{ what: 'TENANT_DAMAGED', tenant: 'acme', reason: expect.any(String) }])
    },
  )
})

test.skipIf(!!databaseUrl)(
  'a served tenant whose folder is moved away answers TENANT_DAMAGED, and works again once the folder is back',
  async () => {
    const at = { at: createTempFolder() }
    await createTenantByCli(at, 'acme')
    await using server = await startAtoll(at)
    const call = apiCaller(server.url, await signIn(server.url, 'acme'))
    const create = (key: string) => call('POST', '/api/blueprints', { key, name: key, fields: [] })
    expect((await create('before')).status).toBe(201)
    renameSync(join(at.at, 'tenants/acme'), join(at.at, 'tenants/acme.away'))
    for (const key of ['one', 'two']) expect((await create(key)).body.code).toBe('TENANT_DAMAGED')
    renameSync(join(at.at, 'tenants/acme.away'), join(at.at, 'tenants/acme'))
    expect((await create('after')).status).toBe(201)
    expect((await call('GET', '/api/blueprints/before')).status).toBe(200)
  },
)

describe.skipIf(!!databaseUrl)('a lost registry', () => {
  test('doctor and the server report tenant folders missing in the registry, and `tenant adopt` registers them', async () => {
    const at = { at: createTempFolder() }
    await createTenantByCli(at, 'acme')
    for (const end of ['', '-wal', '-shm']) rmSync(join(at.at, `tenants/registry.db${end}`), { force: true })
    const before = await runAtoll('doctor --json', at)
    expect([before.code, findCheck(before.json, 'folder acme')?.message]).toEqual([
      1,
      expect.stringContaining('tenant adopt acme'),
    ])
    {
      await using server = await startAtoll(at)
      expect(await statusAndCode(server, 'acme')).toEqual([404, 'TENANT_NOT_FOUND'])
      expect(await readMetric(server.url, 'atoll_faults_total', { fault: 'UNKNOWN_FOLDERS' })).toBe(1)
      await server.end('SIGTERM')
      expect(await server.logged).toContain('"what":"UNKNOWN_FOLDERS"')
      expect(await server.logged).toContain('"folders":["acme"]')
    }
    expect(findCheck((await runAtoll('doctor --json', at)).json, 'folder acme')?.ok).toBeFalse()
    const adopted = await runAtoll('tenant adopt tenants/acme --host acme.test --json', at)
    expect([adopted.code, adopted.json]).toMatchObject([0, { id: 'acme', hosts: ['acme.test'] }])
    expect((await runAtoll('doctor --json', at)).code).toBe(0)
    await using server = await startAtoll(at)
    const me = await apiCaller(server.url, await signIn(server.url, 'acme'))('GET', '/api/me')
    expect(me.body.username).toBe('root')
  })

  test('`tenant adopt` refuses a taken id or host, a damaged or foreign database and a folder elsewhere', async () => {
    const at = { at: createTempFolder() }
    await createTenantByCli(at, 'acme')
    const folder = (name: string) => join(at.at, 'tenants', name)
    symlinkSync(folder('acme'), folder('link'))
    for (const name of ['text', 'foreign', 'nothing']) mkdirSync(folder(name))
    await Bun.write(join(at.at, 'elsewhere/far/data.db'), 'x')
    await Bun.write(join(folder('text'), 'data.db'), 'Hello, I am a text, and a long one. '.repeat(200))
    const foreign = new Database(join(folder('foreign'), 'data.db'))
    foreign.run('create table mine (a)')
    foreign.close()
    const refusals = {
      acme: 'TENANT_EXISTS',
      link: 'TENANT_EXISTS',
      text: 'DATABASE_DAMAGED',
      foreign: 'DATABASE_DAMAGED',
      nothing: 'FOLDER_NOT_FOUND',
      'elsewhere/far': 'INVALID_INPUT',
      '../acme': 'INVALID_INPUT',
    }
    for (const [name, code] of Object.entries(refusals)) {
      const { code: exit, err } = await runAtoll(`tenant adopt ${name} --json`, at)
      expect([name, exit, JSON.parse(err).code]).toEqual([name, 1, code])
    }
    expect((await runAtoll('tenant list --json', at)).json).toHaveLength(1)
    await runAtoll('tenant hosts acme acme.test', at)
    renameSync(folder('acme'), folder('acme-again'))
    rmSync(folder('link'))
    const { err } = await runAtoll('tenant adopt acme-again --host acme.test --json', at)
    expect(JSON.parse(err)).toMatchObject({
      code: 'HOST_TAKEN',
      message: expect.stringContaining('belongs to the tenant'),
    })
  })
})

test.skipIf(!!databaseUrl)(
  '`doctor --deep` reports the tenant whose database has damaged pages, and no other',
  async () => {
    const at = { at: createTempFolder() }
    for (const id of ['acme', 'other']) await createTenantByCli(at, id)
    expect((await runAtoll('doctor --deep --json', at)).code).toBe(0)
    const file = join(at.at, 'tenants/acme/data.db')
    const bytes = readFileSync(file)
    // The first bytes of a page hold its type.
    for (let page = 8; page < bytes.length / 4_096; page += 3) bytes.fill(0xaa, page * 4_096, page * 4_096 + 40)
    writeFileSync(file, bytes)
    const { code, json } = await runAtoll('doctor --deep --json', at)
    expect([code, findCheck(json, 'tenant acme')?.ok, findCheck(json, 'tenant other')?.ok]).toEqual([1, false, true])
    expect(findCheck(json, 'tenant acme')?.message).toContain('Restore it')
  },
)

describe.skipIf(!!databaseUrl)('the keys in secrets.json', () => {
  const faults: [string, (file: string) => void, RegExp][] = [
    ['missing', (file) => rmSync(file), /is missing, though there are data/],
    ['empty', (file) => writeFileSync(file, ''), /is damaged/],
    ['not JSON', (file) => writeFileSync(file, '{"signingKey"'), /is damaged/],
    ['without keys', (file) => writeFileSync(file, '{}'), /is damaged/],
    [
      'those of another installation',
      (file) => writeFileSync(file, JSON.stringify({ signingKey: 'a'.repeat(43), vaultKey: 'b'.repeat(43) })),
      /has other keys/,
    ],
  ]
  test.each(faults)(
    'keys in secrets.json that are %s stop `serve` with exit code 2 and one sentence, and doctor reports them',
    async (_, damage, reason) => {
      const at = { at: createTempFolder(), timeout: 60_000 }
      await createTenantByCli(at, 'acme')
      const file = join(at.at, 'tenants/secrets.json')
      const good = readFileSync(file)
      damage(file)
      const left = existsSync(file)
      const { code, out, err } = await runAtoll('serve --json', at)
      expect([code, out]).toEqual([2, ''])
      expect(err).toMatch(reason)
      expect(err.trim().split('\n')).toHaveLength(1)
      expect(existsSync(file)).toBe(left)
      const doctor = await runAtoll('doctor --json', at)
      expect([doctor.code, findCheck(doctor.json, 'secrets')?.message]).toEqual([1, expect.stringMatching(reason)])
      writeFileSync(file, good, { mode: 0o600 })
      expect((await runAtoll('doctor --json', at)).code).toBe(0)
      await using server = await startAtoll(at)
      await signIn(server.url, 'acme')
    },
  )

  test('`vault new-keys --yes` replaces lost keys, and without --yes it exits with code 2', async () => {
    const at = { at: createTempFolder() }
    await createTenantByCli(at, 'acme')
    rmSync(join(at.at, 'tenants/secrets.json'))
    expect((await runAtoll('vault new-keys', at)).code).toBe(2)
    expect((await runAtoll('vault new-keys --yes', at)).code).toBe(0)
    await using server = await startAtoll(at)
    await signIn(server.url, 'acme')
  })

  test('a server sets a readable secrets.json to mode 600 at its start and logs SECRETS_FILE_WAS_OPEN', async () => {
    const at = { at: createTempFolder() }
    await createTenantByCli(at, 'acme')
    const file = join(at.at, 'tenants/secrets.json')
    chmodSync(file, 0o644)
    expect(findCheck((await runAtoll('doctor --json', at)).json, 'secrets')?.ok).toBeFalse()
    await using server = await startAtoll(at)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    await server.end('SIGTERM')
    expect(await server.logged).toContain('SECRETS_FILE_WAS_OPEN')
  })

  test('a server accepts rotated keys and exits with code 2 when the file holds the keys before the rotation', async () => {
    const at = { at: createTempFolder(), timeout: 60_000 }
    await createTenantByCli(at, 'acme')
    const file = join(at.at, 'tenants/secrets.json')
    const old = readFileSync(file)
    expect((await runAtoll('vault rotate --json', at)).code).toBe(0)
    expect((await runAtoll('doctor --json', at)).code).toBe(0)
    writeFileSync(file, old)
    expect((await runAtoll('serve', at)).code).toBe(2)
  })
})

/** The triggers that record changes need the tenant. */
const AS_REGISTRY = "set search_path to atoll_registry; set app.tenant to '00000000-0000-0000-0000-000000000000'"

describe.skipIf(!databaseUrl)('damage on PostgreSQL', () => {
  test('keys in PostgreSQL that are missing, damaged or foreign stop `serve` with exit code 2', async () => {
    const url = await createDatabase(databaseUrl!)
    const at = { at: createTempFolder(), env: { ATOLL_DATABASE_URL: url }, timeout: 60_000 }
    await createTenantByCli(at, 'acme')
    const [{ value }] = await queryDatabase(url, "select value from atoll_registry.secrets where name = 'keys'")
    const changes: [string, RegExp][] = [
      ["delete from atoll_registry.secrets where name = 'keys'", /is missing/],
      ["update atoll_registry.secrets set value = '{}' where name = 'keys'", /is damaged/],
      [
        `update atoll_registry.secrets set value = '${JSON.stringify({ signingKey: 'a'.repeat(43), vaultKey: 'b'.repeat(43) })}'
          where name = 'keys'`,
        /has other keys/,
      ],
    ]
    for (const [change, reason] of changes) {
      await queryDatabase(url, `${AS_REGISTRY}; ${change}`)
      const { code, err } = await runAtoll('serve', at)
      expect([code, err]).toEqual([2, expect.stringMatching(reason)])
      const doctor = await runAtoll('doctor --json', at)
      expect(findCheck(doctor.json, 'secrets')).toMatchObject({ ok: false, message: expect.stringMatching(reason) })
      await queryDatabase(
        url,
        `${AS_REGISTRY}; delete from atoll_registry.secrets where name = 'keys';
          insert into atoll_registry.secrets (name, value) values ('keys', '${value}')`,
      )
    }
    await using server = await startAtoll(at)
    await signIn(server.url, 'acme')
  })

  test('a tenant whose lock row is missing in PostgreSQL answers 503 TENANT_DAMAGED, and other tenants do not', async () => {
    const url = await createDatabase(databaseUrl!)
    const at = { at: createTempFolder(), env: { ATOLL_DATABASE_URL: url } }
    for (const id of ['acme', 'other']) await createTenantByCli(at, id)
    const [{ uid }] = await queryDatabase(url, "select uid from atoll_registry.tenants where id = 'acme'")
    await queryDatabase(url, 'delete from atoll_b0001.tenant_lock where tenant_id = $1', [uid])
    expect(findCheck((await runAtoll('doctor --json', at)).json, 'tenant acme')).toMatchObject({ ok: false })
    await using server = await startAtoll(at)
    const answer = await waitUntil(
      () => statusAndCode(server, 'acme'),
      ([status]) => status === 503,
    )
    expect(answer).toEqual([503, 'TENANT_DAMAGED'])
    expect(await statusAndCode(server, 'other')).toEqual([401, 'UNAUTHENTICATED'])
  })
})
