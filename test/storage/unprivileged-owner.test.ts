import { expect, test } from 'bun:test'
import pg from 'pg'
import { tenantMigrations } from '../../migrations'
import type { DatabaseLocation } from '../../src/storage/port'
import { createDatabase, queryDatabase } from '../fakes/postgres'
import { errorOf } from '../rejections'
import { databaseUrl, postgres } from './engines'

/** Returns the URL of a database whose owner is no superuser, as hosted servers give it. */
async function createOwnedDatabase() {
  const url = new URL(await createDatabase(databaseUrl!))
  // Roles belong to the whole server: a superuser has created the one of the tenants.
  await queryDatabase(
    url.href,
    `do $$ begin create role atoll_app nologin nosuperuser nobypassrls; exception when duplicate_object then null; end $$`,
  )
  const owner = `owner_${crypto.randomUUID().slice(0, 8)}`
  await queryDatabase(url.href, `create role ${owner} login nosuperuser nobypassrls`)
  await queryDatabase(url.href, `alter database ${url.pathname.slice(1)} owner to ${owner}`)
  await queryDatabase(url.href, `grant atoll_app to ${owner}`)
  url.username = owner
  return url.href
}

const sizeBefore = (part: string) => tenantMigrations.postgres.findIndex((text) => text.includes(part))

test.skipIf(!databaseUrl)('migrations change the rows of all tenants for an owner who is no superuser', async () => {
  const url = await createOwnedDatabase()
  const tenants = ['a', 'b'].map((tenant) => ({
    tenant,
    file: `${tenant}.db`,
    identity: crypto.randomUUID(),
    bucket: 'unprivileged',
  }))
  const older = {
    ...tenantMigrations,
    postgres: tenantMigrations.postgres.slice(0, sizeBefore('create table field_indexes')),
  }
  const before = postgres(url)
  for (const tenant of tenants) {
    const { transaction, close } = await before.open(tenant, older)
    await transaction(async ({ query }) => {
      const columns = '(key, _id, name, description, definition, version, form, created, updated)'
      await query(`insert into blueprints ${columns} values ('notes', ?, 'Notes', '', ?, 1, 0, 0, 0)`, [
        `blueprint of ${tenant.tenant}`,
        JSON.stringify({ fields: [{ key: 'cover', type: 'file' }] }),
      ])
      await query("insert into fields (number, blueprint, key) values (1, 'notes', 'cover')")
      await query(`insert into entities (_id, blueprint, identifier, shown, keys, version, created, updated)
        values ('e', 'notes', 'e', '{}', '{}', 1, 0, 0)`)
    })
    await close()
  }
  await before.close()

  const after = postgres(url)
  for (const tenant of tenants) {
    const { query, close } = await after.open(tenant, tenantMigrations)
    expect(await query('select blueprint, state, reason from field_indexes')).toEqual([['notes', 'ready', 'file']])
    expect(await query('select name, done, upto from entity_compaction')).toMatchObject([
      ['entities', 0, expect.any(Number)],
    ])
    expect(await query('select _id from blueprints')).toEqual([[`blueprint of ${tenant.tenant}`]])
    await close()
  }
  await after.close()
})

test.skipIf(!databaseUrl)('a tenant finds its own words by their index where the owner is no superuser', async () => {
  const url = await createOwnedDatabase()
  const [one, other] = ['one', 'other'].map((tenant) => ({
    ...{ tenant, file: '', bucket: 'unprivileged', identity: crypto.randomUUID() as string },
  })) as [DatabaseLocation, DatabaseLocation]
  const engine = postgres(url)
  for (const [n, location] of [one, other].entries()) {
    const { transaction, close } = await engine.open(location, tenantMigrations)
    await transaction(async ({ query }) => void (await query(INSERT_WORDS, [n + 1, 'f1wshared'])))
    await close()
  }
  const { query, close } = await engine.open(one, tenantMigrations)
  const search = 'select w.rowid from search_words w where w.words match ?'
  expect(await query(search, ['(f1wshared)'])).toEqual([[1]])
  const plan = await query(`explain ${search}`, ['(f1wshared)'])
  expect(plan.join()).toContain('Bitmap Index Scan on search_words_by_word')
  await close()
  await engine.close()

  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query('set role atoll_app')
  await client.query('set search_path to unprivileged')
  const read = async () => (await client.query('select entity from searched_words where true or entity = 2')).rows
  expect(await errorOf(read())).toMatchObject({ code: '42704' }) // no tenant is set
  for (const invalid of ['', 'anybody', "' or true --"]) {
    await client.query("select set_config('app.tenant', $1, false)", [invalid])
    expect(await errorOf(read()), invalid).toMatchObject({ code: '22P02' })
  }
  await client.query("select set_config('app.tenant', $1, false)", [crypto.randomUUID()])
  expect(await read()).toEqual([])
  await client.query("select set_config('app.tenant', $1, false)", [other.identity])
  expect(await read()).toEqual([{ entity: 2 }])
  expect((await client.query('select entity from search_words')).rows).toEqual([{ entity: 2 }])
  for (const sql of [
    "insert into searched_words values (3, '')",
    "update searched_words set words = ''",
    'delete from searched_words',
  ])
    expect(await errorOf(client.query(sql)), sql).toMatchObject({ code: '42501' })
  await client.end()
})

const INSERT_WORDS = 'insert into search_words (rowid, words) values (?, ?)'
