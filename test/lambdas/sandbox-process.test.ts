import { expect, setDefaultTimeout, test as testing } from 'bun:test'
import type { Problem } from '../../src/core/problem'
import { SandboxPool } from '../../src/lambdas/sandbox/pool'
import { type RunInput, SandboxProcess } from '../../src/lambdas/sandbox/sandbox-process'
import { childrenOf, isRunning, memoryOf } from '../fakes/child-processes'
import { apiCaller, createTempFolder, createTenantByCli, pollUntil, signIn, startAtoll } from '../fakes/cli'
import { databaseUrl } from '../storage/engines'
import { waitUntil } from './fixtures'

setDefaultTimeout(30_000)

// The sandbox knows nothing of databases, so once is enough.
const test = databaseUrl ? testing.skip : testing
const onLinux = process.platform === 'linux' ? test : testing.skip

const newInput = (body: string, more: Partial<RunInput> = {}): RunInput => ({
  ...{ js: `export default ${body}`, request: '{}', env: '{}', bounds: { time: 5_000, memory: 64 << 20 } },
  ...more,
})
const silent = { call: async () => ({ ok: true, answer: 'null' }), line: () => {} }
const [firstTenant, otherTenant] = [{ tenant: 'one' }, { tenant: 'other' }]
const bounds = { most: 2, waiting: 1, patience: 10_000, idle: 60_000, last: 60_000 }

test('a process runs one lambda after the other, and is replaced when it had to be ended', async () => {
  const pool = new SandboxPool({ ...bounds, most: 1 })
  const seen = new Set<SandboxProcess>()
  const run = (body: string) =>
    pool.use(firstTenant, (child) => {
      seen.add(child)
      return child.run(newInput(body, { bounds: { time: 100, memory: 64 << 20 } }), silent)
    })
  for (let n = 0; n < 3; n++) expect(await run('() => 1')).toEqual({ value: '1', shape: 'value' })
  // What the engine ends by itself costs no process.
  expect(await run('() => { for (;;); }')).toEqual({ failure: 'timeout' })
  expect(seen.size).toBe(1)
  expect(await run('() => [].indexOf.call({ length: 2 ** 53 - 1 }, 1)')).toEqual({ failure: 'timeout' })
  expect(await run('() => 2')).toEqual({ value: '2', shape: 'value' })
  expect(seen.size).toBe(2)
})

test('what a lambda leaves in its room is not there for the next', async () => {
  const child = new SandboxProcess()
  const run = async (body: string) => (await child.run(newInput(body), silent)) as { value: string }
  const changing = `() => {
    Object.prototype.left = Math.left = globalThis.left = 1
    JSON.stringify.left = 1
    setTimeout(() => {}, 60_000)
    return Math.random()
  }`
  const random = new Set<string>()
  for (let n = 0; n < 3; n++) {
    random.add((await run(changing)).value)
    const look = '() => [({}).left, Math.left, globalThis.left, JSON.stringify.left].filter(Boolean)'
    expect((await run(look)).value).toBe('[]')
  }
  expect(random.size).toBe(3)
  child.kill()
})

test('tenants take turns: one has half of the processes, and who waits too long comes again', async () => {
  const pool = new SandboxPool({ ...bounds, patience: 50 })
  const held = Promise.withResolvers<void>()
  const long = pool.use(firstTenant, () => held.promise)
  const late = pool.use(firstTenant, async () => 'late').catch(({ code }: Problem) => code)
  const full = pool.use(firstTenant, async () => 'full').catch(({ status, code }: Problem) => [status, code])
  expect(await full).toEqual([503, 'LAMBDA_BUSY'])
  expect(await pool.use(otherTenant, async () => 'at once')).toBe('at once')
  expect(await late).toBe('LAMBDA_BUSY')
  const next = pool.use(firstTenant, async () => 'next')
  held.resolve()
  await long
  expect(await next).toBe('next')
})

onLinux('processes that nobody needs end', async () => {
  const before = new Set(childrenOf(process.pid))
  const pool = new SandboxPool({ ...bounds, idle: 20, last: 20 })
  expect(await pool.use(firstTenant, (child) => child.run(newInput('() => 1'), silent))).toMatchObject({ value: '1' })
  const left = () => childrenOf(process.pid).filter((pid) => !before.has(pid)).length
  expect(
    await waitUntil(
      async () => left(),
      (count) => count === 0,
    ),
  ).toBe(0)
  expect(await pool.use(firstTenant, (child) => child.run(newInput('() => 2'), silent))).toMatchObject({ value: '2' })
})

onLinux('one process waits longer than the others, and is there before anybody needs it', async () => {
  const before = new Set(childrenOf(process.pid))
  const made = () => childrenOf(process.pid).filter((pid) => !before.has(pid))
  const pool = new SandboxPool({ ...bounds, idle: 20 })
  pool.prewarm()
  const [first] = made()
  pool.prewarm()
  expect(made()).toEqual([first!])
  const both = [firstTenant, otherTenant].map((tenant) =>
    pool.use(tenant, (child) => child.run(newInput('() => 1'), silent)),
  )
  expect(await Promise.all(both)).toMatchObject([{ value: '1' }, { value: '1' }])
  await waitUntil(
    async () => made().length,
    (count) => count === 1,
  )
  const [left] = made()
  await pool.use(firstTenant, (child) => child.run(newInput('() => 2'), silent))
  expect(made()).toEqual([left!])
  process.kill(left!, 'SIGKILL')
  await waitUntil(
    async () => made().length,
    (count) => count === 0,
  )
  // That it is gone is heard of a moment later.
  const again = async () => {
    pool.prewarm()
    return made()
  }
  const [fresh] = await waitUntil(again, (all) => all.length > 0)
  process.kill(fresh!, 'SIGKILL')
  await waitUntil(
    async () => isRunning(fresh!),
    (running) => !running,
  )
})

onLinux('a process that grew is replaced, so its memory is back', async () => {
  const before = new Set(childrenOf(process.pid))
  const child = new SandboxProcess()
  await child.ready
  const [pid] = childrenOf(process.pid).filter((one) => !before.has(one))
  expect(memoryOf(pid!)).toBeGreaterThan(10)
  const filling =
    '() => { const all = []; for (let n = 0; n < 7e3; n++) all.push(new Array(1e3).fill(n)); return all.length }'
  expect(await child.run(newInput(filling), silent)).toMatchObject({ value: '7000' })
  expect(child.isReusable).toBeFalse()
  expect(
    await waitUntil(
      async () => isRunning(pid!),
      (running) => !running,
    ),
  ).toBeFalse()
})

onLinux('a server starts none before the first lambda, and leaves none behind, however it ends', async () => {
  const at = { at: createTempFolder() }
  await createTenantByCli(at, 'acme')
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    await using server = await startAtoll(at)
    const call = apiCaller(server.url, await signIn(server.url, 'acme'))
    expect(childrenOf(server.pid)).toEqual([])
    // Who is ended at once can't tell others that they should, and this one does not listen.
    const endless = signal === 'SIGKILL'
    const code = `export default () => ${endless ? '[].indexOf.call({ length: 2 ** 53 - 1 }, 1)' : 1}`
    const { body } = await call('POST', '/api/lambdas', { name: 'a', code, timeoutMs: 30_000 })
    const running = call('POST', `/api/lambdas/${body._id}/execute`, {}).catch(() => {})
    await (endless ? Bun.sleep(500) : running)
    const started = childrenOf(server.pid)
    expect(started).not.toEqual([])
    await server.end(signal)
    await running
    const left = async () => started.filter(isRunning)
    expect(await waitUntil(left, (all) => !all.length)).toEqual([])
  }
})

onLinux('a tenant in use that has lambdas has a process ready before it needs one', async () => {
  const at = { at: createTempFolder() }
  await createTenantByCli(at, 'acme')
  {
    await using server = await startAtoll(at)
    const call = apiCaller(server.url, await signIn(server.url, 'acme'))
    expect(childrenOf(server.pid)).toEqual([])
    expect((await call('POST', '/api/lambdas', { name: 'a', code: 'export default () => 1' })).status).toBe(201)
  }
  await using server = await startAtoll(at)
  await signIn(server.url, 'acme')
  const ready = await pollUntil(
    async () => childrenOf(server.pid),
    (all) => all.length > 0,
  )
  expect(ready).toHaveLength(1)
})
