import { afterEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { moveClock, now } from '../../src/core/clock'
import { emit } from '../../src/jobs/outbox'
import { type Ending, enqueue, enqueueInstead, type Job, type NewJob, replay } from '../../src/jobs/queue'
import { runDue, runJobs } from '../../src/jobs/runner'
import { Failure, jobsAreDoneBy } from '../../src/jobs/work'
import { setStatus, type Tenant } from '../../src/tenancy/tenants'
import { house } from '../house'

setDefaultTimeout(30_000)

const times = (n: number) => Array.from({ length: n }, (_, i) => i)
const HOUR = 3_600_000
let made = 0

/** A kind of job of this test's own, done by what is given. */
function kindOf(run: (job: Job, tenant: Tenant) => unknown, patience?: number) {
  const kind = `test-${made++}`
  const done: unknown[] = []
  jobsAreDoneBy({
    [kind]: {
      patience,
      run: async (tenant, job) => {
        const ending = await run(job, tenant)
        done.push(job.payload)
        return (typeof ending === 'object' && ending ? ending : { state: 'done' }) as Ending
      },
    },
  })
  return { kind, done }
}
const add = (tenant: Tenant, ...jobs: NewJob[]) =>
  tenant.write(async (tx) => {
    for (const job of jobs) await enqueue(tenant, tx, job)
  })
const rows = ({ db }: Tenant) => db.ask('select state, attempts, due, outcome from jobs order by seq')
const until = async (met: () => unknown) => {
  while (!(await met())) await Bun.sleep(5)
}
let stop: () => void = () => {}
// Also where a test fails: a runner that goes on would do the jobs of all tests after it.
afterEach(() => stop())

const failing = () => {
  throw new Failure('The other side is closed.', { outcome: { status: 500 } })
}

describe('a job', () => {
  afterEach(() => moveClock(Date.now()))

  test('is done once, after the transaction that asked for it, and leaves nothing', async () => {
    const { tenant } = await house()
    const { kind, done } = kindOf(() => {})
    await add(tenant, { kind, payload: { for: 'Ada' } })
    expect(done).toEqual([])
    expect(await runDue(tenant)).toBe(1)
    expect(await runDue(tenant)).toBe(0)
    expect(done).toEqual([{ for: 'Ada' }])
    expect(await rows(tenant)).toEqual([])
  })

  test('may take the place of all that waits in its lane, also of the one that is being done', async () => {
    const { tenant } = await house()
    const instead = (payload: string) =>
      tenant.write((tx) => enqueueInstead(tenant, tx, { kind, lane: 'one', payload, at: now() + HOUR }))
    const { kind, done } = kindOf(async ({ payload }) => {
      if (payload === 'running') await instead('last')
      return { state: 'again', due: now() + 9 * HOUR }
    })
    await add(tenant, { kind, lane: 'one', payload: 'running' }, { kind, lane: 'one', payload: 'second' })
    await add(tenant, { kind, lane: 'other', payload: 'other' })
    await runDue(tenant)
    expect([done.toSorted(), (await rows(tenant)).length]).toEqual([['other', 'running'], 2])
    moveClock(now() + HOUR)
    await runDue(tenant)
    expect(done.at(-1)).toBe('last')
  })

  test('is not done when its transaction fails', async () => {
    const { tenant } = await house()
    const { kind, done } = kindOf(() => {})
    const failed = tenant.write(async (tx) => {
      await enqueue(tenant, tx, { kind, payload: 1 })
      throw new Error('no')
    })
    await expect(failed).rejects.toThrow('no')
    expect(await runDue(tenant)).toBe(0)
    expect(done).toEqual([])
  })

  test('of an id that waits already is not added', async () => {
    const { tenant } = await house()
    const { kind, done } = kindOf(() => {})
    await add(tenant, { kind, payload: 'first', _id: 'one' }, { kind, payload: 'second', _id: 'one' })
    await runDue(tenant)
    expect(done).toEqual(['first'])
  })

  test('waits for its time', async () => {
    const { tenant } = await house()
    const { kind, done } = kindOf(() => {})
    await add(tenant, { kind, payload: 'later', at: now() + HOUR }, { kind, payload: 'now' })
    await runDue(tenant)
    expect(done).toEqual(['now'])
    moveClock(now() + HOUR)
    await runDue(tenant)
    expect(done).toEqual(['now', 'later'])
  })

  test('can ask for another turn, with what it has to remember', async () => {
    const { tenant } = await house()
    const { kind, done } = kindOf(({ payload }) => ({
      state: 'again',
      due: now() + HOUR,
      payload: Number(payload) + 1,
    }))
    await add(tenant, { kind, payload: 1 })
    for (const _ of times(3)) {
      await runDue(tenant)
      moveClock(now() + HOUR)
    }
    expect(done).toEqual([1, 2, 3])
  })

  test('has its effect in the transaction that ends it, or is tried again', async () => {
    const { tenant } = await house()
    const { kind } = kindOf(({ attempts }) => ({
      state: 'done',
      effect: async (tx: { ask: (sql: string) => Promise<unknown> }) => {
        await tx.ask(`insert into versions (topic, version) values ('effect ${attempts}', 1)`)
        if (!broken) return
        broken = false
        throw new Error('The disk is full.')
      },
    }))
    let broken = true
    await add(tenant, { kind })
    await expect(runDue(tenant)).rejects.toThrow('The disk is full.')
    expect(await rows(tenant)).toHaveLength(1)
    await runDue(tenant)
    expect(await tenant.db.ask("select count(*) from versions where topic like 'effect%'")).toEqual([[1]])
    expect(await rows(tenant)).toEqual([])
  })

  test('keeps what it came to, when that is asked for', async () => {
    const { tenant } = await house()
    const { kind } = kindOf(() => ({ state: 'done', kept: true, outcome: { status: 200 } }))
    await add(tenant, { kind })
    await runDue(tenant)
    expect(await rows(tenant)).toEqual([['done', 1, null, '{"status":200}']])
  })

  test('that fails is tried again, at first after a second, then after twice as long each time, up to an hour', async () => {
    const { tenant } = await house()
    const { kind } = kindOf(failing)
    await add(tenant, { kind })
    for (const attempt of times(16)) {
      await runDue(tenant)
      const [[state, attempts, due, outcome]] = (await rows(tenant)) as [[string, number, number, string]]
      expect([state, attempts, outcome]).toEqual(['waiting', attempt + 1, '{"status":500}'])
      const pause = Math.min(HOUR / 1.25, 1_000 * 2 ** attempt)
      expect(due - now()).toBeWithin(pause - 500, pause * 1.25 + 1)
      expect(await runDue(tenant)).toBe(0)
      moveClock(due)
    }
  })

  test('is given up after three days, and can be tried again by hand', async () => {
    const { tenant } = await house()
    let open = false
    const { kind, done } = kindOf(() => open || failing())
    await add(tenant, { kind, payload: 'x', _id: 'x' })
    await runDue(tenant)
    moveClock(now() + 72 * HOUR)
    await runDue(tenant)
    expect(await rows(tenant)).toEqual([['dead', 2, null, '{"status":500}']])
    moveClock(now() + 72 * HOUR)
    expect(await runDue(tenant)).toBe(0)
    open = true
    await tenant.write((tx) => replay(tenant, tx, 'x'))
    await runDue(tenant)
    expect(done).toEqual(['x'])
    expect(await rows(tenant)).toEqual([])
    expect(await tenant.write((tx) => replay(tenant, tx, 'x'))).toBeFalse()
  })

  test('that can never succeed is given up at once', async () => {
    const { tenant } = await house()
    const { kind } = kindOf(() => {
      throw new Failure('It is gone.', { hopeless: true })
    })
    await add(tenant, { kind })
    await runDue(tenant)
    expect(await rows(tenant)).toEqual([['dead', 1, null, '{"message":"It is gone."}']])
  })

  test('tells nothing of an error that nobody expected', async () => {
    const { tenant } = await house()
    const { kind } = kindOf(() => {
      throw new Error('password=secret')
    })
    await add(tenant, { kind })
    await runDue(tenant)
    expect((await rows(tenant))[0]![3]).toBe('{"message":"It failed."}')
  })

  test('of a kind that this version does not know is left for one that does', async () => {
    const { tenant } = await house()
    await add(tenant, { kind: 'unknown' })
    await runDue(tenant)
    expect((await rows(tenant))[0]!.slice(0, 2)).toEqual(['waiting', 1])
  })

  test("is its tenant's alone", async () => {
    const [one, other] = [await house(), await house()]
    const seen: string[] = []
    const { kind } = kindOf((_, { tenant }) => seen.push(tenant))
    await add(one.tenant, { kind })
    expect(await runDue(other.tenant)).toBe(0)
    await runDue(one.tenant)
    expect(seen).toEqual([one.id])
  })
})

describe('jobs of one lane', () => {
  afterEach(() => moveClock(Date.now()))

  test('are done in their order, whenever they were added', async () => {
    const { tenant } = await house()
    const { kind, done } = kindOf(() => Bun.sleep(Math.random() * 2))
    for (const n of times(10)) await add(tenant, ...times(30).map((m) => ({ kind, lane: 'one', payload: n * 30 + m })))
    expect(await runDue(tenant)).toBe(300)
    expect(done).toEqual(times(300))
  })

  test('wait for the first of them, and other lanes do not', async () => {
    const { tenant } = await house()
    let open = false
    const { kind, done } = kindOf(({ payload }) => open || payload !== 'a1' || failing())
    await add(tenant, ...['a1', 'a2', 'b1', 'a3', 'b2'].map((payload) => ({ kind, lane: payload[0]!, payload })), {
      kind,
      payload: 'c',
    })
    await runDue(tenant)
    expect(done.toSorted()).toEqual(['b1', 'b2', 'c'])
    open = true
    moveClock(now() + 2_000)
    await runDue(tenant)
    expect(done.slice(3)).toEqual(['a1', 'a2', 'a3'])
  })

  test('go on when the first is given up, and in their old order when it is tried again', async () => {
    const { tenant } = await house()
    let open = false
    const { kind, done } = kindOf(({ payload }) => open || payload === 'second' || failing(), 0)
    await add(tenant, ...['first', 'second'].map((payload) => ({ kind, lane: 'a', payload, _id: payload })))
    await runDue(tenant)
    expect(done).toEqual(['second'])
    open = true
    await tenant.write(async (tx) => {
      await enqueue(tenant, tx, { kind, lane: 'a', payload: 'third' })
      await replay(tenant, tx, 'first')
    })
    await runDue(tenant)
    expect(done).toEqual(['second', 'first', 'third'])
  })

  test('are not held up by a slow one of another lane', async () => {
    const { tenant } = await house()
    const slow = Promise.withResolvers<void>()
    const { kind, done } = kindOf(({ payload }) => payload === 'slow' && slow.promise)
    await add(
      tenant,
      { kind, payload: 'slow' },
      ...times(100).map((payload) => ({ kind, lane: `${payload % 40}`, payload })),
    )
    const running = runDue(tenant)
    await until(() => done.length === 100)
    slow.resolve()
    await running
    expect(done).toHaveLength(101)
  })
})

describe('lanes that hang', () => {
  const hanging = () => {
    const held = Promise.withResolvers<void>()
    const begun = new Set<unknown>()
    const { kind } = kindOf(({ payload }) => {
      begun.add(payload)
      return held.promise
    })
    return { kind, begun, release: held.resolve }
  }
  const lanes = (kind: string, count: number) => times(count).map((n) => ({ kind, lane: `hang ${n}`, payload: n }))

  test('of eight tenants do not delay a job of a ninth until they end', async () => {
    const { kind, begun, release } = hanging()
    const tenants = await Promise.all(times(8).map(house))
    const quiet = await house()
    for (const { tenant } of tenants)
      await add(tenant, ...lanes(kind, 20).map((job) => ({ ...job, payload: `${tenant.tenant} ${job.payload}` })))
    const running = tenants.map(({ tenant }) => runDue(tenant))
    await until(() => begun.size >= 128)
    const { kind: quick, done } = kindOf(() => {})
    await add(quiet.tenant, { kind: quick, payload: 'quick' })
    await runDue(quiet.tenant)
    expect(done).toEqual(['quick'])
    // Nor do they delay each other: all are under way, though there are more of them than places.
    await until(() => begun.size === 160)
    release()
    await Promise.all(running)
    for (const { tenant } of tenants) expect(await rows(tenant)).toEqual([])
  })

  test('do not delay others of their tenant until they end', async () => {
    const { tenant } = await house()
    const { kind, begun, release } = hanging()
    const { kind: quick, done } = kindOf(() => {})
    await add(tenant, ...lanes(kind, 40), { kind: quick, payload: 'quick' })
    const running = runDue(tenant)
    await until(() => done.length)
    await until(() => begun.size === 40)
    release()
    await running
    expect(await rows(tenant)).toEqual([])
  })

  test('wait behind others once an attempt has failed', async () => {
    const { tenant } = await house()
    const held = Promise.withResolvers<void>()
    const order: unknown[] = []
    let broken = true
    const { kind } = kindOf(({ payload }) => {
      order.push(payload)
      if (broken) failing()
      return String(payload).startsWith('hang') && held.promise
    })
    await add(tenant, ...times(30).map((n) => ({ kind, lane: `hang ${n}`, payload: `hang ${n}` })))
    await runDue(tenant)
    moveClock(now() + HOUR)
    broken = false
    order.length = 0
    // They have been due for longer than those that come now.
    await add(tenant, ...times(40).map((n) => ({ kind, lane: `${n}`, payload: n })))
    const running = runDue(tenant)
    const isDone = (n: number) => order.includes(n)
    await until(() => times(40).every(isDone))
    held.resolve()
    await running
    expect(await rows(tenant)).toEqual([])
    moveClock(Date.now())
  })
})

describe('the runner', () => {
  afterEach(() => moveClock(Date.now()))

  test('does what is added, soon after the commit', async () => {
    const { tenant } = await house()
    const { kind, done } = kindOf(() => {})
    stop = runJobs()
    for (const payload of times(20)) {
      await add(tenant, { kind, payload })
      if (payload % 5 === 0) await Bun.sleep(payload * 40)
    }
    await until(() => done.length === 20)
    stop()
    await add(tenant, { kind, payload: 'after' })
    await until(async () => (await tenant.db.ask("select 1 from leases where holder is null and name = 'jobs'")).length)
    expect(done).not.toContain('after')
  })

  test('does what an earlier process left', async () => {
    const { tenant } = await house()
    const { kind, done } = kindOf(() => {})
    await add(tenant, { kind, payload: 1 })
    stop = runJobs()
    await until(() => done.length)
    stop()
  })

  test('comes back when a job is due', async () => {
    const { tenant } = await house()
    let tries = 0
    const { kind, done } = kindOf(() => tries++ || failing())
    stop = runJobs()
    await add(tenant, { kind, payload: 1 }, { kind, payload: 2, at: now() + 300 })
    await until(() => done.length === 2)
    stop()
    expect(tries).toBe(3)
  })

  test('does nothing for a tenant that is suspended, and goes on when it is resumed, whoever was told', async () => {
    const { tenant, id } = await house()
    const { kind, done } = kindOf(() => {})
    await add(tenant, { kind, payload: 'due' })
    await setStatus(id, 'suspended')
    const other = await house()
    stop = runJobs()
    await add(other.tenant, { kind, payload: 'of another' })
    await until(() => done.length)
    expect(done).toEqual(['of another'])
    await setStatus(id, 'active')
    await until(() => done.length === 2)
    stop()
  })

  test('of two processes, one does each job', async () => {
    const { tenant } = await house()
    const { kind, done } = kindOf(() => Bun.sleep(1))
    await add(tenant, ...times(200).map((payload) => ({ kind, lane: `${payload % 3}`, payload })))
    const [one, other] = await Promise.all([runDue(tenant), runDue(tenant)])
    expect(one + other).toBe(200)
    expect(new Set(done).size).toBe(200)
    expect(done).toHaveLength(200)
  })
})

test('an event is written down with its transaction, or not at all', async () => {
  const { tenant, users } = await house()
  const telling = {
    source: 'accounts',
    kind: 'user',
    eventName: 'user-registered',
    metadata: { n: 1 },
    user: users.user,
  }
  const event = await tenant.write((tx) => emit(tenant, tx, telling))
  expect(event).toMatchObject({ ...telling, description: '', workspace: null })
  const failed = tenant.write(async (tx) => {
    await emit(tenant, tx, telling)
    throw new Error('no')
  })
  await expect(failed).rejects.toThrow()
  expect(await tenant.db.ask('select _id from events')).toEqual([[event._id]])
})

describe('a clock that was ahead', () => {
  afterEach(() => moveClock(Date.now()))

  test('holds up no job that was added by it, and none that is to come some time later', async () => {
    const { tenant } = await house()
    const { kind, done } = kindOf(() => {})
    moveClock(now() + 40 * 24 * HOUR)
    await add(tenant, { kind, payload: 'now' }, { kind, payload: 'in an hour', at: now() + HOUR })
    moveClock(Date.now())
    await runDue(tenant)
    expect(done).toEqual(['now'])
    moveClock(now() + HOUR)
    await runDue(tenant)
    expect(done).toEqual(['now', 'in an hour'])
  })

  test('is noticed by the runner when it is set back', async () => {
    const { tenant } = await house()
    const { kind, done } = kindOf(() => {})
    stop = runJobs()
    moveClock(now() + HOUR)
    await add(tenant, { kind, payload: 'later', at: now() + 100 })
    await Bun.sleep(1_500) // it looks at the clock each second
    moveClock(Date.now())
    await until(() => done.length)
    stop()
    expect(done).toEqual(['later'])
  })

  test('that is set forward is noticed, too', async () => {
    const { tenant } = await house()
    const { kind, done } = kindOf(() => {})
    stop = runJobs()
    await add(tenant, { kind, payload: 'later', at: now() + HOUR })
    await Bun.sleep(100)
    moveClock(now() + 2 * HOUR)
    await until(() => done.length)
    stop()
  })
})
