// `bun test/bench/flight-imports.ts [rows] [rounds] [checkout]`: imports a CSV of flights (19 columns) into a new tenant
// on SQLite and PostgreSQL, alternating with another checkout, and prints the rate and the CPU time per row.
import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { resolve } from 'node:path'
import { createTempFolder, createTenantByCli, SOURCE_COMMAND, signIn, startAtoll } from '../fakes/cli'
import { createDatabase, startPostgres } from '../fakes/postgres'
import { createRandom } from './random'

const [rows, rounds] = [Number(process.argv[2] ?? 336_776), Number(process.argv[3] ?? 3)]
const checkouts = ['.', ...process.argv.slice(4)].map((path) => resolve(path))
const CLOCK_TICK_MS = 10

const NUMBERS = 'year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay'.split(',')
const columns = [...NUMBERS, 'carrier', 'flight', 'tailnum', 'origin', 'dest', 'air_time', 'distance', 'hour', 'minute']
const texts = ['carrier', 'tailnum', 'origin', 'dest']
const fields = [
  ...columns.map((key) => ({ key, type: texts.includes(key) ? 'text' : 'integer' })),
  { key: 'time_hour', type: 'datetime' },
]

/** A year of flights in order, with as many distinct values as the flights from New York. */
function toCsv(): Buffer {
  const random = createRandom('flights')
  const list = <T>(count: number, make: (n: number) => T) => Array.from({ length: count }, (_, n) => make(n))
  const [carriers, dests] = [list(16, (n) => `C${n}`), list(105, (n) => `D${n}`)]
  const tails = list(4_043, () => `N${100 + random.below(900)}${random.below(99)}`)
  const toClock = (minutes: number) => 100 * Math.floor((minutes % 1_440) / 60) + (minutes % 60)
  const lines = list(rows, (n) => {
    const day = new Date(Date.UTC(2013, 0, 1 + Math.floor((n / rows) * 365))).toISOString().slice(0, 10)
    const [hour, minute, delay, duration] = [
      5 + random.below(18),
      random.below(60),
      random.below(90),
      random.below(380),
    ]
    const scheduled = 60 * hour + minute
    const isCanceled = !random.below(40)
    const ifFlown = (value: number) => (isCanceled ? '' : value)
    return [
      ...[2013, Number(day.slice(5, 7)), Number(day.slice(8))],
      ...[ifFlown(toClock(scheduled + delay)), toClock(scheduled), ifFlown(delay - 10)],
      ...[ifFlown(toClock(scheduled + delay + duration)), toClock(scheduled + duration), ifFlown(delay - 30)],
      ...[random.pick(carriers), 1 + random.below(4_000), random.pick(tails), random.pick(['EWR', 'JFK', 'LGA'])],
      ...[random.pick(dests), ifFlown(20 + duration), 100 + random.below(2_000), hour, minute],
      `${day}T${String(hour).padStart(2, '0')}:00:00Z`,
    ].join(',')
  })
  return Buffer.from(`${[fields.map(({ key }) => key).join(','), ...lines].join('\n')}\n`)
}

const readStat = (pid: number | string) => readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
const processorMs = (pid: number | string) => (Number(readStat(pid)[11]) + Number(readStat(pid)[12])) * CLOCK_TICK_MS

/** Returns the CPU time of the processes of PostgreSQL, including ended ones. */
function postgresMs(postmaster: string | undefined): number {
  if (!postmaster) return 0
  const isChild = (pid: string) => /^\d+$/.test(pid) && readStat(pid)[1] === postmaster
  let ms = (Number(readStat(postmaster)[13]) + Number(readStat(postmaster)[14])) * CLOCK_TICK_MS
  for (const pid of readdirSync('/proc'))
    try {
      if (isChild(pid)) ms += processorMs(pid)
    } catch {} // it has just ended
  return ms
}

const file = toCsv()
const database = await startPostgres({ durable: true })
const postmaster = readdirSync('/proc').find((pid) => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(`\0port=${database.port}\0`)
  } catch {
    return false // no process, or one that has just ended
  }
})

async function importOnce(checkout: string, engine: 'SQLite' | 'PostgreSQL') {
  const at = createTempFolder()
  const isRemote = engine === 'PostgreSQL'
  const program = [SOURCE_COMMAND[0]!, `${checkout}/src/main.ts`]
  const limits = { ATOLL_IMPORT_LIMIT: '100000000000', ATOLL_DURABILITY: 'full' }
  const url = isRemote && { ATOLL_DATABASE_URL: await createDatabase(database.url) }
  const options = { at, program, env: { ...limits, ...url } }
  await createTenantByCli(options, 'acme')
  const server = await startAtoll(options)
  const headers = await signIn(server.url, 'acme')
  const blueprint = JSON.stringify({ key: 'flights', name: 'Flights', fields })
  const json = { ...headers, 'content-type': 'application/json' }
  await fetch(`${server.url}/api/blueprints`, { method: 'POST', headers: json, body: blueprint })
  const before = [processorMs(server.pid), postgresMs(isRemote ? postmaster : undefined)]
  const began = performance.now()
  const path = `${server.url}/api/blueprints/flights/entities/import?format=csv`
  const { imported } = (await (await fetch(path, { method: 'POST', headers, body: file })).json()) as {
    imported: number
  }
  const ms = performance.now() - began
  const used = [processorMs(server.pid), postgresMs(isRemote ? postmaster : undefined)].map(
    (now, n) => now - before[n]!,
  )
  if (imported !== rows) throw new Error(`${imported} of ${rows} flights were imported.`)
  await server.end('SIGTERM')
  rmSync(at, { recursive: true })
  const perRow = used.map((one) => `${((1_000 * one) / rows).toFixed(1)} µs`)
  console.log(
    `${engine}, ${checkout}: ${Math.round((1_000 * rows) / ms)} rows/s; processor per row ${isRemote ? perRow.join(' and PostgreSQL ') : perRow[0]}`,
  )
}

for (let round = 0; round < rounds; round++)
  for (const engine of ['SQLite', 'PostgreSQL'] as const)
    for (const checkout of round % 2 ? checkouts.toReversed() : checkouts) await importOnce(checkout, engine)
await database.stop()
process.exit()
