import { expect, test } from 'bun:test'
import { tenantMigrations } from '../../migrations'
import { createDatabase, queryDatabase } from '../fakes/postgres'
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
