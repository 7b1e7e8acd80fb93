// engine: sqlite
import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { existsSync, readdirSync, readlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { tenantMigrations } from '../../migrations'
import { getErrorChain } from '../../src/core/log'
import { drivers, type OpenFile } from '../../src/storage/engines/sqlite/drivers'
import { toRunnable } from '../../src/storage/engines/sqlite/runnable-migrations'
import type { RunQuery } from '../../src/storage/port'
import { errorOf } from '../rejections'
import { fileEngines, freshFolder, sqlite } from './engines'
import { describeTables, schemaCases } from './schema-facts'

const location = { tenant: 'drift', file: 'drift.db' }

async function describeDatabase(ask: RunQuery) {
  const rows = await ask(`
    with t as (select name from sqlite_schema where type = 'table' and name not like 'sqlite_%'
      and name not like 'search_words%' and name not like 'search_chunks%')
    select t.name, c.name || ' ' || lower(c.type) || iif(c."notnull", ' not null', '') from t, pragma_table_info(t.name) c
    union all
    select name, 'primary key (' || group_concat(k, ', ') || ')' from
      (select t.name, c.name as k from t, pragma_table_info(t.name) c where c.pk > 0 order by t.name, c.pk) group by name
    union all
    select name, kind || '(' || group_concat(k, ', ') || ')' from
      (select t.name, i.name as i, c.name as k, iif(i.origin = 'u', 'unique ',
          iif(i."unique", 'unique ', '') || 'index ' || i.name || ' ') as kind
        from t, pragma_index_list(t.name) i, pragma_index_info(i.name) c where i.origin <> 'pk' order by i.name, c.seqno)
      group by name, i
    union all
    select name, 'foreign key (' || group_concat(k, ', ') || ') -> ' || target || ' (' || group_concat(f, ', ')
        || ') on delete ' || lower(on_delete) from
      (select t.name, f.id, f."from" as k, f."to" as f, f."table" as target, f.on_delete
        from t, pragma_foreign_key_list(t.name) f order by t.name, f.id, f.seq)
      group by name, id`)
  return rows.map(([table, fact]) => `${table}: ${fact}`).sort()
}

test.each(schemaCases)('a new %s database has exactly the tables of the code', async (_, tables, migrations) => {
  const engine = sqlite()
  const database = await engine.open(location, migrations)
  expect(tables.length).toBeGreaterThan(2)
  expect(await describeDatabase(database.query)).toEqual(describeTables(tables))
  await database.close()
})

test('a new database runs every migration, and has the version of the last one', async () => {
  const newer = {
    ...tenantMigrations,
    sqlite: [...tenantMigrations.sqlite, 'create table tomorrow (x integer) strict'],
  }
  const { query, close } = await sqlite().open(location, newer)
  expect(await query('pragma user_version')).toEqual([[newer.sqlite.length]])
  expect(await query('select * from tomorrow')).toEqual([])
  await close()
})

test.each(schemaCases)(
  'every foreign key of a %s database has an index for removals of the referenced rows',
  async (_, tables) => {
    const { query, close } = await sqlite().open(location, schemaCases.find(([, of]) => of === tables)![2])
    const facts = await describeDatabase(query)
    for (const fact of facts.filter((one) => one.includes('foreign key'))) {
      const [, table, column] = /^(\w+): foreign key \((\w+)/.exec(fact)!
      const index = new RegExp(`^${table}: (index \\w+|unique|primary key) \\(${column}\\b`)
      expect(
        facts.some((one) => index.test(one)),
        fact,
      ).toBeTrue()
    }
    await close()
  },
)

test.each(fileEngines)('%s: open runs each migration once and stores the schema version', async (_, make) => {
  const folder = freshFolder()
  const sets = [['create table a (x integer) strict'], ['create table b (x integer) strict; insert into b values (1)']]
  const versions: unknown[] = []
  for (const sqlite of [sets.slice(0, 1).flat(), sets.flat(), sets.flat()]) {
    const { query, close } = await make({ folder }).open(location, { sqlite, postgres: [] })
    versions.push((await query('pragma user_version'))[0]![0])
    await close()
  }
  const { query, close } = await make({ folder }).open(location, { sqlite: sets.flat(), postgres: [] })
  expect([versions, await query('select * from b')]).toEqual([[1, 2, 2], [[1]]])
  await close()
})

test.each(fileEngines)('%s: a failing migration leaves the database unchanged', async (_, make) => {
  const folder = freshFolder()
  const good = 'create table a (x integer) strict'
  await (await make({ folder }).open(location, { sqlite: [good], postgres: [] })).close()
  const broken = [good, 'create table b (x integer) strict', 'insert into nowhere values (1)']
  await errorOf(make({ folder }).open(location, { sqlite: broken, postgres: [] }))
  const { query, close } = await make({ folder }).open(location, { sqlite: [good], postgres: [] })
  expect(await query("select name from sqlite_schema where type = 'table'")).toEqual([['a']])
  await close()
})

test.each(fileEngines)('%s: five concurrent opens of a new database migrate it once', async (_, make) => {
  const folder = freshFolder()
  const opened = await Promise.all(Array.from({ length: 5 }, () => make({ folder }).open(location, tenantMigrations)))
  for (const { query } of opened) expect(await query('pragma user_version')).toEqual([[tenantMigrations.sqlite.length]])
  for (const { close } of opened) await close()
})

test.each(fileEngines)('%s: open refuses a database with a newer schema and leaves it unchanged', async (_, make) => {
  const folder = freshFolder()
  const newer = { sqlite: [...tenantMigrations.sqlite, 'create table tomorrow (x integer) strict'], postgres: [] }
  await (await make({ folder }).open(location, newer)).close()
  expect((await errorOf(make({ folder }).open(location, tenantMigrations))).message).toContain(
    `Database schema ${newer.sqlite.length} is newer than this release supports (${tenantMigrations.sqlite.length}).`,
  )
  const { query, close } = await make({ folder }).open(location, newer)
  expect(await query('select * from tomorrow')).toEqual([])
  await close()
})

const DESCRIPTORS_FOLDER = '/proc/self/fd'
const listOpenFiles = (folder: string) =>
  readdirSync(DESCRIPTORS_FOLDER).filter((file) => {
    try {
      return readlinkSync(`${DESCRIPTORS_FOLDER}/${file}`).startsWith(folder)
    } catch {
      return false // closed meanwhile, such as the descriptor that reads the list
    }
  })

test.skipIf(!existsSync(DESCRIPTORS_FOLDER)).each(fileEngines)(
  '%s: an open database holds at most six file descriptors',
  async (_, make) => {
    const folder = freshFolder()
    const database = await make({ folder, synchronous: 'full' }).open(location, tenantMigrations)
    await database.query('select 1')
    const { kept } = await database.transaction(async ({ query }) => {
      await query("insert into versions (topic, version) values ('a', 1)")
    })
    await kept
    // The limit of open tenants is derived from this number.
    expect(listOpenFiles(folder).length).toBeLessThanOrEqual(6)
    await database.close()
  },
)

test.skipIf(!existsSync(DESCRIPTORS_FOLDER)).each(fileEngines)(
  '%s: a database that open refuses keeps no file descriptor',
  async (_, make) => {
    const folder = freshFolder()
    const newer = { sqlite: [...tenantMigrations.sqlite, 'create table tomorrow (x integer) strict'], postgres: [] }
    const database = await make({ folder }).open(location, newer)
    expect(listOpenFiles(folder)).not.toEqual([])
    await database.close()
    expect(listOpenFiles(folder)).toEqual([])
    for (let n = 0; n < 3; n++)
      expect((await errorOf(make({ folder }).open(location, tenantMigrations))).message).toContain(
        'is newer than this release',
      )
    expect(listOpenFiles(folder)).toEqual([])
  },
)

test.each(fileEngines)('%s: a database is copied before a migration that rewrites its data, once', async (_, make) => {
  const folder = freshFolder()
  const first = ['create table a (x integer) strict; insert into a values (1)']
  await (await make({ folder }).open(location, { sqlite: first, postgres: [] })).close()
  const rewriting = { sqlite: [...first, 'update a set x = x + 1'], postgres: [], rewriting: [2] }
  for (let attempt = 0; attempt < 2; attempt++) await (await make({ folder }).open(location, rewriting)).close()
  const copy = new Database(join(dirname(join(folder, location.file)), 'before-1.db'))
  expect(copy.query('select x from a').values()).toEqual([[1]])
  copy.close()
  const { query, close } = await make({ folder }).open(location, rewriting)
  expect(await query('select x from a')).toEqual([[2]])
  await close()
})

test.each(fileEngines)('%s: a migration that rewrites data leaves the thread to other tenants', async (_, make) => {
  const folder = freshFolder()
  const first = ['create table a (x integer) strict']
  await (await make({ folder }).open(location, { sqlite: first, postgres: [] })).close()
  const fill = `insert into a with recursive n (x) as (select 1 union all select x + 1 from n where x < 1000000) select x from n`
  let ticks = 0
  const timer = setInterval(() => ticks++, 1)
  const { query, close } = await make({ folder }).open(location, {
    ...{ sqlite: [...first, fill], postgres: [], rewriting: [2] },
  })
  clearInterval(timer)
  expect(await query('select count(*) from a')).toEqual([[1_000_000]])
  expect(ticks).toBeGreaterThan(20)
  await close()
})

test.each(fileEngines)('%s: a failed migration that rewrites data leaves the database as it was', async (_, make) => {
  const folder = freshFolder()
  const first = ['create table a (x integer not null) strict; insert into a values (1)']
  await (await make({ folder }).open(location, { sqlite: first, postgres: [] })).close()
  const failing = { sqlite: [...first, 'update a set x = 2; update a set x = null'], postgres: [], rewriting: [2] }
  const error = await make({ folder })
    .open(location, failing)
    .catch((error) => error)
  expect(getErrorChain(error).at(-1)).toMatchObject({ message: 'NOT NULL constraint failed: a.x' })
  const { query, close } = await make({ folder }).open(location, { sqlite: first, postgres: [] })
  expect(await query('select x from a')).toEqual([[1]])
  await close()
})

test('an SQLite that cannot alter a column runs what copies the table instead, to the same end', async () => {
  const folder = freshFolder()
  const [make, alter] = [
    "create table a (x text not null, y integer) strict; insert into a values ('one', 1), ('two', 2)",
    'alter table a alter column x drop not null',
  ]
  const copy = `create table b (x text, y integer) strict; insert into b select * from a order by y; drop table a;
    alter table b rename to a`
  const migrations = { sqlite: [make, alter], postgres: [], withoutAlterColumn: new Map([[alter, copy]]) }
  await (await sqlite({ folder }).open(location, { sqlite: [make], postgres: [] })).close()
  const openFile = await drivers['bun:sqlite']()
  const withoutAlter: OpenFile = (file) => {
    const connection = openFile(file)
    const exec = (sql: string) => connection.exec(sql.replace('alter column', 'alter_column'))
    return { exec, prepare: () => connection.prepare('select 1'), loadExtension() {}, close: () => connection.close() }
  }
  expect(toRunnable(openFile, migrations)).toBe(migrations)
  const { query, transaction, close } = await sqlite({ folder }).open(location, toRunnable(withoutAlter, migrations))
  await transaction(async ({ query }) => void (await query('insert into a values (null, 3)')))
  expect(await query('select x, y from a order by y')).toEqual([
    ['one', 1],
    ['two', 2],
    [null, 3],
  ])
  expect(await query('pragma user_version')).toEqual([[2]])
  await close()
})
