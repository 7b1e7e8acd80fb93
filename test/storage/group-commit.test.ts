import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { eq, sql } from 'drizzle-orm'
import fc from 'fast-check'
import { BrokenReference, Busy, Conflict, StorageFault } from '../../src/storage/errors'
import { DatabasePool } from '../../src/storage/pool'
import type { DeferredWrite, Store, Tx } from '../../src/storage/port'
import { checkProperty, PROPERTY_TIMEOUT_MS } from '../property-runner'
import { engines, freshFolder } from './engines'
import { freshLocation, insertThing, listCounts, listIds, migrations, range, things } from './fixtures'

setDefaultTimeout(PROPERTY_TIMEOUT_MS)

/** Work that fails, each in its own way, when there is a thing "a"; and what comes out. */
const failures: [string, (tx: Tx) => Promise<unknown>, new (...args: never[]) => Error][] = [
  ['throws', async () => Promise.reject(new RangeError('mine')), RangeError],
  ['meets a key that is taken', (tx) => insertThing(tx, 'a'), Conflict],
  ['refers to nothing', (tx) => tx.insert(things).values({ id: 'x', count: 0, part: 'none' }), BrokenReference],
  ['is no SQL', (tx) => tx.query('no sql at all'), StorageFault],
  ['overlooks its failure', (tx) => insertThing(tx, 'a').catch(() => {}), Conflict],
  [
    'overlooks its failure and goes on',
    (tx) => insertThing(tx, 'a').catch(() => insertThing(tx, 'x').catch(() => {})),
    Conflict,
  ],
  ['does not wait for its failure', async (tx) => void insertThing(tx, 'a').catch(() => {}), Conflict],
  ['asks for several things at once', (tx) => Promise.all(['x', 'a', 'y'].map((id) => insertThing(tx, id))), Conflict],
  [
    'fails at one row of many',
    (tx) => tx.executeMany('insert into things (id, count) values (?, 1)', [['x'], ['a']]),
    Conflict,
  ],
]

describe.each(engines)('%s', (_, engine) => {
  const storage = new DatabasePool(engine(), { openCount: 2, deadline: 2_000 })
  const fresh = () => storage.getStore(freshLocation(), migrations)
  afterAll(() => storage.close())

  test.each(failures)('work that %s takes only itself back, wherever it is among others', async (_, failing, kind) => {
    const store = fresh()
    await store.write((tx) => insertThing(tx, 'a'))
    const bad = () =>
      store.write(async (tx) => {
        await insertThing(tx, 'own')
        await tx.update(things).set({ count: 9 }).where(eq(things.id, 'a'))
        return failing(tx)
      })
    const good = (id: string) =>
      store.write(async (tx) => {
        await insertThing(tx, id)
        return (await tx.query('select id, count from things order by id')).join(' ')
      })
    const work = await Promise.allSettled([bad(), good('b'), bad(), bad(), good('c'), bad()])
    const told = work.map((one) => (one.status === 'fulfilled' ? one.value : one.reason.constructor))
    expect<unknown[]>(told).toEqual([kind, 'a,0 b,0', kind, kind, 'a,0 b,0 c,0', kind])
    expect(await listIds(store)).toBe('a,b,c')
  })

  test('what is put off is written once for all work that shares a transaction, without that of work that failed', async () => {
    const store = fresh()
    const written: unknown[] = []
    const write: DeferredWrite<string, number> = async ({ executeMany }, entries) => {
      written.push(entries)
      await executeMany('insert into things (id, count) values (?, ?)', entries)
    }
    const puttingOff = (...entries: [string, number][]) =>
      store.write(async (tx) => {
        for (const [key, value] of entries) tx.defer(write, key, value)
        await insertThing(tx, `own ${entries[0]![0]}`)
        return listIds({ db: tx })
      })
    const work = await Promise.allSettled([
      puttingOff(['a', 1]),
      puttingOff(['b', 1], ['a', 2], ['b', 3]),
      store.write(async (tx) => {
        tx.defer(write, 'lost', 1)
        throw new RangeError('mine')
      }),
      puttingOff(['c', 1]),
    ])
    expect(work.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled'])
    const entries = written.flat() as [string, number][]
    expect(Object.fromEntries(entries)).toEqual({ a: 2, b: 3, c: 1 })
    expect(written.length).toBeLessThan(3)
    expect(await listIds(store)).toBe('a,b,c,own a,own b,own c')
    expect(work.map((one) => one.status === 'fulfilled' && one.value).at(-1)).not.toContain('c,own')
  })

  test('when what was put off cannot be written, nothing of its transaction is', async () => {
    const store = fresh()
    await store.write((tx) => insertThing(tx, 'a'))
    const write: DeferredWrite<string, number> = ({ executeMany }, entries) =>
      executeMany('insert into things (id, count) values (?, ?)', entries)
    const both = await Promise.allSettled([
      store.write((tx) => insertThing(tx, 'b')),
      store.write(async (tx) => {
        await insertThing(tx, 'c')
        tx.defer(write, 'a', 1)
      }),
    ])
    expect(both.at(-1)).toHaveProperty('reason.constructor', Conflict)
    expect(await listIds(store)).not.toContain('c')
    await store.write((tx) => insertThing(tx, 'd'))
    expect(await listIds(store)).toEndWith('d')
  })

  test('work that is to be alone has what was put off before it', async () => {
    const store = fresh()
    const write: DeferredWrite<string, number> = ({ executeMany }, entries) =>
      executeMany('insert into things (id, count) values (?, ?)', entries)
    const puttingOff = (key: string) => store.write(async (tx) => tx.defer(write, key, 1))
    const seen = () => store.write((tx) => listIds({ db: tx }), { exclusive: true })
    const told = await Promise.all([puttingOff('a'), puttingOff('b'), seen(), puttingOff('c'), seen()])
    expect(told).toEqual([undefined, undefined, 'a,b', undefined, 'a,b,c'])
  })

  test('work that goes on and on is stopped, and those around it are not', async () => {
    const short = new DatabasePool(engine(), { openCount: 2, deadline: 500 })
    const store = short.getStore(freshLocation(), migrations)
    await store.write((tx) => insertThing(tx, 'a'))
    const [before, endless, after] = await Promise.allSettled([
      store.write((tx) => insertThing(tx, 'b')),
      store.write(async (tx) => {
        for (;;) await tx.update(things).set({ count: sql`count + 1` })
      }),
      store.write((tx) => insertThing(tx, 'c')),
    ])
    expect([before.status, after.status]).toEqual(['fulfilled', 'fulfilled'])
    expect(endless).toHaveProperty('reason.constructor', Busy)
    expect([await listIds(store), ...(await listCounts(store))]).toEqual(['a,b,c', 0, 0, 0])
    await short.close()
  })

  test('what is acknowledged is seen by every other reader of the same data, a turn later at most', async () => {
    const folder = freshFolder()
    const [one, other] = [engine({ folder }), engine({ folder })].map(
      (own) => new DatabasePool(own, { openCount: 2, deadline: 2_000 }),
    )
    const at = freshLocation()
    const [store, reader] = [one!.getStore(at, migrations), other!.getStore(at, migrations)]
    await reader.db.query('select 1')
    for (const n of range(20)) {
      await store.write((tx) => insertThing(tx, `${n}`))
      await Bun.sleep(0)
      expect(await reader.db.$count(things)).toBe(n + 1)
    }
    await Promise.all([one!.close(), other!.close()])
  })

  type Step = { does: 'put' | 'add' | 'remove' | 'upsert' | 'fail'; id: string; n: number }
  const anyUnit = fc.array(
    fc.record<Step>({
      does: fc.constantFrom('put', 'add', 'remove', 'upsert', 'put', 'add', 'fail'),
      id: fc.constantFrom('a', 'b', 'c', 'd'),
      n: fc.integer({ min: -9, max: 9 }),
    }),
    { maxLength: 4 },
  )
  const contents = 'select id, count from things order by id'
  const steps: Record<Step['does'], (tx: Tx, step: Step) => Promise<unknown>> = {
    put: (tx, { id, n }) => insertThing(tx, id, n),
    add: (tx, { id, n }) => tx.query('update things set count = count + ? where id = ?', [n, id]),
    remove: (tx, { id }) => tx.delete(things).where(eq(things.id, id)),
    upsert: (tx, { id, n }) =>
      tx.query('insert into things (id, count) values (?, ?) on conflict ("id") do update set count = excluded.count', [
        id,
        n,
      ]),
    fail: () => Promise.reject(new RangeError('mine')),
  }
  /** The same on a map; undefined for what fails. */
  function done(before: Map<string, number>, unit: Step[]) {
    const state = new Map(before)
    for (const { does, id, n } of unit) {
      if (does === 'fail' || (does === 'put' && state.has(id))) return
      if (does === 'put' || does === 'upsert') state.set(id, n)
      else if (does === 'remove') state.delete(id)
      else if (state.has(id)) state.set(id, state.get(id)! + n)
    }
    return state
  }
  const told = (state: Map<string, number>) => [...state].sort().join(' ')

  async function compare(store: Store, units: Step[][]) {
    const states = [new Map<string, number>()]
    const expected = units.map((unit) => {
      const state = done(states.at(-1)!, unit)
      states.push(state ?? states.at(-1)!)
      return state && told(state)
    })
    const all = states.map(told)
    const read = async () => (await store.db.query(contents)).join(' ')
    const work = await Promise.all(
      units.flatMap((unit, n) => [
        store
          .write(async (tx) => {
            for (const step of unit) await steps[step.does](tx, step)
            return (await tx.query(contents)).join(' ')
          })
          .catch(() => undefined)
          .then(async (result) => {
            expect(result).toBe(expected[n])
            // What was acknowledged is seen; what others do in the meantime, only after the whole of it is done.
            expect(all.slice(n + 1)).toContain(await read())
          }),
        read().then((seen) => expect(all).toContain(seen)),
      ]),
    )
    expect(await read()).toBe(all.at(-1)!)
    return work
  }

  test('whatever work comes at once is done one after the other, each wholly or not at all, and seen only when done', async () => {
    const store = fresh()
    await checkProperty(
      60,
      fc.asyncProperty(fc.array(anyUnit, { minLength: 1, maxLength: 12 }), async (units) => {
        await store.write((tx) => tx.delete(things))
        await compare(store, units)
      }),
    )
  })
})
