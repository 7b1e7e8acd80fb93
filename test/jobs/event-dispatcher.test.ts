import { beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { type EventSubscriber, eventDispatcher, lastEventSeq } from '../../src/jobs/event-dispatcher'
import { type EventHead, emit, emitAll } from '../../src/jobs/outbox'
import { enqueue, type NewJob } from '../../src/jobs/queue'
import { runDueJobs } from '../../src/jobs/runner'
import type { JobHandler } from '../../src/jobs/worker'
import type { Tenant } from '../../src/tenancy/tenants'
import { errorOf } from '../rejections'
import { useTestArea } from '../test-area'
import { createTestTenant } from '../test-tenant'

setDefaultTimeout(30_000)

const times = (n: number) => Array.from({ length: n }, (_, i) => i)
const newEvent = (n: number, kind = 'test') => ({ source: 'test', kind, eventName: `${n}` })

/** The subscribers of a test: their name, since which event, and how many jobs an event makes. */
type Subscriber = { name: string; since: number; jobs: number }
const subscribers = new Map<string, Subscriber[]>()
const subscriberCalls: [string, number][] = []
const doneJobs: [string, string, number][] = []
const failingTenants = new Set<string>()
const tenantIds = new Map<Tenant['db'], string>()
const testSubscriber: EventSubscriber = {
  async startsAfter(db) {
    const all = subscribers.get(tenantIds.get(db) ?? '') ?? []
    return all.length ? Math.min(...all.map(({ since }) => since)) : undefined
  },
  async jobsFor({ tenant }: Tenant, events: EventHead[]) {
    subscriberCalls.push([tenant, events.length])
    if (failingTenants.has(tenant)) throw new Error('This subscriber fails.')
    return events.flatMap((event) =>
      (subscribers.get(tenant) ?? [])
        .filter(({ since }) => event.kind === 'test' && event.seq > since)
        .flatMap(({ name, jobs }) =>
          times(jobs).map((n): NewJob & { _id: string } => ({
            ...{ _id: `${event._id} ${name} ${n}`, kind: 'heard', orderingKey: name },
            payload: { name, n: Number(event.eventName) },
          })),
        ),
    )
  },
}
const testHandler: JobHandler = {
  async run({ tenant }, { payload }) {
    const { name, n } = payload as { name: string; n: number }
    doneJobs.push([tenant, name, n])
    return { state: 'done' }
  },
}
useTestArea({ subscribers: [testSubscriber], jobs: { heard: testHandler } })

async function createSubscribersFixture(...names: string[]) {
  const testTenant = await createTestTenant()
  const { tenant, id } = testTenant
  tenantIds.set(tenant.db, id)
  const listen = async (name: string, jobs = 1) => {
    const since = await lastEventSeq(tenant.db)
    subscribers.set(id, [...(subscribers.get(id) ?? []), { name, since, jobs }])
  }
  for (const name of names) await listen(name)
  const emitNumbers = (...all: number[]) =>
    tenant.write((tx) =>
      emitAll(
        tenant,
        tx,
        all.map((n) => newEvent(n)),
      ),
    )
  const numbersOf = (name: string) =>
    doneJobs.filter(([tenantId, subscriber]) => tenantId === id && subscriber === name).map(([, , n]) => n)
  const cursor = async () => (await tenant.db.query('select seq from cursors'))[0]?.[0]
  return { tenant, id, listen, emitNumbers, numbersOf, cursor }
}

beforeEach(() => {
  subscriberCalls.length = 0
})

describe('the event dispatcher', () => {
  test('the dispatcher makes one job per event and subscriber, in the order of the commits', async () => {
    const { tenant, emitNumbers, numbersOf } = await createSubscribersFixture('ada', 'bob')
    await emitNumbers(...times(700))
    await Promise.all(times(50).map((n) => emitNumbers(700 + n)))
    expect(await runDueJobs(tenant)).toBe(1_500)
    const committed = (await tenant.db.query('select event_name from events order by seq')).map(([n]) => Number(n))
    for (const name of ['ada', 'bob']) expect(numbersOf(name)).toEqual(committed)
    expect(await runDueJobs(tenant)).toBe(0)
  })

  test('the dispatcher neither writes nor reads events while there is no subscriber', async () => {
    const { tenant, emitNumbers, cursor } = await createSubscribersFixture()
    await emitNumbers(...times(100))
    const writes: unknown[] = []
    const write: Tenant['write'] = (work) => {
      writes.push(work)
      return tenant.write(work)
    }
    const counting = { ...tenant, write }
    expect(await eventDispatcher.hasPending(counting)).toBeFalse()
    await runDueJobs(counting)
    expect([writes.length, subscriberCalls.length, await cursor()]).toEqual([0, 0, undefined])
  })

  test('the dispatcher does not move its cursor for events that match no subscriber', async () => {
    const { tenant, cursor, emitNumbers, numbersOf } = await createSubscribersFixture('ada')
    await tenant.write((tx) =>
      emitAll(
        tenant,
        tx,
        times(1_200).map((n) => newEvent(n, 'other')),
      ),
    )
    await runDueJobs(tenant)
    expect(subscriberCalls.map(([, count]) => count)).toEqual([500, 500, 200])
    expect(await cursor()).toBeUndefined()
    expect(await eventDispatcher.hasPending(tenant)).toBeFalse()
    await emitNumbers(7)
    await runDueJobs(tenant)
    expect([numbersOf('ada'), await cursor()]).toEqual([[7], await lastEventSeq(tenant.db)])
  })

  test('a new subscriber gets only events after its start, however far other subscribers are behind', async () => {
    const { tenant, listen, emitNumbers, numbersOf } = await createSubscribersFixture('ada')
    await emitNumbers(1, 2)
    await listen('bob')
    await emitNumbers(3)
    await runDueJobs(tenant)
    expect([numbersOf('ada'), numbersOf('bob')]).toEqual([[1, 2, 3], [3]])
    // The events before the first subscriber were never read.
    const late = await createSubscribersFixture()
    await late.emitNumbers(1, 2, 3)
    await late.listen('eve')
    await late.emitNumbers(4)
    await runDueJobs(late.tenant)
    expect(late.numbersOf('eve')).toEqual([4])
  })

  test('the dispatcher reads smaller batches of events that make many jobs', async () => {
    const { tenant, listen, emitNumbers, numbersOf } = await createSubscribersFixture()
    await listen('crowd', 300)
    await emitNumbers(...times(40))
    expect(await runDueJobs(tenant)).toBe(12_000)
    expect(numbersOf('crowd')).toEqual(times(40).flatMap((n) => Array(300).fill(n)))
    expect(subscriberCalls.some(([, count]) => count < 40)).toBeTrue()
  })

  test('the dispatcher commits jobs and cursor in one transaction', async () => {
    const { tenant, emitNumbers, numbersOf, cursor } = await createSubscribersFixture('ada')
    await emitNumbers(1)
    const failing = {
      ...tenant,
      signal: new AbortController().signal,
      token: 1,
      write: (<T>(work: (tx: never) => Promise<T>) =>
        tenant.write(async (tx) => {
          await work(tx as never)
          throw new Error('The power failed.')
        })) as Tenant['write'],
    }
    expect((await errorOf(eventDispatcher.collect(failing))).message).toContain('power failed')
    expect([await cursor(), await tenant.db.query("select 1 from jobs where kind = 'heard'")]).toEqual([undefined, []])
    await runDueJobs(tenant)
    expect(numbersOf('ada')).toEqual([1])
  })

  test('events wait while a subscriber fails, and jobs that are already queued run', async () => {
    const { tenant, id, emitNumbers, numbersOf } = await createSubscribersFixture('ada')
    await emitNumbers(1)
    await tenant.write((tx) => enqueue(tenant, tx, { kind: 'heard', payload: { name: 'other', n: 2 } }))
    failingTenants.add(id)
    expect((await errorOf(runDueJobs(tenant))).message).toContain('subscriber fails')
    expect([numbersOf('ada'), numbersOf('other')]).toEqual([[], [2]])
    failingTenants.delete(id)
    await runDueJobs(tenant)
    expect(numbersOf('ada')).toEqual([1])
  })

  test('events of one tenant do not reach the subscribers of another', async () => {
    const [one, other] = [await createSubscribersFixture('ada'), await createSubscribersFixture('ada')]
    await one.emitNumbers(1)
    await runDueJobs(other.tenant)
    await runDueJobs(one.tenant)
    expect([one.numbersOf('ada'), other.numbersOf('ada')]).toEqual([[1], []])
  })
})

test('sequence numbers of events follow the order of the commits, so that a reader by number misses none', async () => {
  const { tenant } = await createSubscribersFixture()
  const gate = Promise.withResolvers<void>()
  const order: string[] = []
  const slow = tenant.write(async (tx) => {
    await emit(tenant, tx, newEvent(1))
    await Promise.race([gate.promise, Bun.sleep(200)])
    order.push('slow')
  })
  const quick = tenant.write(async (tx) => {
    await emit(tenant, tx, newEvent(2))
    order.push('quick')
    gate.resolve()
  })
  let last = 0
  const seen: number[] = []
  let over = false
  const reading = (async () => {
    while (!over) {
      const rows = (await tenant.db.query('select seq from events where seq > ? order by seq', [last])) as [number][]
      for (const [seq] of rows) seen.push(Number(seq))
      last = Math.max(last, ...rows.map(([seq]) => Number(seq)))
      await Bun.sleep(1)
    }
  })()
  await Promise.all([slow, quick])
  await Promise.all(times(200).map((n) => tenant.write((tx) => emit(tenant, tx, newEvent(n)))))
  while (seen.length < 202) await Bun.sleep(1)
  over = true
  await reading
  // A reader that asks only for higher numbers than before has read everything.
  expect(order).toEqual(['slow', 'quick'])
  expect(seen).toHaveLength(202)
})
