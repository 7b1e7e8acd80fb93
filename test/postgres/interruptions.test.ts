import { afterAll, describe, expect, test } from 'bun:test'
import { Busy } from '../../src/storage/errors'
import { DatabasePool } from '../../src/storage/pool'
import type { Migrations } from '../../src/storage/port'
import { startCuttingProxy } from '../fakes/cutting-proxy'
import { queryDatabase } from '../fakes/postgres'
import { errorOf } from '../rejections'
import { databaseUrl, postgres } from '../storage/engines'

const migrations: Migrations = {
  sqlite: [],
  postgres: [
    `create table counters (tenant_id uuid primary key default current_setting('app.tenant')::uuid, count bigint not null)`,
  ],
}

/** The message of a commit. */
const COMMIT = '\u000bcommit\0'
let statements = 0
/** Makes a statement one that was not asked before, of which not only the name is sent. */
const anew = (sql: string) => `${sql} /* ${++statements} */`

describe.skipIf(!databaseUrl)('a lost PostgreSQL connection', async () => {
  if (!databaseUrl) return
  const server = databaseUrl
  const cuttingProxy = await startCuttingProxy({ port: Number(new URL(databaseUrl).port) })
  const url = new URL(databaseUrl)
  url.port = `${cuttingProxy.port}`
  const storage = new DatabasePool(postgres(`${url}`), { openCount: 10, deadline: 2_000 })
  afterAll(async () => {
    await storage.close()
    cuttingProxy.stop()
  })
  const createCounter = async () => {
    cuttingProxy.clear()
    const store = storage.getStore(
      { tenant: 'a', file: '', identity: Bun.randomUUIDv7(), bucket: 'interruptions' },
      migrations,
    )
    await store.write((tx) => tx.query('insert into counters (count) values (0)'))
    return store
  }
  const count = async ({ db }: Awaited<ReturnType<typeof createCounter>>) =>
    (await db.query(anew('select count from counters')))[0]![0]
  const increment = (store: Awaited<ReturnType<typeof createCounter>>) =>
    store.write((tx) => tx.query(anew('update counters set count = count + 1 returning count')))

  test('a connection lost during a read is retried transparently', async () => {
    const store = await createCounter()
    cuttingProxy.cut('before', 'from counters')
    expect(await count(store)).toBe(0)
    cuttingProxy.cut('after', 'from counters')
    expect(await count(store)).toBe(0)
    expect(cuttingProxy.left()).toBe(0)
  })

  test('a connection lost within a write repeats the write, which takes effect once', async () => {
    const store = await createCounter()
    for (const when of ['before', 'after'] as const) cuttingProxy.cut(when, 'update counters')
    expect(await increment(store)).toEqual([[1]])
    expect([await count(store), cuttingProxy.left()]).toEqual([1, 0])
  })

  test('a connection lost before the commit repeats the write, which takes effect once', async () => {
    const store = await createCounter()
    cuttingProxy.cut('before', COMMIT)
    await increment(store)
    expect([await count(store), cuttingProxy.left()]).toEqual([1, 0])
  })

  test('a connection lost after the commit does not repeat the write', async () => {
    const store = await createCounter()
    cuttingProxy.cut('after', COMMIT)
    await increment(store)
    expect([await count(store), cuttingProxy.left()]).toEqual([1, 0])
  })

  test('connections lost after the commit and while its outcome is read do not repeat the write', async () => {
    const store = await createCounter()
    cuttingProxy.cut('after', COMMIT)
    for (const when of ['before', 'after'] as const) cuttingProxy.cut(when, 'select from commits')
    await increment(store)
    expect([await count(store), cuttingProxy.left()]).toEqual([1, 0])
  })

  test('a write whose outcome cannot be read is refused with 503 BUSY and not repeated', async () => {
    const store = await createCounter()
    cuttingProxy.cut('after', COMMIT)
    for (let n = 0; n < 3; n++) cuttingProxy.cut('before', 'select from commits')
    expect(await errorOf(increment(store))).toMatchObject({ status: 503, code: 'BUSY' })
    expect([await count(store), cuttingProxy.left()]).toEqual([1, 0])
  })

  test('a write that cannot lock its tenant is refused with 503 BUSY', async () => {
    const store = await createCounter()
    await queryDatabase(
      server,
      'create policy unlockable on interruptions.tenant_lock as restrictive for update using (false)',
    )
    expect(await errorOf(increment(store))).toMatchObject({ status: 503, code: 'BUSY' })
    await queryDatabase(server, 'drop policy unlockable on interruptions.tenant_lock')
    expect(await increment(store)).toEqual([[1]])
  })

  test('connections lost among 120 writes apply acknowledged writes once and rejected ones not at all', async () => {
    const store = await createCounter()
    for (let n = 0; n < 6; n++) {
      cuttingProxy.cut(n % 2 ? 'before' : 'after', n % 3 ? COMMIT : 'update counters')
    }
    const done = await Promise.allSettled(Array.from({ length: 120 }, () => increment(store)))
    expect(await count(store)).toBe(done.filter(({ status }) => status === 'fulfilled').length)
    for (const one of done) if (one.status === 'rejected') expect(one.reason).toBeInstanceOf(Busy)
  })

  test('a write whose connection is lost three times is refused with 503 BUSY within 5 seconds', async () => {
    const store = await createCounter()
    for (let n = 0; n < 3; n++) cuttingProxy.cut('before', 'update counters')
    const began = performance.now()
    expect(await errorOf(increment(store))).toMatchObject({ status: 503, code: 'BUSY' })
    expect(performance.now() - began).toBeLessThan(5_000)
    expect(await count(store)).toBe(0)
  })

  test('a statement that runs too long is cancelled on PostgreSQL and refused with 503', async () => {
    const store = await createCounter()
    expect(await errorOf(store.db.query('select pg_sleep(10)'))).toMatchObject({ status: 503 })
    expect(await errorOf(store.write((tx) => tx.query('select pg_sleep(10)')))).toMatchObject({ status: 503 })
    const [{ running }] = await queryDatabase(
      server,
      "select count(*)::int as running from pg_stat_activity where query like '%pg_sleep(10)%' and state = 'active' and pid <> pg_backend_pid()",
    )
    expect(running).toBe(0)
    expect(await increment(store)).toEqual([[1]])
  })
})
