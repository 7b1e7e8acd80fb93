// engine: sqlite
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseDamaged } from '../../src/storage/errors'
import { DatabasePool } from '../../src/storage/pool'
import { errorOf } from '../rejections'
import { fileEngines, freshFolder } from './engines'
import { freshLocation, insertThing, listIds, migrations } from './fixtures'

setDefaultTimeout(30_000)

describe.each(fileEngines)('%s: database files', (_, engine) => {
  async function createFixture() {
    const folder = freshFolder()
    const at = { ...freshLocation(), file: 'acme/data.db' }
    mkdirSync(join(folder, 'acme'))
    const storage = new DatabasePool(engine({ folder, synchronous: 'full' }), { openCount: 2, deadline: 2_000 })
    await storage.getStore(at, migrations).write((tx) => insertThing(tx, 'a'))
    const store = storage.getStore({ ...at, exists: true }, migrations)
    return { at, folder, file: join(folder, at.file), storage, store }
  }

  test('a missing, empty, damaged or foreign file of an existing database throws DatabaseDamaged and stays unchanged', async () => {
    const { at, folder, file, storage, store } = await createFixture()
    const other = { ...freshLocation(), file: 'acme/data.db' }
    await storage.release(at)
    renameSync(file, join(folder, 'whole'))
    const faults: [() => void, RegExp][] = [
      [() => {}, /is missing/],
      [() => writeFileSync(file, ''), /is empty/],
      [() => writeFileSync(file, 'no database at all, but long enough to be read. '.repeat(100)), /malformed/],
      [() => rmSync(join(folder, 'acme'), { recursive: true }), /is missing/],
    ]
    for (const [fault, reason] of faults) {
      fault()
      const before = existsSync(file) && readFileSync(file)
      for (const attempt of [() => store.db.query('select 1'), () => store.write((tx) => insertThing(tx, 'b'))]) {
        const error = await attempt().catch((error) => error)
        expect(error).toBeInstanceOf(DatabaseDamaged)
        expect(error.message).toMatch(reason)
      }
      expect(existsSync(file) && readFileSync(file)).toEqual(before)
    }
    mkdirSync(join(folder, 'acme'))
    await storage.getStore(other, migrations).write((tx) => insertThing(tx, 'of another tenant'))
    expect((await errorOf(store.db.query('select 1'))).message).toContain(
      'The database file belongs to another tenant.',
    )
    await storage.release(other)
    renameSync(join(folder, 'whole'), file)
    expect(await listIds(store)).toBe('a')
    await storage.close()
  })

  test('a database whose folder is moved away acknowledges no write until the folder is back', async () => {
    const { folder, storage, store } = await createFixture()
    await store.write((tx) => insertThing(tx, 'b'))
    renameSync(join(folder, 'acme'), join(folder, 'away'))
    for (const id of ['c', 'd'])
      expect(await errorOf(store.write((tx) => insertThing(tx, id)))).toBeInstanceOf(DatabaseDamaged)
    expect(existsSync(join(folder, 'acme'))).toBeFalse()
    renameSync(join(folder, 'away'), join(folder, 'acme'))
    await store.write((tx) => insertThing(tx, 'e'))
    expect(await listIds(store)).toMatch(/^a,b,(c,)?e$/)
    await storage.close()
    expect(existsSync(join(folder, 'acme/data.db-wal'))).toBeFalse()
  })

  test('a database whose file is replaced acknowledges no write, and the log of the new file survives', async () => {
    const { at, folder, file, storage, store } = await createFixture()
    await storage.release(at)
    // The replacement has writes in its log only, like a copy of files in use.
    const other = new DatabasePool(engine({ folder }), { openCount: 2, deadline: 2_000 })
    const busy = other.getStore(at, migrations)
    await busy.write((tx) => insertThing(tx, 'from the log'))
    mkdirSync(join(folder, 'copy'))
    for (const end of ['', '-wal']) copyFileSync(`${file}${end}`, join(folder, `copy/data.db${end}`))
    await other.close()

    await store.write((tx) => insertThing(tx, 'b'))
    renameSync(join(folder, 'acme'), join(folder, 'away'))
    renameSync(join(folder, 'copy'), join(folder, 'acme'))
    expect(await errorOf(store.write((tx) => insertThing(tx, 'c')))).toBeInstanceOf(DatabaseDamaged)
    expect(await listIds(store)).toBe('a,from the log')
    await storage.close()
    expect(existsSync(join(folder, 'acme/data.db-wal'))).toBeFalse()
  })

  test('a database whose file was replaced since it was opened refuses its first write, and the new file stays unchanged', async () => {
    const { at, folder, file, storage, store } = await createFixture()
    await storage.release(at)
    mkdirSync(join(folder, 'copy'))
    copyFileSync(file, join(folder, 'copy/data.db'))
    expect(await listIds(store)).toBe('a')
    renameSync(join(folder, 'acme'), join(folder, 'away'))
    renameSync(join(folder, 'copy'), join(folder, 'acme'))
    const before = readFileSync(file)
    expect(await errorOf(store.write((tx) => insertThing(tx, 'b')))).toBeInstanceOf(DatabaseDamaged)
    expect(readFileSync(file)).toEqual(before)
    await store.write((tx) => insertThing(tx, 'c'))
    expect(await listIds(store)).toBe('a,c')
    await storage.close()
    expect(readdirSync(join(folder, 'acme'))).toEqual(['data.db'])
  })

  test.skipIf(process.platform !== 'linux')(
    'a database is opened a second time for its first write, and leaves one file without a log either way',
    async () => {
      const { at, folder, file, storage, store } = await createFixture()
      await storage.release(at)
      expect(await listIds(store)).toBe('a')
      expect(countDescriptors(file)).toBe(1)
      await storage.release(at)
      expect([countDescriptors(file), readdirSync(join(folder, 'acme'))]).toEqual([0, ['data.db']])
      await store.write((tx) => insertThing(tx, 'b'))
      expect(await listIds(store)).toBe('a,b')
      expect(countDescriptors(file)).toBe(2)
      await storage.close()
      expect([countDescriptors(file), readdirSync(join(folder, 'acme'))]).toEqual([0, ['data.db']])
    },
  )
})

/** Returns how often this process has opened a file. */
const countDescriptors = (file: string) =>
  readdirSync('/proc/self/fd').filter((descriptor) => {
    try {
      return readlinkSync(`/proc/self/fd/${descriptor}`) === realpathSync(file)
    } catch {
      return false // it was closed meanwhile
    }
  }).length
