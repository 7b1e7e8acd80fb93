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

test.skipIf(!databaseUrl)('migrations change the rows of all tenants for an owner who is no superuser', async () => {
  const url = await createOwnedDatabase()
  const tenants = ['a', 'b'].map((tenant) => ({
    tenant,
    file: `${tenant}.db`,
    identity: crypto.randomUUID(),
    bucket: 'unprivileged',
  }))
  const before = postgres(url)
  for (const tenant of tenants) {
    const { transaction, close } = await before.open(tenant, tenantMigrations)
    await transaction(async ({ query }) => {
      await query("insert into versions (topic, version) values ('notes', ?)", [tenant.tenant === 'a' ? 1 : 2])
    })
    await close()
  }
  await before.close()

  const later = {
    ...tenantMigrations,
    postgres: [
      ...tenantMigrations.postgres,
      `update versions set version = version + 10;
       insert into cursors (tenant_id, name, seq) select tenant_id, topic, version from versions`,
    ],
  }
  const after = postgres(url)
  for (const [n, tenant] of tenants.entries()) {
    const { query, close } = await after.open(tenant, later)
    expect(await query('select topic, version from versions')).toEqual([['notes', 11 + n]])
    expect(await query('select name, seq from cursors')).toEqual([['notes', 11 + n]])
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
