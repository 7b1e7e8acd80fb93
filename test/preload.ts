import { passphraseCost } from '../src/backups/passphrase-cost'
import { lowerPasswordCost } from './password-cost'
import { createTempFolder } from './temp-folder'

for (const name of Object.keys(process.env)) if (name.startsWith('ATOLL_')) delete process.env[name]
// The tests of features run on PostgreSQL when its URL is given.
if (process.env.TEST_DATABASE_URL) process.env.ATOLL_DATABASE_URL = process.env.TEST_DATABASE_URL
// The limit is low, so that every test uses tenants that were closed meanwhile.
Object.assign(process.env, {
  ATOLL_TENANTS: createTempFolder('tenants'),
  ATOLL_DURABILITY: 'normal',
  ATOLL_OPEN_TENANTS: '3',
  ATOLL_LOG_LEVEL: 'error',
  // Tests change thresholds and limits, which reader threads do not see. Servers that tests start have threads.
  ATOLL_READER_THREADS: '0',
})

await lowerPasswordCost()
// Backups and exports that tests make in their own process; those of the binary cost as much as ever.
passphraseCost.workFactor = 10
