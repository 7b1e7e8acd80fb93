import { afterAll, describe, expect, test } from 'bun:test'
import { DatabasePool } from '../../src/storage/pool'
import type { Migrations } from '../../src/storage/port'
import { queryDatabase, startBouncer } from '../fakes/postgres'
import { errorOf } from '../rejections'
import { databaseUrl, postgres } from '../storage/engines'

const migrations: Migrations = {
  sqlite: [],
  postgres: [
    `create table notes (tenant_id uuid not null default current_setting('app.tenant')::uuid,
      id text collate "C" not null, owner text collate "C" not null, primary key (tenant_id, id))`,
  ],
}
const newLocation = (tenant: string, bucket = 'isolation') => ({
  tenant,
  file: '',
  identity: Bun.randomUUIDv7() as string,
  bucket,
})

describe.skipIf(!databaseUrl)('tenants of one bucket', async () => {
  const storage = new DatabasePool(postgres(), { openCount: 100, deadline: 2_000 })
  const [at, other] = [newLocation('one'), newLocation('other')]
  const [one, another] = [storage.getStore(at, migrations), storage.getStore(other, migrations)]
  afterAll(() => storage.close())

  test('tenants of one bucket read, update and delete only their own rows, whatever the statement says', async () => {
    for (const store of [one, another])
      await store.write((tx) => tx.query("insert into notes (id, owner) values ('a', 'nobody')"))
    await one.write((tx) => tx.query("update notes set owner = 'one'"))
    const theirs = [['a', 'nobody']]
    const where = `tenant_id = '${other.identity}' or 1 = 1`
    expect(await one.db.query(`select id, owner from notes where ${where}`)).toEqual([['a', 'one']])
    await one.write((tx) => tx.query(`update notes set owner = 'thief' where ${where}`))
    await one.write((tx) => tx.query(`delete from notes where tenant_id = '${other.identity}'`))
    expect(await another.db.query('select id, owner from notes')).toEqual(theirs)
  })

  test('tenants of one bucket cannot insert or reassign rows for another tenant', async () => {
    const foreign = `insert into notes (tenant_id, id, owner) values ('${other.identity}', 'b', 'one')`
    await errorOf(one.write((tx) => tx.query(foreign)))
    const reassigning = `update notes set tenant_id = '${other.identity}'`
    await errorOf(one.write((tx) => tx.query(reassigning)))
  })

  test('a read cannot write, and a setting that it changes does not persist on its connection', async () => {
    await errorOf(one.db.query("insert into notes (id, owner) values ('c', 'one')"))
    await one.db.query("select set_config('app.tenant', ?, false)", [other.identity]).catch(() => {})
    for (let n = 0; n < 30; n++) expect(await one.db.query('select owner from notes')).not.toEqual([['nobody']])
  })

  test('a failing query does not affect concurrent queries', async () => {
    const queries = Array.from({ length: 60 }, (_, n) =>
      one.db.query(n % 7 ? 'select ? as a' : 'select nonsense', [`${n}`]),
    )
    const answers = await Promise.allSettled(queries)
    for (const [n, answer] of answers.entries())
      expect([n, answer.status]).toEqual([n, n % 7 ? 'fulfilled' : 'rejected'])
  })

  test('a retired tenant answers 404 TENANT_NOT_FOUND, and its rows are kept', async () => {
    const [place3, place4] = [newLocation('three'), newLocation('four')]
    const [store, next] = [storage.getStore(place3, migrations), storage.getStore(place4, migrations)]
    await store.write((tx) => tx.query("insert into notes (id, owner) values ('a', 'three')"))
    const elsewhere = new DatabasePool(postgres(), { openCount: 10, deadline: 2_000 })
    const held = elsewhere.getStore(place3, migrations)
    expect(await held.db.query('select id from notes')).toEqual([['a']])
    await storage.retire(place3, migrations)
    const gone = { status: 404, code: 'TENANT_NOT_FOUND' }
    expect(await errorOf(store.db.query('select 1'))).toMatchObject(gone)
    expect(await errorOf(held.write((tx) => tx.query('delete from notes')))).toMatchObject(gone)
    expect(await next.db.query('select id from notes')).toEqual([])
    const rows = await queryDatabase(
      databaseUrl!,
      `select id from isolation.notes where tenant_id = '${place3.identity}'`,
    )
    // The policies apply to the owner of the tables, too, unless it may bypass row security.
    expect(rows).toEqual([{ id: 'a' }])
    await elsewhere.close()
  })
})

const bouncer = databaseUrl ? await startBouncer(databaseUrl) : undefined
if (databaseUrl && !bouncer) console.warn('SKIPPED: PgBouncer is not installed.')
afterAll(() => bouncer?.stop())

test.skipIf(!bouncer)(
  '200 concurrent transactions of three tenants through PgBouncer see only their own rows',
  async () => {
    const storage = new DatabasePool(postgres(bouncer!.url), { openCount: 10, deadline: 5_000 })
    const stores = ['a', 'b', 'c'].map((name) => ({ name, ...storage.getStore(newLocation(name), migrations) }))
    const seen = await Promise.all(
      Array.from({ length: 200 }, async (_, n) => {
        const { name, db, write } = stores[n % 3]!
        const inside = await write(async (tx) => {
          await tx.query('insert into notes (id, owner) values (?, ?)', [`${n}`, name])
          return tx.query('select distinct owner from notes')
        })
        return [name, ...inside.flat(), ...(await db.query('select distinct owner from notes')).flat()]
      }),
    )
    for (const [name, ...owners] of seen) expect(owners).toEqual([name, name])
    for (const { name, db } of stores)
      expect(await db.query('select count(*) from notes')).toEqual([[name === 'c' ? 66 : 67]])
    await storage.close()
  },
)
