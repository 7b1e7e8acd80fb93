import { expect, test } from 'bun:test'
import type { Problem } from '../../src/core/problem'
import { FairSemaphore } from '../../src/tenancy/fair-semaphore'

const [firstTenant, secondTenant] = [{ tenant: 'one' }, { tenant: 'other' }]
const codeOf = ({ code }: Problem) => code

/** Work that goes on until it is told to end, and notes when it begins. */
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

test('so much is done at once, and tenants take turns with the rest', async () => {
  const turns = new FairSemaphore(2, 10)
  const { begun, work, end } = createControlledWork()
  for (const name of ['a', 'b', 'c', 'd']) turns.run(firstTenant, work(name))
  turns.run(secondTenant, work('x'))
  expect(begun).toEqual(['a', 'b'])
  for (const name of ['a', 'b', 'c']) await end(name)
  expect(begun).toEqual(['a', 'b', 'c', 'x', 'd'])
})

test('where one tenant has a part of the places only, others find one at once', async () => {
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

test('who would wait in a long row, or has waited for long, comes again; nobody loses their place by it', async () => {
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

test('what fails gives its place back', async () => {
  const turns = new FairSemaphore(1, 1)
  expect(await turns.run(firstTenant, () => Promise.reject(new Error('no'))).catch(({ message }) => message)).toBe('no')
  expect(await turns.run(firstTenant, async () => 'yes')).toBe('yes')
})

test('lets no work that can wait go ahead of other work, of any tenant, and gives it a room of its own', async () => {
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
