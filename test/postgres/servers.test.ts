import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { eq } from 'drizzle-orm'
import { config } from '../../src/config'
import { tenantFolder } from '../../src/tenancy/databases'
import { prepareMove } from '../../src/tenancy/move'
import { registry } from '../../src/tenancy/registry'
import { announceServer, findLocalFilesRisk, listLiveServers } from '../../src/tenancy/servers'
import { tenants } from '../../src/tenancy/tables'
import { createTempFolder, runAtoll } from '../fakes/cli'
import { fileClient, listStored } from '../files/fixtures'
import { errorOf } from '../rejections'
import { createTestTenant } from '../test-tenant'
import { waitUntil } from '../wait-until'

setDefaultTimeout(60_000)

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
