import { expect, test } from 'bun:test'
import type { Db } from '../../src/storage/port'
import { cached, dropCache } from '../../src/tenancy/cache'

test('a value is not read from the cache after its version could not be checked', async () => {
  const state = { value: 'old', version: 1, notifications: 0, isReachable: true }
  const query = async () => {
    if (!state.isReachable) throw new Error('The database cannot be reached.')
    return [['plugins', state.version]]
  }
  const store = { db: { query } as unknown as Db, remoteVersion: () => state.notifications }
  const read = async () => cached(store, 'plugins', 'key', async () => state.value)
  expect(await read()).toBe('old')
  Object.assign(state, { value: 'new', version: 2 })
  expect(await read()).toBe('old')
  Object.assign(state, { notifications: 1, isReachable: false })
  await expect(read()).rejects.toThrow('cannot be reached')
  state.isReachable = true
  expect(await read()).toBe('new')
})

test('a value is loaded again after the cache of its tenant was dropped, and others stay', async () => {
  const createStore = () => ({ db: { query: async () => [] } as unknown as Db, remoteVersion: () => 0 })
  const [store, other] = [createStore(), createStore()]
  const loads: string[] = []
  const load = (name: string) => async () => `${loads.push(name)}`
  const readBoth = async () => {
    await cached(store, 'plugins', 'key', load('store'))
    await cached(other, 'plugins', 'key', load('other'))
  }
  await readBoth()
  dropCache(store)
  await readBoth()
  expect(loads).toEqual(['store', 'other', 'store'])
})

test('a value is not read from the cache while its version is being checked for another reader', async () => {
  const state = { value: 'old', version: 1, notifications: 0 }
  let answered: Promise<void> | undefined
  const query = async () => {
    await answered
    return [['plugins', state.version]]
  }
  const store = { db: { query } as unknown as Db, remoteVersion: () => state.notifications }
  const read = async () => cached(store, 'plugins', 'key', async () => state.value)
  expect(await read()).toBe('old')
  Object.assign(state, { value: 'new', version: 2, notifications: 1 })
  const { promise, resolve } = Promise.withResolvers<void>()
  answered = promise
  const both = Promise.all([read(), read()])
  resolve()
  expect(await both).toEqual(['new', 'new'])
})
