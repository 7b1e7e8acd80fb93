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

/** Work that fails when there is a thing "a", each in its own way, and the class of its error. */
const failures: [string, (tx: Tx) => Promise<unknown>, new (...args: never[]) => Error][] = [
  ['throws', async () => Promise.reject(new RangeError('mine')), RangeError],
  ['inserts a taken key', (tx) => insertThing(tx, 'a'), Conflict],
  ['references a missing row', (tx) => tx.insert(things).values({ id: 'x', count: 0, part: 'none' }), BrokenReference],
  ['runs invalid SQL', (tx) => tx.query('no sql at all'), StorageFault],
  ['ignores its failure', (tx) => insertThing(tx, 'a').catch(() => {}), Conflict],
  [
    'ignores its failure and continues',
    (tx) => insertThing(tx, 'a').catch(() => insertThing(tx, 'x').catch(() => {})),
    Conflict,
  ],
  ['does not await its failure', async (tx) => void insertThing(tx, 'a').catch(() => {}), Conflict],
  [
    'fails in one of several concurrent statements',
    (tx) => Promise.all(['x', 'a', 'y'].map((id) => insertThing(tx, id))),
    Conflict,
  ],
  [
    'fails in one row of many',
    (tx) => tx.executeMany('insert into things (id, count) values (?, 1)', [['x'], ['a']]),
    Conflict,
  ],
]

describe.each(engines)('%s: group commit', (_, engine) => {
  const storage = new DatabasePool(engine(), { openCount: 2, deadline: 2_000 })
  const fresh = () => storage.getStore(freshLocation(), migrations)
  afterAll(() => storage.close())

  test.each(failures)('work that %s is rolled back alone among concurrent work', async (_, failing, kind) => {
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
    const outcomes = work.map((one) => (one.status === 'fulfilled' ? one.value : one.reason.constructor))
    expect<unknown[]>(outcomes).toEqual([kind, 'a,0 b,0', kind, kind, 'a,0 b,0 c,0', kind])
    expect(await listIds(store)).toBe('a,b,c')
  })

  test('deferred writes run once per transaction with the last value of each key, without those of failed work', async () => {
    const store = fresh()
    const written: unknown[] = []
    const write: DeferredWrite<string, number> = async ({ executeMany }, entries) => {
      written.push(entries)
      await executeMany('insert into things (id, count) values (?, ?)', entries)
    }
    const writeDeferred = (...entries: [string, number][]) =>
      store.write(async (tx) => {
        for (const [key, value] of entries) tx.defer(write, key, value)
        await insertThing(tx, `own ${entries[0]![0]}`)
        return listIds({ db: tx })
      })
    const work = await Promise.allSettled([
      writeDeferred(['a', 1]),
      writeDeferred(['b', 1], ['a', 2], ['b', 3]),
      store.write(async (tx) => {
        tx.defer(write, 'lost', 1)
        throw new RangeError('mine')
      }),
      writeDeferred(['c', 1]),
    ])
    expect(work.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled'])
    const entries = written.flat() as [string, number][]
    expect(Object.fromEntries(entries)).toEqual({ a: 2, b: 3, c: 1 })
    expect(written.length).toBeLessThan(3)
    expect(await listIds(store)).toBe('a,b,c,own a,own b,own c')
    expect(work.map((one) => one.status === 'fulfilled' && one.value).at(-1)).not.toContain('c,own')
  })

  test('a failing deferred write rolls back the work that deferred it', async () => {
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

  test('a failing deferred write waits for the others, which write nothing after the transaction', async () => {
    const store = fresh()
    await store.write((tx) => insertThing(tx, 'a'))
    const insert = 'insert into things (id, count) values (?, ?)'
    const writeBoth: DeferredWrite<string, number> = async ({ query }) => {
      for (const id of ['b', 'c', 'd']) await query(insert, [id, 1]).catch(() => {})
    }
    const fail: DeferredWrite<string, number> = ({ query }, [entry]) => query(insert, entry!)
    const [work] = await Promise.allSettled([
      store.write(async (tx) => {
        tx.defer(fail, 'a', 1)
        tx.defer(writeBoth, 'b', 1)
      }),
    ])
    expect(work).toHaveProperty('reason.constructor', Conflict)
    await store.write((tx) => insertThing(tx, 'e'))
    expect(await listIds(store)).toBe('a,e')
  })

  test('exclusive work sees the deferred writes of earlier work', async () => {
    const store = fresh()
    const write: DeferredWrite<string, number> = ({ executeMany }, entries) =>
      executeMany('insert into things (id, count) values (?, ?)', entries)
    const writeDeferred = (key: string) => store.write(async (tx) => tx.defer(write, key, 1))
    const listExclusively = () => store.write((tx) => listIds({ db: tx }), { exclusive: true })
    const results = await Promise.all([
      writeDeferred('a'),
      writeDeferred('b'),
      listExclusively(),
      writeDeferred('c'),
      listExclusively(),
    ])
    expect(results).toEqual([undefined, undefined, 'a,b', undefined, 'a,b,c'])
  })

  test('endless work is stopped with Busy, and the work around it is committed', async () => {
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

  test('an acknowledged write is visible to readers of other pools in the next turn', async () => {
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
  /** Applies the steps to a map; returns undefined for work that fails. */
  function applyToMap(before: Map<string, number>, unit: Step[]) {
    const state = new Map(before)
    for (const { does, id, n } of unit) {
      if (does === 'fail' || (does === 'put' && state.has(id))) return
      if (does === 'put' || does === 'upsert') state.set(id, n)
      else if (does === 'remove') state.delete(id)
      else if (state.has(id)) state.set(id, state.get(id)! + n)
    }
    return state
  }
  const formatState = (state: Map<string, number>) => [...state].sort().join(' ')

  async function compare(store: Store, units: Step[][]) {
    const states = [new Map<string, number>()]
    const expected = units.map((unit) => {
      const state = applyToMap(states.at(-1)!, unit)
      states.push(state ?? states.at(-1)!)
      return state && formatState(state)
    })
    const all = states.map(formatState)
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
            // Acknowledged work is visible, and concurrent work only once it is complete.
            expect(all.slice(n + 1)).toContain(await read())
          }),
        read().then((seen) => expect(all).toContain(seen)),
      ]),
    )
    expect(await read()).toBe(all.at(-1)!)
    return work
  }

  test('background work has a transaction of its own', async () => {
    const store = fresh()
    const seen: string[] = []
    const insert = (id: string) => async (tx: Tx) => {
      await insertThing(tx, id)
      seen.push(await listIds(store))
    }
    await store.write((tx) => insertThing(tx, 'a'))
    await Promise.all([
      store.write(insert('b'), { background: true }),
      store.write(insert('c')),
      store.write(insert('d'), { background: true }),
    ])
    expect(await listIds(store)).toBe('a,b,c,d')
    // Each sees what was committed before it.
    expect(seen.map((ids) => ids.split(',').length).toSorted()).toEqual([1, 2, 3])
  })

  test('background work leaves most of the time to others that write', async () => {
    const store = fresh()
    const [PIECES, PIECE_MS] = [6, 40]
    let [others, isOver] = [0, false]
    const writing = (async () => {
      for (; !isOver; others++) await store.write((tx) => insertThing(tx, `other ${others}`))
    })()
    for (const n of range(PIECES)) {
      const work = async (tx: Tx) => {
        await insertThing(tx, `piece ${n}`)
        for (const until = performance.now() + PIECE_MS; performance.now() < until; );
      }
      await store.write(work, { background: true })
    }
    isOver = true
    await writing
    // Without a pause they would write in turns.
    expect(others).toBeGreaterThan(2 * PIECES)
  })

  test('concurrent work is serialized and atomic, and reads see only complete work', async () => {
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
