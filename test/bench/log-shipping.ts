// `bun test/bench/log-shipping.ts [seconds]`: what continuous backups cost writes, on servers with and without them by
// turns.
import { cpSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createTempFolder } from '../temp-folder'
import type { Filled } from './fill'
import { product } from './sample-data'

const SECONDS = Number(process.argv[2] ?? 5)
const [ROWS, WRITERS, ROUNDS, WARM_UP_MS] = [1_000, 16, 6, 8_000]

const folder = createTempFolder('shipping')
const common = { ...process.env, ATOLL_RATE_LIMITS: 'off', ATOLL_LOG_LEVEL: 'error', ATOLL_PORT: '0' }
const filled = join(folder, 'filled.json')
const first = { ...common, ATOLL_TENANTS: join(folder, 'plain') }
const fill = Bun.spawn([process.execPath, 'test/bench/fill.ts', `${ROWS}`, filled], { env: first, stdout: 'ignore' })
if (await fill.exited) throw new Error('It could not be filled.')
const { token }: Filled = JSON.parse(readFileSync(filled, 'utf8'))

async function start(name: string, env: Record<string, string>) {
  const data = join(folder, name)
  if (name !== 'plain') cpSync(join(folder, 'plain'), data, { recursive: true })
  const child = Bun.spawn([process.execPath, 'src/main.ts', 'serve', '--json'], {
    env: { ...common, ATOLL_TENANTS: data, ...env },
    stdio: ['ignore', 'pipe', openSync(join(folder, `${name}.log`), 'w')],
  })
  process.once('exit', () => child.kill())
  const { value } = await child.stdout.getReader().read()
  const { url } = JSON.parse(new TextDecoder().decode(value).split('\n')[0]!) as { url: string }
  return { name, url, rates: [] as number[] }
}

const headers = { 'x-api-key': token, tenant: 'bench', 'content-type': 'application/json' }
let number = 0

/** Returns how many writes a second are acknowledged. */
async function measureWrites(url: string, ms: number): Promise<number> {
  const until = performance.now() + ms
  let count = 0
  const write = async () => {
    while (performance.now() < until) {
      const body = JSON.stringify(product(1e9 + number++))
      const answer = await fetch(`${url}/api/blueprints/products/entities`, { method: 'POST', headers, body })
      await answer.arrayBuffer()
      if (answer.status !== 201) throw new Error(`A write was answered with ${answer.status}.`)
      count++
    }
  }
  await Promise.all(Array.from({ length: WRITERS }, write))
  return count / (ms / 1_000)
}

const servers = [
  await start('plain', {}),
  await start('continuous', { ATOLL_BACKUP_CONTINUOUS: 'on', ATOLL_BACKUP_TO: join(folder, 'backups') }),
]
for (const { url } of servers) await measureWrites(url, WARM_UP_MS)
for (let round = 0; round < ROUNDS; round++)
  for (const server of servers) server.rates.push(await measureWrites(server.url, SECONDS * 1_000))
const median = (values: number[]) => values.toSorted((one, other) => one - other)[values.length >> 1]!
for (const { name, rates } of servers)
  console.log(
    `${name}: ${median(rates).toFixed(0)} writes a second (${rates.map((rate) => rate.toFixed(0)).join(', ')})`,
  )
const ratios = servers[1]!.rates.map((rate, round) => rate / servers[0]!.rates[round]!)
console.log(`continuous / plain: ${median(ratios).toFixed(3)} (${ratios.map((ratio) => ratio.toFixed(2)).join(', ')})`)
process.exit()
