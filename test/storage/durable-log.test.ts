// engine: sqlite
import { describe, expect, test } from 'bun:test'
import { copyFileSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { LogReader } from '../../src/storage/engines/sqlite/log-reader'
import { DatabasePool } from '../../src/storage/pool'
import { fileEngines, freshFolder } from './engines'
import { freshLocation, insertThing, listIds, migrations, range } from './fixtures'

const WRITES = 60
const idOf = (n: number) => `thing-${1_000 + n}`

describe.each(fileEngines)('%s: the log of durable writes', (_, engine) => {
  /** Writes one by one, and returns how long the log was after each. */
  async function writeOneByOne() {
    const [folder, location] = [freshFolder(), freshLocation()]
    const storage = new DatabasePool(engine({ folder, synchronous: 'full' }), { openCount: 2, deadline: 2_000 })
    const store = storage.getStore(location, migrations)
    const path = join(folder, location.file)
    const lengths: number[] = []
    for (const n of range(WRITES)) {
      await store.write((tx) => insertThing(tx, idOf(n)))
      lengths.push(statSync(`${path}-wal`).size)
    }
    return { storage, store, location, path, lengths }
  }
  const allIds = range(WRITES).map(idOf).join()

  test('a log keeps its length during most small writes', async () => {
    const { storage, lengths } = await writeOneByOne()
    expect(new Set(lengths).size).toBeLessThan(WRITES / 4)
    await storage.close()
  })

  test('a log with zeros at its end is complete for SQLite and for a reader', async () => {
    const { storage, location, path } = await writeOneByOne()
    expect(readFileSync(`${path}-wal`).at(-1)).toBe(0)
    const reader = new LogReader(path)
    expect(reader.read()?.isGap).toBeFalse()
    expect(reader.read()).toBeUndefined()
    reader.close()
    // As a computer leaves the files that loses its power.
    const folder = freshFolder()
    for (const end of ['', '-wal']) copyFileSync(`${path}${end}`, join(folder, `${location.file}${end}`))
    await storage.close()
    const copy = new DatabasePool(engine({ folder, synchronous: 'full' }), { openCount: 2, deadline: 2_000 })
    expect(await listIds(copy.getStore(location, migrations))).toBe(allIds)
    await copy.close()
  })

  test('a log is removed with its zeros when the database is closed', async () => {
    const { storage, store, path } = await writeOneByOne()
    expect(await listIds(store)).toBe(allIds)
    await storage.close()
    expect(statSync(`${path}-wal`, { throwIfNoEntry: false })).toBeUndefined()
  })
})
