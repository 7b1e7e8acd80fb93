import { expect, test } from 'bun:test'
import { yieldToEventLoop } from '../../src/core/event-loop'
import { FairQueue } from '../../src/tenancy/fair-queue'

const ownerOf = (tenant: string, caller = 'caller') => ({ tenant, caller })

/** Holds the thread for so many ms. */
const blockThread = (ms: number) => async () => {
  for (const until = performance.now() + ms; performance.now() < until; );
}

test('tenants take turns with their slices, and so do the callers of a tenant', async () => {
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

test('a tenant has one slice under way at a time, and others do not wait for it', async () => {
  const queue = new FairQueue()
  const done: string[] = []
  const { promise: asked, resolve: answer } = Promise.withResolvers<void>()
  const slow = queue.run(ownerOf('a'), () => asked)
  const behind = queue.run(ownerOf('a'), async () => void done.push('behind'))
  await queue.run(ownerOf('b'), async () => void done.push('other'))
  expect(done).toEqual(['other'])
  answer()
  await Promise.all([slow, behind])
  expect(done).toEqual(['other', 'behind'])
})

test('the thread is left to others as long as slices have held it, if anybody else asks meanwhile', async () => {
  const queue = new FairQueue()
  const began = performance.now()
  await queue.run(ownerOf('a'), blockThread(30))
  queue.noteArrival()
  const next = queue.run(ownerOf('b'), blockThread(0))
  queue.noteArrival()
  await next
  // Timers may come a millisecond early.
  expect(performance.now() - began).toBeGreaterThanOrEqual(55)
})

test('nobody waits while nobody else asks anything', async () => {
  const queue = new FairQueue()
  let rested = 0
  const timers = setInterval(() => rested++, 5)
  for (let n = 0; n < 3; n++) await queue.run(ownerOf('a'), blockThread(100))
  clearInterval(timers)
  // Three rests of 100 ms would have been at least 30 ticks.
  expect(rested).toBeLessThan(20)
})

test('others get their turn between two slices of the same caller', async () => {
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

test('what fails hands its place on', async () => {
  const queue = new FairQueue()
  const failed = queue.run(ownerOf('a'), () => Promise.reject(new Error('no')))
  const next = queue.run(ownerOf('a'), async () => 'done')
  expect(failed).rejects.toThrow('no')
  expect(await next).toBe('done')
})

test('refuses the third piece of a caller and the fourth of a tenant with 503 BUSY, where so many are the limit', () => {
  const queue = new FairQueue()
  const limits = { perTenant: 3, perCaller: 2 }
  const leave = queue.acquireSlot(ownerOf('a', '1'), limits)
  queue.acquireSlot(ownerOf('a', '1'), limits)
  const busy = expect.objectContaining({
    status: 503,
    code: 'BUSY',
    more: expect.objectContaining({ headers: { 'retry-after': '1' } }),
  })
  const refused = (payer: { tenant: string; caller: string }) => {
    try {
      queue.acquireSlot(payer, limits)
    } catch (error) {
      return error
    }
  }
  expect(refused(ownerOf('a', '1'))).toEqual(busy)
  queue.acquireSlot(ownerOf('a', '2'), limits)
  expect(refused(ownerOf('a', '3'))).toEqual(busy)
  expect(refused(ownerOf('b', '1'))).toBeUndefined()
  leave()
  expect(refused(ownerOf('a', '1'))).toBeUndefined()
  // What has begun is counted, but never refused.
  queue.acquireSlot(ownerOf('a', '1'))
})
