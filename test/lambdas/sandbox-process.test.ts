// engine: sqlite
import { expect, setDefaultTimeout, test as testing } from 'bun:test'
import type { Problem } from '../../src/core/problem'
import { SandboxPool } from '../../src/lambdas/sandbox/pool'
import { type RunInput, SandboxProcess } from '../../src/lambdas/sandbox/sandbox-process'
import { childrenOf, isRunning, memoryOf } from '../fakes/child-processes'
import { apiCaller, createTempFolder, createTenantByCli, signIn, startAtoll } from '../fakes/cli'
import { databaseUrl } from '../storage/engines'
import { waitUntil } from '../wait-until'

setDefaultTimeout(30_000)

// The sandbox knows nothing of databases, so once is enough.
const test = databaseUrl ? testing.skip : testing
const onLinux = process.platform === 'linux' ? test : testing.skip

const newInput = (body: string, more: Partial<RunInput> = {}): RunInput => ({
  ...{ js: `export default ${body}`, request: '{}', env: '{}', limits: { time: 5_000, memory: 64 << 20 } },
  ...more,
})
const silent = { call: async () => ({ ok: true, answer: 'null' }), line: () => {} }
const [firstTenant, otherTenant] = [
  { tenant: 'one', caller: 'user' },
  { tenant: 'other', caller: 'user' },
]
const limits = {
  maxProcesses: 2,
  maxWaiting: 1,
  waitTimeoutMs: 10_000,
  idleTimeoutMs: 60_000,
  lastIdleTimeoutMs: 60_000,
}

test('a sandbox process runs one lambda after the other, and is replaced when it had to be killed', async () => {
  const pool = new SandboxPool({ ...limits, maxProcesses: 1 })
  const seen = new Set<SandboxProcess>()
  const run = (body: string) =>
    pool.use(firstTenant, (child) => {
      seen.add(child)
      return child.run(newInput(body, { limits: { time: 100, memory: 64 << 20 } }), silent)
    })
  for (let n = 0; n < 3; n++) expect(await run('() => 1')).toEqual({ value: '1', format: 'value' })
  // A loop that the engine interrupts costs no process.
  expect(await run('() => { for (;;); }')).toEqual({ failure: 'timeout' })
  expect(seen.size).toBe(1)
  expect(await run('() => [].indexOf.call({ length: 2 ** 53 - 1 }, 1)')).toEqual({ failure: 'timeout' })
  expect(await run('() => 2')).toEqual({ value: '2', format: 'value' })
  expect(seen.size).toBe(2)
})

test('globals, prototypes and timers that a lambda changes are fresh for the next lambda of the process', async () => {
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
    const readLeftovers = '() => [({}).left, Math.left, globalThis.left, JSON.stringify.left].filter(Boolean)'
    expect((await run(readLeftovers)).value).toBe('[]')
  }
  expect(random.size).toBe(3)
  child.kill()
})

test('a tenant gets half of the processes, and its calls that wait too long or exceed the queue answer 503 LAMBDA_BUSY', async () => {
  const pool = new SandboxPool({ ...limits, waitTimeoutMs: 50 })
  const firstRun = Promise.withResolvers<void>()
  const long = pool.use(firstTenant, () => firstRun.promise)
  const late = pool.use(firstTenant, async () => 'late').catch(({ code }: Problem) => code)
  const full = pool.use(firstTenant, async () => 'full').catch(({ status, code }: Problem) => [status, code])
  expect(await full).toEqual([503, 'LAMBDA_BUSY'])
  expect(await pool.use(otherTenant, async () => 'at once')).toBe('at once')
  expect(await late).toBe('LAMBDA_BUSY')
  const next = pool.use(firstTenant, async () => 'next')
  firstRun.resolve()
  await long
  expect(await next).toBe('next')
})

onLinux('idle sandbox processes end, and a later run starts a new one', async () => {
  const before = new Set(childrenOf(process.pid))
  const pool = new SandboxPool({ ...limits, idleTimeoutMs: 20, lastIdleTimeoutMs: 20 })
  expect(await pool.use(firstTenant, (child) => child.run(newInput('() => 1'), silent))).toMatchObject({ value: '1' })
  const countProcesses = () => childrenOf(process.pid).filter((pid) => !before.has(pid)).length
  expect(
    await waitUntil(
      async () => countProcesses(),
      (count) => count === 0,
    ),
  ).toBe(0)
  expect(await pool.use(firstTenant, (child) => child.run(newInput('() => 2'), silent))).toMatchObject({ value: '2' })
})

onLinux(
  'a prewarmed process is there before it is needed, outlives the idle ones, and is replaced when it dies',
  async () => {
    const before = new Set(childrenOf(process.pid))
    const listProcesses = () => childrenOf(process.pid).filter((pid) => !before.has(pid))
    const pool = new SandboxPool({ ...limits, idleTimeoutMs: 20 })
    pool.prewarm()
    const [first] = listProcesses()
    pool.prewarm()
    expect(listProcesses()).toEqual([first!])
    const runs = [firstTenant, otherTenant].map((tenant) =>
      pool.use(tenant, (child) => child.run(newInput('() => 1'), silent)),
    )
    expect(await Promise.all(runs)).toMatchObject([{ value: '1' }, { value: '1' }])
    await waitUntil(
      async () => listProcesses().length,
      (count) => count === 1,
    )
    const [survivor] = listProcesses()
    await pool.use(firstTenant, (child) => child.run(newInput('() => 2'), silent))
    expect(listProcesses()).toEqual([survivor!])
    process.kill(survivor!, 'SIGKILL')
    await waitUntil(
      async () => listProcesses().length,
      (count) => count === 0,
    )
    // The pool notices the exit a moment later.
    const prewarmAgain = async () => {
      pool.prewarm()
      return listProcesses()
    }
    const [fresh] = await waitUntil(prewarmAgain, (all) => all.length > 0)
    process.kill(fresh!, 'SIGKILL')
    await waitUntil(
      async () => isRunning(fresh!),
      (running) => !running,
    )
  },
)

onLinux('a sandbox process that grew is not reused and exits, which frees its memory', async () => {
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

onLinux(
  'a server starts no sandbox process before the first lambda, and leaves none behind after SIGTERM or SIGKILL',
  async () => {
    const place = { at: createTempFolder() }
    await createTenantByCli(place, 'acme')
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      await using server = await startAtoll(place)
      const call = apiCaller(server.url, await signIn(server.url, 'acme'))
      expect(childrenOf(server.pid)).toEqual([])
      // A killed server cannot stop its children, and this lambda blocks the loop of its process.
      const endless = signal === 'SIGKILL'
      const code = `export default () => ${endless ? '[].indexOf.call({ length: 2 ** 53 - 1 }, 1)' : 1}`
      const { body } = await call('POST', '/api/lambdas', { name: 'a', code, timeoutMs: 30_000 })
      const running = call('POST', `/api/lambdas/${body._id}/execute`, {}).catch(() => {})
      await (endless ? Bun.sleep(500) : running)
      const started = childrenOf(server.pid)
      expect(started).not.toEqual([])
      await server.end(signal)
      await running
      const listRunning = async () => started.filter(isRunning)
      expect(await waitUntil(listRunning, (all) => !all.length)).toEqual([])
    }
  },
)

onLinux('a tenant with lambdas that is in use has one sandbox process ready before its first run', async () => {
  const place = { at: createTempFolder() }
  await createTenantByCli(place, 'acme')
  {
    await using server = await startAtoll(place)
    const call = apiCaller(server.url, await signIn(server.url, 'acme'))
    expect(childrenOf(server.pid)).toEqual([])
    expect((await call('POST', '/api/lambdas', { name: 'a', code: 'export default () => 1' })).status).toBe(201)
  }
  await using server = await startAtoll(place)
  await signIn(server.url, 'acme')
  const ready = await waitUntil(
    async () => childrenOf(server.pid),
    (all) => all.length > 0,
  )
  expect(ready).toHaveLength(1)
})
