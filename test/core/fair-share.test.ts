// engine: sqlite
import { expect, test } from 'bun:test'
import { FairShare } from '../../src/core/fair-share'
import { Problem } from '../../src/core/problem'

const ownerOf = (tenant: string, caller = 'caller') => ({ tenant, caller })
const [firstTenant, secondTenant] = [ownerOf('one'), ownerOf('other')]
const codeOf = ({ code }: Problem) => code

/** Work that runs until the test ends it, and records in which order it begins. */
function createControlledWork() {
  const begun: string[] = []
  const ends = new Map<string, () => void>()
  const work = (name: string) => () => {
    begun.push(name)
    return new Promise<void>((resolve) => ends.set(name, resolve))
  }
  const end = async (name: string) => {
    ends.get(name)!()
    await Bun.sleep(0)
  }
  return { begun, work, end }
}

test('FairShare runs as much work at once as it has places, and tenants take turns with the rest', async () => {
  const share = new FairShare({ running: { total: 2 }, waiting: { perTenant: 10 } })
  const { begun, work, end } = createControlledWork()
  for (const name of ['a', 'b', 'c', 'd']) share.run(firstTenant, work(name))
  share.run(secondTenant, work('x'))
  expect(begun).toEqual(['a', 'b'])
  expect(share.totals).toEqual({ running: 2, waiting: 3 })
  expect(share.countOf('one')).toEqual({ running: 2, waiting: 2 })
  for (const name of ['a', 'b', 'c']) await end(name)
  expect(begun).toEqual(['a', 'b', 'c', 'x', 'd'])
})

test('the callers of a tenant take turns in FairShare, however much each of them has waiting', async () => {
  const share = new FairShare({ running: { total: 1 }, waiting: {} })
  const { begun, work, end } = createControlledWork()
  share.run(ownerOf('a', '0'), work('first'))
  for (const name of ['a1', 'a2', 'a3']) share.run(ownerOf('a', '1'), work(name))
  share.run(ownerOf('a', '2'), work('b1'))
  share.run(ownerOf('b', '1'), work('x1'))
  share.run(ownerOf('b', '1'), work('x2'))
  for (const name of ['first', 'a1', 'x1', 'b1', 'x2', 'a2']) await end(name)
  expect(begun).toEqual(['first', 'a1', 'x1', 'b1', 'x2', 'a2', 'a3'])
})

test('a limit per tenant leaves places of FairShare free for other tenants, and one per caller for other callers', async () => {
  const share = new FairShare({ running: { total: 3, perTenant: 2 }, waiting: {} })
  const { begun, work, end } = createControlledWork()
  for (const name of ['a', 'b', 'c']) share.run(firstTenant, work(name))
  share.run(secondTenant, work('x'))
  expect(begun).toEqual(['a', 'b', 'x'])
  await end('x')
  expect(begun).toEqual(['a', 'b', 'x'])
  await end('b')
  expect(begun).toEqual(['a', 'b', 'x', 'c'])

  const ofCallers = new FairShare({ running: { perTenant: 3, perCaller: 1 }, waiting: {} })
  const other = createControlledWork()
  for (const name of ['a', 'b']) ofCallers.run(ownerOf('a', '1'), other.work(name))
  ofCallers.run(ownerOf('a', '2'), other.work('c'))
  expect(other.begun).toEqual(['a', 'c'])
  await other.end('a')
  expect(other.begun).toEqual(['a', 'c', 'b'])
})

test('FairShare refuses work beyond its queue or its timeout with BUSY and frees the place in the queue', async () => {
  const share = new FairShare({ running: { total: 1 }, waiting: { perTenant: 2, timeoutMs: 20 } })
  const { begun, work, end } = createControlledWork()
  share.run(firstTenant, work('a'))
  const waiting = ['b', 'c', 'd'].map((name) => share.run(firstTenant, work(name)).catch(codeOf))
  expect(await waiting[2]).toBe('BUSY')
  expect(await Promise.all(waiting)).toEqual(['BUSY', 'BUSY', 'BUSY'])
  const next = share.run(secondTenant, work('x'))
  await end('a')
  expect(begun).toEqual(['a', 'x'])
  await end('x')
  await next
  share.run(firstTenant, work('e'))
  expect(begun).toEqual(['a', 'x', 'e'])
})

test('where the queue of a tenant is full, the caller with the most waiting work gives way to another one', async () => {
  const share = new FairShare({ running: { total: 1 }, waiting: { perTenant: 4 } })
  const { begun, work, end } = createControlledWork()
  const refused: string[] = []
  const queue = (caller: string, name: string) =>
    void share.run(ownerOf('a', caller), work(name)).catch(({ code }) => refused.push(`${name} ${code}`))
  queue('1', 'first')
  for (const name of ['a', 'b', 'c', 'd', 'e']) queue('1', name)
  await Bun.sleep(0)
  expect(refused).toEqual(['e BUSY'])
  for (const name of ['x', 'y', 'z']) queue('2', name)
  await Bun.sleep(0)
  expect(refused).toEqual(['e BUSY', 'z BUSY', 'd BUSY', 'c BUSY'])
  expect(share.countOf('a')).toEqual({ running: 1, waiting: 4 })
  for (const name of ['first', 'a', 'x', 'b']) await end(name)
  expect(begun).toEqual(['first', 'a', 'x', 'b', 'y'])
})

test('a signal ends the wait in FairShare, and work without a queue is refused at once', async () => {
  const share = new FairShare({ running: { total: 1 }, waiting: {} })
  const { begun, work, end } = createControlledWork()
  share.run(firstTenant, work('a'))
  const aborter = new AbortController()
  const waiting = share.run(firstTenant, work('b'), { signal: aborter.signal }).catch(codeOf)
  aborter.abort()
  expect(await waiting).toBe('BUSY')
  await end('a')
  expect(begun).toEqual(['a'])
  const withoutQueue = new FairShare({ running: { total: 1 } })
  withoutQueue.run(firstTenant, work('c'))
  expect(await withoutQueue.run(firstTenant, work('d')).catch(codeOf)).toBe('BUSY')
})

test('work that fails frees its place in FairShare', async () => {
  const share = new FairShare({ running: { total: 1 }, waiting: {} })
  expect(await share.run(firstTenant, () => Promise.reject(new Error('no'))).catch(({ message }) => message)).toBe('no')
  expect(await share.run(firstTenant, async () => 'yes')).toBe('yes')
})

test('low-priority work runs after the other work of all tenants and has a queue of its own', async () => {
  const share = new FairShare({ running: { total: 1 }, waiting: { perTenant: 2 } })
  const { begun, work, end } = createControlledWork()
  const low = { isLowPriority: true }
  share.run(firstTenant, work('a'), low)
  const later = ['b', 'c', 'd'].map((name) => share.run(firstTenant, work(name), low).catch(codeOf))
  expect(await later[2]).toBe('BUSY')
  share.run(secondTenant, work('e'), low)
  share.run(firstTenant, work('x'))
  share.run(secondTenant, work('y'))
  for (const name of ['a', 'x', 'y', 'b', 'e']) await end(name)
  expect(begun).toEqual(['a', 'x', 'y', 'b', 'e', 'c'])
  share.run(secondTenant, work('z'))
  for (const name of ['c', 'z']) await end(name)
  expect(begun).toEqual(['a', 'x', 'y', 'b', 'e', 'c', 'z'])
})

test('reserve counts amounts until they are released once, and refuses with the limit that is reached', () => {
  const share = new FairShare({
    running: { total: 10, perTenant: 6, perCaller: 4 },
    createRefusal: (limit) => new Problem(429, 'RATE_LIMITED', limit),
  })
  const messageOf = (caller: string, tenant: string, amount: number) => {
    try {
      share.reserve(ownerOf(tenant, caller), amount)
    } catch (error) {
      return (error as Problem).message
    }
  }
  const release = share.reserve(ownerOf('a', '1'), 3)
  expect([messageOf('1', 'a', 2), messageOf('2', 'a', 4), messageOf('1', 'b', 4)]).toEqual([
    'perCaller',
    'perTenant',
    undefined,
  ])
  expect(messageOf('1', 'c', 4)).toBe('total')
  release()
  release()
  expect(share.totals.running).toBe(4)
  // What is larger than a limit fits where there is nothing else.
  expect([messageOf('1', 'c', 5), messageOf('1', 'c', 1)]).toEqual([undefined, 'perCaller'])
})
