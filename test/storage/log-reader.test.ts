// engine: sqlite
import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { closeSync, copyFileSync, ftruncateSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { type LogFrames, LogReader, listFramePages } from '../../src/storage/engines/sqlite/log-reader'
import { freshFolder } from './engines'

const PAGE_BYTES = 4_096
const insertRows = (count: number) =>
  `with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < ${count})
   insert into things (name) select hex(randomblob(500)) from numbers`

/** Opens a database whose log is not checkpointed, and a copy of what it has so far. */
function openLoggedDatabase() {
  const folder = freshFolder()
  const [path, copy] = [join(folder, 'data.db'), join(folder, 'copy.db')]
  const database = new Database(path)
  database.run('create table things (id integer primary key, name text)')
  copyFileSync(path, copy)
  database.run('pragma journal_mode = wal')
  database.run('pragma wal_autocheckpoint = 0')
  database.run('pragma synchronous = off')
  database.run(insertRows(1))
  return { database, copy, reader: new LogReader(path) }
}

function applyFrames(copy: string, { frames, pageSize }: LogFrames) {
  const output = openSync(copy, 'r+')
  for (const part of frames)
    for (const { number, page, databasePages } of listFramePages(part, pageSize)) {
      writeSync(output, page, 0, pageSize, (number - 1) * pageSize)
      if (databasePages) ftruncateSync(output, databasePages * pageSize)
    }
  closeSync(output)
}

const listNames = (database: Database) => database.query('select name from things order by id').values()

/** Returns the rows of a copy, and what its check says. The copy is in rollback mode, so the mode in its header is reset. */
function readCopy(copy: string) {
  const output = openSync(copy, 'r+')
  writeSync(output, Buffer.from([1, 1]), 0, 2, 18)
  closeSync(output)
  const database = new Database(copy)
  const found = [listNames(database), database.query('pragma integrity_check').values()]
  database.close()
  return found
}

test('the reader of a log returns the last frame of each page, which make a copy equal', () => {
  const { database, copy, reader } = openLoggedDatabase()
  for (let round = 0; round < 3; round++) {
    for (let number = 0; number < 400; number++) database.run(insertRows(1 + (number % 3)))
    database.run('delete from things where id % 7 = ?', [round])
    const read = reader.read()!
    const pages = read.frames.flatMap((part) => [...listFramePages(part, PAGE_BYTES)])
    expect(new Set(pages.map(({ number }) => number)).size).toBe(pages.length)
    expect(pages.map(({ databasePages }) => !!databasePages)).toEqual(
      pages.map((_, place) => place === pages.length - 1),
    )
    applyFrames(copy, read)
  }
  expect(reader.read()).toBeUndefined()
  expect(readCopy(copy)).toEqual([listNames(database), [['ok']]])
  reader.close()
  database.close()
})

test('the reader of a log returns a transaction that is longer than its buffer, but only once it is committed', () => {
  const { database, copy, reader } = openLoggedDatabase()
  applyFrames(copy, reader.read()!)
  database.run('pragma cache_size = 10')
  database.run('begin')
  database.run(insertRows(20_000))
  expect(reader.read()).toBeUndefined()
  database.run('commit')
  const read = reader.read()!
  expect(read.frames.reduce((sum, { length }) => sum + length, 0)).toBeGreaterThan(16 << 20)
  applyFrames(copy, read)
  expect(readCopy(copy)).toEqual([listNames(database), [['ok']]])
  reader.close()
  database.close()
})

test('the reader of a log ignores what a transaction left behind that was rolled back', () => {
  const { database, copy, reader } = openLoggedDatabase()
  database.run('pragma cache_size = 10')
  database.run('begin')
  database.run(insertRows(5_000))
  database.run('rollback')
  database.run(insertRows(3))
  applyFrames(copy, reader.read()!)
  expect(readCopy(copy)).toEqual([listNames(database), [['ok']]])
  expect(reader.read()).toBeUndefined()
  reader.close()
  database.close()
})
