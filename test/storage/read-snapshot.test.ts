// engine: sqlite
import { Database as BunSqlite } from 'bun:sqlite'
import { expect, setDefaultTimeout, test } from 'bun:test'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabasePool } from '../../src/storage/pool'
import { errorOf } from '../rejections'
import { fileEngines, freshFolder, sqlite } from './engines'

setDefaultTimeout(30_000)

const migrations = { sqlite: ['create table things (id integer primary key, text text)'], postgres: [] }
const location = { tenant: 'a', file: 'a.db', identity: 'a' }
const waitForNextTurn = () => new Promise(setImmediate)

for (const [name, make] of fileEngines) {
  test(`${name}: every read after an acknowledged write sees it, even with many reads in one turn`, async () => {
    const storage = new DatabasePool(make({ folder: freshFolder() }), { openCount: 2, deadline: 2_000 })
    const { db, write } = storage.getStore(location, migrations)
    const count = async () => Number((await db.query('select count(*) from things'))[0]![0])
    let acknowledgedCount = 0
    let reading = true
    const reader = async () => {
      while (reading) {
        const before = acknowledgedCount
        expect(await count()).toBeGreaterThanOrEqual(before)
        // One read in a hundred ends the turn of the event loop.
        if (Math.random() < 0.01) await waitForNextTurn()
      }
    }
    const readers = [1, 2, 3].map(reader)
    for (let n = 1; n <= 300; n++) {
      await write((tx) => tx.query('insert into things (text) values (?)', [`${n}`]))
      acknowledgedCount = n
      expect(await count()).toBe(n)
    }
    reading = false
    await Promise.all(readers)
    await storage.close()
  })

  test(`${name}: a read in the next turn sees what another process has committed`, async () => {
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

  test(`${name}: a read at once sees every acknowledged write, and what another process committed before this turn`, async () => {
    const folder = freshFolder()
    const storage = new DatabasePool(make({ folder }), { openCount: 2, deadline: 2_000 })
    const { db, write } = storage.getStore(location, migrations)
    const countAtOnce = () => db.queryAtOnce?.('select count(*) from things', [])?.[0]?.[0]
    expect(countAtOnce()).toBeUndefined() // not open yet
    await db.query('select 1')
    expect(Number(countAtOnce())).toBe(0)
    const other = new BunSqlite(join(folder, location.file))
    for (let n = 1; n <= 50; n++) {
      await write((tx) => tx.query('insert into things (text) values (?)', [`${n}`]))
      expect(Number(countAtOnce())).toBe(2 * n - 1)
      other.exec(`insert into things (text) values ('other ${n}')`)
      await waitForNextTurn()
      expect(Number(countAtOnce())).toBe(2 * n)
    }
    other.close()
    await storage.close()
  })

  test(`${name}: a snapshot has the same number in one turn until a commit of this process, and never sees two states`, async () => {
    const folder = freshFolder()
    const storage = new DatabasePool(make({ folder }), { openCount: 2, deadline: 2_000 })
    const { db, write } = storage.getStore(location, migrations)
    const countAtOnce = () => Number(db.queryAtOnce?.('select count(*) from things', [])?.[0]?.[0])
    expect(db.getSnapshot?.()).toBeUndefined() // not open yet
    await db.query('select 1')
    const other = new BunSqlite(join(folder, location.file))
    const counts = new Map<number, number>()
    for (let n = 0; n < 50; n++) {
      const snapshot = db.getSnapshot?.() ?? 0
      counts.set(snapshot, countAtOnce())
      other.exec(`insert into things (text) values ('other ${n}')`)
      expect([db.getSnapshot?.(), countAtOnce()]).toEqual([snapshot, counts.get(snapshot)!])
      await waitForNextTurn()
      expect([db.getSnapshot?.() === snapshot, countAtOnce()]).toEqual([false, 2 * n + 1])
      await write((tx) => tx.query('insert into things (text) values (?)', [`${n}`]))
      expect([counts.has(db.getSnapshot?.() ?? 0), countAtOnce()]).toEqual([false, 2 * n + 2])
    }
    other.close()
    await storage.close()
  })

  test(`${name}: a read at once that fails, or whose value no engine stores, is left to a read that says why`, async () => {
    const storage = new DatabasePool(make({ folder: freshFolder() }), { openCount: 2, deadline: 2_000 })
    const { db } = storage.getStore(location, migrations)
    await db.query('select 1')
    expect(db.queryAtOnce?.("select json(? || '{')", [1])).toBeUndefined()
    expect(db.queryAtOnce?.('select ?', ['a\0'])).toBeUndefined()
    expect(db.queryAtOnce?.('select ?', ['a'])).toEqual([['a']])
    await storage.close()
    expect(db.queryAtOnce?.('select ?', ['a'])).toBeUndefined()
  })

  test(`${name}: a failing statement does not affect the other reads of its turn`, async () => {
    const storage = new DatabasePool(make({ folder: freshFolder() }), { openCount: 2, deadline: 2_000 })
    const { db } = storage.getStore(location, migrations)
    const reads = [1, 2, 3, 4].map((n) =>
      db.query(n % 2 ? 'select ?' : "select json(? || '{')", [1]).catch(() => 'refused'),
    )
    expect(await Promise.all(reads)).toEqual([[[1]], 'refused', [[1]], 'refused'])
    await waitForNextTurn()
    expect(await db.query('select 2')).toEqual([[2]])
    await storage.close()
  })
}

test('the write-ahead log restarts even under continuous reads', async () => {
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
  let maxWalSize = 0
  for (let batch = 0; batch < 1_000; batch++) {
    await write((tx) =>
      tx.executeMany(
        'insert into things (text) values (?)',
        Array.from({ length: 500 }, () => [text]),
      ),
    )
    maxWalSize = Math.max(maxWalSize, statSync(join(folder, `${location.file}-wal`)).size)
  }
  reading = false
  await reader
  // 500,000 rows are 110 MB. Writes wait for a checkpoint where the log holds 160,000 of them, as on a busy machine.
  expect(maxWalSize).toBeLessThan(50 << 20)
  await storage.close()
})

test('reads during a transaction see none of its writes, later reads see all of them, and no read can write', async () => {
  const storage = new DatabasePool(sqlite({ folder: freshFolder() }), { openCount: 2, deadline: 5_000 })
  const { db, write } = storage.getStore(location, migrations)
  const count = async () => Number((await db.query('select count(*) from things'))[0]![0])
  const insert = "insert into things (text) values ('read') returning id"
  for (let n = 0; n < 3; n++) {
    await write(async (tx) => {
      await tx.query('insert into things (text) values (?)', [`${n}`])
      expect(await count()).toBe(n)
      await waitForNextTurn()
      expect([await count(), db.queryAtOnce?.('select count(*) from things', [])]).toEqual([n, [[n]]])
    })
    expect(await count()).toBe(n + 1)
    expect(await errorOf(db.query(insert))).toBeInstanceOf(Error)
    expect(await errorOf(db.query(`with one as (select 1) ${insert}`))).toBeInstanceOf(Error)
  }
  await errorOf(
    write(async (tx) => {
      await tx.query("insert into things (text) values ('rolled back')")
      throw new Error('no')
    }),
  )
  expect(await count()).toBe(3)
  await storage.close()
})
