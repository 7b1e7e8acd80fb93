// engine: sqlite
import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { createTempFolder, createTenantByCli } from '../fakes/cli'

test('the database of a new tenant takes at most 420 KiB, without free pages', async () => {
  const at = createTempFolder()
  await createTenantByCli({ at, env: {} }, 'acme')
  const file = join(at, 'tenants', 'acme', 'data.db')
  expect(statSync(file).size).toBeLessThanOrEqual(420 * 1024)
  using database = new Database(file, { readonly: true })
  expect(database.query('pragma freelist_count').values()).toEqual([[0]])
  expect(database.query('pragma integrity_check').values()).toEqual([['ok']])
})
