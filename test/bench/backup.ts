// `bun test/bench/backup.ts [megabytes]`: how fast a tenant in use is backed up and restored, and how long writes take
// meanwhile, in relation to those before and after.
import { Database } from 'bun:sqlite'
import { openSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { createTempFolder } from '../temp-folder'
import type { Filled } from './fill'
import { product } from './sample-data'

const MEGABYTES = Number(process.argv[2] ?? 1_000)
const [ROWS, WRITERS, QUIET_MS, ROUNDS] = [2_000, 8, 6_000, 3]
const MB = 1e6

const folder = createTempFolder('backup')
const env = {
  ...process.env,
  ATOLL_TENANTS: join(folder, 'tenants'),
  ATOLL_RATE_LIMITS: 'off',
  ATOLL_LOG_LEVEL: 'error',
}
const filled = join(folder, 'filled.json')
await run([process.execPath, 'test/bench/fill.ts', `${ROWS}`, filled])
const { token }: Filled = JSON.parse(readFileSync(filled, 'utf8'))
const file = join(folder, 'tenants/bench/data.db')
growDatabase()

const log = openSync(join(folder, 'log'), 'w')
const server = Bun.spawn([process.execPath, 'src/main.ts', 'serve', '--json'], {
  env: { ...env, ATOLL_PORT: '0' },
  stdio: ['ignore', 'pipe', log],
})
process.once('exit', () => server.kill())
const { value } = await server.stdout.getReader().read()
const { url } = JSON.parse(new TextDecoder().decode(value).split('\n')[0]!) as { url: string }

const latencies: number[] = []
let [isWriting, number] = [true, 0]
const writers = Array.from({ length: WRITERS }, write)
const ratios: number[] = []
for (let round = 0; round < ROUNDS; round++) {
  const quiet = await percentilesDuring(() => Bun.sleep(QUIET_MS))
  let made = ''
  const busy = await percentilesDuring(async () => {
    made = await run([process.execPath, 'src/main.ts', 'backup', 'bench', '--to', join(folder, 'backups'), '--json'])
  })
  const { place, ms, bytes } = JSON.parse(made).backups[0] as { place: string; ms: number; bytes: number }
  ratios.push(busy.p99 / quiet.p99)
  const size = statSync(file).size
  console.log(
    `backup: ${rate(size, ms)} (${(bytes / MB).toFixed(0)} MB stored); writes: p50 ${quiet.p50} → ${busy.p50} ms, p99 ${quiet.p99} → ${busy.p99} ms, ${quiet.rate} → ${busy.rate} a second`,
  )
  const restored = JSON.parse(
    await run([process.execPath, 'src/main.ts', 'restore', place, '--as', `copy${round}`, '--json']),
  ).restored[0] as { ms: number }
  console.log(`restore: ${rate(size, restored.ms)}`)
}
isWriting = false
await Promise.all(writers)
console.log(`p99 of writes during a backup: ${ratios.map((ratio) => ratio.toFixed(2)).join(', ')} times`)
process.exit()

function rate(bytes: number, ms: number) {
  return `${(bytes / MB).toFixed(0)} MB in ${ms} ms, ${(bytes / MB / (ms / 1_000)).toFixed(0)} MB/s`
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
  const headers = {
    'x-api-key': token,
    authorization: `Bearer ${token}`,
    tenant: 'bench',
    'content-type': 'application/json',
  }
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
  return { p50: at(0.5), p99: at(0.99), rate: Math.round(sorted.length / seconds) }
}

async function run(command: string[]): Promise<string> {
  const child = Bun.spawn(command, { env, stdio: ['ignore', 'pipe', 'ignore'] })
  const output = await child.stdout.text()
  if (await child.exited) throw new Error(`${command.join(' ')} failed: ${output}`)
  return output
}
