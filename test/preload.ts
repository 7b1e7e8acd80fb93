import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

// A fresh folder for every process. Bun calls nothing at the end of a run, so the next run removes it.
for (const name of readdirSync(tmpdir())) {
  const [, pid] = /^atoll-test-(\d+)-/.exec(name) ?? []
  if (pid && !isRunning(Number(pid))) rmSync(join(tmpdir(), name), { recursive: true, force: true })
}
const folder = mkdtempSync(join(tmpdir(), `atoll-test-${process.pid}-`))
for (const name of Object.keys(process.env)) if (name.startsWith('ATOLL_')) delete process.env[name]
// The tests of features run on PostgreSQL when its URL is given.
if (process.env.TEST_DATABASE_URL) process.env.ATOLL_DATABASE_URL = process.env.TEST_DATABASE_URL
// The limit is low, so that every test uses tenants that were closed meanwhile.
Object.assign(process.env, {
  ATOLL_TENANTS: folder,
  ATOLL_DURABILITY: 'normal',
  ATOLL_OPEN_TENANTS: '3',
  ATOLL_LOG_LEVEL: 'error',
  // Tests change thresholds and limits, which reader threads do not see. Servers that tests start have threads.
  ATOLL_READER_THREADS: '0',
})

await (await import('./password-cost')).lowerPasswordCost()

function isRunning(pid: number) {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as { code?: string }).code === 'EPERM'
  }
}
