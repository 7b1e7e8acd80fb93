// engine: sqlite
import { expect, setDefaultTimeout, test } from 'bun:test'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { freshFolder, sqlite } from './engines'

setDefaultTimeout(120_000)

const ROWS = 500_000
const FILL = `create table numbers (id integer primary key, value integer not null) strict;
  insert into numbers with recursive n (id) as (select 1 union all select id + 1 from n where id < ${ROWS})
    select id, id from n`
// Running it twice would change the values again.
const REWRITE = `create table doubled (id integer primary key, value integer not null) strict;
  insert into doubled select id, 2 * value + 1 from numbers;
  drop table numbers;
  alter table doubled rename to numbers;
  create index numbers_by_value on numbers (value)`

test('a migration that is killed with SIGKILL at different moments loses no row, and a later one completes it exactly once', async () => {
  const folder = freshFolder()
  const location = { tenant: 'a', file: 'data.db' }
  const older = { sqlite: [FILL], postgres: [] }
  const migrations = { sqlite: [FILL, REWRITE], postgres: [], rewriting: [2] }
  await (await sqlite({ folder }).open(location, older)).close()

  const startMigration = () =>
    Bun.spawn([process.execPath, join(import.meta.dir, 'migration-process.ts')], {
      env: { ...process.env, MIGRATION: JSON.stringify({ folder, location, migrations }) },
      stdout: 'pipe',
    })
  const log = join(folder, 'data.db-wal')
  const isWriting = (since: number) => {
    const { mtimeMs = 0, size = 0 } = statSync(log, { throwIfNoEntry: false }) ?? {}
    return mtimeMs >= since && size > 0
  }
  let killed = 0
  for (const delay of [0, 2, 5, 10, 20, 40]) {
    const began = Date.now()
    const migration = startMigration()
    while (!isWriting(began) && migration.exitCode === null) await Bun.sleep(1)
    await Bun.sleep(delay)
    migration.kill('SIGKILL')
    if (!(await new Response(migration.stdout).text())) killed++
    await migration.exited
  }
  expect(killed).toBeGreaterThan(0)
  const last = startMigration()
  expect(await new Response(last.stdout).text()).toBe('migrated\n')

  const { query, close } = await sqlite({ folder }).open(location, migrations)
  expect(await query('select count(*), sum(value = 2 * id + 1) from numbers')).toEqual([[ROWS, ROWS]])
  expect(await query('pragma integrity_check')).toEqual([['ok']])
  await close()
  const copy = await sqlite({ folder }).open({ ...location, file: 'before-1.db' }, older)
  expect(await copy.query('select count(*), sum(value = id) from numbers')).toEqual([[ROWS, ROWS]])
  await copy.close()
})
