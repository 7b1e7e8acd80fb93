// engine: sqlite
import { expect, test } from 'bun:test'
import { yieldToEventLoop } from '../../src/core/event-loop'
import { FairQueue } from '../../src/tenancy/fair-queue'
import { errorOf } from '../rejections'

const ownerOf = (tenant: string, caller = 'caller') => ({ tenant, caller })

/** Blocks the thread for the given number of ms. */
const blockThread = (ms: number) => async () => {
  for (const until = performance.now() + ms; performance.now() < until; );
}

test('tenants take turns in FairQueue, and so do the callers of one tenant', async () => {
  const queue = new FairQueue()
  const done: string[] = []
  const { promise: held, resolve: end } = Promise.withResolvers<void>()
  const first = queue.run(ownerOf('a', '0'), () => held, { whole: true })
  const slices = (
    [
      ['a', '1'],
      ['a', '1'],
      ['a', '2'],
      ['b', '1'],
      ['b', '1'],
    ] as const
  ).map(([tenant, caller]) => queue.run(ownerOf(tenant, caller), async () => void done.push(`${tenant}${caller}`)))
  end()
  await Promise.all([first, ...slices])
  expect(done).toEqual(['a1', 'b1', 'a2', 'b1', 'a1'])
})

test('FairQueue runs one slice per tenant at a time, and other tenants do not wait for it', async () => {
  const queue = new FairQueue()
  const done: string[] = []
  const { promise: held, resolve: release } = Promise.withResolvers<void>()
  const slow = queue.run(ownerOf('a'), () => held)
  const behind = queue.run(ownerOf('a'), async () => void done.push('behind'))
  await queue.run(ownerOf('b'), async () => void done.push('other'))
  expect(done).toEqual(['other'])
  release()
  await Promise.all([slow, behind])
  expect(done).toEqual(['other', 'behind'])
})

/** Lets requests arrive in each turn of the event loop, until the returned function is called. */
function keepArriving(arrive: () => void): () => void {
  let isOver = false
  const arriveAgain = () => {
    arrive()
    if (!isOver) setImmediate(arriveAgain)
  }
  arriveAgain()
  return () => {
    isOver = true
  }
}

/** Returns whether a slice or a timer comes first after a slice of `sliceMs`, while requests arrive. */
async function findFirst(queue: FairQueue, timerMs: number, arrive: () => void, sliceMs = 20): Promise<string> {
  await queue.run(ownerOf('a'), blockThread(sliceMs))
  return findNext(queue, timerMs, arrive)
}

/** Returns whether the next slice or a timer comes first, while requests arrive. */
async function findNext(queue: FairQueue, timerMs: number, arrive: () => void): Promise<string> {
  const done: string[] = []
  const slice = queue.run(ownerOf('a'), async () => void done.push('slice'))
  const timer = Bun.sleep(timerMs).then(() => void done.push('timer'))
  const stop = keepArriving(arrive)
  await Promise.all([slice, timer])
  stop()
  return done[0]!
}

test('FairQueue leaves the thread free for four times as long as a slice blocked it while requests of others arrive', async () => {
  const queue = new FairQueue()
  expect(await findFirst(queue, 70, () => queue.noteArrival('other'))).toBe('timer')
})

test('a slice in FairQueue does not wait for requests that wait for their own turn', async () => {
  const queue = new FairQueue()
  const waiting: Promise<void>[] = []
  const arrive = () => {
    queue.noteArrival('other')
    if (waiting.length < 10_000) waiting.push(queue.run(ownerOf('a', `${waiting.length}`), async () => {}))
  }
  expect(await findFirst(queue, 70, arrive)).toBe('slice')
  await Promise.all(waiting)
})

test('a slice in FairQueue waits no longer once others have stopped to send requests', async () => {
  const queue = new FairQueue()
  let arrivals = 0
  expect(await findFirst(queue, 70, () => arrivals++ < 3 && queue.noteArrival('other'))).toBe('slice')
})

test('FairQueue leaves the thread to requests of the same tenant for a quarter of the time that a slice blocked it', async () => {
  const queue = new FairQueue()
  // It owes other tenants 800 ms.
  expect(await findFirst(queue, 150, () => queue.noteArrival('a'), 200)).toBe('slice')
  expect(await findFirst(queue, 20, () => queue.noteArrival('a'), 200)).toBe('timer')
  expect(await findFirst(queue, 150, () => queue.noteArrival('other'), 200)).toBe('timer')
})

test('a slice in FairQueue does not wait for others while the thread has time for both', async () => {
  for (const [isBusy, first] of [
    [true, 'timer'],
    [false, 'slice'],
  ] as const) {
    const queue = new FairQueue({ load: { isBusy: () => isBusy } })
    expect(await findFirst(queue, 70, () => queue.noteArrival('other'))).toBe(first)
  }
})

test('FairQueue also charges what the thread did beside slices, unless cheap requests account for it', async () => {
  // The slice alone owes 240 ms, and 720 ms with as much of the rest as is charged.
  for (const [cheapMs, timerMs, first] of [
    [0, 420, 'timer'],
    [500, 420, 'slice'],
  ] as const) {
    let threadMs = 0
    const queue = new FairQueue({ readThreadMs: () => threadMs })
    const arrive = () => {
      // The clock says that the thread has worked for a second.
      if (!threadMs) queue.noteCheapRequest('other', cheapMs)
      threadMs = 1_000
      queue.noteArrival('other')
    }
    expect(await findFirst(queue, timerMs, arrive, 60)).toBe(first)
  }
})

test('FairQueue does not charge work in the background for what the thread did beside it', async () => {
  let threadMs = 0
  const queue = new FairQueue({ readThreadMs: () => threadMs })
  queue.chargeThreadTime(60, { isBackground: true })
  const arrive = () => {
    threadMs = 1_000
    queue.noteArrival('other')
  }
  // It owes 240 ms, and would owe 720 ms with a rest.
  expect(await findNext(queue, 420, arrive)).toBe('slice')
})

test('a turn of the event loop has one slice, and what awaits it goes on before the next one', async () => {
  const queue = new FairQueue()
  const done: string[] = []
  const stop = keepArriving(() => done.push('turn'))
  await Promise.all(
    ['a', 'b', 'c'].map(async (tenant) => {
      await queue.run(ownerOf(tenant), async () => void done.push(tenant))
      await Promise.resolve()
      done.push(`after ${tenant}`)
    }),
  )
  stop()
  const text = done.join(' ')
  expect(text).toMatch(/a after a (turn )+b after b (turn )+c after c/)
})

test('FairQueue runs short slices of one read in the same turn of the event loop, until they have taken 2 ms', async () => {
  const queue = new FairQueue()
  const reader = ownerOf('a')
  const done: string[] = []
  const stop = keepArriving(() => done.push('turn'))
  const read = async (name: string, owner: { tenant: string; caller: string }, ms: number) => {
    for (let n = 0; n < 3; n++) await queue.run(owner, () => blockThread(ms)().then(() => void done.push(name)))
  }
  await Promise.all([read('short', reader, 0), read('other', ownerOf('a'), 0)])
  await read('long', ownerOf('a'), 3)
  stop()
  const text = done.join(' ')
  expect(text).toMatch(/short short short (turn )+other other other/)
  expect(text).toMatch(/long (turn )+long (turn )+long/)
})

test('FairQueue does not pause between slices while no other request arrives', async () => {
  const queue = new FairQueue()
  let ticks = 0
  const timers = setInterval(() => ticks++, 5)
  for (let n = 0; n < 3; n++) await queue.run(ownerOf('a'), blockThread(100))
  clearInterval(timers)
  // Three rests of 100 ms would have been at least 30 ticks.
  expect(ticks).toBeLessThan(20)
})

test('FairQueue yields to the event loop between slices of one caller', async () => {
  const queue = new FairQueue()
  const done: string[] = []
  const slices = Promise.all(
    [1, 2, 3].map((n) =>
      queue.run(ownerOf('a'), () => blockThread(5)().then(() => done.push(`${n}`)), { whole: true }),
    ),
  )
  await yieldToEventLoop()
  done.push('other')
  await slices
  expect(done.indexOf('other')).toBeLessThan(3)
})

test('work that fails in FairQueue lets the next work run', async () => {
  const queue = new FairQueue()
  const failed = queue.run(ownerOf('a'), () => Promise.reject(new Error('no')))
  const next = queue.run(ownerOf('a'), async () => 'done')
  const [error, value] = await Promise.all([errorOf(failed), next])
  expect([error.message, value]).toEqual(['no', 'done'])
})

test('acquireSlot refuses the third slot of a caller and the fourth of a tenant with 503 BUSY at those limits', () => {
  const queue = new FairQueue()
  const limits = { perTenant: 3, perCaller: 2 }
  const leave = queue.acquireSlot(ownerOf('a', '1'), limits)
  queue.acquireSlot(ownerOf('a', '1'), limits)
  const busy = expect.objectContaining({
    status: 503,
    code: 'BUSY',
    more: expect.objectContaining({ headers: { 'retry-after': '1' } }),
  })
  const acquireError = (owner: { tenant: string; caller: string }) => {
    try {
      queue.acquireSlot(owner, limits)
    } catch (error) {
      return error
    }
  }
  expect(acquireError(ownerOf('a', '1'))).toEqual(busy)
  queue.acquireSlot(ownerOf('a', '2'), limits)
  expect(acquireError(ownerOf('a', '3'))).toEqual(busy)
  expect(acquireError(ownerOf('b', '1'))).toBeUndefined()
  leave()
  expect(acquireError(ownerOf('a', '1'))).toBeUndefined()
  // Without limits a slot is counted, but never refused.
  queue.acquireSlot(ownerOf('a', '1'))
})
