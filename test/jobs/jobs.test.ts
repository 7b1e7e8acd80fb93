import { afterEach, describe, expect, setDefaultTimeout, spyOn, test } from 'bun:test'
import { moveClock, now } from '../../src/core/clock'
import { logOutput } from '../../src/core/log'
import { emit } from '../../src/jobs/outbox'
import { enqueue, type Job, type JobResult, type NewJob, replaceQueued, requeue } from '../../src/jobs/queue'
import { JobRunner, runDueJobs } from '../../src/jobs/runner'
import { drainJobs, JobError, type JobHandler } from '../../src/jobs/worker'
import { Conflict } from '../../src/storage/errors'
import type { Db } from '../../src/storage/port'
import { setStatus, type Tenant } from '../../src/tenancy/tenants'
import { errorOf } from '../rejections'
import { useTestArea } from '../test-area'
import { createTestTenant } from '../test-tenant'
import { waitUntil } from '../wait-until'

setDefaultTimeout(30_000)

const times = (n: number) => Array.from({ length: n }, (_, i) => i)
const HOUR = 3_600_000
let kindCount = 0

const testJobs: Record<string, JobHandler> = {}
const recompose = useTestArea({ jobs: testJobs })

/** A kind of job of this test's own, done by what is given. */
function registerTestKind(run: (job: Job, tenant: Tenant) => unknown, retryFor?: number) {
  const kind = `test-${kindCount++}`
  const done: unknown[] = []
  testJobs[kind] = {
    retryFor,
    run: async (tenant, job) => {
      const result = await run(job, tenant)
      done.push(job.payload)
      return (typeof result === 'object' && result ? result : { state: 'done' }) as JobResult
    },
  }
  recompose()
  return { kind, done }
}
const enqueueJobs = (tenant: Tenant, ...jobs: NewJob[]) =>
  tenant.write(async (tx) => {
    for (const job of jobs) await enqueue(tenant, tx, job)
  })
const readRows = ({ db }: Tenant) => db.query('select state, attempts, due, outcome from jobs order by seq')
/** Returns a database whose prepared statements fail while a condition holds. */
const failWhen = (db: Db, hasFailed: () => boolean): Db => ({
  ...db,
  query: (sql, params) => (hasFailed() ? Promise.reject(new Error('The connection was lost.')) : db.query(sql, params)),
})
let runner: JobRunner | undefined
// Even after a failed test: a runner that keeps going would run the jobs of all later tests.
afterEach(() => runner?.stop())

const failJob = () => {
  throw new JobError('The other side is closed.', { outcome: { status: 500 } })
}

/** How long a runner may take to look at all tenants, whose number grows with the tests before. */
const SWEEP_MS = 50_000

describe('jobs', () => {
  afterEach(() => moveClock())

  test('a job runs once after the commit of its transaction and leaves no row', async () => {
    const { tenant } = await createTestTenant()
    const { kind, done } = registerTestKind(() => {})
    await enqueueJobs(tenant, { kind, payload: { for: 'Ada' } })
    expect(done).toEqual([])
    expect(await runDueJobs(tenant)).toBe(1)
    expect(await runDueJobs(tenant)).toBe(0)
    expect(done).toEqual([{ for: 'Ada' }])
    expect(await readRows(tenant)).toEqual([])
  })

  test('replaceQueued replaces all waiting jobs of an ordering key and the retry of the running one', async () => {
    const { tenant } = await createTestTenant()
    const replaceJobs = (payload: string) =>
      tenant.write((tx) => replaceQueued(tenant, tx, { kind, orderingKey: 'one', payload, at: now() + HOUR }))
    const { kind, done } = registerTestKind(async ({ payload }) => {
      if (payload === 'running') await replaceJobs('last')
      return { state: 'again', due: now() + 9 * HOUR }
    })
    await enqueueJobs(
      tenant,
      { kind, orderingKey: 'one', payload: 'running' },
      { kind, orderingKey: 'one', payload: 'second' },
    )
    await enqueueJobs(tenant, { kind, orderingKey: 'other', payload: 'other' })
    await runDueJobs(tenant)
    expect([done.toSorted(), (await readRows(tenant)).length]).toEqual([['other', 'running'], 2])
    moveClock(now() + HOUR)
    await runDueJobs(tenant)
    expect(done.at(-1)).toBe('last')
  })

  test('a job is not run when its transaction fails', async () => {
    const { tenant } = await createTestTenant()
    const { kind, done } = registerTestKind(() => {})
    const failed = tenant.write(async (tx) => {
      await enqueue(tenant, tx, { kind, payload: 1 })
      throw new Error('no')
    })
    expect((await errorOf(failed)).message).toContain('no')
    expect(await runDueJobs(tenant)).toBe(0)
    expect(done).toEqual([])
  })

  test('a job with the id of a waiting job is not added', async () => {
    const { tenant } = await createTestTenant()
    const { kind, done } = registerTestKind(() => {})
    await enqueueJobs(tenant, { kind, payload: 'first', _id: 'one' }, { kind, payload: 'second', _id: 'one' })
    await runDueJobs(tenant)
    expect(done).toEqual(['first'])
  })

  test('a job does not run before it is due', async () => {
    const { tenant } = await createTestTenant()
    const { kind, done } = registerTestKind(() => {})
    await enqueueJobs(tenant, { kind, payload: 'later', at: now() + HOUR }, { kind, payload: 'now' })
    await runDueJobs(tenant)
    expect(done).toEqual(['now'])
    moveClock(now() + HOUR)
    await runDueJobs(tenant)
    expect(done).toEqual(['now', 'later'])
  })

  test('a job that returns state again runs again when due with its new payload', async () => {
    const { tenant } = await createTestTenant()
    const { kind, done } = registerTestKind(({ payload }) => ({
      state: 'again',
      due: now() + HOUR,
      payload: Number(payload) + 1,
    }))
    await enqueueJobs(tenant, { kind, payload: 1 })
    for (const _ of times(3)) {
      await runDueJobs(tenant)
      moveClock(now() + HOUR)
    }
    expect(done).toEqual([1, 2, 3])
  })

  test('a job whose effect throws is rolled back and retried, and the effect is committed once', async () => {
    const { tenant } = await createTestTenant()
    const { kind } = registerTestKind(({ attempts }) => ({
      state: 'done',
      effect: async (tx: { query: (sql: string) => Promise<unknown> }) => {
        await tx.query(`insert into versions (topic, version) values ('effect ${attempts}', 1)`)
        if (!broken) return
        broken = false
        throw new Error('The disk is full.')
      },
    }))
    let broken = true
    await enqueueJobs(tenant, { kind })
    expect((await errorOf(runDueJobs(tenant))).message).toContain('The disk is full.')
    expect(await readRows(tenant)).toHaveLength(1)
    await runDueJobs(tenant)
    expect(await tenant.db.query("select count(*) from versions where topic like 'effect%'")).toEqual([[1]])
    expect(await readRows(tenant)).toEqual([])
  })

  test('a job that asks for retention keeps its row with its outcome', async () => {
    const { tenant } = await createTestTenant()
    const { kind } = registerTestKind(() => ({ state: 'done', retained: true, outcome: { status: 200 } }))
    await enqueueJobs(tenant, { kind })
    await runDueJobs(tenant)
    expect(await readRows(tenant)).toEqual([['done', 1, null, '{"status":200}']])
  })

  test('a failing job is retried after one second, then after twice as long each time, up to an hour', async () => {
    const { tenant } = await createTestTenant()
    const { kind } = registerTestKind(failJob)
    await enqueueJobs(tenant, { kind })
    for (const attempt of times(16)) {
      await runDueJobs(tenant)
      const [[state, attempts, due, outcome]] = (await readRows(tenant)) as [[string, number, number, string]]
      expect([state, attempts, outcome]).toEqual(['waiting', attempt + 1, '{"status":500}'])
      const pause = Math.min(HOUR / 1.25, 1_000 * 2 ** attempt)
      expect(due - now()).toBeWithin(pause - 500, pause * 1.25 + 1)
      expect(await runDueJobs(tenant)).toBe(0)
      moveClock(due)
    }
  })

  test('a job that fails for three days becomes dead, and requeue runs it again', async () => {
    const { tenant } = await createTestTenant()
    let open = false
    const { kind, done } = registerTestKind(() => open || failJob())
    await enqueueJobs(tenant, { kind, payload: 'x', _id: 'x' })
    await runDueJobs(tenant)
    moveClock(now() + 72 * HOUR)
    await runDueJobs(tenant)
    expect(await readRows(tenant)).toEqual([['dead', 2, null, '{"status":500}']])
    moveClock(now() + 72 * HOUR)
    expect(await runDueJobs(tenant)).toBe(0)
    open = true
    await tenant.write((tx) => requeue(tenant, tx, 'x'))
    await runDueJobs(tenant)
    expect(done).toEqual(['x'])
    expect(await readRows(tenant)).toEqual([])
    expect(await tenant.write((tx) => requeue(tenant, tx, 'x'))).toBeFalse()
  })

  test('a job with a permanent error becomes dead at once', async () => {
    const { tenant } = await createTestTenant()
    const { kind } = registerTestKind(() => {
      throw new JobError('It is gone.', { permanent: true })
    })
    await enqueueJobs(tenant, { kind })
    await runDueJobs(tenant)
    expect(await readRows(tenant)).toEqual([['dead', 1, null, '{"message":"It is gone."}']])
  })

  test('the outcome of a job does not reveal the message of an unexpected error', async () => {
    const { tenant } = await createTestTenant()
    const { kind } = registerTestKind(() => {
      throw new Error('password=secret')
    })
    await enqueueJobs(tenant, { kind })
    await runDueJobs(tenant)
    expect((await readRows(tenant))[0]![3]).toBe('{"message":"It failed."}')
  })

  test('a job of an unknown kind stays waiting', async () => {
    const { tenant } = await createTestTenant()
    await enqueueJobs(tenant, { kind: 'unknown' })
    await runDueJobs(tenant)
    expect((await readRows(tenant))[0]!.slice(0, 2)).toEqual(['waiting', 1])
  })

  test('a job runs for its own tenant only', async () => {
    const [one, other] = [await createTestTenant(), await createTestTenant()]
    const seen: string[] = []
    const { kind } = registerTestKind((_, { tenant }) => seen.push(tenant))
    await enqueueJobs(one.tenant, { kind })
    expect(await runDueJobs(other.tenant)).toBe(0)
    await runDueJobs(one.tenant)
    expect(seen).toEqual([one.id])
  })
})

describe('jobs of one ordering key', () => {
  afterEach(() => moveClock())

  test('jobs of one ordering key run in the order in which they were added', async () => {
    const { tenant } = await createTestTenant()
    const { kind, done } = registerTestKind(() => Bun.sleep(Math.random() * 2))
    for (const n of times(10))
      await enqueueJobs(tenant, ...times(30).map((m) => ({ kind, orderingKey: 'one', payload: n * 30 + m })))
    expect(await runDueJobs(tenant)).toBe(300)
    expect(done).toEqual(times(300))
  })

  test('jobs wait while the first of their ordering key fails, and other ordering keys run', async () => {
    const { tenant } = await createTestTenant()
    let open = false
    const { kind, done } = registerTestKind(({ payload }) => open || payload !== 'a1' || failJob())
    await enqueueJobs(
      tenant,
      ...['a1', 'a2', 'b1', 'a3', 'b2'].map((payload) => ({ kind, orderingKey: payload[0]!, payload })),
      { kind, payload: 'c' },
    )
    await runDueJobs(tenant)
    expect(done.toSorted()).toEqual(['b1', 'b2', 'c'])
    open = true
    moveClock(now() + 2_000)
    await runDueJobs(tenant)
    expect(done.slice(3)).toEqual(['a1', 'a2', 'a3'])
  })

  test('jobs continue when the first of their ordering key is dead, and its requeue puts it first again', async () => {
    const { tenant } = await createTestTenant()
    let open = false
    const { kind, done } = registerTestKind(({ payload }) => open || payload === 'second' || failJob(), 0)
    await enqueueJobs(
      tenant,
      ...['first', 'second'].map((payload) => ({ kind, orderingKey: 'a', payload, _id: payload })),
    )
    await runDueJobs(tenant)
    expect(done).toEqual(['second'])
    open = true
    await tenant.write(async (tx) => {
      await enqueue(tenant, tx, { kind, orderingKey: 'a', payload: 'third' })
      await requeue(tenant, tx, 'first')
    })
    await runDueJobs(tenant)
    expect(done).toEqual(['second', 'first', 'third'])
  })

  test('a slow job does not delay jobs of other ordering keys', async () => {
    const { tenant } = await createTestTenant()
    const slow = Promise.withResolvers<void>()
    const { kind, done } = registerTestKind(({ payload }) => payload === 'slow' && slow.promise)
    await enqueueJobs(
      tenant,
      { kind, payload: 'slow' },
      ...times(100).map((payload) => ({ kind, orderingKey: `${payload % 40}`, payload })),
    )
    const running = runDueJobs(tenant)
    await waitUntil(() => done.length === 100)
    slow.resolve()
    await running
    expect(done).toHaveLength(101)
  })
})

describe('ordering keys with hanging jobs', () => {
  const createHangingKind = () => {
    const held = Promise.withResolvers<void>()
    const begun = new Set<unknown>()
    const { kind } = registerTestKind(({ payload }) => {
      begun.add(payload)
      return held.promise
    })
    return { kind, begun, release: held.resolve }
  }
  const hangingJobs = (kind: string, count: number) =>
    times(count).map((n) => ({ kind, orderingKey: `hang ${n}`, payload: n }))

  test('hanging jobs of eight tenants do not delay a job of a ninth tenant', async () => {
    const { kind, begun, release } = createHangingKind()
    const tenants = await Promise.all(times(8).map(createTestTenant))
    const quiet = await createTestTenant()
    for (const { tenant } of tenants)
      await enqueueJobs(
        tenant,
        ...hangingJobs(kind, 20).map((job) => ({ ...job, payload: `${tenant.tenant} ${job.payload}` })),
      )
    const running = tenants.map(({ tenant }) => runDueJobs(tenant))
    await waitUntil(() => begun.size >= 128)
    const { kind: quick, done } = registerTestKind(() => {})
    await enqueueJobs(quiet.tenant, { kind: quick, payload: 'quick' })
    await runDueJobs(quiet.tenant)
    expect(done).toEqual(['quick'])
    // They do not delay each other either: all of them run, though there are more of them than places.
    await waitUntil(() => begun.size === 160)
    release()
    await Promise.all(running)
    for (const { tenant } of tenants) expect(await readRows(tenant)).toEqual([])
  })

  test('40 hanging jobs do not delay another job of their tenant', async () => {
    const { tenant } = await createTestTenant()
    const { kind, begun, release } = createHangingKind()
    const { kind: quick, done } = registerTestKind(() => {})
    await enqueueJobs(tenant, ...hangingJobs(kind, 40), { kind: quick, payload: 'quick' })
    const running = runDueJobs(tenant)
    await waitUntil(() => done.length)
    await waitUntil(() => begun.size === 40)
    release()
    await running
    expect(await readRows(tenant)).toEqual([])
  })

  test('jobs that have failed before run after new jobs and do not delay them', async () => {
    const { tenant } = await createTestTenant()
    const held = Promise.withResolvers<void>()
    const order: unknown[] = []
    let broken = true
    const { kind } = registerTestKind(({ payload }) => {
      order.push(payload)
      if (broken) failJob()
      return String(payload).startsWith('hang') && held.promise
    })
    await enqueueJobs(tenant, ...times(30).map((n) => ({ kind, orderingKey: `hang ${n}`, payload: `hang ${n}` })))
    await runDueJobs(tenant)
    moveClock(now() + HOUR)
    broken = false
    order.length = 0
    // The failed jobs have been due for longer than the new ones.
    await enqueueJobs(tenant, ...times(40).map((n) => ({ kind, orderingKey: `${n}`, payload: n })))
    const running = runDueJobs(tenant)
    const isDone = (n: number) => order.includes(n)
    await waitUntil(() => times(40).every(isDone))
    held.resolve()
    await running
    expect(await readRows(tenant)).toEqual([])
    moveClock()
  })
})

describe('the job runner', () => {
  afterEach(() => moveClock())

  test('the runner runs jobs soon after their commit and none after it was stopped', async () => {
    const { tenant } = await createTestTenant()
    const { kind, done } = registerTestKind(() => {})
    runner = new JobRunner().start()
    for (const payload of times(20)) {
      await enqueueJobs(tenant, { kind, payload })
      if (payload % 5 === 0) await Bun.sleep(payload * 40)
    }
    // On a busy machine the lease may be lost, and then it has to run out.
    await waitUntil(() => done.length === 20, Boolean, 30_000)
    runner.stop()
    await enqueueJobs(tenant, { kind, payload: 'after' })
    await waitUntil(
      async () => (await tenant.db.query("select 1 from leases where holder is null and name = 'jobs'")).length,
    )
    expect(done).not.toContain('after')
  })

  test('the runner runs the jobs that an earlier process left', async () => {
    const { tenant } = await createTestTenant()
    const { kind, done } = registerTestKind(() => {})
    await enqueueJobs(tenant, { kind, payload: 1 })
    runner = new JobRunner().start()
    await waitUntil(() => done.length, Boolean, SWEEP_MS)
    runner.stop()
  })

  test('the runner wakes up when a later job or a retry is due', async () => {
    const { tenant } = await createTestTenant()
    let tries = 0
    const { kind, done } = registerTestKind(() => tries++ || failJob())
    runner = new JobRunner().start()
    await enqueueJobs(tenant, { kind, payload: 1 }, { kind, payload: 2, at: now() + 300 })
    await waitUntil(() => done.length === 2)
    runner.stop()
    expect(tries).toBe(3)
  })

  test('the runner skips the jobs of a suspended tenant and runs them once it is resumed', async () => {
    const { tenant, id } = await createTestTenant()
    const { kind, done } = registerTestKind(() => {})
    await enqueueJobs(tenant, { kind, payload: 'due' })
    await setStatus(id, 'suspended')
    const other = await createTestTenant()
    runner = new JobRunner().start()
    await enqueueJobs(other.tenant, { kind, payload: 'of another tenant' })
    await waitUntil(() => done.length)
    expect(done).toEqual(['of another tenant'])
    await setStatus(id, 'active')
    await waitUntil(() => done.length === 2, Boolean, SWEEP_MS)
    runner.stop()
  })

  test('the runner soon repeats a job whose result could not be stored because of a conflict', async () => {
    const { tenant } = await createTestTenant()
    using errors = spyOn(logOutput, 'write').mockImplementation(() => {})
    const { kind } = registerTestKind(() => ({
      state: 'done',
      effect: async () => {
        if (tries++ < 2) throw new Conflict()
      },
    }))
    let tries = 0
    runner = new JobRunner().start()
    await enqueueJobs(tenant, { kind })
    await waitUntil(async () => !(await readRows(tenant)).length, Boolean, 5_000)
    expect(tries).toBe(3)
    expect(errors.mock.calls.flat().join()).toContain('JOBS_FAILED')
  })

  test('jobs that run are waited for when the next due jobs cannot be read', async () => {
    const { tenant } = await createTestTenant()
    const [held, woken] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    let isRunning = false
    const { kind, done } = registerTestKind(() => {
      isRunning = true
      return held.promise
    })
    await enqueueJobs(tenant, { kind, payload: 'held' })
    const lease = { token: 1, signal: new AbortController().signal }
    const db = failWhen(tenant.db, () => isRunning)
    const wakes = [woken.promise]
    const draining = drainJobs({ ...tenant, ...lease, db }, () => wakes.shift() ?? new Promise(() => {}))
    const outcome = draining.then(
      () => 'drained',
      (error: Error) => error.message,
    )
    await waitUntil(() => isRunning)
    woken.resolve()
    expect(await Promise.race([outcome, Bun.sleep(100).then(() => 'waiting')])).toBe('waiting')
    held.resolve()
    expect(await outcome).toBe('The connection was lost.')
    expect(done).toEqual(['held'])
  })

  test('two concurrent runs of due jobs run each job once', async () => {
    const { tenant } = await createTestTenant()
    const { kind, done } = registerTestKind(() => Bun.sleep(1))
    await enqueueJobs(tenant, ...times(200).map((payload) => ({ kind, orderingKey: `${payload % 3}`, payload })))
    const [one, other] = await Promise.all([runDueJobs(tenant), runDueJobs(tenant)])
    expect(one + other).toBe(200)
    expect(new Set(done).size).toBe(200)
    expect(done).toHaveLength(200)
  })
})

test('an event is stored with its transaction or not at all', async () => {
  const { tenant, users } = await createTestTenant()
  const newEvent = {
    source: 'accounts',
    kind: 'user',
    eventName: 'user-registered',
    metadata: { n: 1 },
    user: users.user,
  }
  const event = await tenant.write((tx) => emit(tenant, tx, newEvent))
  expect(event).toMatchObject({ ...newEvent, description: '', workspace: null })
  const failed = tenant.write(async (tx) => {
    await emit(tenant, tx, newEvent)
    throw new Error('no')
  })
  await errorOf(failed)
  expect(await tenant.db.query('select _id from events')).toEqual([[event._id]])
})

describe('jobs after a change of the clock', () => {
  afterEach(() => moveClock())

  test('jobs that were enqueued while the clock was ahead run on time after it is set back', async () => {
    const { tenant } = await createTestTenant()
    const { kind, done } = registerTestKind(() => {})
    moveClock(now() + 40 * 24 * HOUR)
    await enqueueJobs(tenant, { kind, payload: 'now' }, { kind, payload: 'in an hour', at: now() + HOUR })
    moveClock()
    await runDueJobs(tenant)
    expect(done).toEqual(['now'])
    moveClock(now() + HOUR)
    await runDueJobs(tenant)
    expect(done).toEqual(['now', 'in an hour'])
  })

  test('the runner notices that the clock was set back', async () => {
    const { tenant } = await createTestTenant()
    const { kind, done } = registerTestKind(() => {})
    runner = new JobRunner().start()
    moveClock(now() + HOUR)
    await enqueueJobs(tenant, { kind, payload: 'later', at: now() + 100 })
    await Bun.sleep(1_500) // the runner checks the clock each second
    moveClock()
    await waitUntil(() => done.length)
    runner.stop()
    expect(done).toEqual(['later'])
  })

  test('a job runs again soon after it got its next time from a clock that was ahead for a moment', async () => {
    const { tenant } = await createTestTenant()
    const readDue = () => now() + 50
    const { kind, done } = registerTestKind(() => {
      if (done.length) return
      moveClock(now() + 40 * 24 * HOUR)
      const due = readDue()
      moveClock()
      return { state: 'again', due }
    })
    testJobs[kind]!.nextTime = ({ payload }) => ({ due: readDue(), payload: payload! })
    recompose()
    runner = new JobRunner().start()
    await enqueueJobs(tenant, { kind })
    await waitUntil(() => done.length > 1)
  })

  test('a job is retried soon after an attempt that failed while the clock was ahead for a moment', async () => {
    const { tenant } = await createTestTenant()
    let attempts = 0
    const { kind, done } = registerTestKind(() => {
      if (++attempts > 1) return
      moveClock(now() + 24 * HOUR)
      setTimeout(moveClock, 50)
      failJob()
    })
    runner = new JobRunner().start()
    await enqueueJobs(tenant, { kind })
    await waitUntil(() => done.length)
  })

  test('the runner notices that the clock was set forward', async () => {
    const { tenant } = await createTestTenant()
    const { kind, done } = registerTestKind(() => {})
    runner = new JobRunner().start()
    await enqueueJobs(tenant, { kind, payload: 'later', at: now() + HOUR })
    await Bun.sleep(100)
    moveClock(now() + 2 * HOUR)
    await waitUntil(() => done.length)
    runner.stop()
  })
})
