import { afterAll, describe, expect, test } from 'bun:test'
import { Conflict } from '../../src/storage/errors'
import { DatabasePool } from '../../src/storage/pool'
import type { JointWork, Store, Tx } from '../../src/storage/port'
import { wrapWrite } from '../../src/storage/write-wrapper'
import { engines } from './engines'
import { freshLocation, insertThing, listIds, migrations } from './fixtures'

describe.each(engines)('%s: work that is done together', (_, engine) => {
  const storage = new DatabasePool(engine(), { openCount: 2, deadline: 2_000 })
  afterAll(() => storage.close())

  /** A store, and what was inserted by each piece of work. */
  function createJointFixture(runOther?: JointWork<string>['run']) {
    const store = storage.getStore(freshLocation(), migrations)
    const pieces: string[][] = []
    const told: string[] = []
    async function insertAll(tx: Tx, ids: string[]) {
      pieces.push(ids)
      for (const id of ids) await insertThing(tx, id)
      tx.afterCommit(() => void told.push(ids.join()))
      return ids.map((id) => `${id} together`)
    }
    const insertAlone = (tx: Tx, id: string) => {
      pieces.push([id])
      tx.afterCommit(() => void told.push(id))
      return insertThing(tx, id).then(() => `${id} alone`)
    }
    const insert = (id: string, kind = 'insert', write: Store['write'] = store.write) =>
      write((tx) => insertAlone(tx, id), {
        joint: { kind, input: id, run: (tx, ids) => (runOther ?? insertAll)(tx, ids as string[]) },
      })
    /** Inserts while another write holds the writer. */
    const insertWaiting = (...ids: string[]) =>
      Promise.allSettled([store.write((tx) => tx.query('select 1')), ...ids.map((id) => insert(id))]).then(
        ([, ...rest]) => rest.map((one) => (one.status === 'fulfilled' ? one.value : one.reason.constructor)),
      )
    return { store, pieces, told, insert, insertWaiting }
  }

  test('queued work of one kind runs together, and each caller gets their own result', async () => {
    const { store, pieces, told, insertWaiting } = createJointFixture()
    expect(await insertWaiting('a', 'b', 'c')).toEqual(['a together', 'b together', 'c together'])
    expect([pieces, told, await listIds(store)]).toEqual([[['a', 'b', 'c']], ['a,b,c'], 'a,b,c'])
  })

  test('joint work that fails runs again one by one, so that only the invalid one fails', async () => {
    const { store, told, insertWaiting } = createJointFixture()
    await store.write((tx) => insertThing(tx, 'b'))
    expect<unknown[]>(await insertWaiting('a', 'b', 'c')).toEqual(['a alone', Conflict, 'c alone'])
    expect([told, await listIds(store)]).toEqual([['a', 'c'], 'a,b,c'])
  })

  test('work that cannot be joined runs one by one', async () => {
    const { store, insertWaiting } = createJointFixture(async (tx) => {
      await insertThing(tx, 'undone')
      return undefined
    })
    expect(await insertWaiting('a', 'b')).toEqual(['a alone', 'b alone'])
    expect(await listIds(store)).toBe('a,b')
  })

  test('work of another kind and work in a wrapped write are not joined', async () => {
    const { store, pieces, insert } = createJointFixture()
    const wrapped = wrapWrite(store.write, (_, work) => work())
    await Promise.all([
      store.write((tx) => tx.query('select 1')),
      insert('a'),
      insert('b', 'other'),
      insert('c', 'insert', wrapped),
      insert('d'),
    ])
    expect(pieces).toEqual([['a'], ['b'], ['c'], ['d']])
    expect(await listIds(store)).toBe('a,b,c,d')
  })
})
