// engine: sqlite
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { fileEngines, freshFolder } from './engines'

const LOCK_FILE = `
  const { Database } = require('bun:sqlite')
  const database = new Database(process.argv[1])
  database.exec('pragma locking_mode = exclusive; begin exclusive')
  console.log('locked')
  await Bun.sleep(150)
  database.close()`

test.each(fileEngines)('%s: a query of a file waits while another process has locked the file', async (_, make) => {
  const folder = freshFolder()
  const engine = make({ folder })
  const location = { tenant: 'a', file: 'data.db' }
  const database = await engine.open(location, { sqlite: ['create table a (x integer) strict'], postgres: [] })
  await database.close()
  const path = join(folder, 'copy.db')
  await engine.copyDatabase(location, path)
  const locking = Bun.spawn([process.execPath, '-e', LOCK_FILE, path], { stdout: 'pipe' })
  const reader = locking.stdout.getReader()
  expect(new TextDecoder().decode((await reader.read()).value)).toBe('locked\n')
  expect(await engine.queryFile(path, 'select count(*) from a')).toEqual([[0]])
  expect(await locking.exited).toBe(0)
})
