import { afterAll, describe, expect, test } from 'bun:test'
import { tenantMigrations } from '../../migrations'
import { DatabasePool } from '../../src/storage/pool'
import { queryDatabase } from '../fakes/postgres'
import { databaseUrl, postgres } from '../storage/engines'

describe.skipIf(!databaseUrl)('tenants that read at the same time on PostgreSQL', () => {
  const storage = new DatabasePool(postgres(), { openCount: 10, deadline: 2_000 })
  afterAll(() => storage.close())
  const bucket = `b_${crypto.randomUUID().replaceAll('-', '')}`
  const storeOf = (tenant: string) =>
    storage.getStore({ tenant, file: '', identity: crypto.randomUUID(), cluster: 'main', bucket }, tenantMigrations)

  test('a tenant keeps one connection of the server busy beside another that reads, and its quick reads pass a long one', async () => {
    const [busy, quiet] = [storeOf('busy'), storeOf('quiet')]
    for (const { db } of [busy, quiet]) await db.query('select 1')
    let [isOver, mostActive] = [false, 0]
    const repeat = async (work: () => Promise<unknown>) => {
      while (!isOver) await work()
    }
    const countActive = async () => {
      const sql = "select from pg_stat_activity where state = 'active' and query like 'select pg_sleep%'"
      mostActive = Math.max(mostActive, (await queryDatabase(databaseUrl!, sql)).length)
    }
    const beside = [repeat(() => quiet.db.query('select 1')), repeat(countActive)]
    try {
      await Promise.all(Array.from({ length: 8 }, () => busy.db.query('select pg_sleep(0.02)')))
      expect(mostActive).toBe(1)

      const finished: string[] = []
      const read = (name: string, sql: string) => busy.db.query(sql).then(() => finished.push(name))
      await Promise.all([read('long', 'select pg_sleep(0.5)'), read('quick', 'select 1')])
      expect(finished).toEqual(['quick', 'long'])
    } finally {
      isOver = true
      await Promise.all(beside)
    }
  })
})
