// engine: sqlite
import { expect, setDefaultTimeout, test } from 'bun:test'
import { readdirSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { binaryPath } from '../fakes/binary'
import { apiCaller, createTempFolder, runAtoll, startAtoll } from '../fakes/cli'
import { startWebhookReceiver } from '../fakes/webhook-receiver'
import { waitUntil } from '../wait-until'

// The tests mostly wait for their servers, so they wait at once.
setDefaultTimeout(120_000)

const TENANT_COUNT = 50
const MAX_OPEN_TENANTS = 10
const CHECK_INTERVAL_MS = 10_000 // between two checks of open tenants

/** Returns how many tenant databases a process has open. */
function databasesOpenIn(pid: number): number {
  const names = readdirSync(`/proc/${pid}/fd`).flatMap((descriptor) => {
    try {
      return /tenants\/(t\d+)\/data\.db/.exec(readlinkSync(`/proc/${pid}/fd/${descriptor}`))?.[1] ?? []
    } catch {
      return [] // it was closed meanwhile
    }
  })
  return new Set(names).size
}

/** Creates many tenants in one process and returns their API tokens by tenant id. */
async function createTenants(at: string, count: number) {
  const tenants = join(import.meta.dir, '../../src/tenancy')
  const script = `
    const { createTenant } = await import('${tenants}/tenants')
    const { databases } = await import('${tenants}/databases')
    const { registerUser } = await import('${tenants}/../accounts/users/users')
    const { issueApiToken } = await import('${tenants}/../accounts/api-tokens')
    const tokens = {}
    for (let n = 0; n < ${count}; n++) {
      const tenant = await createTenant('t' + n)
      const { _id } = await registerUser(tenant, { username: 'root', email: 'root@t.test' }, ['admin', 'user'])
      tokens['t' + n] = (await issueApiToken(tenant, _id, { nickname: 'test' })).token
    }
    await databases.close()
    console.log(JSON.stringify(tokens))`
  const env = { ATOLL_DURABILITY: 'normal', PATH: process.env.PATH ?? '' }
  const child = Bun.spawn([process.execPath, '-e', script], { cwd: at, env, stderr: 'inherit' })
  return JSON.parse(await child.stdout.text()) as Record<string, string>
}

test.concurrent.skipIf(process.platform !== 'linux')(
  'a server keeps at most ATOLL_OPEN_TENANTS databases open and runs the schedules of closed tenants',
  async () => {
    const receiver = startWebhookReceiver()
    const env = {
      ATOLL_OPEN_TENANTS: `${MAX_OPEN_TENANTS}`,
      ATOLL_DURABILITY: 'full',
      ATOLL_ALLOW_PRIVATE_NETWORK: 'on',
    }
    const at = { at: createTempFolder(), env }
    const tokens = await createTenants(at.at, TENANT_COUNT)
    await using server = await startAtoll(at)
    const startedAt = performance.now()
    let maxOpen = 0
    const watching = setInterval(() => {
      maxOpen = Math.max(maxOpen, databasesOpenIn(server.pid))
    }, 20)
    try {
      const visit = async ([tenant, token]: [string, string]) => {
        const call = apiCaller(server.url, { tenant, 'x-api-key': token })
        const target = { kind: 'http', url: `${receiver.url}/${tenant}` }
        const made = await call('POST', '/api/integrations', {
          trigger: { kind: 'schedule', cron: '*/5 * * * * *' },
          target,
        })
        expect([made.status, made.body.code]).toEqual([201, undefined])
      }
      const entries = Object.entries(tokens)
      // All tenants within the interval in which the server closes unused ones.
      for (let n = 0; n < entries.length; n += 4) await Promise.all(entries.slice(n, n + 4).map(visit))
      // Most tenants are closed now.
      receiver.deliveries.length = 0
      const nextCheckAt = startedAt + Math.ceil((performance.now() - startedAt) / CHECK_INTERVAL_MS) * CHECK_INTERVAL_MS
      const until = performance.now() + 80_000
      const countDelivered = () => new Set(receiver.deliveries.map(({ path }) => path)).size
      while (countDelivered() < TENANT_COUNT && performance.now() < until) await Bun.sleep(50)
      expect(countDelivered()).toBe(TENANT_COUNT)
      // Until the server has checked the tenants that were visited.
      await Bun.sleep(Math.max(0, nextCheckAt + 1_000 - performance.now()))
    } finally {
      clearInterval(watching)
      await receiver.stop()
    }
    expect(maxOpen).toBeGreaterThan(1)
    // Descriptors are listed one after the other, while databases are closed and opened.
    expect(maxOpen).toBeLessThanOrEqual(MAX_OPEN_TENANTS + 3)
    expect(await server.end('SIGTERM')).toBe(0)
  },
)

test.concurrent.skipIf(!Bun.which('prlimit'))(
  '`atoll migrate` and `atoll doctor` process 120 tenants with 160 file descriptors',
  async () => {
    const at = { at: createTempFolder(), env: { ATOLL_DURABILITY: 'full' } }
    await createTenants(at.at, 120)
    const program = [Bun.which('prlimit')!, '--nofile=160:160', binaryPath()]
    const migrated = await runAtoll('migrate --json', { ...at, program, timeout: 60_000 })
    expect([migrated.code, migrated.json.length]).toEqual([0, 120])
    const doctor = await runAtoll('doctor --json', { ...at, program, timeout: 60_000 })
    expect([doctor.code, doctor.json.checks.filter(({ ok }: { ok: boolean }) => !ok)]).toEqual([0, []])
  },
)

test.concurrent.skipIf(!Bun.which('prlimit'))(
  'a server without free file descriptors answers 503 BUSY and recovers afterwards',
  async () => {
    const env = { ATOLL_OPEN_TENANTS: '60', ATOLL_DURABILITY: 'full' }
    const at = { at: createTempFolder(), env }
    const tokens = Object.entries(await createTenants(at.at, 30))
    const program = [Bun.which('prlimit')!, '--nofile=150:150', binaryPath()]
    await using server = await startAtoll({ ...at, program })
    const statuses = new Set<string>()
    const create = async ([tenant, token]: [string, string], key: string) => {
      const call = apiCaller(server.url, { tenant, 'x-api-key': token })
      const { status, body } = await call('POST', '/api/blueprints', { key, name: key, fields: [] })
      return `${status} ${body.code ?? ''}`
    }
    await Promise.all(tokens.map(async (one) => statuses.add(await create(one, 'many'))))
    for (const status of statuses) expect(status).toBeOneOf(['201 ', '503 BUSY'])
    expect(statuses).toContain('503 BUSY')
    const first = tokens[0]!
    const open = () => apiCaller(server.url, { tenant: first[0], 'x-api-key': first[1] })('GET', '/api/me')
    expect((await waitUntil(open, ({ status }) => status === 200)).status).toBe(200)
  },
)
