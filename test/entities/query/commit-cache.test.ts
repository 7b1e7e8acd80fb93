import { expect, spyOn, test } from 'bun:test'
import { readUntilCommit } from '../../../src/entities/query/commit-cache'
import type { Db } from '../../../src/storage/port'

const createDb = () => {
  const state = { version: 1 }
  return { state, db: { commitVersion: () => state.version } as unknown as Db }
}

test('a value is read once until a commit, for each database, and each time where commits are unknown', async () => {
  const [one, other] = [createDb(), createDb()]
  let reads = 0
  const read = (db: Db) => readUntilCommit(db, 'count', async () => ++reads)
  expect([await read(one.db), await read(one.db), await read({ origin: one.db } as Db)]).toEqual([1, 1, 1])
  expect([await read(other.db), await read(one.db)]).toEqual([2, 1])
  one.state.version++
  expect([await read(one.db), await read(other.db)]).toEqual([3, 2])
  expect([await read({} as Db), await read({} as Db)]).toEqual([4, 5])
})

test('a value that was read before a commit is not kept for readers after it', async () => {
  const { db, state } = createDb()
  const value = await readUntilCommit(db, 'count', async () => {
    state.version++
    return 'before'
  })
  expect(value).toBe('before')
  expect(await readUntilCommit(db, 'count', async () => 'after')).toBe('after')
})

test('a value is read again after ten seconds, because others may have written without counting', async () => {
  const { db } = createDb()
  let reads = 0
  const read = () => readUntilCommit(db, 'count', async () => ++reads)
  await read()
  const later = performance.now() + 9_000
  const clock = spyOn(performance, 'now').mockImplementation(() => later)
  expect(await read()).toBe(1)
  clock.mockImplementation(() => later + 2_000)
  expect(await read().finally(() => clock.mockRestore())).toBe(2)
})

test('the oldest values leave when there are too many characters', async () => {
  const { db } = createDb()
  let reads = 0
  const read = (name: string) =>
    readUntilCommit(
      db,
      name,
      async () => ++reads,
      () => 3 << 20,
    )
  for (const name of ['a', 'b', 'c']) await read(name)
  expect([await read('c'), await read('b')]).toEqual([3, 2])
  expect(await read('a')).toBe(4)
})
