import { Database as BunSqlite } from 'bun:sqlite'
import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdirSync, readdirSync, renameSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { asc, eq, sql } from 'drizzle-orm'
import { WalSync } from '../../src/storage/engines/sqlite/wal-sync'
import { BrokenReference, Busy, Conflict, StorageFault } from '../../src/storage/errors'
import { GroupCommitWriter } from '../../src/storage/group-commit'
import { DatabasePool } from '../../src/storage/pool'
import type { Database, Engine, ExecuteMany, RunQuery, Tx } from '../../src/storage/port'
import { cpuMsSince } from '../hostile/cpu-time'
import { errorOf } from '../rejections'
import { engines, fileEngines, freshFolder, sqlite } from './engines'
import { freshLocation, increment, insertThing, listCounts, listIds, migrations, range, things } from './fixtures'

setDefaultTimeout(30_000)

const spawnOtherProcess = (action: 'own' | 'count' | 'hold', path: string) =>
  Bun.spawn([process.execPath, resolve(import.meta.dir, '../fakes/sqlite-process.ts'), action, path], {
    stdout: 'pipe',
  })
const waitForOutput = async (child: { stdout: ReadableStream<Uint8Array> }) => {
  for await (const _ of child.stdout) return
}

describe.each(engines)('%s: DatabasePool', (_, engine) => {
  const storage = new DatabasePool(engine(), { openCount: 2, deadline: 2_000 })
  const fresh = () => storage.getStore(freshLocation(), migrations)
  afterAll(() => storage.close())

  test('a value of every column type is read back unchanged', async () => {
    const { db, write } = fresh()
    const plain = { id: 'a', count: 2 ** 53 - 1, part: null, price: 0.1, live: true, made: '2026-01-02T03:04:05.678Z' }
    const thing = { ...plain, doc: { list: [1, 'zwölf', null, '🏝'] }, bytes: Buffer.of(0, 255) }
    expect(await write((tx) => tx.insert(things).values(thing).returning().get())).toEqual(thing)
    expect(await db.select().from(things)).toEqual([thing])
    expect(await db.select().from(things).where(sql`id = 'b'`).get()).toBeUndefined()
    expect(await db.query('select count, price, live, part, made from things')).toEqual([
      [2 ** 53 - 1, 0.1, 1, null, Date.parse(plain.made)],
    ])
  })

  test('times before 1970 and negative and very small numbers are read back unchanged', async () => {
    const { db, write } = fresh()
    const thing = { id: 'a', count: -(2 ** 53 - 1), price: 5e-324, live: false, made: '1899-12-31T23:59:59.001Z' }
    await write((tx) => tx.insert(things).values(thing))
    expect(await db.select().from(things).get()).toMatchObject(thing)
  })

  test('texts are matched byte by byte', async () => {
    const { db, write } = fresh()
    const texts = ['', ' ', 'a', 'A', 'ä', 'a\u0308', "it's", 'a"b', '%', '?', '🏝', '\n', '\uffff']
    await write(async (tx) => {
      for (const id of texts) await insertThing(tx, id)
    })
    for (const id of texts) expect(await db.select().from(things).where(eq(things.id, id))).toHaveLength(1)
    expect(await db.$count(things)).toBe(texts.length)
  })

  test('afterCommit runs with the reads of the same store once the write is committed, and never after a failed one', async () => {
    const { db, write } = fresh()
    const seen: unknown[] = []
    const after = async (read: typeof db) => seen.push(await read.$count(things))
    const done = write(async (tx) => {
      tx.afterCommit((read) => void seen.push(read === db))
      tx.afterCommit(after)
      await insertThing(tx, 'a')
      expect(seen).toEqual([])
      return 'done'
    })
    expect(await done).toBe('done')
    while (seen.length < 2) await Bun.sleep(1)
    const failed = write(async (tx) => {
      tx.afterCommit(after)
      await insertThing(tx, 'a')
    })
    expect(await errorOf(failed)).toBeInstanceOf(Conflict)
    expect([await db.$count(things), seen]).toEqual([1, [true, 1]])
  })

  test('an insert with a taken key updates the row or leaves it, as its on conflict clause says', async () => {
    const store = fresh()
    const conflict = { target: things.id, set: { count: sql`${things.count} + excluded.count` } }
    for (const count of [1, 2])
      await store.write((tx) => tx.insert(things).values({ id: 'a', count }).onConflictDoUpdate(conflict))
    expect(await listCounts(store)).toEqual([3])
    await store.write((tx) => tx.insert(things).values({ id: 'a', count: 9 }).onConflictDoNothing())
    expect(await listCounts(store)).toEqual([3])
  })

  test('an insert with a taken key throws 409 CONFLICT', async () => {
    const { write } = fresh()
    await write((tx) => insertThing(tx, 'a'))
    expect(await errorOf(write((tx) => insertThing(tx, 'a')))).toBeInstanceOf(Conflict)
    expect(await errorOf(write((tx) => insertThing(tx, 'a')))).toMatchObject({ status: 409, code: 'CONFLICT' })
  })

  test('a reference to a missing row and the removal of a referenced row throw BrokenReference', async () => {
    const store = fresh()
    const broken = store.write((tx) => tx.insert(things).values({ id: 'a', count: 1, part: 'none' }))
    expect(await errorOf(broken)).toBeInstanceOf(BrokenReference)
    await store.write(async (tx) => {
      await insertThing(tx, 'a')
      await tx.insert(things).values({ id: 'b', count: 1, part: 'a' })
    })
    const removed = store.write((tx) => tx.delete(things).where(eq(things.id, 'a')))
    expect(await errorOf(removed)).toBeInstanceOf(BrokenReference)
    expect(await listIds(store)).toBe('a,b')
  })

  test('any other error of the database throws StorageFault with its cause', async () => {
    const { db, write } = fresh()
    expect(await errorOf(write((tx) => tx.insert(things).values({ id: 'a', count: sql`null` })))).toBeInstanceOf(
      StorageFault,
    )
    expect(await errorOf(db.query('select * from nowhere'))).toBeInstanceOf(StorageFault)
    expect(await errorOf(db.query('select * from nowhere'))).toHaveProperty('cause.message')
    expect(await errorOf(db.query('no sql at all'))).toBeInstanceOf(StorageFault)
  })

  test('work that throws is rolled back, and write rejects with its error', async () => {
    const store = fresh()
    const work = store.write(async (tx) => {
      await insertThing(tx, 'a')
      throw new Error('mine')
    })
    expect((await errorOf(work)).message).toContain('mine')
    expect(await listIds(store)).toBe('')
    await store.write((tx) => insertThing(tx, 'a'))
    expect(await listIds(store)).toBe('a')
  })

  test('a failed statement fails its work even if the error is caught', async () => {
    const store = fresh()
    await store.write((tx) => insertThing(tx, 'a'))
    const work = store.write(async (tx) => {
      await insertThing(tx, 'b')
      await insertThing(tx, 'a').catch(() => insertThing(tx, 'c').catch(() => {}))
      return 'done'
    })
    expect(await errorOf(work)).toBeInstanceOf(Conflict)
    expect(await listIds(store)).toBe('a')
  })

  test('reads see committed work only and cannot write', async () => {
    const store = fresh()
    await store.write(async (tx) => {
      await insertThing(tx, 'a')
      expect([await tx.$count(things), await listIds(store)]).toEqual([1, ''])
    })
    expect(await listIds(store)).toBe('a')
    await errorOf(insertThing(store.db as Tx, 'b'))
    await errorOf(store.db.query('delete from things'))
    expect(await listIds(store)).toBe('a')
  })

  test('write returns the result of its work, which may only read', async () => {
    const { write } = fresh()
    expect(await write(async () => 'nothing')).toBe('nothing')
    expect(await write((tx) => tx.query('select 1, null, ?', ['x']))).toEqual([[1, null, 'x']])
  })

  test.each([20, 50])('%i concurrent increments add up without a lost update', async (n) => {
    const store = fresh()
    await store.write((tx) => insertThing(tx, 'a'))
    await Promise.all(range(n).map(() => store.write(increment)))
    expect(await listCounts(store)).toEqual([n])
  })

  test('failing work among concurrent work is rolled back alone', async () => {
    const store = fresh()
    const work = await Promise.allSettled(['a', 'b', 'a', 'c'].map((id) => store.write((tx) => insertThing(tx, id))))
    expect(work.map(({ status }) => status === 'fulfilled')).toEqual([true, true, false, true])
    expect(await listIds(store)).toBe('a,b,c')
  })

  test('work beyond the deadline is rolled back with 503 BUSY, and the next work runs', async () => {
    const short = new DatabasePool(engine(), { openCount: 2, deadline: 100 })
    const store = short.getStore(freshLocation(), migrations)
    const late = Promise.withResolvers<unknown>()
    const slow = store.write(async (tx) => {
      await insertThing(tx, 'slow')
      await Bun.sleep(250)
      late.resolve(insertThing(tx, 'late'))
    })
    const next = store.write((tx) => insertThing(tx, 'next'))
    expect(await errorOf(slow)).toMatchObject({ status: 503, code: 'BUSY', more: { headers: { 'retry-after': '1' } } })
    await next
    expect(await errorOf(late.promise)).toHaveProperty('cause.message', 'This write has already ended.')
    expect(await listIds(store)).toBe('next')
    await short.close()
  })

  test('stores of different tenants share no rows', async () => {
    const [one, other] = [fresh(), fresh()]
    await one.write((tx) => insertThing(tx, 'a', 1))
    await other.write((tx) => insertThing(tx, 'a', 2))
    await other.write((tx) => tx.update(things).set({ count: 3 }))
    await other.write((tx) => tx.insert(things).values({ id: 'b', count: 4 }))
    expect([await listCounts(one), await listCounts(other)]).toEqual([[1], [3, 4]])
  })

  test('a database that the pool has closed is reopened with its rows', async () => {
    const stores = [fresh(), fresh(), fresh(), fresh()]
    for (const store of stores) await store.write((tx) => insertThing(tx, 'a'))
    expect(storage.openCount).toBe(2)
    for (const store of stores) expect(await listIds(store)).toBe('a')
    await Promise.all(stores.map((store) => store.write((tx) => insertThing(tx, 'b'))))
    for (const store of stores) expect(await listIds(store)).toBe('a,b')
    expect(storage.openCount).toBe(2)
  })

  test('the pool can be closed right after a failed write', async () => {
    const own = new DatabasePool(engine(), { openCount: 2, deadline: 2_000 })
    const store = own.getStore(freshLocation(), migrations)
    await store.write((tx) => insertThing(tx, 'a'))
    expect(await errorOf(store.write((tx) => insertThing(tx, 'a')))).toBeInstanceOf(Conflict)
    await own.close()
  })

  test('400 different statements are answered, more than stay prepared', async () => {
    const { db, write } = fresh()
    const all = async (ask: RunQuery) => {
      for (let round = 0; round < 2; round++)
        for (const n of range(400)) expect((await ask(`select ${n}, cast(? as integer)`, [n]))[0]).toEqual([n, n])
    }
    await all(db.query)
    await write((tx) => all(tx.query))
  })

  test('executeMany runs one statement for many rows in order, and all or none of them are stored', async () => {
    const store = fresh()
    const insert = 'insert into things (id, count) values (?, ?)'
    await store.write((tx) => tx.executeMany(insert, []))
    await store.write((tx) =>
      tx.executeMany(
        insert,
        range(1_203).map((n) => [`${n}`, n]),
      ),
    )
    expect(await store.db.$count(things)).toBe(1_203)
    await store.write(async (tx) => {
      await tx.executeMany('update things set count = count * 10 + ? where id = ?', [
        [1, '7'],
        [2, '7'],
      ])
      await tx.executeMany(
        'delete from things where id = ?',
        range(1_200).map((n) => [`${n + 8}`]),
      )
    })
    expect(await listCounts(store)).toEqual([0, 1, 2, 3, 4, 5, 6, 712])
    const twice = store.write((tx) =>
      tx.executeMany(
        insert,
        ['a', 'b', 'a'].map((id) => [id, 0]),
      ),
    )
    expect(await errorOf(twice)).toBeInstanceOf(Conflict)
    expect(await errorOf(store.write((tx) => tx.executeMany(insert, [['nul\0', 1]])))).toMatchObject({ status: 400 })
    expect(await store.db.$count(things)).toBe(8)
  })

  test('executeMany returns what each of many inserted rows returns, and stores none of them after a conflict', async () => {
    const store = fresh()
    const insert = 'insert into things (id, count) values (?, ?) returning id, count'
    const rows = range(203).map((n) => [`${n}`, 7 * n])
    const returned = await store.write((tx) => tx.executeMany(insert, rows))
    expect(returned.toSorted(([one], [other]) => Number(one) - Number(other))).toEqual(rows)
    const taken = [...range(100).map((n) => [`new${n}`, n]), ['150', 0]]
    expect(await errorOf(store.write((tx) => tx.executeMany(insert, taken)))).toBeInstanceOf(Conflict)
    expect(await store.db.$count(things)).toBe(203)
  })

  test('U+0000 in a parameter is refused with 400 INVALID_INPUT, and nothing is stored', async () => {
    const store = fresh()
    const nul = { status: 400, code: 'INVALID_INPUT' }
    expect(await errorOf(store.db.query('select ?', ['a\0b']))).toMatchObject(nul)
    expect(await errorOf(store.write((tx) => tx.query('insert into things values (?, 1)', ['\0'])))).toMatchObject(nul)
    const inserted = store.write((tx) => insertThing(tx, 'a\0'))
    expect(await errorOf(inserted.catch((error) => Promise.reject(error.cause ?? error)))).toMatchObject(nul)
    expect(await listIds(store)).toBe('')
  })

  test('query reads JSON properties by ->> and sorts missing ones last', async () => {
    const { db, write } = fresh()
    const docs = { a: { f1: 'a' }, b: {}, c: { f1: 'B', 'f2.city': 'x' } }
    await write(async (tx) => {
      for (const [id, doc] of Object.entries(docs)) await tx.insert(things).values({ id, count: 0, doc })
    })
    for (const [way, order] of [
      ['asc', 'c,a,b'],
      ['desc', 'a,c,b'],
    ]) {
      const rows = await db.query(`select id from things order by doc ->> ? ${way} nulls last`, ['f1'])
      expect(rows.join()).toBe(order!)
    }
    for (const label of ['f1', 'f2.city', "f3.it's", 'f4.a b.c', 'f5.é😀', 'f6.[0]', 'f7.$']) {
      await write((tx) => tx.insert(things).values({ id: label, count: 0, doc: { [label]: 'x', f: { city: 'y' } } }))
      expect(await db.query('select doc ->> ? from things where id = ?', [label, label])).toEqual([['x']])
    }
  })

  test('200 concurrent writes and reads succeed without a lock error', async () => {
    const store = fresh()
    await store.write((tx) => insertThing(tx, 'a'))
    const work = range(200).map((n) =>
      n % 2 ? store.write(increment) : store.db.select().from(things).orderBy(asc(things.id)),
    )
    const failed = (await Promise.allSettled(work)).filter(({ status }) => status === 'rejected')
    expect(failed).toEqual([])
    expect(await listCounts(store)).toEqual([100])
  })
})

describe.each(fileEngines)('%s: DatabasePool on files', (_, engine) => {
  test('release closes the database, and the next use opens the file that is there then', async () => {
    const folder = freshFolder()
    const own = new DatabasePool(engine({ folder }), { openCount: 2, deadline: 300 })
    const at = freshLocation()
    const store = own.getStore(at, migrations)
    await store.write((tx) => insertThing(tx, 'old'))
    await own.release(at)
    renameSync(join(folder, at.file), join(folder, 'elsewhere'))
    expect(await listIds(store)).toBe('')
    await store.write((tx) => insertThing(tx, 'new'))
    await own.release(at)
    renameSync(join(folder, at.file), join(folder, 'further'))
    renameSync(join(folder, 'elsewhere'), join(folder, at.file))
    expect(await listIds(store)).toBe('old')
    await own.close()
  })

  test('close waits for work in progress and leaves only the database file', async () => {
    const folder = freshFolder()
    const own = new DatabasePool(engine({ folder }), { openCount: 2, deadline: 2_000 })
    const at = freshLocation()
    const store = own.getStore(at, migrations)
    const work = store.write(async (tx) => {
      await insertThing(tx, 'a')
      await Bun.sleep(50)
      await insertThing(tx, 'b')
    })
    await Promise.all([own.close(), work])
    expect(readdirSync(folder)).toEqual([at.file])
    const again = new DatabasePool(engine({ folder }), { openCount: 2, deadline: 2_000 })
    expect(await listIds(again.getStore(at, migrations))).toBe('a,b')
    await again.close()
  })

  test('concurrent increments of two processes in one file are all stored', async () => {
    const folder = freshFolder()
    const own = new DatabasePool(engine({ folder, lockTimeout: 5_000 }), { openCount: 2, deadline: 2_000 })
    const at = freshLocation()
    const store = own.getStore(at, migrations)
    await store.write((tx) => insertThing(tx, 'shared'))
    const other = spawnOtherProcess('count', join(folder, at.file))
    try {
      await waitForOutput(other)
      let mine = 0
      while (other.exitCode === null) {
        await Promise.all(range(5).map(() => store.write((tx) => increment(tx, 'shared'))))
        mine += 5
        expect(await listCounts(store)).toHaveLength(1)
        await Bun.sleep(1)
      }
      expect(await other.exited).toBe(0)
      expect(mine).toBeGreaterThan(5)
      expect(await listCounts(store)).toEqual([mine + 40])
    } finally {
      other.kill()
      await own.close()
    }
  })

  test('a write lock of another process makes writes fail with Busy while reads succeed', async () => {
    const folder = freshFolder()
    const own = new DatabasePool(engine({ folder, lockTimeout: 150 }), { openCount: 2, deadline: 2_000 })
    const at = freshLocation()
    const store = own.getStore(at, migrations)
    await store.write((tx) => insertThing(tx, 'a'))
    const other = spawnOtherProcess('hold', join(folder, at.file))
    try {
      await waitForOutput(other)
      const work = store.write((tx) => insertThing(tx, 'b'))
      expect(await listIds(store)).toBe('a')
      expect(await errorOf(work)).toBeInstanceOf(Busy)
      other.kill('SIGKILL')
      await other.exited
      await store.write((tx) => insertThing(tx, 'c'))
      expect(await listIds(store)).toBe('a,c')
    } finally {
      other.kill('SIGKILL')
      await own.close()
    }
  })

  test('lockFolder refuses a folder that another process has locked until that process has ended or was killed', async () => {
    const folder = freshFolder()
    const first = spawnOtherProcess('own', folder)
    try {
      await waitForOutput(first)
      expect((await errorOf(engine({ folder }).lockFolder())).message).toContain(
        `Another process serves the folder "${folder}".`,
      )
      const reading = engine({ folder })
      await (await reading.open(freshLocation(), migrations)).close()
      first.kill('SIGKILL')
      await first.exited
      const second = engine({ folder })
      await second.lockFolder()
      expect((await errorOf(engine({ folder }).lockFolder())).message).toContain('Another process')
      await second.close()
      const third = engine({ folder })
      await third.lockFolder()
      await third.close()
    } finally {
      first.kill('SIGKILL')
    }
  })
})

test('a folder that cannot be created rejects with the error of the file system', async () => {
  const folder = freshFolder()
  await Bun.write(join(folder, 'file'), '')
  const storage = new DatabasePool(sqlite({ folder: join(folder, 'file') }), { openCount: 2, deadline: 300 })
  expect((await errorOf(storage.getStore(freshLocation(), migrations).db.query('select 1'))).message).toMatch(
    /ENOTDIR|EEXIST/,
  )
  await storage.close()
})

test('a database that could not be opened is opened by the next query', async () => {
  const folder = freshFolder()
  const storage = new DatabasePool(sqlite({ folder }), { openCount: 2, deadline: 300 })
  const at = freshLocation()
  const store = storage.getStore(at, migrations)
  mkdirSync(join(folder, at.file), { recursive: true }) // a folder where the file belongs
  await errorOf(store.db.query('select 1'))
  await errorOf(store.write((tx) => insertThing(tx, 'a')))
  renameSync(join(folder, at.file), join(folder, 'away'))
  await store.write((tx) => insertThing(tx, 'a'))
  expect(await listIds(store)).toBe('a')
  await storage.close()
})

/** A database that only records its statements; the statement `wait` takes 30 ms. */
function createFakeDatabase(notes: string[], file = '', commit = () => {}): Database {
  const query: RunQuery = async (sql) => {
    if (sql === 'wait') await Bun.sleep(30)
    return [[notes.push(sql)]]
  }
  const transaction: Database['transaction'] = async (work) => {
    notes.push('begin')
    const each: ExecuteMany = async (sql, rows) => (await Promise.all(rows.map((row) => query(sql, row)))).flat()
    await work({ query, executeMany: each }).catch((error) => {
      notes.push('rollback')
      throw error
    })
    commit()
    notes.push('commit')
    return {}
  }
  return {
    query,
    transaction,
    releaseMemory: () => notes.push(`rest ${file}`),
    close: async () => void notes.push(`close ${file}`),
  }
}

function createFakePool(open: number) {
  const notes: string[] = []
  const engine: Engine = {
    readSchemaVersion: async () => 1,
    open: async ({ file }) => {
      notes.push(`open ${file}`)
      return createFakeDatabase(notes, file)
    },
    openTenantCopy: () => Promise.reject(new Error('not here')),
    close: async () => void notes.push('end'),
  }
  const storage = new DatabasePool(engine, { openCount: open, deadline: 300 })
  return { notes, storage, store: (id: string) => storage.getStore({ tenant: id, file: id }, migrations) }
}

test('a database in use is not closed for others', async () => {
  const { notes, store } = createFakePool(2)
  const [used, other, third] = [store('used'), store('other'), store('third')]
  await used.write(async () => {
    await other.write(async () => {})
    await third.write(async () => {})
  })
  expect(notes.filter((note) => note.startsWith('close'))).toEqual(['close other'])
  await other.write(async () => {})
  expect(notes).toContain('close used')
})

test('databases beyond the limit wait for a place and get 503 BUSY after the deadline', async () => {
  const { notes, store } = createFakePool(3)
  const everything = range(40).map((n) => store(`${n}`).db.query('wait'))
  await Promise.all(everything.slice(0, 9))
  let open = 0
  for (const note of notes) {
    if (note.startsWith('open')) open++
    if (note.startsWith('close')) open--
    expect(open).toBeLessThanOrEqual(3)
  }
  const outcomes = await Promise.allSettled(everything)
  expect(outcomes.find(({ status }) => status === 'rejected')).toMatchObject({ reason: { status: 503, code: 'BUSY' } })
  await store('later').db.query('select 1')
})

test('a pinned database neither counts towards the limit nor is closed for others', async () => {
  const { notes, storage, store } = createFakePool(1)
  const pinned = storage.getStore({ tenant: 'p', file: 'pinned', pinned: true }, migrations)
  await pinned.db.query('select 1')
  for (const id of ['a', 'b']) await pinned.write(() => store(id).db.query('select 1'))
  expect(notes.filter((note) => note.startsWith('close'))).toEqual(['close a'])
})

test('a broken database is reopened for the next query', async () => {
  const notes: string[] = []
  let broken = true
  const engine: Engine = {
    readSchemaVersion: async () => 1,
    open: async ({ file }) => {
      notes.push(`open ${file}`)
      const failing = broken ? () => Promise.reject(new Error('It broke.')) : async () => [[1]]
      return { ...createFakeDatabase(notes, file), query: failing, isBroken: () => broken }
    },
    openTenantCopy: () => Promise.reject(new Error('not here')),
    close: async () => {},
  }
  const storage = new DatabasePool(engine, { openCount: 2, deadline: 300 })
  const { db } = storage.getStore({ tenant: 'a', file: 'a' }, migrations)
  expect((await errorOf(db.query('select 1'))).message).toContain('It broke.')
  broken = false
  expect(await db.query('select 1')).toEqual([[1]])
  expect(notes).toEqual(['open a', 'close a', 'open a'])
})

test('a database is closed only after its transaction has ended, even when the work failed', async () => {
  const { notes, store } = createFakePool(0)
  expect((await errorOf(store('a').write(() => Promise.reject(new Error('mine'))))).message).toContain('mine')
  await Bun.sleep(30)
  expect(notes.slice(-2)).toEqual(['rollback', 'close a'])
})

test('releaseIdleMemory releases the memory of databases unused since its last call, once', async () => {
  const { notes, store, storage } = createFakePool(5)
  const releasedDatabases = () => notes.filter((note) => note.startsWith('rest')).join()
  for (const id of ['a', 'b']) await store(id).db.query('select 1')
  storage.releaseIdleMemory()
  await store('b').db.query('select 1')
  expect(releasedDatabases()).toBe('')
  storage.releaseIdleMemory()
  expect(releasedDatabases()).toBe('rest a')
  const work = store('a').db.query('wait')
  for (const _ of [1, 2, 3]) storage.releaseIdleMemory()
  expect(releasedDatabases()).toBe('rest a,rest b')
  await work
  for (const _ of [1, 2, 3]) storage.releaseIdleMemory()
  expect(releasedDatabases()).toBe('rest a,rest b,rest a')
})

test('the least recently used database is closed first', async () => {
  const { notes, store, storage } = createFakePool(2)
  for (const id of ['a', 'b', 'a', 'c']) await store(id).db.query('select 1')
  expect(notes.filter((note) => note.startsWith('close'))).toEqual(['close b'])
  expect(storage.openCount).toBe(2)
})

test('a listener is told of each database that is closed', async () => {
  const { store, storage } = createFakePool(1)
  const closed: string[] = []
  storage.onClose(({ tenant }) => void closed.push(tenant))
  for (const id of ['a', 'b', 'b', 'a']) await store(id).db.query('select 1')
  expect(closed).toEqual(['a', 'b'])
})

test('a query stays cheap when the limit of open databases is reached and another one is pinned', async () => {
  const { storage, store } = createFakePool(5_000)
  await storage.getStore({ tenant: 'p', file: 'pinned', pinned: true }, migrations).db.query('select 1')
  for (const id of range(5_000)) await store(`${id}`).db.query('select 1')
  const { db } = store('0')
  const start = process.cpuUsage()
  for (const _ of range(5_000)) await db.query('select 1')
  expect(cpuMsSince(start)).toBeLessThan(1_000)
  expect(storage.openCount).toBe(5_000)
})

test('ten concurrent queries open a database once', async () => {
  const { notes, store } = createFakePool(1)
  await Promise.all(range(10).map(() => store('a').db.query('select 1')))
  expect(notes.filter((note) => note.startsWith('open'))).toEqual(['open a'])
})

test('a database released while in use is closed after its work, and queries meanwhile reopen it', async () => {
  const { notes, store, storage } = createFakePool(5)
  const { db } = store('a')
  const work = db.query('wait')
  await db.query('select 1')
  await storage.release({ tenant: 'a', file: 'a' })
  expect(notes).not.toContain('close a')
  await db.query('select 2')
  expect(notes.filter((note) => note === 'open a')).toHaveLength(2)
  await work
  await Bun.sleep(0)
  expect(notes.filter((note) => note === 'close a')).toHaveLength(1)
})

test('a use after close fails with 503 BUSY and opens nothing', async () => {
  const folder = freshFolder()
  const storage = new DatabasePool(sqlite({ folder }), { openCount: 2, deadline: 2_000 })
  const place = freshLocation()
  const { db, write } = storage.getStore(place, migrations)
  await write((tx) => insertThing(tx, 'a'))
  const closed = storage.close()
  expect(await errorOf(db.query('select 1'))).toBeInstanceOf(Busy)
  await closed
  for (const use of [db.query('select 1'), write((tx) => insertThing(tx, 'b'))])
    expect(await errorOf(use)).toBeInstanceOf(Busy)
  expect(readdirSync(join(folder, dirname(place.file)))).toEqual([basename(place.file)])
})

test('close also waits for work in released databases', async () => {
  const { notes, store, storage } = createFakePool(5)
  const work = store('a').db.query('wait')
  await Bun.sleep(0)
  await storage.release({ tenant: 'a', file: 'a' })
  await storage.close()
  expect(notes).toEqual(['open a', 'wait', 'close a', 'end'])
  await work
})

test('waiting writes share a COMMIT, each but the first in its own savepoint', async () => {
  const notes: string[] = []
  const writer = new GroupCommitWriter(createFakeDatabase(notes).transaction, 300)
  await Promise.all([1, 2, 3].map((unit) => writer.write(({ query }) => query(`insert ${unit}`))))
  const units = [2, 3].map((unit) => `savepoint unit,insert ${unit},release unit`)
  expect(notes.join()).toBe(`begin,insert 1,${units},commit`)
})

test('a failing write is rolled back to its savepoint or with its transaction, and the others are committed', async () => {
  const notes: string[] = []
  const writer = new GroupCommitWriter(createFakeDatabase(notes).transaction, 300)
  const failing = (unit: number) =>
    writer.write(async ({ query }) => {
      await query(`insert ${unit}`)
      throw new Error(`mine ${unit}`)
    })
  const results = await Promise.allSettled([failing(1), writer.write(({ query }) => query('insert 2')), failing(3)])
  expect(results.map((one) => (one.status === 'rejected' ? one.reason.message : 'done'))).toEqual([
    'mine 1',
    'done',
    'mine 3',
  ])
  expect(notes.join()).toBe(
    'begin,insert 1,rollback,begin,insert 2,savepoint unit,insert 3,rollback to unit,release unit,commit',
  )
})

test('writes are acknowledged only after a successful COMMIT', async () => {
  let full = true
  const notes: string[] = []
  const commit = () => {
    if (full) throw new Error('the disk is full')
  }
  const writer = new GroupCommitWriter(createFakeDatabase(notes, '', commit).transaction, 300)
  const write = () => writer.write(({ query }) => query('insert')).then(() => notes.push('acknowledged'))
  const work = await Promise.allSettled([write(), write()])
  expect(work.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  full = false
  await write()
  expect(notes.slice(-2)).toEqual(['commit', 'acknowledged'])
})

/** A writer whose transactions become durable when the test resolves them. */
function createSlowDisk() {
  const notes: string[] = []
  const disk: PromiseWithResolvers<void>[] = []
  const { transaction } = createFakeDatabase(notes)
  const writer = new GroupCommitWriter(async (work) => {
    await transaction(work)
    disk.push(Promise.withResolvers<void>())
    return { kept: disk.at(-1)!.promise }
  }, 300)
  const write = (name: string) =>
    writer.write(({ query }) => query(name)).then(() => notes.push(`acknowledged ${name}`))
  return { writer, write, disk, notes }
}

test('writes are acknowledged only once they are durable, and the next transaction does not wait for that', async () => {
  const { write, disk, notes } = createSlowDisk()
  const one = write('one')
  await Bun.sleep(5)
  const two = write('two')
  await Bun.sleep(5)
  expect(notes.filter((note) => note === 'commit')).toHaveLength(2)
  expect(notes.join()).not.toContain('acknowledged')
  disk[0]!.resolve()
  await one
  expect(notes.join()).not.toContain('acknowledged two')
  disk[1]!.resolve()
  await two
  expect(notes.slice(-2)).toEqual(['acknowledged one', 'acknowledged two'])
})

test('a failing disk rejects all writes of the transaction with StorageFault, except failed work with its own error', async () => {
  const { writer, write, disk } = createSlowDisk()
  const work = [write('one'), write('two'), writer.write(() => Promise.reject(new Error('mine')))]
  const results = Promise.allSettled(work)
  await Bun.sleep(5)
  disk[0]!.reject(new StorageFault('gone'))
  const reasons = (await results).map((result) => result.status === 'rejected' && result.reason)
  expect(reasons.map((reason) => reason instanceof StorageFault)).toEqual([true, true, false])
  expect(reasons[2]).toHaveProperty('message', 'mine')
})

test('a stalled disk refuses further writes with Busy when a thousand wait for it', async () => {
  const { writer, disk } = createSlowDisk()
  const work = range(1_000).map((n) => writer.write(({ query }) => query(`insert ${n}`)))
  await Bun.sleep(50)
  expect(await errorOf(writer.write(({ query }) => query('one more')))).toBeInstanceOf(Busy)
  const moving = setInterval(() => disk.at(-1)?.resolve(), 1)
  for (const { resolve } of disk) resolve()
  await Promise.all(work)
  await writer.write(({ query }) => query('later'))
  clearInterval(moving)
})

test('a transaction that cannot begin rejects all waiting writes, and later writes try again', async () => {
  let broken = true
  const notes: string[] = []
  const { transaction } = createFakeDatabase(notes)
  const writer = new GroupCommitWriter((work) => (broken ? Promise.reject(new Busy()) : transaction(work)), 300)
  const work = await Promise.allSettled(range(3).map(() => writer.write(({ query }) => query('insert'))))
  expect(work.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
  broken = false
  await writer.write(({ query }) => query('insert'))
  expect(notes).toContain('commit')
})

test('the 1,001st waiting write is refused with Busy, and the others are committed', async () => {
  const notes: string[] = []
  const { transaction } = createFakeDatabase(notes)
  const gate = Promise.withResolvers<void>()
  const writer = new GroupCommitWriter(async (work) => {
    await gate.promise
    return transaction(work)
  }, 300)
  const work = range(1_001).map((n) => writer.write(({ query }) => query(`insert ${n}`)))
  expect(await errorOf(work[1_000]!)).toBeInstanceOf(Busy)
  gate.resolve()
  await Promise.all(work.slice(0, 1_000))
  expect(notes.filter((note) => note.startsWith('insert'))).toHaveLength(1_000)
})

test('200 concurrent writes with synchronous full are all stored', async () => {
  const storage = new DatabasePool(sqlite({ synchronous: 'full' }), { openCount: 2, deadline: 5_000 })
  const store = storage.getStore(freshLocation(), migrations)
  await Promise.all(range(200).map((n) => store.write((tx) => insertThing(tx, `thing ${n}`))))
  expect(await store.db.$count(things)).toBe(200)
  await storage.close()
})

test('WalSync rejects with StorageFault after a failure until the log is reopened', async () => {
  const path = join(freshFolder(), 'a.db')
  const database = new BunSqlite(path)
  database.exec('pragma journal_mode = wal; create table a (b)')
  const log = new WalSync(path, [])
  await Promise.all([log.waitUntilDurable(), log.waitUntilDurable()])
  log.assertHealthy()
  log.close()
  await Bun.sleep(20)
  expect(await errorOf(Promise.all([log.waitUntilDurable(), log.waitUntilDurable()]))).toBeInstanceOf(StorageFault)
  expect(await errorOf(log.waitUntilDurable())).toBeInstanceOf(StorageFault)
  expect(() => log.assertHealthy()).toThrow(StorageFault)
  const again = new WalSync(path, [dirname(path)])
  await again.waitUntilDurable()
  again.close()
  database.close()
})

test('WalSync rejects with StorageFault when a folder cannot be synced', async () => {
  const path = join(freshFolder(), 'a.db')
  const database = new BunSqlite(path)
  database.exec('pragma journal_mode = wal; create table a (b)')
  const log = new WalSync(path, [join(path, 'nowhere')])
  expect(await errorOf(log.waitUntilDurable())).toBeInstanceOf(StorageFault)
  expect(() => log.assertHealthy()).toThrow(StorageFault)
  log.close()
  database.close()
})

test('the log of a busy database is checkpointed into its file while writes continue', async () => {
  const folder = freshFolder()
  const storage = new DatabasePool(sqlite({ folder }), { openCount: 2, deadline: 5_000 })
  const at = freshLocation()
  const store = storage.getStore(at, migrations)
  const file = join(folder, at.file)
  const until = performance.now() + 25_000
  let made = 0
  // Only a checkpoint makes the file itself grow.
  while (!made || statSync(file).size < 1 << 20) {
    expect(performance.now()).toBeLessThan(until)
    await store.write(async (tx) => {
      for (let row = 0; row < 500; row++) await insertThing(tx, `row ${++made} ${'x'.repeat(200)}`)
    })
  }
  expect(await store.db.$count(things)).toBe(made)
  await storage.close()
})
