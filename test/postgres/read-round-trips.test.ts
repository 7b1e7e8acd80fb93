import { afterAll, describe, expect, spyOn, test } from 'bun:test'
import pg from 'pg'
import { Transactions } from '../../src/storage/engines/postgres/transactions'
import { databaseUrl } from '../storage/engines'

describe.skipIf(!databaseUrl)('reads on PostgreSQL', () => {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1, pipeline: true })
  afterAll(() => pool.end())

  test('a transaction of reads sends its statements in one piece, from its beginning to its end', async () => {
    const client = await pool.connect()
    const { stream } = (client as unknown as pg.Client).connection
    client.release()
    const sent = spyOn(stream, '_write')
    const transactions = new Transactions(pool, 1_000)
    const read = (value: string) => ({ sql: 'select cast(? as text)', params: [value] })
    const results = await transactions.runReads('set local statement_timeout to 1000', [read('one'), read('two')])
    expect(results.map((result) => result.status === 'fulfilled' && result.value)).toEqual([[['one']], [['two']]])
    expect(sent.mock.calls.map(([bytes]) => `${bytes}`)).toEqual([expect.stringMatching(/begin.*commit/s)])
  })
})
