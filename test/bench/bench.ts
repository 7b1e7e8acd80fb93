import { Database } from 'bun:sqlite'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { startPostgres } from '../fakes/postgres'
import { createTempFolder } from '../temp-folder'
import type { Filled } from './fill'
import { lambdas } from './lambdas'
import { client, compareLoads, type Load, printFigures } from './load'
import { compareTableSizes } from './million'
import { latency, queryBenchmarks } from './queries'
import { category, note, product } from './sample-data'

const { values: options } = parseArgs({
  options: {
    rows: { type: 'string', default: '100000' },
    seconds: { type: 'string', default: '4' },
    rounds: { type: 'string', default: '3' },
    out: { type: 'string', default: 'test/bench/results/latest.json' },
    /** `postgres`: also on a PostgreSQL server of its own, beside SQLite. */
    engine: { type: 'string', default: 'sqlite' },
    /** Only this: ten thousand rows beside a million. It takes some minutes. */
    million: { type: 'boolean', default: false },
    /** Only this: whether the time of a sign-in tells who there is, and how long reads take beside many of them. */
    signin: { type: 'boolean', default: false },
    /** Only this: webhooks of payment providers, and checkouts. */
    payments: { type: 'boolean', default: false },
    /** Only this: what lambdas cost. */
    lambdas: { type: 'boolean', default: false },
    /** Only this: what questions to files cost, and their upload. */
    knowledge: { type: 'boolean', default: false },
    /** Only this: how late the words of models are. */
    ai: { type: 'boolean', default: false },
    /** Only this: reads of one tenant beside costly questions of another, at 100,000 rows. */
    neighbours: { type: 'boolean', default: false },
    /** Only this: beside the PocketBase of this path. */
    peer: { type: 'string' },
    /** How that flushes each commit, as `NAME=VALUE` of its environment. */
    'peer-durable': { type: 'string' },
    /** Some of `reads`, `sign-ins`, `creates`, `durable`. */
    'peer-parts': { type: 'string' },
  },
})
const runAlone = (name: string, ...more: string[]) =>
  Bun.spawn([process.execPath, `test/bench/${name}.ts`, options.engine, ...more], {
    stdio: ['ignore', 'inherit', 'inherit'],
  }).exited
const onlyBenchmark = (['signin', 'payments', 'knowledge', 'ai', 'neighbours'] as const).find((name) => options[name])
if (onlyBenchmark) process.exit(await runAlone(onlyBenchmark))
if (options.peer !== undefined) {
  const command = [process.execPath, 'test/bench/peer.ts', ...process.argv.slice(2)]
  process.exit(await Bun.spawn(command, { stdio: ['ignore', 'inherit', 'inherit'] }).exited)
}
const [rows, seconds, rounds] = [Number(options.rows), Number(options.seconds), Number(options.rounds)]

// On the disk that the data would be on, not in memory.
const folder = createTempFolder('bench')
process.env.ATOLL_TENANTS = folder
process.env.ATOLL_DURABILITY = 'normal'
process.env.ATOLL_RATE_LIMITS = 'off'

type Server = { url: string; pid: number; stop(): Promise<void>; ready: number }

async function start(command: string[], env: Record<string, string> = {}): Promise<Server> {
  const began = performance.now()
  const child = Bun.spawn([process.execPath, ...command], {
    env: { ...process.env, ATOLL_PORT: '0', ...env },
    stdout: 'pipe',
    stderr: 'inherit',
  })
  process.once('exit', () => child.kill())
  const reader = child.stdout.getReader()
  const { value } = await reader.read()
  reader.releaseLock()
  const { url } = JSON.parse(new TextDecoder().decode(value).split('\n')[0]!) as { url: string }
  await (await fetch(`${url}/health`)).text()
  const ready = performance.now() - began
  const stop = async () => {
    child.kill()
    await child.exited
  }
  return { url, pid: child.pid, stop, ready }
}

const memory = (pid: number) => {
  const [, kilobytes = 'NaN'] = readFileSync(`/proc/${pid}/status`, 'utf8').match(/VmRSS:\s+(\d+)/) ?? []
  return Math.round(Number(kilobytes) / 1024)
}

const print = (text: string) => console.log(text)
const compare = (loads: Record<string, Load>) => compareLoads(loads, rounds)

async function fill(env: Record<string, string>): Promise<Filled> {
  const file = join(folder, 'filled.json')
  const child = Bun.spawn([process.execPath, 'test/bench/fill.ts', `${rows}`, file], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  if (await child.exited) throw new Error('It could not be filled.')
  return JSON.parse(readFileSync(file, 'utf8'))
}

function fillFloor(json: string[]) {
  const file = join(folder, 'floor.db')
  const db = new Database(file)
  db.exec(`pragma journal_mode = wal; create table things (id text primary key, category text, created integer, json text);
    create index newest on things (category, created)`)
  const insert = db.prepare('insert into things values (?, ?, ?, ?)')
  db.transaction(() => {
    for (const text of json) {
      const entity = JSON.parse(text)
      insert.run(entity.identifier, entity.category, Date.parse(entity.created), text)
    }
  })()
  // Or else the file stays open, and is locked at the moment when it is closed at last.
  insert.finalize()
  db.close(true)
  return file
}

if (options.million || options.lambdas) {
  const [name, report] = options.million
    ? ['million', await compareTableSizes(print)]
    : ['lambdas', await lambdas(print)]
  mkdirSync(join(options.out, '..'), { recursive: true })
  writeFileSync(options.out.replace(/\.json$/, `-${name}.json`), `${JSON.stringify(report, null, 2)}\n`)
  rmSync(folder, { recursive: true })
  process.exit()
}
const database = options.engine === 'postgres' ? await startPostgres({ durable: true }) : undefined
process.once('exit', () => database?.kill())
const { token, json } = await fill({})
const onPostgres = { ATOLL_DATABASE_URL: database?.url ?? '', ATOLL_TENANTS: join(folder, 'none') }
const second = database && (await fill(onPostgres))
const floorFile = fillFloor(json)
const idsOf = (json: string[]) =>
  json.filter((_, n) => n % Math.ceil(rows / 5_000) === 0).map((text) => JSON.parse(text).identifier as string)
const ids = idsOf(json)
const bodiesOf = (one: (n: number) => unknown) =>
  Array.from({ length: 2_000 }, (_, n) => JSON.stringify(one(rows + n * 37)))
const bodies = bodiesOf(product)
const authHeaders = (token: string) => ({ 'x-api-key': token, 'content-type': 'application/json' })
const auth = authHeaders(token)
const entities = '/api/blueprints/products/entities'
const report: Record<string, unknown> = { client, rows, at: new Date().toISOString() }

async function reads() {
  const atoll = await start(['src/main.ts', 'serve', '--json'])
  const postgres = second && (await start(['src/main.ts', 'serve', '--json'], onPostgres))
  const floor = await start(['test/bench/floor.ts', floorFile])
  await (await fetch(`${atoll.url}${entities}/${ids[0]}`, { headers: auth })).text()
  await Bun.sleep(500)
  const idle = memory(atoll.pid)
  report.start = { ms: Math.round(atoll.ready), idleMb: idle }
  print(`start to first answer ${Math.round(atoll.ready)} ms, idle memory ${idle} MB`)
  const same = { headers: auth, method: 'GET' as const, connections: 32, seconds }
  const categories = Array.from({ length: 500 }, (_, n) => category(n))
  const kinds = {
    'get by identifier': [ids.map((id) => `${entities}/${id}`), ids.map((id) => `/things/${id}`)],
    'list 20 newest of a category': [
      categories.map((name) => `${entities}?category=${name}&$sort=-created&$limit=20`),
      categories.map((name) => `/things?category=${name}&limit=20`),
    ],
    'get /api/me': [['/api/me'], [`/things/${ids[0]}`]],
  } as const
  for (const [name, [ours, theirs]] of Object.entries(kinds)) {
    const paths =
      name === 'get by identifier' && second ? idsOf(second.json).map((id) => `${entities}/${id}`) : [...ours]
    const figures = await compare({
      atoll: { ...same, url: atoll.url, paths: [...ours] },
      floor: { ...same, url: floor.url, paths: [...theirs] },
      ...(postgres && { postgres: { ...same, url: postgres.url, headers: authHeaders(second.token), paths } }),
    })
    const ratio = figures.atoll!.perSecond / figures.floor!.perSecond
    printFigures(`${name}: floor`, figures.floor!)
    printFigures(`${name}: atoll`, figures.atoll!, { ratio, of: 'the floor' })
    report[name] = { ...figures, ratio }
    if (!figures.postgres) continue
    const ofSqlite = figures.postgres.perSecond / figures.atoll!.perSecond
    printFigures(`${name}: on PostgreSQL`, figures.postgres)
    print(`PostgreSQL is ${ofSqlite.toFixed(2)} of SQLite`)
    report[name] = { ...figures, ratio, ofSqlite }
  }
  // The first search reads the words of all entities, and asks for patience if that takes long.
  const began = performance.now()
  while ((await fetch(`${atoll.url}${entities}?$q=first`, { headers: auth })).status === 503);
  print(`the first search of all: ${Math.round(performance.now() - began)} ms`)
  for (const [name, { paths, most }] of Object.entries(queryBenchmarks)) {
    const found = await latency(atoll.url, auth, paths)
    const bound = most ? `  (at most ${most} ms: ${found.p50 <= most ? 'yes' : 'NO'})` : ''
    const [p50, p99, all] = [found.p50, found.p99, found.most].map((ms) => ms.toFixed(2).padStart(7))
    print(`${name.padEnd(40)} p50 ${p50} ms  p99 ${p99} ms  most ${all} ms${bound}`)
    report[name] = found
  }
  report.loadedMb = memory(atoll.pid)
  print(`memory under load ${report.loadedMb} MB`)
  await atoll.stop()
  await postgres?.stop()
  await floor.stop()
}

async function creates() {
  for (const durability of ['full', 'normal']) {
    const atoll = await start(['src/main.ts', 'serve', '--json'], { ATOLL_DURABILITY: durability })
    const floor = await start(['test/bench/floor.ts', floorFile, durability])
    const same = { headers: auth, method: 'POST' as const, bodies, seconds }
    const small = { ...same, url: atoll.url, paths: ['/api/blueprints/notes/entities'], bodies: bodiesOf(note) }
    const large = { ...same, url: atoll.url, paths: [entities] }
    const figures = await compare({
      'create, 64 in flight': { ...large, connections: 64 },
      'create, one commit each': { ...large, connections: 1 },
      'create of two fields, 64 in flight': { ...small, connections: 64 },
      'create of two fields, one each': { ...small, connections: 1 },
      'floor, one commit each': { ...same, url: floor.url, paths: ['/things'], connections: 64 },
    })
    for (const [name, one] of Object.entries(figures)) printFigures(`${durability}: ${name}`, one)
    const ratioOf = (many: string, one: string) => figures[many]!.perSecond / figures[one]!.perSecond
    const ratio = ratioOf('create, 64 in flight', 'create, one commit each')
    const ofSmall = ratioOf('create of two fields, 64 in flight', 'create of two fields, one each')
    print(
      `${durability}: 64 in flight are ${ratio.toFixed(1)} times one commit each, of two fields ${ofSmall.toFixed(1)}`,
    )
    report[`create ${durability}`] = { ...figures, ratio, ofSmall }
    await atoll.stop()
    await floor.stop()
  }
  if (!second) return
  const postgres = await start(['src/main.ts', 'serve', '--json'], onPostgres)
  const same = { headers: authHeaders(second.token), method: 'POST' as const, bodies, seconds, url: postgres.url }
  const figures = await compare({
    'create, 64 in flight': { ...same, paths: [entities], connections: 64 },
    'create, one commit each': { ...same, paths: [entities], connections: 1 },
  })
  for (const [name, one] of Object.entries(figures)) printFigures(`PostgreSQL: ${name}`, one)
  report['create on PostgreSQL'] = figures
  await postgres.stop()
}

await reads()
await creates()
await runAlone('neighbours', `${Math.ceil(rows / 5)}`, '1', '1')
await database?.stop()
mkdirSync(join(options.out, '..'), { recursive: true })
writeFileSync(options.out, `${JSON.stringify(report, null, 2)}\n`)
print(`written to ${options.out}`)
