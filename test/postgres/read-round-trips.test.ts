import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { connect, createServer } from 'node:net'
import pg from 'pg'
import { Transactions } from '../../src/storage/engines/postgres/transactions'
import { databaseUrl } from '../storage/engines'

describe.skipIf(!databaseUrl)('the statements of a read', () => {
  const pieces: Buffer[] = []
  const server = createServer((caller) => {
    const upstream = connect(Number(new URL(databaseUrl!).port), '127.0.0.1')
    caller.on('data', (bytes) => {
      pieces.push(bytes)
      upstream.write(bytes)
    })
    upstream.on('data', (bytes) => caller.write(bytes))
    caller.on('error', () => {}).on('close', () => upstream.destroy())
    upstream.on('error', () => {}).on('close', () => caller.destroy())
  })
  let pool: pg.Pool

  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const url = Object.assign(new URL(databaseUrl!), { port: `${(server.address() as { port: number }).port}` })
    pool = new pg.Pool({ connectionString: `${url}`, max: 1, pipeline: true })
  })
  afterAll(async () => {
    await pool.end()
    server.close()
  })

  test('reach the server in one piece, from the beginning of their transaction to its end', async () => {
    const transactions = new Transactions(pool, 1_000)
    const read = (value: string) => ({ sql: 'select cast(? as text)', params: [value] })
    const start = 'set local statement_timeout to 1000'
    await transactions.runReads(start, [read('first')])
    pieces.length = 0
    for (let round = 0; round < 10; round++) {
      const results = await transactions.runReads(start, [read(`one ${round}`), read(`two ${round}`)])
      expect(results.map((result) => result.status === 'fulfilled' && result.value)).toEqual([
        [[`one ${round}`]],
        [[`two ${round}`]],
      ])
    }
    expect(pieces.map((piece) => [piece.includes('begin'), piece.includes('commit')])).toEqual(
      Array.from({ length: 10 }, () => [true, true]),
    )
  })
})
