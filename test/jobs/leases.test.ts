import { afterAll, afterEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { tenantMigrations } from '../../migrations'
import { moveClock } from '../../src/core/clock'
import { holding, type Lease, releaseAll } from '../../src/jobs/holding'
import { holds, LeaseLost, release, renew, take } from '../../src/jobs/leases'
import type { Store } from '../../src/storage/port'
import { Storage } from '../../src/storage/store'
import { touch } from '../../src/tenancy/memory'
import { engines, freshFolder } from '../storage/engines'

setDefaultTimeout(30_000)

const MINUTE = 60_000
const times = (n: number) => Array.from({ length: n }, (_, i) => i)
const tokenOf = (taken: object) => (taken as { token?: number }).token ?? 0
const leftOf = (outcome: object) => (outcome as { left?: number }).left ?? 0
const change = (store: Store) => store.write((tx) => touch(tx, 'actors'))
const changes = async ({ db }: Store) => Number((await db.ask('select sum(version) from versions'))[0]![0] ?? 0)
const expiry = async ({ db }: Store, name = 'work') =>
  (await db.ask('select expires from leases where name = ?', [name]))[0]![0] as number
const clock = async ({ db }: Store) => (await db.ask('select now from clock'))[0]![0] as number

/** As if the holder had been silent for too long. */
const expire = (store: Store, name = 'work') =>
  store.write((tx) => tx.ask('update leases set expires = 0 where name = ?', [name]))
const aborted = ({ signal }: Lease) =>
  new Promise<unknown>((resolve) => {
    if (signal.aborted) resolve(signal.reason)
    else signal.addEventListener('abort', () => resolve(signal.reason))
  })

/** Tries until it has the lease. */
async function taken(store: Store, name: string, length: number) {
  for (;;) {
    const token = tokenOf(await take(store, name, length))
    if (token) return token
    await Bun.sleep(5)
  }
}

describe.each(engines)('%s: a lease', (_, engine) => {
  const folder = freshFolder()
  // Each has connections of its own, as a process would.
  const nodes = times(3).map(() => new Storage(engine({ folder }), { open: 10, deadline: 5_000 }))
  const seen = (place: Parameters<Storage['store']>[0]) =>
    nodes.map((node) => node.store(place, tenantMigrations)) as [Store, Store, Store]
  const place = (name = crypto.randomUUID()) => ({
    tenant: name,
    file: `${name}.db`,
    identity: Bun.randomUUIDv7() as string,
    bucket: 'leases',
  })
  const fresh = () => seen(place())
  afterAll(async () => {
    for (const node of nodes) await node.close()
  })
  afterEach(() => moveClock(Date.now()))

  test('is had by one of twenty who want it at once, and the others are told for how long', async () => {
    const stores = fresh()
    const gate = Promise.withResolvers<void>()
    let [running, answered] = [0, 0]
    const outcomes = await Promise.all(
      times(20).map(async (n) => {
        const outcome = await holding(stores[n % 3]!, 'work', async () => {
          expect(++running).toBe(1)
          await gate.promise
          return n
        })
        if (++answered === 19) gate.resolve()
        return outcome
      }),
    )
    expect(outcomes.filter(({ state }) => state === 'done')).toHaveLength(1)
    for (const outcome of outcomes) if (outcome.state !== 'done') expect(leftOf(outcome)).toBeWithin(1, 30_001)
  })

  test('has a token that grows with each holder: after release, expiry and loss', async () => {
    const [one, two] = fresh()
    const tokens = [tokenOf(await take(one, 'work', MINUTE))]
    await release(one, 'work', tokens[0]!)
    tokens.push(tokenOf(await take(two, 'work', 1)))
    tokens.push(await taken(one, 'work', MINUTE))
    await expire(one)
    tokens.push(tokenOf(await take(two, 'work', MINUTE)))
    expect(tokens[0]).toBeGreaterThan(0)
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b))
  })

  test('is not to be had before it has expired, and is then', async () => {
    const [one, two] = fresh()
    expect(tokenOf(await take(one, 'work', MINUTE))).toBe(1)
    expect(leftOf(await take(two, 'work', MINUTE))).toBeWithin(1, MINUTE + 1)
    expect(tokenOf(await take(one, 'other', 300))).toBe(1)
    const expires = await expiry(one, 'other')
    expect(await taken(two, 'other', MINUTE)).toBe(2)
    expect(await clock(two)).toBeGreaterThanOrEqual(expires)
  })

  test('that is renewed is kept, and one that was lost is not to be renewed or released', async () => {
    const [one, two] = fresh()
    const token = tokenOf(await take(one, 'work', MINUTE))
    const before = await expiry(one)
    expect(await renew(one, 'work', token, 2 * MINUTE)).toBeGreaterThan(performance.now() + MINUTE)
    expect(await expiry(one)).toBeGreaterThan(before + MINUTE / 2)

    await expire(one)
    const next = tokenOf(await take(two, 'work', MINUTE))
    const kept = await expiry(two)
    expect(await renew(one, 'work', token, 9 * MINUTE)).toBeUndefined()
    expect(await release(one, 'work', token)).toBeFalse()
    expect(await expiry(one)).toBe(kept)
    expect([await holds(one.db, 'work', token), await holds(one.db, 'work', next)]).toEqual([false, true])
  })

  test('that has expired but that nobody took is its holder’s still', async () => {
    const [one] = fresh()
    const token = tokenOf(await take(one, 'work', MINUTE))
    await expire(one)
    expect(await holds(one.db, 'work', token)).toBeTrue()
    expect(await renew(one, 'work', token, MINUTE)).toBeNumber()
    expect(tokenOf(await take(one, 'work', MINUTE))).toBe(0)
  })

  test('is free at once when it is released, and its old token is worth nothing', async () => {
    const [one, two] = fresh()
    const token = tokenOf(await take(one, 'work', MINUTE))
    expect(await release(one, 'work', token)).toBeTrue()
    expect(await holds(one.db, 'work', token)).toBeFalse()
    expect(await renew(one, 'work', token, MINUTE)).toBeUndefined()
    expect(tokenOf(await take(two, 'work', MINUTE))).toBe(token + 1)
  })

  test('that rests is not to be had meanwhile', async () => {
    const [one, two] = fresh()
    expect(await holding(one, 'work', async () => 'done', { rest: MINUTE })).toEqual({ state: 'done', value: 'done' })
    expect(leftOf(await holding(two, 'work', async () => 'done'))).toBeWithin(1, MINUTE + 1)
  })

  test('does not rest after work that failed', async () => {
    const [one, two] = fresh()
    const failed = holding(one, 'work', () => Promise.reject(new Error('broken')), { rest: MINUTE })
    await expect(failed).rejects.toThrow('broken')
    expect(await holding(two, 'work', async () => 1)).toEqual({ state: 'done', value: 1 })
  })

  test('is kept by renewing for as long as the work goes on, and free as soon as that ends', async () => {
    const [one, two] = fresh()
    const length = 2_000
    const outcome = await holding(
      one,
      'work',
      async (held) => {
        const first = await expiry(two)
        while ((await clock(two)) < first + 200) {
          expect(tokenOf(await take(two, 'work', MINUTE))).toBe(0)
          await Bun.sleep(20)
        }
        await change(held)
        return held.signal.aborted
      },
      { length },
    )
    expect(outcome).toEqual({ state: 'done', value: false })
    expect(await changes(one)).toBe(1)
    expect(tokenOf(await take(two, 'work', MINUTE))).toBe(2)
  })

  test('is of one tenant, and of one name', async () => {
    const [[acme], [other]] = [fresh(), fresh()]
    expect(tokenOf(await take(acme, 'work', MINUTE))).toBe(1)
    expect(tokenOf(await take(other, 'work', MINUTE))).toBe(1)
    expect(tokenOf(await take(acme, 'play', MINUTE))).toBe(1)
    await release(other, 'work', 1)
    expect(tokenOf(await take(acme, 'work', MINUTE))).toBe(0)
  })

  test('has nothing to do with the clock that rules read', async () => {
    const [one, two] = fresh()
    await holding(one, 'work', async (held) => {
      moveClock(Date.now() + 365 * 24 * 60 * MINUTE)
      expect(tokenOf(await take(two, 'work', MINUTE))).toBe(0)
      moveClock(0)
      expect(tokenOf(await take(two, 'work', MINUTE))).toBe(0)
      await change(held)
    })
    expect(tokenOf(await take(two, 'work', MINUTE))).toBe(2)
  })

  test('gives the work its store as it was, and what the work throws comes out', async () => {
    const [one, two] = fresh()
    const failed = holding({ ...one, tenant: 'acme' }, 'work', async ({ tenant, token, db }) => {
      expect([tenant, token, await db.ask('select 1')]).toEqual(['acme', 1, [[1]]])
      throw new Error('broken')
    })
    await expect(failed).rejects.toThrow('broken')
    expect(tokenOf(await take(two, 'work', MINUTE))).toBe(2)
  })

  describe('that somebody else has by now', () => {
    test('lets its old holder write nothing, and tells it', async () => {
      const [one, two] = fresh()
      const outcome = await holding(one, 'work', async (held) => {
        await change(held)
        await expire(two)
        expect(tokenOf(await take(two, 'work', MINUTE))).toBe(2)
        await expect(change(held)).rejects.toBeInstanceOf(LeaseLost)
        expect(held.signal.reason).toBeInstanceOf(LeaseLost)
        await change(held)
      })
      expect(outcome).toEqual({ state: 'lost' })
      expect(await changes(two)).toBe(1)
      expect(await holds(two.db, 'work', 2)).toBeTrue()
    })

    test('stays lost after the other has freed it', async () => {
      const [one, two] = fresh()
      const outcome = await holding(one, 'work', async (held) => {
        await expire(two)
        expect(await holding(two, 'work', async (other) => change(other))).toMatchObject({ state: 'done' })
        return change(held)
      })
      expect(outcome).toEqual({ state: 'lost' })
      expect(await changes(two)).toBe(1)
    })

    test('is noticed at the next renewal by a holder that writes nothing', async () => {
      const [one, two] = fresh()
      const outcome = await holding(
        one,
        'work',
        async (held) => {
          // At once, or a renewal comes in between.
          await two.write((tx) => tx.ask("update leases set holder = 'other', token = token + 1"))
          expect(await aborted(held)).toBeInstanceOf(LeaseLost)
        },
        { length: 300 },
      )
      expect(outcome).toEqual({ state: 'lost' })
    })

    test('is noticed at the end, at the latest', async () => {
      const [one, two] = fresh()
      const outcome = await holding(one, 'work', async () => {
        await expire(two)
        await take(two, 'work', MINUTE)
        return 'all of it'
      })
      expect(outcome).toEqual({ state: 'lost' })
    })

    test('is lost for the very next write, though both share a transaction', async () => {
      const [one] = fresh()
      await holding(one, 'work', async (held) => {
        await expire(one)
        const before = change(held)
        const other = one.write((tx) => tx.ask('update leases set token = token + 1'))
        const after = change(held)
        await Promise.all([before, other])
        await expect(after).rejects.toBeInstanceOf(LeaseLost)
      })
      expect(await changes(one)).toBe(1)
    })
  })

  test('is its holder’s, by the holder’s own stopwatch, for no longer than by the clock of the database', async () => {
    const [one] = fresh()
    const { token, until } = (await take(one, 'work', MINUTE)) as { token: number; until: number }
    const check = async (until: number) => {
      const left = (await expiry(one)) - (await clock(one))
      expect(until - performance.now()).toBeLessThanOrEqual(left + 2) // both are rounded
    }
    await check(until)
    await check((await renew(one, 'work', token, 2 * MINUTE))!)
  })

  test('is given up when the database has not answered for its length', async () => {
    const [one, two] = fresh()
    let broken = false
    const write: Store['write'] = (work) => (broken ? Promise.reject(new Error('no answer')) : one.write(work))
    const outcome = await holding(
      { ...one, write },
      'work',
      async (held) => {
        broken = true
        await aborted(held)
        broken = false
      },
      { length: 500 },
    )
    expect(outcome).toEqual({ state: 'lost' })
    expect(await taken(two, 'work', MINUTE)).toBe(2)
  })

  test('outlasts a renewal that failed', async () => {
    const [one] = fresh()
    const length = 3_000
    let failing = 0
    const write: Store['write'] = (work) => (failing-- > 0 ? Promise.reject(new Error('busy')) : one.write(work))
    const outcome = await holding(
      { ...one, write },
      'work',
      async () => {
        const first = await expiry(one)
        failing = 1
        while ((await expiry(one)) === first) await Bun.sleep(20)
        expect(failing).toBeLessThan(1)
      },
      { length },
    )
    expect(outcome.state).toBe('done')
  })

  describe('of a process that stops', () => {
    test('is free as soon as the work has heard of it', async () => {
      const [one, two] = fresh()
      const begun = Promise.withResolvers<void>()
      const work = holding(one, 'work', async (held) => {
        begun.resolve()
        await aborted(held)
      })
      await begun.promise
      await releaseAll(MINUTE)
      expect(tokenOf(await take(two, 'work', MINUTE))).toBe(2)
      expect(await work).toEqual({ state: 'lost' })
    })

    test('is free also when the work goes on, which then can write no more', async () => {
      const [one, two] = fresh()
      const [begun, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      const work = holding(one, 'work', async (held) => {
        begun.resolve()
        await gate.promise
        await change(held)
      })
      await begun.promise
      await releaseAll(10)
      gate.resolve()
      expect(await work).toEqual({ state: 'lost' })
      expect(await changes(two)).toBe(0)
      expect(tokenOf(await take(two, 'work', MINUTE))).toBe(2)
    })

    test('is free also when it was just about to be taken', async () => {
      const [one, two] = fresh()
      const work = holding(one, 'work', () => Promise.reject(new Error('must not begin')))
      await releaseAll(MINUTE)
      expect(await work).toEqual({ state: 'lost' })
      expect(tokenOf(await take(two, 'work', MINUTE))).toBe(2)
    })
  })

  test('is not renewed any more after the work has ended', async () => {
    const [one] = fresh()
    await holding(one, 'work', async () => {}, { length: 150 })
    const freed = await expiry(one)
    await Bun.sleep(400)
    expect(await expiry(one)).toBe(freed)
  })
})
