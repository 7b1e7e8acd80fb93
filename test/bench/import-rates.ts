// `bun test/bench/import-rates.ts [rows] [rounds]`: how fast CSV is imported on SQLite and on PostgreSQL, by turns; and how
// long a blueprint takes to be created beside these entities, and beside none.
import { rmSync } from 'node:fs'
import { createTempFolder, createTenantByCli, signIn, startAtoll } from '../fakes/cli'
import { startPostgres } from '../fakes/postgres'
import { product, productsBlueprint } from './sample-data'

const rows = Number(process.argv[2] ?? 60_000)
const rounds = Number(process.argv[3] ?? 5)
const BLUEPRINTS = 15
const database = await startPostgres({ durable: true })
const settings = { ATOLL_IMPORT_LIMIT: '100000000000', ATOLL_RATE_LIMITS: 'off', ATOLL_DURABILITY: 'full' }
const median = (list: number[]) => list.toSorted((a, b) => a - b)[list.length >> 1]!

/** Products as CSV, in pieces. */
function toCsv(prefix: string) {
  const keys = Object.keys(product(0))
  const cell = (value: unknown) => (/[",\n]/.test(`${value}`) ? `"${`${value}`.replaceAll('"', '""')}"` : `${value}`)
  let n = -1
  return new ReadableStream({
    pull(controller) {
      let some = n < 0 ? `${['identifier', ...keys].join(',')}\n` : ''
      n = Math.max(n, 0)
      for (const end = Math.min(rows, n + 500); n < end; n++) {
        const one = product(n) as Record<string, unknown>
        some += `${[`${prefix}${n}`, ...keys.map((key) => cell(one[key]))].join(',')}\n`
      }
      if (some) controller.enqueue(Buffer.from(some))
      else controller.close()
    },
  })
}

async function startEngine(engine: 'SQLite' | 'PostgreSQL') {
  const at = createTempFolder()
  const surroundings = {
    at,
    env: { ...settings, ...(engine === 'PostgreSQL' && { ATOLL_DATABASE_URL: database.url }) },
  }
  await createTenantByCli(surroundings, 'acme')
  const server = await startAtoll(surroundings)
  const headers = await signIn(server.url, 'acme')
  const createBlueprint = async (key: string) => {
    const began = performance.now()
    const json = { ...headers, 'content-type': 'application/json' }
    const body = JSON.stringify({ ...productsBlueprint, key })
    const response = await fetch(`${server.url}/api/blueprints`, { method: 'POST', headers: json, body })
    if (!response.ok) throw new Error(await response.text())
    return performance.now() - began
  }
  const createBlueprints = async (prefix: string) => {
    const times: number[] = []
    for (let n = 0; n < BLUEPRINTS; n++) times.push(await createBlueprint(`${prefix}${n}`))
    return median(times)
  }
  await createBlueprint('products')
  const rates: number[] = []
  const importRows = async (round: number) => {
    const began = performance.now()
    const path = `${server.url}/api/blueprints/products/entities/import?format=csv`
    const response = await fetch(path, { method: 'POST', headers, body: toCsv(`p${round}-`) })
    const { imported, ...rest } = (await response.json()) as { imported: number }
    if (imported !== rows) throw new Error(JSON.stringify(rest))
    rates.push(rows / ((performance.now() - began) / 1000))
  }
  const end = async () => {
    await server.end('SIGTERM')
    rmSync(at, { recursive: true })
  }
  return { engine, createBlueprints, importRows, rates, end }
}

const engines = [await startEngine('SQLite'), await startEngine('PostgreSQL')]
const alone = new Map<string, number>()
for (const { engine, createBlueprints } of engines) alone.set(engine, await createBlueprints('before'))
for (let round = 0; round < rounds; round++)
  for (const { importRows } of round % 2 ? engines.toReversed() : engines) await importRows(round)
for (const { engine, rates, createBlueprints } of engines) {
  const [before, beside] = [alone.get(engine)!, await createBlueprints('after')]
  console.log(
    `${engine}: import ${Math.round(median(rates))} rows/s; a blueprint takes ${before.toFixed(1)} ms beside none, ${beside.toFixed(1)} ms beside ${rounds * rows} entities (${(beside / before).toFixed(2)})`,
  )
}
const [sqlite, postgres] = engines.map(({ rates }) => median(rates))
console.log(`import on PostgreSQL: ${(postgres! / sqlite!).toFixed(2)} of the rate on SQLite`)
for (const { end } of engines) await end()
await database.stop()
process.exit()
