import { afterAll, describe, expect, test } from 'bun:test'
import { DatabasePool } from '../../src/storage/pool'
import type { Migrations } from '../../src/storage/port'
import { queryDatabase } from '../fakes/postgres'
import { databaseUrl, postgres } from '../storage/engines'
import { waitUntil } from '../wait-until'

const migrations: Migrations = {
  sqlite: [],
  postgres: [
    `create table rows (tenant_id uuid not null default current_setting('app.tenant')::uuid, id bigint not null,
       primary key (tenant_id, id))`,
  ],
}

describe.skipIf(!databaseUrl)('statistics of tables', () => {
  const pools: DatabasePool[] = []
  afterAll(() => Promise.all(pools.map((pool) => pool.close())))
  const bucket = `b_${crypto.randomUUID().replaceAll('-', '')}`
  const place = { tenant: 'a', file: '', identity: Bun.randomUUIDv7() as string, bucket }
  /** Starts anew, as a server does. */
  function startServer() {
    const pool = new DatabasePool(postgres(), { openCount: 10, deadline: 5_000 })
    pools.push(pool)
    const { write } = pool.getStore(place, migrations)
    return (from: number, to: number) =>
      write((tx) => tx.query(`insert into rows (id) select n from generate_series(${from}, ${to}) as n`))
  }
  async function countAnalyses() {
    const select = "select analyze_count from pg_stat_user_tables where schemaname = $1 and relname = 'rows'"
    const [row] = await queryDatabase(databaseUrl!, select, [bucket])
    return Number(row?.analyze_count ?? 0)
  }

  test('a table is analyzed when the rows of a tenant have grown by a tenth, not when a restarted server counts them again', async () => {
    await startServer()(1, 15_000)
    await waitUntil(async () => (await countAnalyses()) === 1)
    const insert = startServer()
    await insert(15_001, 16_200)
    await insert(16_201, 19_500)
    await waitUntil(async () => (await countAnalyses()) > 1)
    expect(await countAnalyses()).toBe(2)
  })
})
