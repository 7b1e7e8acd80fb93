import { expect, spyOn, test } from 'bun:test'
import type { Model } from '../../../src/blueprints/model'
import { getCached, readUntilChange, setCached } from '../../../src/entities/query/read-cache'
import type { Db } from '../../../src/storage/port'

const model = { _id: 'one', key: 'things', version: 1, form: 0 } as Model

/** Returns a database whose changes are tracked while `position` is there, and its state. */
function createDb(commitVersion?: number) {
  const state = { commit: commitVersion, position: undefined as [started: number, number: number] | undefined }
  const db = {
    query: async () => (state.position ? [state.position] : []),
    ...(commitVersion !== undefined && { commitVersion: () => state.commit }),
  } as unknown as Db
  return { state, db }
}

test('a value of another blueprint is read once until a commit, and each time where commits are unknown', async () => {
  const [one, other, unknown] = [createDb(1), createDb(1), createDb()]
  let reads = 0
  const read = (db: Db) => readUntilChange(db, model, 'count', async () => ++reads)
  const view = { ...one.db, origin: one.db } as Db
  expect([await read(one.db), await read(one.db), await read(view)]).toEqual([1, 1, 1])
  expect([await read(other.db), await read(one.db)]).toEqual([2, 1])
  one.state.commit = 2
  expect([await read(one.db), await read(other.db)]).toEqual([3, 2])
  expect([await read(unknown.db), await read(unknown.db)]).toEqual([4, 5])
})

test('a value of a tracked blueprint is read once until an entity changes, whatever else is committed', async () => {
  const { state, db } = createDb(1)
  let reads = 0
  const read = (of = model) => readUntilChange(db, of, 'count', async () => ++reads)
  state.position = [100, 7]
  expect([await read(), await read()]).toEqual([1, 1])
  state.commit = 2
  expect(await read()).toBe(1)
  state.position = [100, 8]
  expect(await read()).toBe(2)
  // Tracking that began anew has other numbers.
  state.position = [200, 8]
  expect(await read()).toBe(3)
  expect(await read({ ...model, version: 2 })).toBe(4)
  expect(await read({ ...model, form: 1 })).toBe(5)
  expect(await read()).toBe(3)
})

test('a value that was read before a change is not kept for readers after it', async () => {
  const { db, state } = createDb()
  state.position = [1, 1]
  const value = await readUntilChange(db, model, 'count', async () => {
    state.position = [1, 2]
    return 'before'
  })
  expect(value).toBe('before')
  expect(await readUntilChange(db, model, 'count', async () => 'after')).toBe('after')
})

test('a value of another blueprint is read again after ten seconds, because others may have written without counting', async () => {
  const { db } = createDb(1)
  let reads = 0
  const read = () => readUntilChange(db, model, 'count', async () => ++reads)
  await read()
  const later = performance.now() + 9_000
  const clock = spyOn(performance, 'now').mockImplementation(() => later)
  expect(await read()).toBe(1)
  clock.mockImplementation(() => later + 2_000)
  expect(await read().finally(() => clock.mockRestore())).toBe(2)
})

test('the values that were not used for the longest time are removed when there are too many characters', () => {
  const { db } = createDb()
  for (const name of ['a', 'b']) setCached(db, model, name, name, 3 << 20)
  expect(getCached<string>(db, model, 'a')).toBe('a')
  setCached(db, model, 'c', 'c', 3 << 20)
  expect(['a', 'b', 'c'].map((name) => getCached<string>(db, model, name))).toEqual(['a', undefined, 'c'])
})
