// engine: sqlite
import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { chmodSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import {
  CommitCounters,
  mapSharedMemory,
  removeSharedMemory,
  sharedMemoryPath,
} from '../../src/storage/commit-counters'
import { DatabasePool } from '../../src/storage/pool'
import { fileEngines, freshFolder, sqlite } from './engines'
import { freshLocation, insertThing, listIds, migrations } from './fixtures'

describe.each(fileEngines)('%s: a folder that several processes serve', (_, engine) => {
  const openPools = (count: number, openCount = 2) => {
    const folder = freshFolder()
    const { memory } = new CommitCounters()
    // Each has counters of its own, as each thread has.
    return Array.from({ length: count }, () => {
      const options = { folder, commitCounters: new CommitCounters(() => memory), isShared: true }
      return new DatabasePool(engine(options), { openCount, deadline: 2_000 })
    })
  }

  test('remoteVersion changes with the writes of others, and not with our own', async () => {
    const place = freshLocation()
    const [ours, theirs] = openPools(2)
    const [own, other] = [ours!, theirs!].map((pool) => pool.getStore(place, migrations))
    await own!.write((tx) => insertThing(tx, 'a'))
    expect(await listIds(other!)).toBe('a')
    const first = own!.remoteVersion()
    await own!.write((tx) => insertThing(tx, 'b'))
    expect(own!.remoteVersion()).toBe(first)
    let last = own!.remoteVersion()
    for (const id of ['c', 'd', 'e']) {
      const seen = other!.remoteVersion()
      await other!.write((tx) => insertThing(tx, id))
      expect(other!.remoteVersion()).toBe(seen)
      expect(own!.remoteVersion()).not.toBe(last)
      last = own!.remoteVersion()
      // A write of ours after theirs hides nothing.
      await own!.write((tx) => insertThing(tx, `own ${id}`))
      expect(own!.remoteVersion()).toBe(last)
    }
    await other!.write((tx) => insertThing(tx, 'f'))
    await own!.write((tx) => insertThing(tx, 'g'))
    expect(own!.remoteVersion()).not.toBe(last)
    expect(await listIds(own!)).toBe('a,b,c,d,e,f,g,own c,own d,own e')
    await Promise.all([ours!.close(), theirs!.close()])
  })

  test('remoteVersion tells of the writes of others while the database was closed', async () => {
    const [place, another] = [freshLocation(), freshLocation()]
    const [ours, theirs] = openPools(2, 1)
    const store = ours!.getStore(place, migrations)
    await store.write((tx) => insertThing(tx, 'a'))
    const before = store.remoteVersion()
    await ours!.getStore(another, migrations).write((tx) => insertThing(tx, 'b'))
    await ours!.release(place)
    expect(store.remoteVersion()).toBe(before)
    await theirs!.getStore(place, migrations).write((tx) => insertThing(tx, 'b'))
    expect(store.remoteVersion()).not.toBe(before)
    expect(await listIds(store)).toBe('a,b')
    await Promise.all([ours!.close(), theirs!.close()])
  })
})

test('a read sees what another process has committed in the same turn of the event loop', async () => {
  const [folder, place] = [freshFolder(), freshLocation()]
  const ours = new CommitCounters()
  const theirs = new CommitCounters(() => ours.memory)
  const pool = new DatabasePool(sqlite({ folder, commitCounters: ours, isShared: true }), {
    openCount: 1,
    deadline: 2_000,
  })
  const store = pool.getStore(place, migrations)
  await store.write((tx) => insertThing(tx, 'a'))
  using other = new Database(join(folder, place.file))
  expect(await listIds(store)).toBe('a')
  other.run("insert into things (id, count) values ('b', 0)")
  expect(await listIds(store)).toBe('a') // the snapshot of this turn
  theirs.add(place.file)
  expect(await listIds(store)).toBe('a,b')
  await pool.close()
})

describe.skipIf(process.platform !== 'linux')('memory that processes share', () => {
  test('commits that several processes count at the same time are all counted', async () => {
    const folder = freshFolder()
    const path = new URL('../../src/storage/commit-counters.ts', import.meta.url).pathname
    const program = `
      const { CommitCounters, mapSharedMemory } = await import(${JSON.stringify(path)})
      const counters = new CommitCounters(() => mapSharedMemory(${JSON.stringify(folder)}))
      for (let commit = 0; commit < 200_000; commit++) counters.add('data.db')`
    const counters = new CommitCounters(() => mapSharedMemory(folder))
    const before = counters.countOfOthers('data.db')
    const children = [1, 2].map(() => Bun.spawn([process.execPath, '-e', program], { stdout: 'ignore' }))
    for (let commit = 0; commit < 200_000; commit++) counters.add('data.db')
    expect(await Promise.all(children.map(({ exited }) => exited))).toEqual([0, 0])
    expect(counters.countOfOthers('data.db') - before).toBe(400_000)
    removeSharedMemory(folder)
  })

  test('memory that others could write to is refused', () => {
    const folder = freshFolder()
    mapSharedMemory(folder)
    chmodSync(sharedMemoryPath(folder), 0o666)
    expect(() => mapSharedMemory(folder)).toThrow('belongs to another user')
    removeSharedMemory(folder)
    expect(existsSync(sharedMemoryPath(folder))).toBe(false)
  })
})
