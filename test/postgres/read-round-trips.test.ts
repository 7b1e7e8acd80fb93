import { afterAll, describe, expect, spyOn, test } from 'bun:test'
import pg from 'pg'
import { allowPreparedStatements, Statement, Statements } from '../../src/storage/engines/postgres/statement-group'
import { type ReadsStart, Transactions } from '../../src/storage/engines/postgres/transactions'
import { databaseUrl } from '../storage/engines'

describe.skipIf(!databaseUrl)('reads on PostgreSQL', () => {
  const pool = new pg.Pool({
    ...{ connectionString: databaseUrl, max: 1, pipeline: true },
    onConnect: allowPreparedStatements,
  })
  afterAll(() => pool.end())
  const transactions = new Transactions(pool, 1_000)
  const settings = { statement: new Statement("select set_config('statement_timeout', $1, true)"), params: ['1000'] }
  const read = (value: string) => ({ sql: 'select cast(? as text)', params: [value] })

  /** Runs reads, and returns their rows, and every piece that was sent for them. */
  async function readAndRecord(start: ReadsStart, statements: Statements, values: string[]) {
    const client = await pool.connect()
    const { stream } = (client as unknown as pg.Client).connection
    client.release()
    using sent = spyOn(stream, '_write')
    const results = await transactions.runReads(start, values.map(read), statements)
    const rows = results.map((result) => result.status === 'fulfilled' && result.value)
    return { rows, pieces: sent.mock.calls.map(([bytes]) => `${bytes}`) }
  }

  test('concurrent reads share one message with the statement that selects the tenant, and are prepared from the third time on', async () => {
    const statements = new Statements()
    for (let times = 1; times <= 3; times++) {
      const { rows, pieces } = await readAndRecord({ group: [settings], plain: [settings] }, statements, ['one', 'two'])
      expect(rows).toEqual([[['one']], [['two']]])
      expect(pieces).toEqual([expect.stringContaining('two')])
      expect(pieces[0]!.includes('select'), `${times}`).toBe(times < 3)
    }
  })

  test('a transaction that begins with text is sent in one message, including its commit', async () => {
    const start = { text: 'set local statement_timeout to 1000' }
    const { rows, pieces } = await readAndRecord(start, new Statements(), ['one', 'two'])
    expect(rows).toEqual([[['one']], [['two']]])
    expect(pieces).toEqual([expect.stringMatching(/begin.*commit/s)])
  })

  test('a search may use bitmap scans, and the reads before and after it may not', async () => {
    const sql = "select current_setting('enable_bitmapscan')"
    const off = new Statement("select set_config('enable_bitmapscan', 'off', true)")
    const start = { group: [{ statement: off, params: [] }], plain: [] }
    const reads = [sql, `${sql} as searched_words`, sql, 'select nonsense', `${sql} as searched_words`]
    const results = await transactions.runReads(
      start,
      reads.map((text) => ({ sql: `${text} where 'json' <> ?`, params: [''] })),
      new Statements(),
    )
    const outcomes = results.map((one) => (one.status === 'fulfilled' ? one.value : 'failed'))
    expect(outcomes).toEqual([[['off']], [['on']], [['off']], 'failed', 'failed'])
  })

  test('reads of rows by an index and searches are plain, and lists of values and counts are planned with their values', () => {
    const texts = {
      'select shown from entities where blueprint = $1 and identifier = $2': true,
      'select (select e.shown from entities e where e.seq = i.entity) from entity_index i where i.path = $1 limit $2': true,
      'select count(*) from searched_words w where w.words @@ (select $1::tsquery)': true,
      'select seq from entities where seq in ($1, $2)': false,
      'select seq from entities where seq = any (array(values ($1), ($2)))': false,
      'select count(*) from entities': false,
    }
    for (const [text, isPlain] of Object.entries(texts))
      expect([text, new Statement(text).isPlain]).toEqual([text, isPlain])
  })
})
