import { expect, setDefaultTimeout, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { atoll, caller, emptyFolder, serve } from '../outside/program'

setDefaultTimeout(120_000)

const TENANTS = 60
const OPEN = 4
const FILES_PER_TENANT = 7

/** Makes many tenants quickly: in one process, which prints their ids. */
async function makeMany(at: string, count: number) {
  const tenants = join(import.meta.dir, '../../src/tenancy')
  const script = `
    const { createTenant } = await import('${tenants}/tenants')
    const { storage } = await import('${tenants}/storage')
    const { register } = await import('${tenants}/../accounts/users')
    const { issue } = await import('${tenants}/../accounts/tokens')
    const tokens = {}
    for (let n = 0; n < ${count}; n++) {
      const tenant = await createTenant('t' + n)
      const { _id } = await register(tenant, { username: 'root', email: 'root@t.test' }, ['admin', 'user'])
      tokens['t' + n] = (await issue(tenant, _id, { nickname: 'test' })).token
    }
    await storage.close()
    console.log(JSON.stringify(tokens))`
  const env = { ATOLL_DURABILITY: 'normal', PATH: process.env.PATH ?? '' }
  const child = Bun.spawn([process.execPath, '-e', script], { cwd: at, env, stderr: 'inherit' })
  return JSON.parse(await child.stdout.text()) as Record<string, string>
}

test.skipIf(process.platform !== 'linux')(
  'a server never has more databases open than it may, and does what becomes due in closed ones',
  async () => {
    const at = { at: emptyFolder(), env: { ATOLL_OPEN_TENANTS: `${OPEN}`, ATOLL_DURABILITY: 'full' } }
    const tokens = await makeMany(at.at, TENANTS)
    await using server = await serve(at)
    let most = 0
    const descriptors = () => {
      const open = readdirSync(`/proc/${server.pid}/fd`).length
      most = Math.max(most, open)
    }
    const before = readdirSync(`/proc/${server.pid}/fd`).length
    const watching = setInterval(descriptors, 2)
    const visit = async ([tenant, token]: [string, string]) => {
      const call = caller(server.url, { tenant, 'x-api-key': token })
      const fields = [{ key: 'at', type: 'datetime' }]
      expect((await call('POST', '/api/blueprints', { key: 'runs', name: 'Runs', fields })).status).toBe(201)
      const code = 'export default () => console.log("ran")'
      const lambda = await call('POST', '/api/lambdas', { name: 'tick', code })
      expect([lambda.status, lambda.body.code]).toEqual([201, code])
      const trigger = { kind: 'schedule', cron: '*/5 * * * * *' }
      const target = { kind: 'lambda', lambdaId: lambda.body._id }
      expect((await call('POST', '/api/integrations', { name: 'tick', trigger, target })).status).toBe(201)
      return lambda.body._id as string
    }
    const ids: [string, string][] = []
    const entries = Object.entries(tokens)
    // Ten callers at once, and all of them within the time between two looks at tenants in use.
    for (let n = 0; n < entries.length; n += 10)
      await Promise.all(entries.slice(n, n + 10).map(async (one) => ids.push([one[0], await visit(one)])))
    await Bun.sleep(12_000)
    clearInterval(watching)
    // Callers keep a connection each, lambdas have pipes.
    expect(most - before).toBeLessThan(OPEN * FILES_PER_TENANT + 60)
    let ran = 0
    for (const [tenant, id] of ids) {
      const { body } = await caller(server.url, { tenant, 'x-api-key': tokens[tenant]! })(
        'GET',
        `/api/lambdas/${id}/logs`,
      )
      if (body.length) ran++
    }
    expect(ran).toBe(TENANTS)
    expect(await server.end('SIGTERM')).toBe(0)
  },
)

test.skipIf(!Bun.which('prlimit'))('migrate and doctor manage with few descriptors', async () => {
  const at = { at: emptyFolder(), env: { ATOLL_DURABILITY: 'full' } }
  await makeMany(at.at, 120)
  const program = [
    Bun.which('prlimit')!,
    '--nofile=160:160',
    process.execPath,
    join(import.meta.dir, '../../src/main.ts'),
  ]
  const migrated = await atoll('migrate --json', { ...at, program, timeout: 60_000 })
  expect([migrated.code, migrated.json.length]).toEqual([0, 120])
  const doctor = await atoll('doctor --json', { ...at, program, timeout: 60_000 })
  expect([doctor.code, doctor.json.checks.filter(({ ok }: { ok: boolean }) => !ok)]).toEqual([0, []])
})
