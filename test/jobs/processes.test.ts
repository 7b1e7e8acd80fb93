import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { holding, type Lease } from '../../src/jobs/holding'
import { take } from '../../src/jobs/leases'
import { Busy } from '../../src/storage/errors'
import type { Store } from '../../src/storage/port'
import type { Storage } from '../../src/storage/store'
import { type Contest, countOf, entered, type Role, step } from '../outside/contender'
import { databaseUrl, freshFolder } from '../storage/engines'

setDefaultTimeout(30_000)

const program = resolve(import.meta.dir, '../outside/contender.ts')

/** Another process. `next` is what it tells next. */
function contender(role: Role, contest: Contest) {
  const child = Bun.spawn([process.execPath, program, role, JSON.stringify(contest)], {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const lines = (async function* () {
    let text = ''
    for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
      const [...whole] = (text + chunk).split('\n')
      text = whole.pop()!
      for (const line of whole) yield JSON.parse(line)
    }
  })()
  return {
    next: async () => (await lines.next()).value,
    send: (signal: 'SIGCONT' | 'SIGKILL' | 'SIGTERM') => void child.kill(signal),
    /** Until it has stopped itself. */
    async asleep() {
      while (!/^\d+ \(.*\) T/.test(readFileSync(`/proc/${child.pid}/stat`, 'utf8'))) await Bun.sleep(5)
    },
    exited: child.exited,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await child.exited
    },
  }
}

const databases: [string, object][] = [['one SQLite file', { folder: freshFolder() }]]
if (databaseUrl) databases.push(['PostgreSQL', { url: databaseUrl }])

describe.skipIf(process.platform !== 'linux').each(databases)('processes that share %s', (_, where) => {
  const opened: Storage[] = []
  afterAll(async () => {
    for (const storage of opened) await storage.close()
  })

  async function fresh(length: number) {
    const tenant = crypto.randomUUID()
    const place = { tenant, file: `${tenant}.db`, identity: Bun.randomUUIDv7() as string, bucket: 'contests' }
    const contest: Contest = { place, length, ...where }
    const { storage, store } = entered(contest)
    opened.push(storage)
    await store.write((tx) => tx.ask('insert into counters (n) select 0 where not exists (select 1 from counters)'))
    return { contest, store }
  }
  const steps = async ({ db }: Store) =>
    (await db.ask('select n, token from steps order by n, token')) as [number, number][]

  /** Does the work as soon as the lease is to be had. */
  async function succeed<T>(store: Store, work: (held: Store & Lease) => Promise<T>): Promise<T> {
    for (;;) {
      const outcome = await holding(store, 'work', work).catch((error) => {
        if (!(error instanceof Busy)) throw error
      })
      if (outcome?.state === 'done') return outcome.value
      await Bun.sleep(10)
    }
  }

  test('one that sleeps too long is followed by another, and can write nothing when it wakes up', async () => {
    const { contest, store } = await fresh(500)
    await using first = contender('sleep', contest)
    const { token } = await first.next()
    await first.asleep()
    const next = await succeed(store, async (held) => {
      await step(held, 1)
      first.send('SIGCONT')
      expect(await first.next()).toEqual({ wrote: 'refused', aborted: true })
      return held.token
    })
    expect(next).toBeGreaterThan(token)
    expect(await first.next()).toEqual({ state: 'lost' })
    expect(await steps(store)).toEqual([[1, next]])
  })

  test('one that wakes up after the other has ended can write nothing either', async () => {
    const { contest, store } = await fresh(500)
    await using first = contender('sleep', contest)
    await first.next()
    await first.asleep()
    const next = await succeed(store, async (held) => {
      await step(held, 1)
      return held.token
    })
    first.send('SIGCONT')
    expect(await first.next()).toMatchObject({ wrote: 'refused' })
    expect(await first.next()).toEqual({ state: 'lost' })
    expect([await countOf(store), await steps(store)]).toEqual([1, [[1, next]]])
  })

  test('one that sleeps in the midst of a write has written all of it before the other began, or nothing', async () => {
    const { contest, store } = await fresh(500)
    await using first = contender('sleepWriting', contest)
    const { token } = await first.next()
    await first.asleep()
    const second = succeed(store, async (held) => {
      await step(held, (await countOf(held)) + 1)
      return held.token
    })
    // PostgreSQL ends its transaction; nobody ends that of a file, but nobody else can write meanwhile.
    await ('url' in where ? second : Promise.race([second, Bun.sleep(700)]))
    first.send('SIGCONT')
    const { wrote } = await first.next()
    const next = await second
    expect(next).toBeGreaterThan(token)
    if ('url' in where) expect(wrote).toBeOneOf(['refused', 'busy'])
    const mine: [number, number][] = wrote === 'written' ? [[1, token]] : []
    expect(await steps(store)).toEqual([...mine, [mine.length + 1, next]])
    expect(await countOf(store)).toBe(mine.length + 1)
  })

  test('one that is killed is followed by another when its lease has expired', async () => {
    const { contest, store } = await fresh(1_000)
    await using first = contender('hold', contest)
    const { token } = await first.next()
    first.send('SIGKILL')
    await first.exited
    const began = performance.now()
    expect(await succeed(store, async ({ token }) => token)).toBeGreaterThan(token)
    expect(performance.now() - began).toBeLessThan(1_000 + 4_000) // a busy machine takes its time
  })

  test('one that is told to stop is followed at once', async () => {
    const { contest, store } = await fresh(60_000)
    await using first = contender('hold', contest)
    expect(await first.next()).toEqual({ token: 1 })
    expect(await take(store, 'work', 1_000)).toHaveProperty('left')
    first.send('SIGTERM')
    expect(await first.next()).toEqual({ state: 'lost' })
    expect(await take(store, 'work', 1_000)).toMatchObject({ token: 2 })
    expect(await first.exited).toBe(0)
  })

  test('count under a lease without a lost or doubled step, though each of them stalls now and then', async () => {
    const { contest, store } = await fresh(300)
    const results = await Promise.all(
      [1, 2, 3].map(async () => {
        await using counting = contender('count', contest)
        const result = await counting.next()
        expect(await counting.exited).toBe(0)
        return result as { written: number; refused: number; busy?: number }
      }),
    )
    for (const result of results)
      for (const told of Object.keys(result)) expect(told).toBeOneOf(['written', 'refused', 'busy'])
    const written = results.reduce((sum, { written }) => sum + written, 0)
    const refused = results.reduce((sum, { refused }) => sum + refused, 0)
    expect([written > 3, refused > 0]).toEqual([true, true])

    const made = await steps(store)
    expect(made.map(([n]) => n)).toEqual(Array.from({ length: written }, (_, i) => i + 1))
    expect(await countOf(store)).toBe(written)
    const tokens = made.map(([, token]) => token)
    expect(tokens).toEqual(tokens.toSorted((one, other) => one - other))
  })
})
