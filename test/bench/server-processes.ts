// `bun test/bench/server-processes.ts [seconds [processors]]`: what a second process (ATOLL_WORKERS=2) brings to reads and to writes of
// one tenant. Servers with one and two processes take turns on the same processors, such as 0,2.
import { cpSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createTempFolder } from '../temp-folder'
import type { Filled } from './fill'
import { type Load, measure } from './load'
import { product } from './sample-data'

const SECONDS = Number(process.argv[2] ?? 4)
const PROCESSORS = process.argv[3]
const [ROWS, ROUNDS] = [2_000, 5]
const taskset = Bun.which('taskset')

const folder = createTempFolder('processes')
const common = { ...process.env, ATOLL_RATE_LIMITS: 'off', ATOLL_LOG_LEVEL: 'error', ATOLL_PORT: '0' }
const filled = join(folder, 'filled.json')
const env = { ...common, ATOLL_TENANTS: join(folder, '1') }
const fill = Bun.spawn([process.execPath, 'test/bench/fill.ts', `${ROWS}`, filled], { env, stdout: 'ignore' })
if (await fill.exited) throw new Error('It could not be filled.')
const { token, json }: Filled = JSON.parse(readFileSync(filled, 'utf8'))

async function start(processes: number) {
  const data = join(folder, `${processes}`)
  if (processes > 1) cpSync(join(folder, '1'), data, { recursive: true })
  const pinned = taskset && PROCESSORS ? [taskset, '-c', PROCESSORS] : []
  const child = Bun.spawn([...pinned, process.execPath, 'src/main.ts', 'serve', '--json'], {
    env: { ...common, ATOLL_TENANTS: data, ATOLL_WORKERS: `${processes}` },
    stdio: ['ignore', 'pipe', openSync(join(folder, `${processes}.log`), 'w')],
  })
  process.once('exit', () => child.kill())
  const { value } = await child.stdout.getReader().read()
  const { url } = JSON.parse(new TextDecoder().decode(value).split('\n')[0]!) as { url: string }
  return url
}

const servers = [await start(1), await start(2)]
const ids = json.map((text) => (JSON.parse(text) as { _id: string })._id)
const headers = { 'x-api-key': token, tenant: 'bench', 'content-type': 'application/json' }
const entities = '/api/blueprints/products/entities'
const median = (values: number[]) => values.toSorted((one, other) => one - other)[values.length >> 1]!

const loads: Record<string, Pick<Load, 'method' | 'paths' | 'bodies'>> = {
  'an entity': { method: 'GET', paths: ids.map((id) => `${entities}/${id}`) },
  'a list of 20': { method: 'GET', paths: [`${entities}?$limit=20`] },
  'a write': { method: 'POST', paths: [entities], bodies: ids.map((_, n) => JSON.stringify(product(1e9 + n))) },
}
for (const [name, load] of Object.entries(loads)) {
  const rates: [number, number][] = []
  for (let round = -1; round < ROUNDS; round++) {
    const figures: number[] = []
    for (const url of servers) {
      const { perSecond, errors } = await measure({
        ...load,
        url,
        headers,
        connections: 32,
        seconds: round < 0 ? 2 : SECONDS,
      })
      if (errors) throw new Error(`${errors} requests failed.`)
      figures.push(perSecond)
    }
    if (round >= 0) rates.push(figures as [number, number])
  }
  const ratios = rates.map(([one, two]) => two / one)
  console.log(
    `${name}: ${median(rates.map(([one]) => one)).toFixed(0)} a second by one process, ${median(rates.map(([, two]) => two)).toFixed(0)} by two: ${median(ratios).toFixed(2)} times (${ratios.map((ratio) => ratio.toFixed(2)).join(', ')})`,
  )
}
process.exit()
