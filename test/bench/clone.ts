// `bun test/bench/clone.ts [megabytes]`: how long the clone of a tenant in use takes, and how long its writes take
// meanwhile, in relation to those before.
import { Database } from 'bun:sqlite'
import { openSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { ClonedTenant } from '../../src/backups/shapes'
import { createTempFolder } from '../temp-folder'
import type { Filled } from './fill'
import { product } from './sample-data'

const MEGABYTES = Number(process.argv[2] ?? 1_000)
const [ROWS, WRITERS, QUIET_MS, SETTLE_MS, ROUNDS] = [2_000, 8, 6_000, 2_000, 3]
const [MAX_S, MAX_RATIO] = [10, 2]
const [MB, TOKEN, POLL_MS] = [1e6, 'the-operator-token-of-the-bench', 50]

const folder = createTempFolder('clone')
const env = {
  ...process.env,
  ATOLL_TENANTS: join(folder, 'tenants'),
  ATOLL_OPERATOR_TOKEN: TOKEN,
  ATOLL_RATE_LIMITS: 'off',
  ATOLL_LOG_LEVEL: 'error',
}
const filled = join(folder, 'filled.json')
const fill = Bun.spawn([process.execPath, 'test/bench/fill.ts', `${ROWS}`, filled], { env, stdout: 'ignore' })
if (await fill.exited) throw new Error('It could not be filled.')
const { token }: Filled = JSON.parse(readFileSync(filled, 'utf8'))
const file = join(folder, 'tenants/bench/data.db')
growDatabase()

const server = Bun.spawn([process.execPath, 'src/main.ts', 'serve', '--json'], {
  env: { ...env, ATOLL_PORT: '0' },
  stdio: ['ignore', 'pipe', openSync(join(folder, 'log'), 'w')],
})
process.once('exit', () => server.kill())
const { value } = await server.stdout.getReader().read()
const { url } = JSON.parse(new TextDecoder().decode(value).split('\n')[0]!) as { url: string }

const latencies: number[] = []
let [isWriting, number] = [true, 0]
const writers = Array.from({ length: WRITERS }, write)
const [seconds, ratios]: [number[], number[]] = [[], []]
for (let round = 0; round < ROUNDS; round++) {
  const as = `copy${round}`
  const quiet = await percentilesDuring(() => Bun.sleep(QUIET_MS))
  let cloned: ClonedTenant | undefined
  const startedAt = performance.now()
  const busy = await percentilesDuring(async () => {
    cloned = await clone(as)
  })
  seconds.push((performance.now() - startedAt) / 1_000)
  ratios.push(busy.p99 / quiet.p99)
  console.log(
    `${(statSync(file).size / MB).toFixed(0)} MB in ${seconds.at(-1)!.toFixed(1)} s (${cloned!.ms} ms of work); writes: p50 ${quiet.p50} → ${busy.p50} ms, p99 ${quiet.p99} → ${busy.p99} ms, most ${quiet.most} → ${busy.most} ms, ${quiet.rate} → ${busy.rate} a second`,
  )
  await operator('DELETE', `/operator/tenants/${as}?confirm=${as}`)
  rmSync(join(folder, 'tenants/.trash'), { recursive: true, force: true })
  // The disk has to be done with it, or the next quiet time is not quiet.
  Bun.spawnSync(['sync'])
  await Bun.sleep(SETTLE_MS)
}
isWriting = false
await Promise.all(writers)
const median = (values: number[]) => values.toSorted((one, other) => one - other)[values.length >> 1]!
const listOf = (values: number[]) => values.map((each) => each.toFixed(2)).join(', ')
const describeVerdict = (isGood: boolean) => (isGood ? 'yes' : 'NO')
console.log(
  `a clone: ${median(seconds).toFixed(1)} s (at most ${MAX_S} s: ${describeVerdict(median(seconds) <= MAX_S)})`,
)
console.log(
  `p99 of writes meanwhile: ${median(ratios).toFixed(2)} times (${listOf(ratios)}; at most ${MAX_RATIO}: ${describeVerdict(median(ratios) <= MAX_RATIO)})`,
)
process.exit()

async function operator(method: string, path: string, body?: object) {
  const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' }
  const answer = await fetch(`${url}${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
  return text ? JSON.parse(text) : undefined
}

/** Clones the tenant as the operator does, by a task of the server. */
async function clone(as: string): Promise<ClonedTenant> {
  const { _id } = await operator('POST', '/operator/tenants/bench/clone', { as })
  for (;;) {
    const { status, result, problem } = await operator('GET', `/operator/tasks/${_id}`)
    if (status === 'succeeded') return result
    if (status === 'failed') throw new Error(problem.message)
    await Bun.sleep(POLL_MS)
  }
}

/** Copies the rows until the file is as large as it should be. */
function growDatabase() {
  const database = new Database(file)
  database.run('pragma synchronous = off')
  while (statSync(file).size < MEGABYTES * MB) {
    database.run(`insert into entities (seq, _id, blueprint, identifier, user, shown, keys, version, created, updated)
      select (select max(seq) from entities) + row_number() over (), lower(hex(randomblob(16))), blueprint,
      lower(hex(randomblob(12))), user, shown, keys, version, created, updated from entities limit 100000`)
    database.run('pragma wal_checkpoint(truncate)')
  }
  database.close()
}

async function write() {
  const headers = { 'x-api-key': token, tenant: 'bench', 'content-type': 'application/json' }
  while (isWriting) {
    const startedAt = performance.now()
    const body = JSON.stringify(product(1e9 + number++))
    const answer = await fetch(`${url}/api/blueprints/products/entities`, { method: 'POST', headers, body })
    await answer.arrayBuffer()
    if (answer.status !== 201) throw new Error(`A write was answered with ${answer.status}.`)
    latencies.push(performance.now() - startedAt)
    await Bun.sleep(2)
  }
}

async function percentilesDuring(work: () => Promise<unknown>) {
  latencies.length = 0
  const startedAt = performance.now()
  await work()
  const seconds = (performance.now() - startedAt) / 1_000
  const sorted = latencies.toSorted((one, other) => one - other)
  const at = (part: number) => Math.round(sorted[Math.floor(sorted.length * part)]! * 10) / 10
  return { p50: at(0.5), p99: at(0.99), most: at(0.99999), rate: Math.round(sorted.length / seconds) }
}
