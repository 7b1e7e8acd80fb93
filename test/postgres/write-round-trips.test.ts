import { afterAll, beforeEach, describe, expect, spyOn, test } from 'bun:test'
import pg from 'pg'
import { Statement } from '../../src/storage/engines/postgres/statement-group'
import { StatementQueue } from '../../src/storage/engines/postgres/statement-queue'
import { Conflict } from '../../src/storage/errors'
import { createThingsFixture, importThings, indexWords } from '../entities/fixtures'
import { databaseUrl } from '../storage/engines'
import { createTestTenant } from '../test-tenant'

describe.skipIf(!databaseUrl)('the statements of a transaction on PostgreSQL', () => {
  const client = new pg.Client({ connectionString: databaseUrl, pipeline: true })
  const connected = client.connect()
  afterAll(() => client.end())
  beforeEach(() => connected)
  const echo = new Statement('select $1::text')
  const insert = new Statement('insert into numbers values ($1::int)')

  /** Runs work with a queue, and returns what it returns, and every piece that was sent for it. */
  async function runAndRecord<T>(work: (queue: StatementQueue) => Promise<T>) {
    using sent = spyOn(client.connection.stream, '_write')
    const result = await work(new StatementQueue(client))
    return { result, pieces: sent.mock.calls.map(([bytes]) => `${bytes}`) }
  }

  test('statements that begin together are sent in one piece, also those that wait for some promises before', async () => {
    const { result, pieces } = await runAndRecord(({ run }) => {
      const late = async () => {
        await Promise.resolve()
        await Promise.resolve()
        return run(echo, ['late'])
      }
      return Promise.all([late(), run(echo, ['one']), run(echo, ['two'])])
    })
    expect(result.map(({ rows }) => rows)).toEqual([[['late']], [['one']], [['two']]])
    expect(pieces).toEqual([expect.stringMatching(/one.*two.*late/s)])
  })

  test('a statement that fails ends those behind it with the same error, and those before it have their results', async () => {
    await client.query('create temporary table numbers (n int primary key)')
    const { result } = await runAndRecord(async ({ run }) => {
      await run(new Statement('begin'))
      const settled = await Promise.allSettled([
        run(echo, ['before']),
        ...[1, 1, 2].map((n) => run(insert, [n])),
        run(echo, ['behind']),
      ])
      await run(new Statement('rollback'))
      return settled
    })
    const outcomes = result.map((one) => (one.status === 'fulfilled' ? 'done' : one.reason))
    expect(outcomes).toEqual(['done', 'done', expect.any(Conflict), outcomes[2], outcomes[2]])
    expect((await client.query('select from numbers')).rowCount).toBe(0)
  })

  test('hundreds of statements that begin together are sent in several pieces, and all are answered in order', async () => {
    const values = Array.from({ length: 450 }, (_, n) => `${n}`)
    const { result, pieces } = await runAndRecord(({ run }) => Promise.all(values.map((value) => run(echo, [value]))))
    expect(result.map(({ rows }) => rows)).toEqual(values.map((value) => [[value]]))
    expect(pieces).toHaveLength(3)
  })

  test('a statement that begins beside a failure does not run once the transaction is rolled back', async () => {
    const { tenant } = await createTestTenant()
    let beside: Promise<unknown> | undefined
    const work = tenant.write(async (tx) => {
      await tx.query('select 1')
      beside = tx.query('select current_user').catch((error) => error)
      throw new Error('It fails.')
    })
    expect(await work.catch((error) => error.message)).toBe('It fails.')
    expect(await beside).toBeInstanceOf(Error)
  })

  test('the words of more entities than one statement removes are found when all of them are written at once', async () => {
    const own = await createThingsFixture([{ key: 'title', type: 'string' }])
    const { as, path } = own
    const count = async (word: string) =>
      (await as('user').get(`${path}?$q=${word}&$limit=1&$count=true`)).headers.get('x-total-count')
    const numbers = Array.from({ length: 150 }, (_, n) => n)
    await importThings(
      own,
      numbers.map((n) => ({ identifier: `thing${n}`, title: 'old' })),
    )
    await indexWords(own)
    expect(await count('old')).toBe('150')
    const operations = numbers.map((n) => ({ op: 'update', identifier: `thing${n}`, data: { title: 'new' } }))
    const changed = await as('user').post(`${path}/batch`, { operations })
    expect([changed.status, changed.body.message]).toEqual([200, undefined])
    expect([await count('old'), await count('new')]).toEqual(['0', '150'])
  })
})
