import { expect, test } from 'bun:test'
import type { Problem } from '../../src/core/problem'
import { FairSemaphore } from '../../src/tenancy/fair-semaphore'

const [firstTenant, secondTenant] = [{ tenant: 'one' }, { tenant: 'other' }]
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

test('FairSemaphore runs as much work at once as it has places, and tenants take turns with the rest', async () => {
  const turns = new FairSemaphore(2, 10)
  const { begun, work, end } = createControlledWork()
  for (const name of ['a', 'b', 'c', 'd']) turns.run(firstTenant, work(name))
  turns.run(secondTenant, work('x'))
  expect(begun).toEqual(['a', 'b'])
  for (const name of ['a', 'b', 'c']) await end(name)
  expect(begun).toEqual(['a', 'b', 'c', 'x', 'd'])
})

test('a limit per tenant leaves places of FairSemaphore free for other tenants', async () => {
  const turns = new FairSemaphore(3, 10, { perTenant: 2 })
  const { begun, work, end } = createControlledWork()
  for (const name of ['a', 'b', 'c']) turns.run(firstTenant, work(name))
  turns.run(secondTenant, work('x'))
  expect(begun).toEqual(['a', 'b', 'x'])
  await end('x')
  expect(begun).toEqual(['a', 'b', 'x'])
  await end('b')
  expect(begun).toEqual(['a', 'b', 'x', 'c'])
})

test('FairSemaphore refuses work beyond its queue or its timeout with BUSY and frees the place in the queue', async () => {
  const turns = new FairSemaphore(1, 2, { timeoutMs: 20 })
  const { begun, work, end } = createControlledWork()
  turns.run(firstTenant, work('a'))
  const waiting = ['b', 'c', 'd'].map((name) => turns.run(firstTenant, work(name)).catch(codeOf))
  expect(await waiting[2]).toBe('BUSY')
  expect(await Promise.all(waiting)).toEqual(['BUSY', 'BUSY', 'BUSY'])
  const next = turns.run(secondTenant, work('x'))
  await end('a')
  expect(begun).toEqual(['a', 'x'])
  await end('x')
  await next
  turns.run(firstTenant, work('e'))
  expect(begun).toEqual(['a', 'x', 'e'])
})

test('work that fails frees its place in FairSemaphore', async () => {
  const turns = new FairSemaphore(1, 1)
  expect(await turns.run(firstTenant, () => Promise.reject(new Error('no'))).catch(({ message }) => message)).toBe('no')
  expect(await turns.run(firstTenant, async () => 'yes')).toBe('yes')
})

test('low-priority work runs after the other work of all tenants and has a queue of its own', async () => {
  const turns = new FairSemaphore(1, 2)
  const { begun, work, end } = createControlledWork()
  turns.runLowPriority(firstTenant, work('a'))
  const later = ['b', 'c', 'd'].map((name) => turns.runLowPriority(firstTenant, work(name)).catch(codeOf))
  expect(await later[2]).toBe('BUSY')
  turns.runLowPriority(secondTenant, work('e'))
  turns.run(firstTenant, work('x'))
  turns.run(secondTenant, work('y'))
  for (const name of ['a', 'x', 'y', 'b', 'e']) await end(name)
  expect(begun).toEqual(['a', 'x', 'y', 'b', 'e', 'c'])
  turns.run(secondTenant, work('z'))
  for (const name of ['c', 'z']) await end(name)
  expect(begun).toEqual(['a', 'x', 'y', 'b', 'e', 'c', 'z'])
})
