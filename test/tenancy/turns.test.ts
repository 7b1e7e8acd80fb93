import { expect, test } from 'bun:test'
import type { Problem } from '../../src/core/problem'
import { Turns } from '../../src/tenancy/turns'

const [one, other] = [{ tenant: 'one' }, { tenant: 'other' }]
const busy = ({ code }: Problem) => code

/** Work that goes on until it is told to end, and notes when it begins. */
function works() {
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
  const turns = new Turns(2, 10)
  const { begun, work, end } = works()
  for (const name of ['a', 'b', 'c', 'd']) turns.take(one, work(name))
  turns.take(other, work('x'))
  expect(begun).toEqual(['a', 'b'])
  for (const name of ['a', 'b', 'c']) await end(name)
  expect(begun).toEqual(['a', 'b', 'c', 'x', 'd'])
})

test('where one tenant has a part of the places only, others find one at once', async () => {
  const turns = new Turns(3, 10, { each: 2 })
  const { begun, work, end } = works()
  for (const name of ['a', 'b', 'c']) turns.take(one, work(name))
  turns.take(other, work('x'))
  expect(begun).toEqual(['a', 'b', 'x'])
  await end('x')
  expect(begun).toEqual(['a', 'b', 'x'])
  await end('b')
  expect(begun).toEqual(['a', 'b', 'x', 'c'])
})

test('who would wait in a long row, or has waited for long, comes again; nobody loses their place by it', async () => {
  const turns = new Turns(1, 2, { patience: 20 })
  const { begun, work, end } = works()
  turns.take(one, work('a'))
  const waiting = ['b', 'c', 'd'].map((name) => turns.take(one, work(name)).catch(busy))
  expect(await waiting[2]).toBe('BUSY')
  expect(await Promise.all(waiting)).toEqual(['BUSY', 'BUSY', 'BUSY'])
  const next = turns.take(other, work('x'))
  await end('a')
  expect(begun).toEqual(['a', 'x'])
  await end('x')
  await next
  turns.take(one, work('e'))
  expect(begun).toEqual(['a', 'x', 'e'])
})

test('what fails gives its place back', async () => {
  const turns = new Turns(1, 1)
  expect(await turns.take(one, () => Promise.reject(new Error('no'))).catch(({ message }) => message)).toBe('no')
  expect(await turns.take(one, async () => 'yes')).toBe('yes')
})

test('lets no work that can wait go ahead of other work, of any tenant, and gives it a room of its own', async () => {
  const turns = new Turns(1, 2)
  const { begun, work, end } = works()
  turns.takeLater(one, work('a'))
  const later = ['b', 'c', 'd'].map((name) => turns.takeLater(one, work(name)).catch(busy))
  expect(await later[2]).toBe('BUSY')
  turns.takeLater(other, work('e'))
  turns.take(one, work('x'))
  turns.take(other, work('y'))
  for (const name of ['a', 'x', 'y', 'b', 'e']) await end(name)
  expect(begun).toEqual(['a', 'x', 'y', 'b', 'e', 'c'])
  turns.take(other, work('z'))
  for (const name of ['c', 'z']) await end(name)
  expect(begun).toEqual(['a', 'x', 'y', 'b', 'e', 'c', 'z'])
})
