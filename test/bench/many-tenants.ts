// `bun test/bench/many-tenants.ts [tenants] [touches]`: what it takes to create many tenants, to start a server that has
// them, to touch any of them, and to keep a thousand open while threads read others; and what is left after many touches.
import { openSync, readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { createTempFolder } from '../temp-folder'

const TENANTS = Number(process.argv[2] ?? 10_000)
const TOUCHES = Number(process.argv[3] ?? 100_000)
const OPEN_TENANTS = Math.min(1_000, TENANTS)
const [CONCURRENCY, STARTS, SAMPLES, LONE_TOUCHES] = [4, 5, 20, 5_000]
/** Tenants whose entities are exported, which reader threads do: more than they keep open. */
const EXPORTED_TENANTS = Math.min(200, TENANTS)
const PASSWORD = 'correct horse'

const folder = createTempFolder('tenants')
const env = {
  ...process.env,
  ...{ ATOLL_TENANTS: join(folder, 'tenants'), ATOLL_OPERATOR_TOKEN: 'bench', ATOLL_RATE_LIMITS: 'off' },
  ...{ ATOLL_LOG_LEVEL: 'error', ATOLL_OPEN_TENANTS: `${OPEN_TENANTS}`, ATOLL_PORT: '0' },
}

async function startServer() {
  const startedAt = performance.now()
  const child = Bun.spawn(
    [
      process.env.ATOLL_BINARY ?? process.execPath,
      ...(process.env.ATOLL_BINARY ? [] : ['src/main.ts']),
      'serve',
      '--json',
    ],
    { env, stdio: ['ignore', 'pipe', openSync(join(folder, 'log'), 'a')] },
  )
  process.once('exit', () => child.kill())
  const { value } = await child.stdout.getReader().read()
  const { url } = JSON.parse(new TextDecoder().decode(value).split('\n')[0]!) as { url: string }
  await fetch(`${url}/health`)
  return { child, url, ms: performance.now() - startedAt }
}

const idOf = (number: number) => `t${number}`
const formatLatencies = (latencies: number[]) => {
  const sorted = latencies.toSorted((one, other) => one - other)
  const at = (part: number) => sorted[Math.floor(sorted.length * part)]!.toFixed(1)
  return `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, max ${at(0.999999)} ms`
}
const readMemory = (pid: number) =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1_000
const countDescriptors = (pid: number) => readdirSync(`/proc/${pid}/fd`).length
/** Returns how many tenants' files a process has open. */
const countOpenTenants = (pid: number) => {
  const targets = readdirSync(`/proc/${pid}/fd`).map((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`)
    } catch {
      return '' // it was closed meanwhile
    }
  })
  return new Set(targets.filter((target) => target.endsWith('/data.db'))).size
}

const first = await startServer()
const createdIn: number[] = []
for (let number = 0; number < TENANTS; number++) {
  const startedAt = performance.now()
  const answer = await fetch(`${first.url}/operator/tenants`, {
    method: 'POST',
    headers: { authorization: 'Bearer bench', 'content-type': 'application/json' },
    body: JSON.stringify({
      id: idOf(number),
      ...(number < EXPORTED_TENANTS && { admin: { username: 'root', password: PASSWORD } }),
    }),
  })
  if (answer.status !== 201) throw new Error(await answer.text())
  createdIn.push(performance.now() - startedAt)
}
console.log(`create: ${formatLatencies(createdIn)}`)
first.child.kill('SIGTERM')
await first.child.exited
const sizes = Array.from({ length: TENANTS }, (_, number) => statSync(join(folder, 'tenants', idOf(number), 'data.db')))
const kilobytes = sizes.map(({ size }) => size / 1_000)
console.log(`a new tenant: ${(kilobytes.reduce((sum, one) => sum + one) / TENANTS).toFixed(0)} KB on average`)

const starts: number[] = []
for (let sample = 0; sample < STARTS; sample++) {
  const { child, ms } = await startServer()
  starts.push(ms)
  child.kill('SIGTERM')
  await child.exited
}
console.log(`start with ${TENANTS} tenants: ${starts.map((ms) => ms.toFixed(0)).join(', ')} ms`)

const { child, url } = await startServer()
const touch = async (number: number) => {
  const startedAt = performance.now()
  const answer = await fetch(`${url}/api/blueprints/nothing/entities`, { headers: { tenant: idOf(number) } })
  await answer.arrayBuffer()
  return performance.now() - startedAt
}

async function touchMany(count: number, pick: () => number, concurrency: number): Promise<number[]> {
  const latencies: number[] = []
  let left = count
  const touchNext = async () => {
    while (left-- > 0) latencies.push(await touch(pick()))
  }
  await Promise.all(Array.from({ length: concurrency }, touchNext))
  return latencies
}

console.log(`memory before: ${readMemory(child.pid).toFixed(0)} MB`)
for (let number = 0; number < OPEN_TENANTS; number++) await touch(number)
console.log(`${OPEN_TENANTS} open: ${readMemory(child.pid).toFixed(0)} MB, ${countDescriptors(child.pid)} descriptors`)

/** Lets reader threads export an entity of several tenants. */
async function exportFromThreads() {
  for (let number = 0; number < EXPORTED_TENANTS; number++) {
    const tenant = idOf(number)
    const call = async (path: string, body: unknown, headers = {}) => {
      const answer = await fetch(`${url}${path}`, {
        method: 'POST',
        headers: { tenant, 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      })
      if (!answer.ok) throw new Error(await answer.text())
      return (await answer.json()) as { payload: { token: string } }
    }
    const { payload } = await call('/api/signin', { username: 'root', password: PASSWORD, authType: 'oauth' })
    const headers = { authorization: `Bearer ${payload.token}` }
    const permissions = ['create', 'read'].map((operation) => ({ operation, scope: 'tenant', roleBased: ['admin'] }))
    const fields = [{ key: 'title', type: 'string' }]
    await call('/api/blueprints', { key: 'notes', name: 'Notes', fields, permissions }, headers)
    await call('/api/blueprints/notes/entities', { title: 'A note' }, headers)
    const path = `${url}/api/blueprints/notes/entities/export?format=ndjson`
    const exported = await fetch(path, { headers: { tenant, ...headers } })
    if (!(await exported.text()).includes('A note')) throw new Error('The export lacks an entity.')
  }
}

let next = 0
const mostOpen = { tenants: 0 }
const watch = setInterval(() => {
  mostOpen.tenants = Math.max(mostOpen.tenants, countOpenTenants(child.pid))
}, 250)
console.log(`each once, one at a time: ${formatLatencies(await touchMany(TENANTS, () => next++, 1))}`)
const random = () => Math.floor(Math.random() * TENANTS)
console.log(`random touches, one at a time: ${formatLatencies(await touchMany(LONE_TOUCHES, random, 1))}`)
for (let sample = 1; sample <= SAMPLES; sample++) {
  const startedAt = performance.now()
  const latencies = await touchMany(TOUCHES / SAMPLES, random, CONCURRENCY)
  const perSecond = latencies.length / ((performance.now() - startedAt) / 1_000)
  console.log(
    `${(sample * TOUCHES) / SAMPLES} random touches, ${CONCURRENCY} at a time: ${perSecond.toFixed(0)}/s, ${formatLatencies(latencies)}; ${readMemory(child.pid).toFixed(0)} MB, ${countDescriptors(child.pid)} descriptors`,
  )
}
clearInterval(watch)
console.log(`at most ${mostOpen.tenants} tenants were open at once, of ${OPEN_TENANTS} that may be`)
await exportFromThreads()
for (let number = 0; number < OPEN_TENANTS; number++) await touch(number)
console.log(
  `${OPEN_TENANTS} open, and ${EXPORTED_TENANTS} exported by reader threads: ${readMemory(child.pid).toFixed(0)} MB, ${countDescriptors(child.pid)} descriptors`,
)
process.exit()
