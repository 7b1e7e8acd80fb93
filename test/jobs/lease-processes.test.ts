import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { acquireLease } from '../../src/jobs/leases'
import { type Lease, withLease } from '../../src/jobs/with-lease'
import { Busy } from '../../src/storage/errors'
import type { DatabasePool } from '../../src/storage/pool'
import type { Store } from '../../src/storage/port'
import { incrementCounter, type LeaseContest, openContest, type Role, readCounter } from '../fakes/lease-process'
import { databaseUrl, freshFolder } from '../storage/engines'

setDefaultTimeout(30_000)

const program = resolve(import.meta.dir, '../fakes/lease-process.ts')

/** Starts another process. `next` returns its next message. */
function startContender(role: Role, contest: LeaseContest) {
  const child = Bun.spawn([process.execPath, program, role, JSON.stringify(contest)], {
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const lines = (async function* () {
    let text = ''
    for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
      const [...complete] = (text + chunk).split('\n')
      text = complete.pop()!
      for (const line of complete) yield JSON.parse(line)
    }
  })()
  return {
    next: async () => (await lines.next()).value,
    send: (signal: 'SIGCONT' | 'SIGKILL' | 'SIGTERM') => void child.kill(signal),
    /** Resolves when the process has stopped itself. */
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

const databases: [string, object][] = [
  databaseUrl ? ['PostgreSQL', { url: databaseUrl }] : ['one SQLite file', { folder: freshFolder() }],
]

describe.skipIf(process.platform !== 'linux').each(databases)('leases of processes that share %s', (_, where) => {
  const opened: DatabasePool[] = []
  afterAll(async () => {
    for (const storage of opened) await storage.close()
  })

  async function createContest(ttlMs: number) {
    const tenant = crypto.randomUUID()
    const place = { tenant, file: `${tenant}.db`, identity: Bun.randomUUIDv7() as string, bucket: 'contests' }
    const contest: LeaseContest = { place, ttlMs, ...where }
    const { storage, store } = openContest(contest)
    opened.push(storage)
    await store.write((tx) => tx.query('insert into counters (n) select 0 where not exists (select 1 from counters)'))
    return { contest, store }
  }
  const readSteps = async ({ db }: Store) =>
    (await db.query('select n, token from steps order by n, token')) as [number, number][]

  /** Does the work as soon as the lease is free. */
  async function runWithLease<T>(store: Store, work: (held: Store & Lease) => Promise<T>): Promise<T> {
    for (;;) {
      const outcome = await withLease(store, 'work', work).catch((error) => {
        if (!(error instanceof Busy)) throw error
      })
      if (outcome?.state === 'done') return outcome.value
      await Bun.sleep(10)
    }
  }

  test('a process that sleeps beyond its lease loses it to another and is refused to write when it wakes up', async () => {
    const { contest, store } = await createContest(500)
    await using first = startContender('sleep', contest)
    const { token } = await first.next()
    await first.asleep()
    const next = await runWithLease(store, async (held) => {
      await incrementCounter(held, 1)
      first.send('SIGCONT')
      expect(await first.next()).toEqual({ wrote: 'refused', aborted: true })
      return held.token
    })
    expect(next).toBeGreaterThan(token)
    expect(await first.next()).toEqual({ state: 'lost' })
    expect(await readSteps(store)).toEqual([[1, next]])
  })

  test('a process that wakes up after the next holder has finished is refused to write', async () => {
    const { contest, store } = await createContest(500)
    await using first = startContender('sleep', contest)
    await first.next()
    await first.asleep()
    const next = await runWithLease(store, async (held) => {
      await incrementCounter(held, 1)
      return held.token
    })
    first.send('SIGCONT')
    expect(await first.next()).toMatchObject({ wrote: 'refused' })
    expect(await first.next()).toEqual({ state: 'lost' })
    expect([await readCounter(store), await readSteps(store)]).toEqual([1, [[1, next]]])
  })

  test('a process that sleeps within a write has committed it before the next holder begins, or not at all', async () => {
    const { contest, store } = await createContest(500)
    await using first = startContender('sleepWriting', contest)
    const { token } = await first.next()
    await first.asleep()
    const second = runWithLease(store, async (held) => {
      await incrementCounter(held, (await readCounter(held)) + 1)
      return held.token
    })
    // PostgreSQL ends its transaction. A transaction on a file stays open, and blocks all other writes meanwhile.
    await ('url' in where ? second : Promise.race([second, Bun.sleep(700)]))
    first.send('SIGCONT')
    const { wrote } = await first.next()
    const next = await second
    expect(next).toBeGreaterThan(token)
    if ('url' in where) expect(wrote).toBeOneOf(['refused', 'busy'])
    const mine: [number, number][] = wrote === 'written' ? [[1, token]] : []
    expect(await readSteps(store)).toEqual([...mine, [mine.length + 1, next]])
    expect(await readCounter(store)).toBe(mine.length + 1)
  })

  test('the lease of a killed process can be taken once it has expired', async () => {
    const { contest, store } = await createContest(1_000)
    await using first = startContender('hold', contest)
    const { token } = await first.next()
    first.send('SIGKILL')
    await first.exited
    const began = performance.now()
    expect(await runWithLease(store, async ({ token }) => token)).toBeGreaterThan(token)
    expect(performance.now() - began).toBeLessThan(1_000 + 4_000) // a busy machine takes its time
  })

  test('the lease of a process that gets SIGTERM can be taken at once', async () => {
    const { contest, store } = await createContest(60_000)
    await using first = startContender('hold', contest)
    expect(await first.next()).toEqual({ token: 1 })
    expect(await acquireLease(store, 'work', 1_000)).toHaveProperty('left')
    first.send('SIGTERM')
    expect(await first.next()).toEqual({ state: 'lost' })
    expect(await acquireLease(store, 'work', 1_000)).toMatchObject({ token: 2 })
    expect(await first.exited).toBe(0)
  })

  test('three stalling processes count under one lease without a lost or doubled step', async () => {
    const { contest, store } = await createContest(300)
    const results = await Promise.all(
      [1, 2, 3].map(async () => {
        await using counting = startContender('count', contest)
        const result = await counting.next()
        expect(await counting.exited).toBe(0)
        return result as { written: number; refused: number; busy?: number }
      }),
    )
    for (const result of results)
      for (const outcome of Object.keys(result)) expect(outcome).toBeOneOf(['written', 'refused', 'busy'])
    const written = results.reduce((sum, { written }) => sum + written, 0)
    const refused = results.reduce((sum, { refused }) => sum + refused, 0)
    expect([written > 3, refused > 0]).toEqual([true, true])

    const steps = await readSteps(store)
    expect(steps.map(([n]) => n)).toEqual(Array.from({ length: written }, (_, i) => i + 1))
    expect(await readCounter(store)).toBe(written)
    const tokens = steps.map(([, token]) => token)
    expect(tokens).toEqual(tokens.toSorted((one, other) => one - other))
  })
})
