import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { eq } from 'drizzle-orm'
import { config } from '../../src/config'
import { tenantFolder } from '../../src/tenancy/databases'
import { prepareMove } from '../../src/tenancy/move'
import { registry } from '../../src/tenancy/registry'
import { announceServer, findLocalFilesRisk, listLiveServers } from '../../src/tenancy/servers'
import { tenants } from '../../src/tenancy/tables'
import { apiCaller, createTempFolder, createTenantByCli, readMetric, runAtoll, startAtoll } from '../fakes/cli'
import { createDatabase, queryDatabase } from '../fakes/postgres'
import { fileClient, listStored } from '../files/fixtures'
import { errorOf } from '../rejections'
import { databaseUrl } from '../storage/engines'
import { createTestTenant } from '../test-tenant'
import { waitUntil } from '../wait-until'

setDefaultTimeout(120_000)

const OTHER = 'elsewhere 1'

/** Records the heartbeat of a server on another machine. */
const beatElsewhere = () =>
  registry.write(({ query }) =>
    query(
      `insert into servers (name, details, started, seen) values (?, ?, 1, (select now from clock))
       on conflict ("name") do update set seen = excluded.seen`,
      [OTHER, JSON.stringify({ folder: 'elsewhere:/tenants' })],
    ),
  )
afterAll(() => registry.write(({ query }) => query('delete from servers where name = ?', [OTHER])))

test.skipIf(!config.ATOLL_DATABASE_URL)(
  'a server sees others, warns about local files, and keeps tenants out of files',
  async () => {
    const t = await createTestTenant()
    const withdraw = announceServer()
    try {
      await waitUntil(async () => (await listLiveServers()).length === 1)
      expect(await findLocalFilesRisk()).toBeUndefined()
      await using alone = await prepareMove(t.id, 'sqlite')
      await alone[Symbol.asyncDispose]()
      await beatElsewhere()
      expect(await findLocalFilesRisk()).toContain(OTHER)
      expect(await errorOf(prepareMove(t.id, 'sqlite'))).toMatchObject({
        status: 409,
        code: 'SEVERAL_SERVERS',
        message: expect.stringContaining(OTHER),
      })
      const uploaded = await fileClient(t, t.tokens.user).upload('hello')
      for (const name of listStored(t.id)) rmSync(join(tenantFolder(t.id), 'files', name))
      const missing = await t.as('user').get(`/files/${uploaded.body._id}/content`)
      expect([missing.status, missing.body.code]).toEqual([404, 'FILE_CONTENT_MISSING'])
      expect(missing.body.message).toContain('Another server may have it: set ATOLL_FILES_URL')
    } finally {
      withdraw()
    }
  },
)

test.skipIf(!config.ATOLL_DATABASE_URL)('a tenant whose file is on another server is not called damaged', async () => {
  const t = await createTestTenant()
  await registry.write((tx) =>
    tx
      .update(tenants)
      .set({ home: '', moved: '2026-11-28T12:00:00.000Z', fileServer: 'atoll-7' })
      .where(eq(tenants.id, t.id)),
  )
  await Bun.sleep(1_600)
  const answer = await t.as('admin').get('/me')
  expect([answer.status, answer.body.code]).toEqual([503, 'TENANT_ELSEWHERE'])
  expect(answer.body.message).toContain('atoll-7')
})

describe.skipIf(!databaseUrl)('two servers of one database with folders of their own', () => {
  test('two servers are told by the log, doctor, /ready and a metric, and keep tenants out of files until one ends', async () => {
    const env = { ATOLL_DATABASE_URL: await createDatabase(databaseUrl!) }
    const [one, two] = [
      { at: createTempFolder(), env },
      { at: createTempFolder(), env },
    ]
    await createTenantByCli(one, 'acme')
    await using first = await startAtoll(one)
    const readWarnings = async () => (await apiCaller(first.url)('GET', '/ready')).body.warnings ?? []
    const readFault = (url: string, fault: string) => readMetric(url, 'atoll_faults_total', { fault })
    expect(await readWarnings()).toEqual([])
    {
      await using second = await startAtoll(two)
      const [warning] = await waitUntil(readWarnings, ({ length }) => length, 30_000)
      const rows = await queryDatabase(env.ATOLL_DATABASE_URL, 'select name, details from atoll_registry.servers')
      const { name } = rows.find(({ details }) => details.includes(two.at))!
      expect(warning).toContain(`Several servers share this database (${name})`)
      const doctor = await runAtoll('doctor --json', one)
      expect(doctor.json.checks).toContainEqual({ check: 'servers', ok: false, message: warning })
      await waitUntil(() => readFault(first.url, 'LOCAL_FILES_ON_SEVERAL_SERVERS'), Boolean, 30_000)
      const refused = await runAtoll('tenant move acme --to sqlite --json', one)
      const { code, message } = JSON.parse(refused.err.trim().split('\n').at(-1)!)
      expect([refused.code, code, message]).toEqual([1, 'SEVERAL_SERVERS', expect.stringContaining(name)])
      await second.end('SIGTERM')
    }
    await waitUntil(readWarnings, ({ length }) => !length, 30_000)
    expect((await runAtoll('tenant move acme --to sqlite --json', one)).code).toBe(0)
    await first.end('SIGTERM')
    expect(await first.logged).toContain('"what":"LOCAL_FILES_ON_SEVERAL_SERVERS"')
    // Both folders are on this machine, whose name the file has.
    const rename = "update atoll_registry.tenants set file_server = 'atoll-7' where id = 'acme'"
    const app = "set app.tenant to '00000000-0000-0000-0000-000000000000'; set search_path to atoll_registry"
    await queryDatabase(env.ATOLL_DATABASE_URL, `${app}; ${rename}`)
    await using second = await startAtoll(two)
    const answer = await apiCaller(second.url, { tenant: 'acme' })('GET', '/api/auth/providers')
    expect([answer.status, answer.body.code]).toEqual([503, 'TENANT_ELSEWHERE'])
    expect(await readFault(second.url, 'TENANT_ELSEWHERE')).toBe(1)
    const doctor = await runAtoll('doctor --json', two)
    expect(doctor.json.checks).toContainEqual({
      ...{ check: 'tenant acme', ok: false },
      message: expect.stringContaining('in a file of the server atoll-7'),
    })
    await second.end('SIGTERM')
    expect(await second.logged).toContain('"what":"TENANT_ELSEWHERE","tenant":"acme"')
  })
})

const SEVERAL_HOSTS = 'postgres://u@h1,h2/db?target_session_attrs=read-write'
const WRONG_PORT = 'postgres://u@h:port/db'

test.each([
  ['ATOLL_DATABASE_URL', SEVERAL_HOSTS, 'tenant list', 'ATOLL_DATABASE_URL'],
  ['ATOLL_DATABASE_URL', WRONG_PORT, 'tenant list', 'ATOLL_DATABASE_URL'],
  ['ATOLL_DATABASE_CLUSTERS', `eu=${SEVERAL_HOSTS}`, 'postgres status', 'The cluster "eu"'],
  ['ATOLL_DATABASE_CLUSTERS', `eu=${WRONG_PORT}`, 'postgres status', 'The cluster "eu"'],
])(
  '%s with an address that the driver cannot use (%s) stops `atoll %s` with a sentence',
  async (name, value, command, subject) => {
    const at = { at: createTempFolder(), env: { [name]: value } }
    const { code, err } = await runAtoll(`${command} --json`, at)
    const problem = JSON.parse(err)
    expect([code, problem.code]).toEqual([2, 'BAD_SETTING'])
    expect(problem.message).toStartWith(subject)
    expect(err).not.toContain('TypeError')
  },
)

test('doctor says that the address of the registry names several hosts', async () => {
  const at = { at: createTempFolder(), env: { ATOLL_DATABASE_URL: SEVERAL_HOSTS } }
  const { code, json } = await runAtoll('doctor --json', at)
  const check = json.checks.find((each: { check: string }) => each.check === 'registry')
  expect([code, check.ok]).toEqual([1, false])
  expect(check.message).toContain('ATOLL_DATABASE_URL names several hosts (h1,h2)')
})
