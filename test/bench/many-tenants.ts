// `bun test/bench/many-tenants.ts [tenants] [touches]`: what it takes to create many tenants, to start a server that has
// them, to touch any of them, and to keep a thousand open; and what is left after many touches.
import { mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const TENANTS = Number(process.argv[2] ?? 10_000)
const TOUCHES = Number(process.argv[3] ?? 100_000)
const OPEN_TENANTS = Math.min(1_000, TENANTS)
const [CONCURRENCY, STARTS, SAMPLES, LONE_TOUCHES] = [4, 5, 20, 5_000]

const folder = mkdtempSync(join(process.env.BENCH_DIR ?? tmpdir(), 'atoll-tenants-'))
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
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

const first = await startServer()
const createdIn: number[] = []
for (let number = 0; number < TENANTS; number++) {
  const startedAt = performance.now()
  const answer = await fetch(`${first.url}/operator/tenants`, {
    method: 'POST',
    headers: { authorization: 'Bearer bench', 'content-type': 'application/json' },
    body: JSON.stringify({ id: idOf(number) }),
  })
  if (answer.status !== 201) throw new Error(await answer.text())
  createdIn.push(performance.now() - startedAt)
}
console.log(`create: ${formatLatencies(createdIn)}`)
first.child.kill('SIGTERM')
await first.child.exited

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
process.exit()
