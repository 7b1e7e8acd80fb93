// `bun test/bench/request-cost.ts [checkout…]`: what the line of the log and the rate limits cost a read by identifier, by turns on servers
// with and without them, and on other checkouts. CPU time is compared, which a busy machine leaves alone.
import { cpSync, openSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { createTempFolder } from '../temp-folder'
import type { Filled } from './fill'
import { measure } from './load'

const [ROWS, ROUNDS, SECONDS] = [1_000, 15, 1]
const CPU_TICK_MS = 10 // ms of CPU time, as Linux counts it

const folder = createTempFolder('cost')
const fillEnv = { ATOLL_TENANTS: join(folder, 'first'), ATOLL_DURABILITY: 'normal' }
const checkouts = process.argv.slice(2).map((path) => resolve(path))
const file = join(folder, 'filled.json')
// The oldest program fills it, for the others to bring up to date.
const fill = Bun.spawn([process.execPath, 'test/bench/fill.ts', `${ROWS}`, file], {
  cwd: checkouts[0] ?? process.cwd(),
  env: { ...process.env, ...fillEnv },
  stdio: ['ignore', 'ignore', 'inherit'],
})
if (await fill.exited) throw new Error('It could not be filled.')
const { token, json }: Filled = JSON.parse(readFileSync(file, 'utf8'))
const paths = json.map((text) => `/api/blueprints/products/entities/${JSON.parse(text).identifier}`)

async function start(name: string, cwd: string, env: Record<string, string>) {
  const data = join(folder, name)
  cpSync(fillEnv.ATOLL_TENANTS, data, { recursive: true })
  const child = Bun.spawn([process.execPath, 'src/main.ts', 'serve', '--json'], {
    cwd,
    env: { ...process.env, ATOLL_PORT: '0', ATOLL_TENANTS: data, ...env },
    stdio: ['ignore', 'pipe', openSync(`${data}.log`, 'w')],
  })
  process.once('exit', () => child.kill())
  const { value } = await child.stdout.getReader().read()
  const { url } = JSON.parse(new TextDecoder().decode(value).split('\n')[0]!) as { url: string }
  const cpu = () => {
    const [, ...fields] = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')
    const [user, system] = fields.join(') ').split(' ').slice(11, 13)
    return (Number(user) + Number(system)) * CPU_TICK_MS * 1_000
  }
  return { name, url, cpu, costs: [] as number[], child }
}

const CURRENT_CHECKOUT = process.cwd()
const servers = [
  ...(await Promise.all(checkouts.map((path, n) => start(`checkout-${n}`, path, { ATOLL_RATE_LIMITS: 'off' })))),
  await start('plain', CURRENT_CHECKOUT, { ATOLL_LOG_LEVEL: 'error', ATOLL_RATE_LIMITS: 'off' }),
  await start('logging', CURRENT_CHECKOUT, { ATOLL_LOG_LEVEL: 'info', ATOLL_RATE_LIMITS: 'off' }),
  await start('limiting', CURRENT_CHECKOUT, { ATOLL_LOG_LEVEL: 'error', ATOLL_OPERATOR_TOKEN: 'bench' }),
]
const raised = await fetch(`${servers.at(-1)!.url}/operator/tenants/bench/limits`, {
  method: 'PUT',
  headers: { authorization: 'Bearer bench', 'content-type': 'application/json' },
  body: JSON.stringify({ users: { reads: 10_000_000 } }),
})
if (!raised.ok) throw new Error(`The limits could not be raised: ${await raised.text()}`)
for (let round = 0; round <= ROUNDS; round++)
  for (const { url, cpu, costs } of servers) {
    const before = cpu()
    const { perSecond, errors } = await measure({
      ...{ url, paths, method: 'GET', connections: 16, seconds: SECONDS },
      headers: { 'x-api-key': token },
    })
    if (errors) throw new Error(`${errors} requests failed.`)
    // The first round only warms up.
    if (round) costs.push((cpu() - before) / (perSecond * SECONDS))
  }
const medianOf = (list: number[]) => [...list].sort((one, other) => one - other)[list.length >> 1]!
const [first] = servers
for (const { name, costs } of servers) {
  const ratio = medianOf(costs.map((cost, round) => cost / first!.costs[round]!))
  console.log(`${name.padEnd(12)} ${medianOf(costs).toFixed(1)} µs of CPU a read, ${ratio.toFixed(3)} of the first`)
}
for (const { child } of servers) child.kill()
await Promise.all(servers.map(({ child }) => child.exited))
