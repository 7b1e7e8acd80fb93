import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { CachedConnection } from '../../src/storage/engines/sqlite/connection'
import { chooseCacheSize, openReader } from '../../src/storage/engines/sqlite/connections'
import { drivers } from '../../src/storage/engines/sqlite/drivers'
import { createTempFolder } from '../temp-folder'

const MIB = 1_024 // KiB

test('a few connections have caches of 16 MiB each, and many share 128 MiB, down to 2 MiB each', () => {
  expect([1, 2, 8].map(chooseCacheSize)).toEqual([16 * MIB, 16 * MIB, 16 * MIB])
  expect([16, 32, 64, 5_000].map(chooseCacheSize)).toEqual([8 * MIB, 4 * MIB, 2 * MIB, 2 * MIB])
})

test('a cache size depends on the number of open connections, and a closed one no longer counts', async () => {
  const path = join(createTempFolder(), 'data.db')
  new Database(path).close()
  const open = async () => openReader(path, { openFile: await drivers['bun:sqlite'](), lockTimeout: 1_000 })
  const before = CachedConnection.openCount
  const connections = await Promise.all(Array.from({ length: 40 }, open))
  const sizes = await Promise.all(connections.map((connection) => connection.readPragma('cache_size')))
  expect(sizes.at(-1)).toBe(-chooseCacheSize(before + 40))
  for (const connection of connections) connection.close()
  expect(CachedConnection.openCount).toBe(before)
})
