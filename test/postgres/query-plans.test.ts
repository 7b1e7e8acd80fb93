import { afterAll, describe, expect, test } from 'bun:test'
import { DatabasePool } from '../../src/storage/pool'
import type { Migrations } from '../../src/storage/port'
import { queryDatabase } from '../fakes/postgres'
import { databaseUrl, postgres } from '../storage/engines'

const ROWS = 20_000
const PAGE_SIZE = 1_000
const migrations: Migrations = {
  sqlite: [],
  postgres: [
    `create table things (tenant_id uuid not null default current_setting('app.tenant')::uuid,
       id bigint not null, kind text collate "C" not null, name text collate "C" not null, primary key (tenant_id, id));
     create index things_by_name on things (tenant_id, kind, name)`,
  ],
}

describe.skipIf(!databaseUrl)('plans of PostgreSQL', async () => {
  const storage = new DatabasePool(postgres(), { openCount: 100, deadline: 5_000 })
  const location = { tenant: 'large', file: '', identity: Bun.randomUUIDv7() as string, bucket: 'plans' }
  const { db, write } = storage.getStore(location, migrations)
  afterAll(() => storage.close())

  await write((tx) =>
    tx.query(`insert into things (id, kind, name)
      select n, 'a', 'thing ' || n * 7919 % ${ROWS} from generate_series(1, ${ROWS}) as n`),
  )
  await queryDatabase(databaseUrl!, 'analyze plans.things')
  const explain = async (sql: string) =>
    (await db.query(`explain (analyze, timing off, summary off) ${sql}`)).map(([line]) => line).join('\n')

  test('a page of a large tenant is read in the order of an index, and no other rows are', async () => {
    const plan = await explain(`select name from things where kind = 'a' order by name limit ${PAGE_SIZE}`)
    expect(plan).toMatch(/Index (Only )?Scan using things_by_name/)
    expect(plan).not.toMatch(/Sort|Bitmap/)
    expect(plan).toContain(`rows=${PAGE_SIZE} loops=1`)
  })
})
