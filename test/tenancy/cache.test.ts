import { expect, test } from 'bun:test'
import { yieldToEventLoop } from '../../src/core/event-loop'
import { DatabasePool } from '../../src/storage/pool'
import type { Db } from '../../src/storage/port'
import { cached, dropCache, writeInvalidating } from '../../src/tenancy/cache'
import { errorOf } from '../rejections'
import { engines, fileEngines } from '../storage/engines'
import { freshLocation, increment, insertThing, listCounts, migrations, range } from '../storage/fixtures'

const withVersions = {
  sqlite: [...migrations.sqlite, 'create table versions (topic text primary key, version integer not null) strict'],
  postgres: [
    ...migrations.postgres,
    `create table versions (tenant_id uuid not null default current_setting('app.tenant')::uuid,
      topic text collate "C" not null, version bigint not null, primary key (tenant_id, topic))`,
  ],
}

test('a value is not read from the cache after its version could not be checked', async () => {
  const state = { value: 'old', version: 1, notifications: 0, isReachable: true }
  const query = async () => {
    if (!state.isReachable) throw new Error('The database cannot be reached.')
    return [['plugins', state.version]]
  }
  const store = { db: { query } as unknown as Db, remoteVersion: () => state.notifications }
  const read = async () => cached(store, 'plugins', 'key', async () => state.value)
  expect(await read()).toBe('old')
  Object.assign(state, { value: 'new', version: 2 })
  expect(await read()).toBe('old')
  Object.assign(state, { notifications: 1, isReachable: false })
  expect((await errorOf(read())).message).toContain('cannot be reached')
  state.isReachable = true
  expect(await read()).toBe('new')
})

test('a value is loaded again after the cache of its tenant was dropped, and others stay', async () => {
  const createStore = () => ({ db: { query: async () => [] } as unknown as Db, remoteVersion: () => 0 })
  const [store, other] = [createStore(), createStore()]
  const loads: string[] = []
  const load = (name: string) => async () => `${loads.push(name)}`
  const readBoth = async () => {
    await cached(store, 'plugins', 'key', load('store'))
    await cached(other, 'plugins', 'key', load('other'))
  }
  await readBoth()
  dropCache(store)
  await readBoth()
  expect(loads).toEqual(['store', 'other', 'store'])
})

test('a value is not read from the cache while its version is being checked for another reader', async () => {
  const state = { value: 'old', version: 1, notifications: 0 }
  let answered: Promise<void> | undefined
  const query = async () => {
    await answered
    return [['plugins', state.version]]
  }
  const store = { db: { query } as unknown as Db, remoteVersion: () => state.notifications }
  const read = async () => cached(store, 'plugins', 'key', async () => state.value)
  expect(await read()).toBe('old')
  Object.assign(state, { value: 'new', version: 2, notifications: 1 })
  const { promise, resolve } = Promise.withResolvers<void>()
  answered = promise
  const both = Promise.all([read(), read()])
  resolve()
  expect(await both).toEqual(['new', 'new'])
})

test.each(fileEngines)(
  '%s: whoever sees a commit in the database finds nothing older in the cache',
  async (_, engine) => {
    const pool = new DatabasePool(engine({ synchronous: 'full' }), { openCount: 1, deadline: 2_000 })
    const store = pool.getStore({ ...freshLocation(), bucket: 'cache_suite' }, withVersions)
    await store.write((tx) => insertThing(tx, 'a'))
    const readCount = async () => (await listCounts(store))[0]!
    const readCached = async () => cached(store, 'plugins', 'key', readCount)
    let isOver = false
    const differences: string[] = []
    const compare = async () => {
      while (!isOver) {
        const seen = await readCount()
        const known = await readCached()
        if (known < seen) differences.push(`${known} after ${seen}`)
        await yieldToEventLoop()
      }
    }
    const comparing = compare()
    for (const _ of range(30)) await writeInvalidating(store, 'plugins', (tx) => increment(tx))
    isOver = true
    await comparing
    expect(differences).toEqual([])
    expect(await readCached()).toBe(30)
    await pool.close()
  },
)

test.each(engines)(
  '%s: an action that waits for its work to be visible does not run when the work fails',
  async (_, engine) => {
    const pool = new DatabasePool(engine(), { openCount: 1, deadline: 2_000 })
    const store = pool.getStore({ ...freshLocation(), bucket: 'cache_suite' }, withVersions)
    const ran: string[] = []
    const write = (name: string, fails: boolean) =>
      store.write(async (tx) => {
        tx.onVisible(() => ran.push(name))
        await insertThing(tx, name)
        if (fails) throw new RangeError(name)
      })
    const outcomes = await Promise.allSettled([write('a', false), write('b', true), write('c', false)])
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(ran.sort()).toEqual(['a', 'c'])
    await pool.close()
  },
)
