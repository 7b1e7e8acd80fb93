// engine: sqlite
import { expect, spyOn, test } from 'bun:test'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { createSyncedFile } from '../../src/files/synced-file'
import { errorOf } from '../rejections'
import { createTempFolder } from '../temp-folder'
import { sha256Of } from './fixtures'

const path = join(createTempFolder('synced'), 'file')

test('a large file is synchronized while it grows, and has all parts in their order', async () => {
  const probe = await open(`${path}-probe`, 'w')
  const datasync = spyOn(Object.getPrototypeOf(probe), 'datasync')
  try {
    const file = await createSyncedFile(path)
    const parts = Array.from({ length: 96 }, (_, n) => Buffer.alloc(1 << 20, n))
    for (const part of parts) await file.write(part)
    await file.sync()
    await file.close()
    expect(datasync.mock.calls.length).toBeWithin(1, 4)
    expect(sha256Of(await Bun.file(path).bytes())).toBe(sha256Of(Buffer.concat(parts)))
  } finally {
    datasync.mockRestore()
    await probe.close()
  }
})

test('a file that is there already is not written to', async () => {
  await Bun.write(path, 'first')
  expect(await errorOf(createSyncedFile(path))).toMatchObject({ code: 'EEXIST' })
  expect(await Bun.file(path).text()).toBe('first')
})
