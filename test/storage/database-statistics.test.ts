import { afterAll, afterEach, beforeEach, describe, expect, setDefaultTimeout, spyOn, test } from 'bun:test'
import { logOutput, setLogLevel } from '../../src/core/log'
import { databaseStatistics, describeStatement, operationOf } from '../../src/storage/database-statistics'
import { DatabasePool } from '../../src/storage/pool'
import { databaseUrl, engines } from './engines'
import { freshLocation, insertThing, migrations, range } from './fixtures'

setDefaultTimeout(30_000)

const statistics = databaseStatistics[databaseUrl ? 'postgres' : 'sqlite']
/** The bucket of a location tells the engine. */
const locate = () => (databaseUrl ? freshLocation() : { ...freshLocation(), bucket: undefined })
const lines: Record<string, unknown>[] = []
const output = spyOn(logOutput, 'write')
const readClock = performance.now.bind(performance)
const clock = spyOn(performance, 'now')
let minutes = 0
beforeEach(() => {
  lines.length = 0
  output.mockImplementation((line) => void lines.push(JSON.parse(line)))
  setLogLevel('warn')
  // The lines of a minute are limited.
  minutes++
  clock.mockImplementation(() => readClock() + minutes * 60_001)
})
afterEach(() => setLogLevel('error'))
afterAll(() => {
  output.mockRestore()
  clock.mockRestore()
})

describe.each(engines)('%s: statistics', (_, engine) => {
  const storage = new DatabasePool(engine(), { openCount: 2, deadline: 5_000 })
  const slow = new DatabasePool(engine(), { openCount: 2, deadline: 5_000, slowAfter: 0.000_1 })
  afterAll(() => Promise.all([storage.close(), slow.close()]))

  test('reads, writes and the writes that share a commit are counted', async () => {
    const { db, write } = storage.getStore(locate(), migrations)
    await db.query('select 1')
    const before = [statistics.reads.count, statistics.writes.count, statistics.commits.count, statistics.commits.sum]
    await db.query('select 1')
    await Promise.all(range(20).map((n) => write((tx) => insertThing(tx, `${n}`))))
    const after = [statistics.reads.count, statistics.writes.count, statistics.commits.count, statistics.commits.sum]
    const [reads, writes, commits, committed] = after.map((count, index) => count - before[index]!)
    expect([reads, writes, committed]).toEqual([1, 20, 20])
    expect(commits).toBeLessThan(20)
  })

  test('a slow statement is logged with its text and tenant, and never with its values', async () => {
    const place = locate()
    const { db, write } = slow.getStore(place, migrations)
    const before = statistics.slowStatements
    await db.query('select id\n  from things where id = ?', ['hidden value'])
    await write((tx) => insertThing(tx, 'hidden value'))
    await db.query('select nothing from nowhere where id = ?', ['hidden value']).catch(() => 'refused')
    const found = lines.filter(({ event }) => event === 'slow-statement')
    expect(found).toContainEqual(
      expect.objectContaining({
        ...{ level: 'warn', time: expect.any(String), event: 'slow-statement', tenant: place.tenant },
        ...{ ms: expect.any(Number), rows: 0, sql: 'select id from things where id = ?' },
      }),
    )
    expect(found.map(({ sql }) => `${sql}`.split(' ')[0])).toContain('insert')
    expect(found.map(({ sql }) => sql)).toContain('select nothing from nowhere where id = ?')
    expect(JSON.stringify(lines)).not.toContain('hidden')
    expect(statistics.slowStatements - before).toBeGreaterThanOrEqual(3)
  })

  test('thousands of slow statements write few lines', async () => {
    const { db } = slow.getStore(locate(), migrations)
    for (let n = 0; n < 200; n++) await db.query('select 1')
    expect(lines.length).toBeLessThanOrEqual(30)
  })

  test('a pool without slowAfter logs nothing', async () => {
    const { db } = storage.getStore(locate(), migrations)
    await db.query('select 1')
    expect(lines).toEqual([])
  })
})

test('a statement is described by its first word and its text on one line, which is cut off when it is long', () => {
  expect(operationOf('\n  with a as (select 1) select * from a')).toBe('WITH')
  const place = { tenant: 'acme', file: 'x', cluster: 'main', bucket: 'b' }
  expect(describeStatement(place, 'SELECT', `select\n  ${'x'.repeat(5_000)}`)).toEqual({
    ...{ 'db.system.name': 'postgresql', 'db.operation.name': 'SELECT', 'atoll.tenant': 'acme' },
    'db.query.text': `select ${'x'.repeat(1_993)}`,
  })
})
