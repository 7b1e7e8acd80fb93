import { afterAll, afterEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { tenantMigrations } from '../../migrations'
import { moveClock } from '../../src/core/clock'
import { acquireLease, isLeaseHeld, LeaseLost, releaseLease, renewLease } from '../../src/jobs/leases'
import { type Lease, releaseAllLeases, withLease } from '../../src/jobs/with-lease'
import { DatabasePool } from '../../src/storage/pool'
import type { Store } from '../../src/storage/port'
import { bumpVersion } from '../../src/tenancy/cache'
import { errorOf } from '../rejections'
import { engines, freshFolder } from '../storage/engines'

setDefaultTimeout(30_000)

const MINUTE = 60_000
const times = (n: number) => Array.from({ length: n }, (_, i) => i)
const tokenOf = (taken: object) => (taken as { token?: number }).token ?? 0
const remainingOf = (outcome: object) => (outcome as { left?: number }).left ?? 0
const writeOnce = (store: Store) => store.write((tx) => bumpVersion(tx, 'actors'))
const countWrites = async ({ db }: Store) => Number((await db.query('select sum(version) from versions'))[0]![0] ?? 0)
const readExpiry = async ({ db }: Store, name = 'work') =>
  (await db.query('select expires from leases where name = ?', [name]))[0]![0] as number
const readDatabaseClock = async ({ db }: Store) => (await db.query('select now from clock'))[0]![0] as number

/** Expires the lease as if its holder had not renewed it. */
const expireLease = (store: Store, name = 'work') =>
  store.write((tx) => tx.query('update leases set expires = 0 where name = ?', [name]))
const waitForAbort = ({ signal }: Lease) =>
  new Promise<unknown>((resolve) => {
    if (signal.aborted) resolve(signal.reason)
    else signal.addEventListener('abort', () => resolve(signal.reason))
  })

/** Tries until it gets the lease, and returns its token. */
async function acquireEventually(store: Store, name: string, ttlMs: number) {
  for (;;) {
    const token = tokenOf(await acquireLease(store, name, ttlMs))
    if (token) return token
    await Bun.sleep(5)
  }
}

describe.each(engines)('%s: leases', (_, engine) => {
  const folder = freshFolder()
  // Each node has connections of its own, as a process would.
  const nodes = times(3).map(() => new DatabasePool(engine({ folder }), { openCount: 10, deadline: 5_000 }))
  const storesFor = (newLocation: Parameters<DatabasePool['getStore']>[0]) =>
    nodes.map((node) => node.getStore(newLocation, tenantMigrations)) as [Store, Store, Store]
  const newLocation = (name = crypto.randomUUID()) => ({
    tenant: name,
    file: `${name}.db`,
    identity: Bun.randomUUIDv7() as string,
    bucket: 'leases',
  })
  const createStores = () => storesFor(newLocation())
  afterAll(async () => {
    for (const node of nodes) await node.close()
  })
  afterEach(() => moveClock())

  test('one of twenty concurrent callers gets the lease, and the others get the remaining time', async () => {
    const stores = createStores()
    const gate = Promise.withResolvers<void>()
    let [running, answered] = [0, 0]
    const outcomes = await Promise.all(
      times(20).map(async (n) => {
        const outcome = await withLease(stores[n % 3]!, 'work', async () => {
          expect(++running).toBe(1)
          await gate.promise
          return n
        })
        if (++answered === 19) gate.resolve()
        return outcome
      }),
    )
    expect(outcomes.filter(({ state }) => state === 'done')).toHaveLength(1)
    for (const outcome of outcomes) if (outcome.state !== 'done') expect(remainingOf(outcome)).toBeWithin(1, 30_001)
  })

  test('the token of a lease grows with each holder after release, expiry and loss', async () => {
    const [one, two] = createStores()
    const tokens = [tokenOf(await acquireLease(one, 'work', MINUTE))]
    await releaseLease(one, 'work', tokens[0]!)
    tokens.push(tokenOf(await acquireLease(two, 'work', 1)))
    tokens.push(await acquireEventually(one, 'work', MINUTE))
    await expireLease(one)
    tokens.push(tokenOf(await acquireLease(two, 'work', MINUTE)))
    expect(tokens[0]).toBeGreaterThan(0)
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b))
  })

  test('a held lease cannot be acquired before it has expired', async () => {
    const [one, two] = createStores()
    expect(tokenOf(await acquireLease(one, 'work', MINUTE))).toBe(1)
    expect(remainingOf(await acquireLease(two, 'work', MINUTE))).toBeWithin(1, MINUTE + 1)
    expect(tokenOf(await acquireLease(one, 'other', 300))).toBe(1)
    const expires = await readExpiry(one, 'other')
    expect(await acquireEventually(two, 'other', MINUTE)).toBe(2)
    expect(await readDatabaseClock(two)).toBeGreaterThanOrEqual(expires)
  })

  test('a renewal prolongs a held lease, and a lost lease can neither be renewed nor released', async () => {
    const [one, two] = createStores()
    const token = tokenOf(await acquireLease(one, 'work', MINUTE))
    const before = await readExpiry(one)
    expect(await renewLease(one, 'work', token, 2 * MINUTE)).toBeGreaterThan(performance.now() + MINUTE)
    expect(await readExpiry(one)).toBeGreaterThan(before + MINUTE / 2)

    await expireLease(one)
    const next = tokenOf(await acquireLease(two, 'work', MINUTE))
    const expiry = await readExpiry(two)
    expect(await renewLease(one, 'work', token, 9 * MINUTE)).toBeUndefined()
    expect(await releaseLease(one, 'work', token)).toBeFalse()
    expect(await readExpiry(one)).toBe(expiry)
    expect([await isLeaseHeld(one.db, 'work', token), await isLeaseHeld(one.db, 'work', next)]).toEqual([false, true])
  })

  test('an expired lease that nobody has acquired can be renewed by its holder', async () => {
    const [one] = createStores()
    const token = tokenOf(await acquireLease(one, 'work', MINUTE))
    await expireLease(one)
    expect(await isLeaseHeld(one.db, 'work', token)).toBeTrue()
    expect(await renewLease(one, 'work', token, MINUTE)).toBeNumber()
    expect(tokenOf(await acquireLease(one, 'work', MINUTE))).toBe(0)
  })

  test('a released lease can be acquired at once, and its old token is invalid', async () => {
    const [one, two] = createStores()
    const token = tokenOf(await acquireLease(one, 'work', MINUTE))
    expect(await releaseLease(one, 'work', token)).toBeTrue()
    expect(await isLeaseHeld(one.db, 'work', token)).toBeFalse()
    expect(await renewLease(one, 'work', token, MINUTE)).toBeUndefined()
    expect(tokenOf(await acquireLease(two, 'work', MINUTE))).toBe(token + 1)
  })

  test('a lease cannot be acquired during its rest after the work', async () => {
    const [one, two] = createStores()
    expect(await withLease(one, 'work', async () => 'done', { cooldownMs: MINUTE })).toEqual({
      state: 'done',
      value: 'done',
    })
    expect(remainingOf(await withLease(two, 'work', async () => 'done'))).toBeWithin(1, MINUTE + 1)
  })

  test('withLease acquires a lease whose rest would be longer than any, because the clock was set back', async () => {
    const [one, two] = createStores()
    const work = async () => {}
    await withLease(one, 'work', work, { cooldownMs: MINUTE })
    expect((await withLease(two, 'work', work, { cooldownMs: MINUTE })).state).toBe('taken')
    await one.write((tx) => tx.query('update leases set expires = expires + ?', [365 * 86_400_000]))
    expect((await withLease(two, 'work', work, { cooldownMs: MINUTE })).state).toBe('done')
    expect((await readExpiry(one)) - (await readDatabaseClock(one))).toBeWithin(0, MINUTE + 1)
  })

  test('a lease does not rest after work that failed', async () => {
    const [one, two] = createStores()
    const failed = withLease(one, 'work', () => Promise.reject(new Error('broken')), { cooldownMs: MINUTE })
    expect((await errorOf(failed)).message).toContain('broken')
    expect(await withLease(two, 'work', async () => 1)).toEqual({ state: 'done', value: 1 })
  })

  test('withLease renews the lease while its work runs and releases it when the work ends', async () => {
    const [one, two] = createStores()
    const ttlMs = 2_000
    const outcome = await withLease(
      one,
      'work',
      async (held) => {
        const first = await readExpiry(two)
        while ((await readDatabaseClock(two)) < first + 200) {
          expect(tokenOf(await acquireLease(two, 'work', MINUTE))).toBe(0)
          await Bun.sleep(20)
        }
        await writeOnce(held)
        return held.signal.aborted
      },
      { ttlMs },
    )
    expect(outcome).toEqual({ state: 'done', value: false })
    expect(await countWrites(one)).toBe(1)
    expect(tokenOf(await acquireLease(two, 'work', MINUTE))).toBe(2)
  })

  test('leases of other tenants and other names are independent', async () => {
    const [[acme], [other]] = [createStores(), createStores()]
    expect(tokenOf(await acquireLease(acme, 'work', MINUTE))).toBe(1)
    expect(tokenOf(await acquireLease(other, 'work', MINUTE))).toBe(1)
    expect(tokenOf(await acquireLease(acme, 'play', MINUTE))).toBe(1)
    await releaseLease(other, 'work', 1)
    expect(tokenOf(await acquireLease(acme, 'work', MINUTE))).toBe(0)
  })

  test('moving the test clock does not affect leases', async () => {
    const [one, two] = createStores()
    await withLease(one, 'work', async (held) => {
      moveClock(Date.now() + 365 * 24 * 60 * MINUTE)
      expect(tokenOf(await acquireLease(two, 'work', MINUTE))).toBe(0)
      moveClock(0)
      expect(tokenOf(await acquireLease(two, 'work', MINUTE))).toBe(0)
      await writeOnce(held)
    })
    expect(tokenOf(await acquireLease(two, 'work', MINUTE))).toBe(2)
  })

  test('withLease passes the store to its work and rethrows the error of the work', async () => {
    const [one, two] = createStores()
    const failed = withLease({ ...one, tenant: 'acme' }, 'work', async ({ tenant, token, db }) => {
      expect([tenant, token, await db.query('select 1')]).toEqual(['acme', 1, [[1]]])
      throw new Error('broken')
    })
    expect((await errorOf(failed)).message).toContain('broken')
    expect(tokenOf(await acquireLease(two, 'work', MINUTE))).toBe(2)
  })

  describe('a lease that was lost to another holder', () => {
    test('a write under a lost lease throws LeaseLost and aborts the signal of its holder', async () => {
      const [one, two] = createStores()
      const outcome = await withLease(one, 'work', async (held) => {
        await writeOnce(held)
        await expireLease(two)
        expect(tokenOf(await acquireLease(two, 'work', MINUTE))).toBe(2)
        expect(await errorOf(writeOnce(held))).toBeInstanceOf(LeaseLost)
        expect(held.signal.reason).toBeInstanceOf(LeaseLost)
        await writeOnce(held)
      })
      expect(outcome).toEqual({ state: 'lost' })
      expect(await countWrites(two)).toBe(1)
      expect(await isLeaseHeld(two.db, 'work', 2)).toBeTrue()
    })

    test('a lost lease stays lost after the next holder has released it', async () => {
      const [one, two] = createStores()
      const outcome = await withLease(one, 'work', async (held) => {
        await expireLease(two)
        expect(await withLease(two, 'work', async (next) => writeOnce(next))).toMatchObject({ state: 'done' })
        return writeOnce(held)
      })
      expect(outcome).toEqual({ state: 'lost' })
      expect(await countWrites(two)).toBe(1)
    })

    test('a renewal detects a lost lease even if its holder writes nothing', async () => {
      const [one, two] = createStores()
      const outcome = await withLease(
        one,
        'work',
        async (held) => {
          // One statement, so that no renewal comes in between.
          await two.write((tx) => tx.query("update leases set holder = 'other', token = token + 1"))
          expect(await waitForAbort(held)).toBeInstanceOf(LeaseLost)
        },
        { ttlMs: 300 },
      )
      expect(outcome).toEqual({ state: 'lost' })
    })

    test('withLease returns state lost when the lease was lost unnoticed during the work', async () => {
      const [one, two] = createStores()
      const outcome = await withLease(one, 'work', async () => {
        await expireLease(two)
        await acquireLease(two, 'work', MINUTE)
        return 'all of it'
      })
      expect(outcome).toEqual({ state: 'lost' })
    })

    test('a write right after the loss throws LeaseLost even if a group commit joins both', async () => {
      const [one] = createStores()
      await withLease(one, 'work', async (held) => {
        await expireLease(one)
        const before = writeOnce(held)
        const loss = one.write((tx) => tx.query('update leases set token = token + 1'))
        const after = writeOnce(held)
        await Promise.all([before, loss])
        expect(await errorOf(after)).toBeInstanceOf(LeaseLost)
      })
      expect(await countWrites(one)).toBe(1)
    })
  })

  test('the local expiry of a lease is never later than the expiry in the database', async () => {
    const [one] = createStores()
    const { token, until } = (await acquireLease(one, 'work', MINUTE)) as { token: number; until: number }
    const check = async (until: number) => {
      const left = (await readExpiry(one)) - (await readDatabaseClock(one))
      expect(until - performance.now()).toBeLessThanOrEqual(left + 2) // both are rounded
    }
    await check(until)
    await check((await renewLease(one, 'work', token, 2 * MINUTE))!)
  })

  test('withLease gives the lease up when the database has not answered for its length', async () => {
    const [one, two] = createStores()
    let broken = false
    const write: Store['write'] = (work) => (broken ? Promise.reject(new Error('no answer')) : one.write(work))
    const outcome = await withLease(
      { ...one, write },
      'work',
      async (held) => {
        broken = true
        await waitForAbort(held)
        broken = false
      },
      { ttlMs: 500 },
    )
    expect(outcome).toEqual({ state: 'lost' })
    expect(await acquireEventually(two, 'work', MINUTE)).toBe(2)
  })

  test('a single failed renewal does not end a lease', async () => {
    const [one] = createStores()
    const ttlMs = 3_000
    let failing = 0
    const write: Store['write'] = (work) => (failing-- > 0 ? Promise.reject(new Error('busy')) : one.write(work))
    const outcome = await withLease(
      { ...one, write },
      'work',
      async () => {
        const first = await readExpiry(one)
        failing = 1
        while ((await readExpiry(one)) === first) await Bun.sleep(20)
        expect(failing).toBeLessThan(1)
      },
      { ttlMs },
    )
    expect(outcome.state).toBe('done')
  })

  describe('releaseAllLeases', () => {
    test('releaseAllLeases frees a lease as soon as its work reacts to the abort signal', async () => {
      const [one, two] = createStores()
      const begun = Promise.withResolvers<void>()
      const work = withLease(one, 'work', async (held) => {
        begun.resolve()
        await waitForAbort(held)
      })
      await begun.promise
      await releaseAllLeases(MINUTE)
      expect(tokenOf(await acquireLease(two, 'work', MINUTE))).toBe(2)
      expect(await work).toEqual({ state: 'lost' })
    })

    test('releaseAllLeases frees the lease of work that ignores the signal, which then cannot write', async () => {
      const [one, two] = createStores()
      const [begun, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      const work = withLease(one, 'work', async (held) => {
        begun.resolve()
        await gate.promise
        await writeOnce(held)
      })
      await begun.promise
      await releaseAllLeases(10)
      gate.resolve()
      expect(await work).toEqual({ state: 'lost' })
      expect(await countWrites(two)).toBe(0)
      expect(tokenOf(await acquireLease(two, 'work', MINUTE))).toBe(2)
    })

    test('releaseAllLeases frees a lease that was just being acquired, and its work never begins', async () => {
      const [one, two] = createStores()
      const work = withLease(one, 'work', () => Promise.reject(new Error('must not begin')))
      await releaseAllLeases(MINUTE)
      expect(await work).toEqual({ state: 'lost' })
      expect(tokenOf(await acquireLease(two, 'work', MINUTE))).toBe(2)
    })
  })

  test('withLease does not renew the lease after its work has ended', async () => {
    const [one] = createStores()
    await withLease(one, 'work', async () => {}, { ttlMs: 150 })
    const freed = await readExpiry(one)
    await Bun.sleep(400)
    expect(await readExpiry(one)).toBe(freed)
  })
})
