// `npm run bench -- --shop`: finds the most requests per second that the server can do in the proportions of a small shop,
// and sends half as many for a while, at fixed times.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createTenantByCli, type RunOptions, runAtoll, signIn, startAtoll } from '../../fakes/cli'
import { startPostgres } from '../../fakes/postgres'
import { createTempFolder } from '../../temp-folder'
import { importRows, sendJson } from '../http-calls'
import { percentilesOf } from '../load'
import { createRandom } from '../random'
import { toProgram } from '../sides/atoll'
import { readMemory } from '../table'
import { formatRequest } from './http-connection'
import { type Latencies, type OpenLoop, runOpenLoop, type ScheduledKind } from './open-loop'
import {
  countShop,
  customerId,
  makeCustomer,
  makeOrder,
  makeProduct,
  PASSWORD,
  productId,
  shopBlueprints,
} from './shop-data'
import { createShopKinds } from './shop-requests'

const TENANT = 'shop'
const USERS = 20
/** Sends all requests but sign-ins, which would end its session once there are many of one user. */
const SHOPPER = 'shopper@example.com'
const FIRST_RATE = 100 // requests per second
const STEP_SECONDS = 8
const STEP_FACTOR = 1.5
const HALVINGS = 3
const MAX_WARM_UP_STEPS = 15
/** Beyond these, or with errors such as 503 BUSY, the server does not keep up. */
const MAX_STEP_P99_MS = 1_000
const MAX_LATE_MS = 500
const SLOW_MS = 250

export type ShopOptions = { rows: number; minutes: number; program?: string; engine: string; out: string }

export async function runShop({ rows, minutes, program = '.', engine, out }: ShopOptions): Promise<number> {
  const size = countShop(rows)
  const database = engine === 'postgres' ? await startPostgres({ durable: true }) : undefined
  const run: RunOptions = {
    at: createTempFolder('shop'),
    program: toProgram(program),
    env: {
      ...{ ATOLL_DURABILITY: 'full', ATOLL_IMPORT_LIMIT: '1000000000', ATOLL_ACCESS_TOKEN_TTL: '86400' },
      ...(database && { ATOLL_DATABASE_URL: database.url }),
    },
  }
  if (database) await runAtoll('postgres init', run)
  await createTenantByCli(run, TENANT)
  const users = Array.from({ length: USERS }, (_, n) => `user${n}@example.com`)
  const headers = await fillShop(run, size, users)
  await using server = await startAtoll(run)
  const { host } = new URL(server.url)
  const random = createRandom('shop')
  const kinds: ScheduledKind[] = createShopKinds(size, users).map(({ name, percent, draw }) => ({
    ...{ name, percent },
    draw: () => formatRequest(host, { ...headers, 'content-type': 'application/json' }, draw(random)),
  }))
  const places = kinds.flatMap(({ percent }, place) => Array<number>(percent).fill(place))
  const pick = () => places[random.below(places.length)]!
  const load = (perSecond: number, seconds: number) => runOpenLoop(server.url, kinds, { perSecond, seconds, pick })

  const most = await findMost(load)
  const perSecond = Math.floor(most / 2)
  console.log(`the most is ${most.toFixed(0)} requests/s; ${perSecond}/s for ${minutes} minutes`)
  const all: Latencies = new Map(kinds.map(({ name }) => [name, []]))
  const minuteReports = []
  const errors = new Map<string, number>()
  for (let minute = 1; minute <= minutes; minute++) {
    const cpuBefore = process.cpuUsage()
    const result = await load(perSecond, 60)
    const { user, system } = process.cpuUsage(cpuBefore)
    for (const [name, count] of result.errors) errors.set(name, (errors.get(name) ?? 0) + count)
    for (const [name, times] of result.latencies) for (const time of times) all.get(name)!.push(time)
    const memoryMb = readMemory(server.pid, 'VmRSS')
    minuteReports.push({ minute, memoryMb, ...describe([...result.latencies.values()].flat()) })
    console.log(
      `minute ${minute}: ${memoryMb.toFixed(0)} MB, ${formatTimes([...result.latencies.values()].flat())}, the client took ${((user + system) / 600_000).toFixed(0)} % of a processor`,
    )
  }
  for (const { name, percent } of kinds)
    console.log(`${name.padEnd(32)} ${`${percent} %`.padStart(4)}  ${formatTimes(all.get(name)!)}`)
  const times = [...all.values()].flat()
  console.log(`${'all'.padEnd(38)}  ${formatTimes(times)}`)
  console.log(
    `${times.filter((ms) => ms > SLOW_MS).length} of ${times.length} took over ${SLOW_MS} ms, ${formatErrors(errors)}`,
  )
  const byKind = Object.fromEntries([...all].map(([name, list]) => [name, describe(list)]))
  mkdirSync(join(out, '..'), { recursive: true })
  const report = {
    ...{ rows, engine, most, perSecond, minutes, errors: Object.fromEntries(errors) },
    all: describe(times),
    byKind,
    minuteReports,
  }
  writeFileSync(out.replace(/\.json$/, '-shop.json'), `${JSON.stringify(report, null, 2)}\n`)
  await database?.stop()
  return 0
}

async function fillShop(
  run: RunOptions,
  { products, customers, orders }: ReturnType<typeof countShop>,
  users: string[],
) {
  await using server = await startAtoll(run)
  const admin = await signIn(server.url, TENANT)
  for (const blueprint of shopBlueprints) await sendJson(server.url, admin, 'POST', '/api/blueprints', blueprint)
  const list = (count: number, make: (n: number) => object) => Array.from({ length: count }, (_, n) => make(n))
  await importRows(
    server.url,
    admin,
    'products',
    list(products, (n) => ({ identifier: productId(n), ...makeProduct(n) })),
  )
  await importRows(
    server.url,
    admin,
    'customers',
    list(customers, (n) => ({ identifier: customerId(n), ...makeCustomer(n) })),
  )
  await importRows(
    server.url,
    admin,
    'orders',
    list(orders, (n) => makeOrder(n, customers, products)),
  )
  for (const username of [SHOPPER, ...users])
    await sendJson(server.url, { tenant: TENANT }, 'POST', '/api/signup', {
      ...{ username, email: username, password: PASSWORD, authType: 'oauth' },
    })
  const headers = await signIn(server.url, TENANT, SHOPPER, PASSWORD)
  await server.end('SIGTERM')
  return headers
}

/** Raises the rate until the server does not keep up, and looks closer between the last two rates. */
async function findMost(load: (perSecond: number, seconds: number) => Promise<OpenLoop>): Promise<number> {
  const tryRate = async (rate: number) => {
    const { latencies, lateMs, errors } = await load(rate, STEP_SECONDS)
    const { p50, p99 } = describe([...latencies.values()].flat())
    const isEnough = !errors.size && p99 <= MAX_STEP_P99_MS && lateMs <= MAX_LATE_MS
    console.log(
      `${rate.toFixed(0).padStart(6)}/s  p50 ${p50.toFixed(1)} ms  p99 ${p99.toFixed(0)} ms  ${formatErrors(errors)}${isEnough ? '' : '  too many'}`,
    )
    return isEnough
  }
  // Other work of the machine may spoil a step.
  const keepsUp = async (rate: number) => (await tryRate(rate)) || (await tryRate(rate))
  // The first lists wait for indexes, or have them built.
  for (let step = 0; step < MAX_WARM_UP_STEPS; step++) if (await keepsUp(FIRST_RATE)) break
  let good = FIRST_RATE
  let bad = FIRST_RATE * STEP_FACTOR
  while (await keepsUp(bad)) [good, bad] = [bad, bad * STEP_FACTOR]
  for (let n = 0; n < HALVINGS; n++) {
    const middle = (good + bad) / 2
    if (await keepsUp(middle)) good = middle
    else bad = middle
  }
  return good
}

const describe = (times: number[]) => ({ count: times.length, ...percentilesOf(times) })
const formatErrors = (errors: Map<string, number>) =>
  errors.size ? `errors: ${[...errors].map(([name, count]) => `${count} × ${name}`).join(', ')}` : 'no errors'
const formatTimes = (times: number[]) => {
  const { count, p50, p99, max } = describe(times)
  return `${count} requests  p50 ${p50.toFixed(1)} ms  p99 ${p99.toFixed(1)} ms  most ${max.toFixed(0)} ms`
}
