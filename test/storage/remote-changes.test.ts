import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { DatabasePool } from '../../src/storage/pool'
import { fileEngines, freshFolder, sqlite } from './engines'
import { freshLocation, insertThing, listIds, migrations } from './fixtures'

describe.each(fileEngines)('%s: a folder that several processes serve', (_, engine) => {
  test('remoteVersion changes with the writes of others, and not with our own', async () => {
    const folder = freshFolder()
    const place = freshLocation()
    const [ours, theirs] = [1, 2].map(
      () => new DatabasePool(engine({ folder, isShared: true }), { openCount: 2, deadline: 2_000 }),
    )
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
      // A read of this turn may have begun before.
      await new Promise(setImmediate)
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

  test('remoteVersion differs once a database was closed, because others may have written meanwhile', async () => {
    const folder = freshFolder()
    const [place, another] = [freshLocation(), freshLocation()]
    const pool = new DatabasePool(engine({ folder, isShared: true }), { openCount: 1, deadline: 2_000 })
    const store = pool.getStore(place, migrations)
    await store.write((tx) => insertThing(tx, 'a'))
    const open = store.remoteVersion()
    await pool.getStore(another, migrations).write((tx) => insertThing(tx, 'b'))
    await pool.release(place)
    expect(store.remoteVersion()).not.toBe(open)
    expect(await listIds(store)).toBe('a')
    expect(store.remoteVersion()).not.toBe(open)
    await pool.close()
  })
})

test('a request that comes in has what another process has committed in the same turn of the event loop', async () => {
  const [folder, place] = [freshFolder(), freshLocation()]
  const engine = sqlite({ folder, isShared: true })
  const pool = new DatabasePool(engine, { openCount: 1, deadline: 2_000 })
  const store = pool.getStore(place, migrations)
  await store.write((tx) => insertThing(tx, 'a'))
  using other = new Database(join(folder, place.file))
  expect(await listIds(store)).toBe('a')
  const before = store.remoteVersion()
  other.run("insert into things (id, count) values ('b', 0)")
  engine.beginRequest()
  expect(store.remoteVersion()).not.toBe(before)
  expect(await listIds(store)).toBe('a,b')
  await pool.close()
})
