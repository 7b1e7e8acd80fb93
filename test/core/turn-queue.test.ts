// engine: sqlite
import { expect, test } from 'bun:test'
import { TurnQueue } from '../../src/core/turn-queue'

const ownerOf = (tenant: string, caller = 'caller') => ({ tenant, caller })
const everybody = () => true

/** Returns a queue with work of tenants and their callers, whose names are like `a1`. */
function createQueue(...names: string[]) {
  const queue = new TurnQueue<string>()
  for (const name of names) queue.add(ownerOf(name[0]!, name[1]), name)
  return queue
}
const takeAll = (queue: TurnQueue<string>, mayStart: (owner: { tenant: string }) => boolean = everybody) => {
  const taken: string[] = []
  for (let next = queue.takeNext(mayStart); next; next = queue.takeNext(mayStart)) taken.push(next)
  return taken.join(' ')
}

test('tenants take turns, and so do the callers of each tenant', () => {
  expect(takeAll(createQueue('a1', 'a1', 'a1', 'a2', 'b1', 'b1', 'c1'))).toBe('a1 b1 c1 a2 b1 a1 a1')
})

test('a tenant that was charged four turns sits out four rounds, and nobody waits for them', () => {
  const queue = createQueue('a1', 'a1', ...'bbbbbb'.split('').map((tenant) => `${tenant}1`))
  queue.charge(ownerOf('a', '1'), 4)
  expect(takeAll(queue)).toBe('b1 b1 b1 b1 a1 b1 a1 b1')
  queue.add(ownerOf('a', '1'), 'a1')
  queue.charge(ownerOf('a', '1'), 4)
  expect(takeAll(queue)).toBe('a1')
})

test('a caller that was charged half a turn has two turns where others have three', () => {
  const queue = createQueue(...Array<string>(8).fill('a1'), ...Array<string>(8).fill('a2'))
  const taken: string[] = []
  for (let n = 0; n < 10; n++) {
    const next = queue.takeNext(everybody)!
    taken.push(next)
    if (next === 'a1') queue.charge(ownerOf('a', '1'), 0.5)
  }
  expect(taken.filter((name) => name === 'a1')).toHaveLength(4)
})

test('no owner sits out more than a hundred rounds, and none once turns are forgotten', () => {
  const queue = createQueue('a1', ...Array<string>(150).fill('b1'))
  queue.charge(ownerOf('a', '1'), 5_000)
  expect(takeAll(queue).split(' ').indexOf('a1')).toBe(100)
  queue.charge(ownerOf('a', '1'), 5_000)
  queue.forgetTurns()
  for (const name of ['a1', 'b1']) queue.add(ownerOf(name[0]!, '1'), name)
  expect(takeAll(queue)).toBe('a1 b1')
})

test('owners who may not start keep their place, and work of one tenant can be asked for', () => {
  const queue = createQueue('a1', 'b1', 'c1')
  expect(takeAll(queue, ({ tenant }) => tenant === 'c')).toBe('c1')
  expect(queue.takeNext(everybody, 'b')).toBe('b1')
  expect(queue.takeNext(everybody, 'b')).toBeUndefined()
  expect([queue.size, takeAll(queue), queue.size]).toEqual([1, 'a1', 0])
})

test('work that is removed is not taken, and the last work of the caller with the most waiting work can be', () => {
  const queue = createQueue('a1', 'a2')
  queue.add(ownerOf('a', '1'), 'last')
  expect([queue.takeLastOfLongest('a', 2), queue.takeLastOfLongest('a', 1)]).toEqual([undefined, 'last'])
  expect([queue.remove(ownerOf('a', '1'), 'a1'), queue.remove(ownerOf('a', '1'), 'a1')]).toEqual([true, false])
  expect(queue.sizesOf(ownerOf('a', '2'))).toEqual({ ofTenant: 1, ofCaller: 1 })
  expect(takeAll(queue)).toBe('a2')
})
