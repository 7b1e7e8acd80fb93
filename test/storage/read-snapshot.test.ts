import { Database as BunSqlite } from 'bun:sqlite'
import { expect, setDefaultTimeout, test } from 'bun:test'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabasePool } from '../../src/storage/pool'
import { fileEngines, freshFolder, sqlite } from './engines'

setDefaultTimeout(30_000)

const migrations = { sqlite: ['create table things (id integer primary key, text text)'], postgres: [] }
const location = { tenant: 'a', file: 'a.db', identity: 'a' }
const waitForNextTurn = () => new Promise(setImmediate)

for (const [name, make] of fileEngines) {
  test(`${name}: whoever was told of a write sees it, however many read in the same turn`, async () => {
    const storage = new DatabasePool(make({ folder: freshFolder() }), { openCount: 2, deadline: 2_000 })
    const { db, write } = storage.getStore(location, migrations)
    const count = async () => Number((await db.query('select count(*) from things'))[0]![0])
    let told = 0
    let reading = true
    const reader = async () => {
      while (reading) {
        const before = told
        expect(await count()).toBeGreaterThanOrEqual(before)
        // Now and then a turn ends, and mostly it doesn't.
        if (Math.random() < 0.01) await waitForNextTurn()
      }
    }
    const readers = [1, 2, 3].map(reader)
    for (let n = 1; n <= 300; n++) {
      await write((tx) => tx.query('insert into things (text) values (?)', [`${n}`]))
      told = n
      expect(await count()).toBe(n)
    }
    reading = false
    await Promise.all(readers)
    await storage.close()
  })

  test(`${name}: what another process commits is seen in the next turn`, async () => {
    const folder = freshFolder()
    const storage = new DatabasePool(make({ folder }), { openCount: 2, deadline: 2_000 })
    const { db } = storage.getStore(location, migrations)
    const texts = async () => (await db.query('select text from things order by id')).flat()
    const other = new BunSqlite(join(folder, location.file))
    for (let n = 0; n < 50; n++) {
      expect(await texts()).toHaveLength(n)
      other.exec(`insert into things (text) values ('${n}')`)
      await waitForNextTurn()
      expect(await texts()).toHaveLength(n + 1)
    }
    other.close()
    await storage.close()
  })

  test(`${name}: a statement that fails takes no other read of its turn with it`, async () => {
    const storage = new DatabasePool(make({ folder: freshFolder() }), { openCount: 2, deadline: 2_000 })
    const { db } = storage.getStore(location, migrations)
    const asked = [1, 2, 3, 4].map((n) =>
      db.query(n % 2 ? 'select ?' : "select json(? || '{')", [1]).catch(() => 'refused'),
    )
    expect(await Promise.all(asked)).toEqual([[[1]], 'refused', [[1]], 'refused'])
    await waitForNextTurn()
    expect(await db.query('select 2')).toEqual([[2]])
    await storage.close()
  })
}

test('a log begins anew even when somebody reads all the time', async () => {
  const folder = freshFolder()
  const storage = new DatabasePool(sqlite({ folder }), { openCount: 2, deadline: 5_000 })
  const { db, write } = storage.getStore(location, migrations)
  let reading = true
  const reader = (async () => {
    while (reading) {
      await db.query('select max(id) from things')
      if (Math.random() < 0.1) await waitForNextTurn()
    }
  })()
  const text = 'x'.repeat(200)
  let largest = 0
  for (let batch = 0; batch < 400; batch++) {
    await write((tx) =>
      tx.executeMany(
        'insert into things (text) values (?)',
        Array.from({ length: 500 }, () => [text]),
      ),
    )
    largest = Math.max(largest, statSync(join(folder, `${location.file}-wal`)).size)
  }
  reading = false
  await reader
  // 200,000 rows are 44 MB, and each commit writes its last page once more.
  expect(largest).toBeLessThan(30 << 20)
  await storage.close()
})
