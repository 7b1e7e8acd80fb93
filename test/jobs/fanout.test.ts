import { beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { eventsAreHeardBy, fanOut, newestEvent } from '../../src/jobs/fanout'
import { type Event, emit, emitAll } from '../../src/jobs/outbox'
import { enqueue, type NewJob } from '../../src/jobs/queue'
import { runDue } from '../../src/jobs/runner'
import { jobsAreDoneBy } from '../../src/jobs/work'
import type { Tenant } from '../../src/tenancy/tenants'
import { house } from '../house'

setDefaultTimeout(30_000)

const times = (n: number) => Array.from({ length: n }, (_, i) => i)
const telling = (n: number, kind = 'test') => ({ source: 'test', kind, eventName: 'told', metadata: { n } })

/** Subscribers of the tests: who hears, since when, and how many jobs an event makes. */
type Subscriber = { name: string; since: number; jobs: number }
const subscribers = new Map<string, Subscriber[]>()
const asked: [string, number][] = []
const done: [string, string, number][] = []
const sick = new Set<string>()
const here = new Map<Tenant['db'], string>()
eventsAreHeardBy({
  async since(db) {
    const all = subscribers.get(here.get(db) ?? '') ?? []
    return all.length ? Math.min(...all.map(({ since }) => since)) : undefined
  },
  async hear({ tenant }: Tenant, events: Event[]) {
    asked.push([tenant, events.length])
    if (sick.has(tenant)) throw new Error('This hearer is sick.')
    return events.flatMap((event) =>
      (subscribers.get(tenant) ?? [])
        .filter(({ since }) => event.kind === 'test' && event.seq > since)
        .flatMap(({ name, jobs }) =>
          times(jobs).map((n): NewJob & { _id: string } => ({
            ...{ _id: `${event._id} ${name} ${n}`, kind: 'heard', lane: name },
            payload: { name, n: event.metadata.n },
          })),
        ),
    )
  },
})
jobsAreDoneBy({
  heard: {
    async run({ tenant }, { payload }) {
      const { name, n } = payload as { name: string; n: number }
      done.push([tenant, name, n])
      return { state: 'done' }
    },
  },
})

async function hall(...names: string[]) {
  const made = await house()
  const { tenant, id } = made
  here.set(tenant.db, id)
  const listen = async (name: string, jobs = 1) => {
    const since = await newestEvent(tenant.db)
    subscribers.set(id, [...(subscribers.get(id) ?? []), { name, since, jobs }])
  }
  for (const name of names) await listen(name)
  const tell = (...all: number[]) =>
    tenant.write((tx) =>
      emitAll(
        tenant,
        tx,
        all.map((n) => telling(n)),
      ),
    )
  const heard = (name: string) => done.filter(([where, who]) => where === id && who === name).map(([, , n]) => n)
  const cursor = async () => (await tenant.db.ask('select seq from cursors'))[0]?.[0]
  return { tenant, id, listen, tell, heard, cursor }
}

beforeEach(() => {
  asked.length = 0
})

describe('events', () => {
  test('become one job for each subscriber, in the order in which they were committed', async () => {
    const { tenant, tell, heard } = await hall('ada', 'bob')
    await tell(...times(700))
    await Promise.all(times(50).map((n) => tell(700 + n)))
    expect(await runDue(tenant)).toBe(1_500)
    const committed = (await tenant.db.ask('select metadata from events order by seq')).map(
      ([text]) => JSON.parse(text as string).n,
    )
    for (const name of ['ada', 'bob']) expect(heard(name)).toEqual(committed)
    expect(await runDue(tenant)).toBe(0)
  })

  test('that nobody hears cost no write, and are not even read', async () => {
    const { tenant, tell, cursor } = await hall()
    await tell(...times(100))
    const writes: unknown[] = []
    const write: Tenant['write'] = (work) => {
      writes.push(work)
      return tenant.write(work)
    }
    const counting = { ...tenant, write }
    expect(await fanOut.waits(counting)).toBeFalse()
    await runDue(counting)
    expect([writes.length, asked.length, await cursor()]).toEqual([0, 0, undefined])
  })

  test('that concern no subscriber cost no write either', async () => {
    const { tenant, cursor, tell, heard } = await hall('ada')
    await tenant.write((tx) =>
      emitAll(
        tenant,
        tx,
        times(1_200).map((n) => telling(n, 'other')),
      ),
    )
    await runDue(tenant)
    expect(asked.map(([, count]) => count)).toEqual([500, 500, 200])
    expect(await cursor()).toBeUndefined()
    expect(await fanOut.waits(tenant)).toBeFalse()
    await tell(7)
    await runDue(tenant)
    expect([heard('ada'), await cursor()]).toEqual([[7], await newestEvent(tenant.db)])
  })

  test('of before are nothing to a new subscriber, however far others are behind', async () => {
    const { tenant, listen, tell, heard } = await hall('ada')
    await tell(1, 2)
    await listen('bob')
    await tell(3)
    await runDue(tenant)
    expect([heard('ada'), heard('bob')]).toEqual([[1, 2, 3], [3]])
    // Nobody has read what was before the first came.
    const late = await hall()
    await late.tell(1, 2, 3)
    await late.listen('eve')
    await late.tell(4)
    await runDue(late.tenant)
    expect(late.heard('eve')).toEqual([4])
  })

  test('that make very many jobs are taken few at a time', async () => {
    const { tenant, listen, tell, heard } = await hall()
    await listen('crowd', 300)
    await tell(...times(40))
    expect(await runDue(tenant)).toBe(12_000)
    expect(heard('crowd')).toEqual(times(40).flatMap((n) => Array(300).fill(n)))
    expect(asked.some(([, count]) => count < 40)).toBeTrue()
  })

  test('are handed on with how far was read, or not at all', async () => {
    const { tenant, tell, heard, cursor } = await hall('ada')
    await tell(1)
    const failing = {
      ...tenant,
      signal: new AbortController().signal,
      token: 1,
      write: (<T>(work: (tx: never) => Promise<T>) =>
        tenant.write(async (tx) => {
          await work(tx as never)
          throw new Error('The lights went out.')
        })) as Tenant['write'],
    }
    await expect(fanOut.take(failing)).rejects.toThrow('lights')
    expect([await cursor(), await tenant.db.ask("select 1 from jobs where kind = 'heard'")]).toEqual([undefined, []])
    await runDue(tenant)
    expect(heard('ada')).toEqual([1])
  })

  test('wait for a hearer that fails, and jobs that are there do not', async () => {
    const { tenant, id, tell, heard } = await hall('ada')
    await tell(1)
    await tenant.write((tx) => enqueue(tenant, tx, { kind: 'heard', payload: { name: 'other', n: 2 } }))
    sick.add(id)
    await expect(runDue(tenant)).rejects.toThrow('sick')
    expect([heard('ada'), heard('other')]).toEqual([[], [2]])
    sick.delete(id)
    await runDue(tenant)
    expect(heard('ada')).toEqual([1])
  })

  test('of one tenant are heard by nobody of another', async () => {
    const [one, other] = [await hall('ada'), await hall('ada')]
    await one.tell(1)
    await runDue(other.tenant)
    await runDue(one.tenant)
    expect([one.heard('ada'), other.heard('ada')]).toEqual([[1], []])
  })
})

test('numbers of events come in the order of their commits, whoever begins first', async () => {
  const { tenant } = await hall()
  const gate = Promise.withResolvers<void>()
  const order: string[] = []
  const slow = tenant.write(async (tx) => {
    await emit(tenant, tx, telling(1))
    await Promise.race([gate.promise, Bun.sleep(200)])
    order.push('slow')
  })
  const quick = tenant.write(async (tx) => {
    await emit(tenant, tx, telling(2))
    order.push('quick')
    gate.resolve()
  })
  let last = 0
  const seen: number[] = []
  let over = false
  const reading = (async () => {
    while (!over) {
      const rows = (await tenant.db.ask('select seq from events where seq > ? order by seq', [last])) as [number][]
      for (const [seq] of rows) seen.push(Number(seq))
      last = Math.max(last, ...rows.map(([seq]) => Number(seq)))
      await Bun.sleep(1)
    }
  })()
  await Promise.all([slow, quick])
  await Promise.all(times(200).map((n) => tenant.write((tx) => emit(tenant, tx, telling(n)))))
  while (seen.length < 202) await Bun.sleep(1)
  over = true
  await reading
  // Who reads only what has a higher number than before has read everything.
  expect(order).toEqual(['slow', 'quick'])
  expect(seen).toHaveLength(202)
})
