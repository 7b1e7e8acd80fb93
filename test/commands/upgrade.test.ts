// engine: sqlite
import { Database } from 'bun:sqlite'
import { expect, setDefaultTimeout, test } from 'bun:test'
import { chmodSync, statSync } from 'node:fs'
import { join } from 'node:path'
import BetterSqlite from 'better-sqlite3'
import { tenantMigrations } from '../../migrations'
import { createTempFolder, createTenantByCli, runAtoll, startAtoll } from '../fakes/cli'
import { waitUntil } from '../wait-until'

setDefaultTimeout(60_000)

const current = tenantMigrations.sqlite.length

const laterVersion = [process.execPath, join(import.meta.dir, 'later-version.ts')]

const readSchemaVersion = (at: string, tenant: string) => {
  const database = new Database(join(at, 'tenants', tenant, 'data.db'))
  const [[version]] = database.query('pragma user_version').values() as [[number]]
  database.close()
  return version
}

const readRecorded = (at: string) => {
  const database = new Database(join(at, 'tenants/registry.db'))
  const rows = database.query('select id, schema_version, schema_problem from tenants order by id').values()
  database.close()
  return rows
}

test('upgrade --check tells what each tenant needs, and refuses a database of a newer version', async () => {
  const at = { at: createTempFolder() }
  const later = { ...at, program: laterVersion }
  await createTenantByCli(at, 'acme')
  await createTenantByCli(at, 'newer')
  const same = await runAtoll('upgrade --check --json', at)
  expect(same).toMatchObject({ code: 0, json: { schemaVersion: current, problems: [] } })
  const database = new Database(join(at.at, 'tenants/newer/data.db'))
  database.run(`pragma user_version = ${current + 2}`)
  database.close()
  const { code, json } = await runAtoll('upgrade --check --json', later)
  expect([code, json.tenants]).toEqual([
    1,
    [
      expect.objectContaining({
        ...{ tenant: 'acme', schemaVersion: current, pending: 1, rewrites: false, problem: null },
      }),
      expect.objectContaining({ tenant: 'newer', problem: expect.stringContaining('is newer than this release') }),
    ],
  ])
  expect(readSchemaVersion(at.at, 'acme')).toBe(current)
  expect((await runAtoll('upgrade --check', later)).out).toMatch(/1 of 2 tenants would be upgraded.*\nacme +schema/)
})

test('a later version brings the databases of this one up to date, which this one then refuses', async () => {
  const at = { at: createTempFolder() }
  await createTenantByCli(at, 'acme')
  const migrated = await runAtoll('migrate --json', { ...at, program: laterVersion })
  expect([migrated.code, migrated.json]).toEqual([0, [{ tenant: 'acme' }]])
  expect(readSchemaVersion(at.at, 'acme')).toBe(current + 1)
  const earlier = await runAtoll('migrate --json', at)
  expect([earlier.code, earlier.err]).toEqual([1, expect.stringContaining('is newer than this release')])
})

test('a server brings tenants that nobody uses up to date in the background, and records each result', async () => {
  const at = { at: createTempFolder() }
  for (const id of ['acme', 'broken', 'third']) await createTenantByCli(at, id)
  const registry = new Database(join(at.at, 'tenants/registry.db'))
  registry.run('update tenants set schema_version = null')
  registry.close()
  const broken = new Database(join(at.at, 'tenants/broken/data.db'))
  broken.run(`pragma user_version = ${current + 1}`)
  broken.close()
  await using server = await startAtoll(at)
  const isDone = (rows: unknown[][]) => rows.every(([, version, problem]) => version !== null || problem !== null)
  expect(await waitUntil(async () => readRecorded(at.at), isDone)).toEqual([
    ['acme', current, null],
    ['broken', null, expect.stringContaining('is newer than this release')],
    ['third', current, null],
  ])
  expect(await server.end('SIGTERM')).toBe(0)
})

test('doctor --fix builds damaged indexes anew and protects the keys, and says so', async () => {
  const at = { at: createTempFolder() }
  await createTenantByCli(at, 'acme')
  const database = new BetterSqlite(join(at.at, 'tenants/acme/data.db')).unsafeMode()
  database.exec('create index users_for_test on users (_id) where 0; pragma writable_schema = on')
  // The definition of the index changes without the index, so it lacks all rows.
  database.exec(
    "update sqlite_schema set sql = 'CREATE INDEX users_for_test on users (_id)' where name = 'users_for_test'",
  )
  database.close()
  chmodSync(join(at.at, 'tenants/secrets.json'), 0o644)
  const before = await runAtoll('doctor --deep', at)
  expect([before.code, before.out]).toEqual([1, expect.stringContaining('Run "atoll doctor --deep --fix"')])
  const fixed = await runAtoll('doctor --deep --fix', at)
  expect(fixed.out).toContain('MENDED  tenant acme: Its indexes were built anew from their tables.')
  expect(fixed.out).toContain('MENDED  secrets: Only the owner of secrets.json can read it now.')
  expect([fixed.code, statSync(join(at.at, 'tenants/secrets.json')).mode & 0o777]).toEqual([0, 0o600])
  expect((await runAtoll('doctor --deep', at)).code).toBe(0)
})
