import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { tenantMigrations } from '../../migrations'
import { lookUpEach } from '../../src/entities/store/sql-fragments'
import { toMultiRow } from '../../src/storage/engines/postgres/dialect'
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
       id bigint not null, kind text collate "C" not null, identifier text collate "C" not null, primary key (tenant_id, id));
     create index things_by_identifier on things (tenant_id, kind, identifier)`,
  ],
}

describe.skipIf(!databaseUrl)('query plans', () => {
  const storage = new DatabasePool(postgres(), { openCount: 100, deadline: 5_000 })
  const location = { tenant: 'large', file: '', identity: Bun.randomUUIDv7() as string, bucket: 'plans' }
  const { db, write } = storage.getStore(location, migrations)
  afterAll(() => storage.close())

  beforeAll(async () => {
    await write((tx) =>
      tx.query(`insert into things (id, kind, identifier)
        select n, 'a', 'thing ' || n * 7919 % ${ROWS} from generate_series(1, ${ROWS}) as n`),
    )
    await queryDatabase(databaseUrl!, 'analyze plans.things')
  })
  const explain = async (sql: string, params?: string[]) =>
    (await db.query(`explain (analyze, timing off, summary off) ${sql}`, params)).map(([line]) => line).join('\n')

  test('PostgreSQL reads a page of a large tenant from an index in order, without reading other rows', async () => {
    const plan = await explain(`select identifier from things where kind = 'a' order by identifier limit ${PAGE_SIZE}`)
    expect(plan).toMatch(/Index (Only )?Scan using things_by_identifier/)
    expect(plan).not.toMatch(/Sort|Bitmap/)
    expect(plan).toContain(`rows=${PAGE_SIZE} loops=1`)
  })

  test('PostgreSQL looks up each of 256 identifiers of a large tenant in an index', async () => {
    const names = Array.from({ length: 256 }, (_, n) => `thing ${n}`)
    const list = names.map(() => '?').join(', ')
    const plan = await explain(`select id from things where kind = 'a' and identifier in (${list})`, names)
    expect(plan).toContain('Index Scan using things_by_identifier')
    expect(plan).toContain('rows=256 loops=1')
    expect(plan).not.toContain('Rows Removed by Filter')
  })

  test('PostgreSQL looks up each of a few identifiers of a large tenant in an index, instead of all of its rows', async () => {
    const names = Array.from({ length: 16 }, (_, n) => `thing ${n}`)
    const { sql, params } = lookUpEach('things', 'e.kind = ? and e.identifier = j.value', names, 'a')
    const plan = await explain(`select id from ${sql}`, params as string[])
    expect(plan).toMatch(/Index Scan using things_by_identifier on things e.* rows=1 loops=16/)
    expect(plan).not.toContain('Rows Removed by Filter')
  })

  describe('entities of two tenants', () => {
    const [one, other] = ['one', 'other'].map((tenant) =>
      storage.getStore(
        { tenant, file: '', identity: Bun.randomUUIDv7() as string, bucket: 'plans_of_entities' },
        tenantMigrations,
      ),
    )
    beforeAll(async () => {
      for (const { write } of [one!, other!])
        await write(async (tx) => {
          await tx.query(`insert into search_words (entity, words)
            select n, array_to_tsvector(array['f1wcommon', 'f1w' || n]) from generate_series(1, ${ROWS}) as n`)
          await tx.query(`insert into entity_index (field, path, value, created, entity)
            select field, '', 'thing ' || n, n, n from generate_series(1, ${ROWS}) as n, generate_series(1, 5) as field`)
        })
      // After this, PostgreSQL may read an index without its table.
      await queryDatabase(databaseUrl!, 'vacuum analyze plans_of_entities.entity_index')
      await queryDatabase(databaseUrl!, 'vacuum analyze plans_of_entities.search_words')
    })
    const explainOne = async (sql: string, params: unknown[]) =>
      (await one!.db.query(`explain (analyze, timing off, summary off) ${sql}`, params))
        .map(([line]) => line)
        .join('\n')

    test('PostgreSQL finds a rare word by the index of words, and returns only the words of the tenant', async () => {
      const plan = await explainOne('select w.rowid from search_words w where w.words match ?', ['(f1w77*)'])
      expect(plan).toContain('Bitmap Index Scan on search_words_by_word')
      expect(plan).not.toMatch(/Seq Scan|search_words_pkey/)
      const found = await one!.db.query('select w.rowid from search_words w where w.words match ?', ['(f1w7777)'])
      expect(found).toEqual([[7777]])
    })

    test('PostgreSQL looks up each of 16 values of a field in an index that it may read without the table', async () => {
      const values = Array.from({ length: 16 }, (_, n) => `thing ${n + 1}`)
      const list = values.map(() => '?').join(', ')
      const plan = await explainOne(
        `select count(*) from (select 1 from entity_index i where i.field = ? and i.path = ? and i.value in (${list}) limit 50) as few`,
        [1, '', ...values],
      )
      expect(plan).toMatch(/Index Only Scan using entity_index_pkey on entity_index i .*rows=1 loops=16/)
      expect(plan).not.toContain('Rows Removed by Filter')
    })
  })

  test('PostgreSQL looks up each row of a deletion of 50 rows in an index', async () => {
    const sql = toMultiRow('delete from things where kind = ? and identifier = ?', 50)!
    const params = Array.from({ length: 50 }, (_, n) => ['a', `thing ${n}`]).flat()
    const plan = (await db.query(`explain (costs off) ${sql}`, params)).map(([line]) => line).join('\n')
    expect(plan.match(/Index Scan using things_by_identifier/g)?.length).toBe(50)
    expect(plan).toContain('Tid Scan')
    expect(plan).not.toContain('Seq Scan')
  })
})
