import { afterAll, describe, expect, test } from 'bun:test'
import { DatabasePool } from '../../src/storage/pool'
import type { Migrations } from '../../src/storage/port'
import { databaseUrl, postgres } from '../storage/engines'

const migrations: Migrations = {
  sqlite: [],
  postgres: [
    `create table things (tenant_id uuid not null default current_setting('app.tenant')::uuid,
       id bigint not null, name text collate "C", keys jsonb, price double precision, "user" text collate "C", bytes bytea,
       primary key (tenant_id, id))`,
  ],
}

describe.skipIf(!databaseUrl)('many rows in one statement', () => {
  const storage = new DatabasePool(postgres(), { openCount: 100, deadline: 5_000 })
  const location = { tenant: 'batches', file: '', identity: Bun.randomUUIDv7() as string, bucket: 'batches' }
  const { db, write } = storage.getStore(location, migrations)
  afterAll(() => storage.close())

  const NAMES = ['plain', '', 'null', 'a "quoted" \\ text', 'line\nand\ttab', '☃ 𝌆', "it's", '{"a":1}', '[1]', '$1']
  const insert = (columns: string, rows: unknown[][], more = '') =>
    write((tx) =>
      tx.executeMany(`insert into things (${columns}) values (${rows[0]!.map(() => '?').join(', ')})${more}`, rows),
    )

  test('stores every value of many rows as it is, whatever its type', async () => {
    const rows = NAMES.map((name, n) => [n, n % 4 ? name : null, JSON.stringify({ f1: name }), n / 7, 'same user'])
    await insert('id, name, keys, price, "user"', rows)
    expect(await db.query('select id, name, keys, price, "user" from things where id < 100 order by id')).toEqual(
      rows.map((row) => row.with(2, expect.anything())),
    )
    const keys = await db.query('select keys from things where id < 100 order by id')
    expect(keys.map(([text]) => JSON.parse(text as string))).toEqual(NAMES.map((name) => ({ f1: name })))
  })

  test('returns what the statement returns for each row', async () => {
    const rows = Array.from({ length: 2_500 }, (_, n) => [1_000 + n, `thing ${n}`])
    const returned = await insert('id, name', rows, ' returning name, id')
    expect(new Map(returned as [string, number][])).toEqual(
      new Map(rows.map(([id, name]) => [name as string, id as number])),
    )
    expect(
      await insert(
        'id, name',
        [
          [9_001, 'one'],
          [9_002, 'two'],
        ],
        ' returning id',
      ),
    ).toEqual([[9_001], [9_002]])
  })

  test('stores bytes without an array of texts', async () => {
    const rows = Array.from({ length: 20 }, (_, n) => [20_000 + n, Buffer.from([0, n, 255])])
    await insert('id, bytes', rows)
    const stored = await db.query('select bytes from things where id >= 20000 order by id')
    expect(stored.map(([bytes]) => [...(bytes as Buffer)])).toEqual(rows.map((_, n) => [0, n, 255]))
  })

  test('stores lone surrogates as replacement characters, as other statements do', async () => {
    await insert('id, name', [[30_000, '\ud800 0']])
    await insert(
      'id, name',
      Array.from({ length: 20 }, (_, n) => [30_001 + n, `\ud800 ${n + 1}`]),
    )
    const stored = await db.query('select name from things where id >= 30000 order by id')
    expect(stored).toEqual(Array.from({ length: 21 }, (_, n) => [`\ufffd ${n}`]))
  })
})
