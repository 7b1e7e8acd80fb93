import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

// A fresh folder for every process, which is removed at its end.
const folder = mkdtempSync(join(tmpdir(), 'atoll-test-'))
for (const name of Object.keys(process.env)) if (name.startsWith('ATOLL_')) delete process.env[name]
// The tests of features run on PostgreSQL when its URL is given.
if (process.env.TEST_DATABASE_URL) process.env.ATOLL_DATABASE_URL = process.env.TEST_DATABASE_URL
// The limit is low, so that every test uses tenants that were closed meanwhile.
Object.assign(process.env, {
  ATOLL_TENANTS: folder,
  ATOLL_DURABILITY: 'normal',
  ATOLL_OPEN_TENANTS: '3',
  ATOLL_LOG_LEVEL: 'error',
})

await (await import('./password-cost')).lowerPasswordCost()

// Hooks of this file would run after every test file of a worker.
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
