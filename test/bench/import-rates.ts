// `bun test/bench/import-rates.ts [rows]`: how fast CSV is imported on SQLite and on PostgreSQL, and in other dialects than
// commas; and how long a blueprint takes to be created beside these entities, and beside none.
import { rmSync } from 'node:fs'
import { createTempFolder, createTenantByCli, signIn, startAtoll } from '../fakes/cli'
import { startPostgres } from '../fakes/postgres'
import { product, productsBlueprint } from './sample-data'

const rows = Number(process.argv[2] ?? 300_000)
const BLUEPRINTS = 15
const ROUNDS = 3
const database = await startPostgres({ durable: true })
const settings = { ATOLL_IMPORT_LIMIT: '100000000000', ATOLL_RATE_LIMITS: 'off', ATOLL_DURABILITY: 'full' }
const median = (list: number[]) => list.toSorted((a, b) => a - b)[list.length >> 1]!

/** Products as CSV, in pieces. */
function toCsv(separator: string, decimal: string, count: number) {
  const keys = Object.keys(product(0))
  const cell = (value: unknown) => {
    const text = Array.isArray(value) || typeof value === 'object' ? JSON.stringify(value) : `${value ?? ''}`
    const written = typeof value === 'number' ? text.replace('.', decimal) : text
    return /[",;\n]/.test(written) ? `"${written.replaceAll('"', '""')}"` : written
  }
  let n = -1
  return new ReadableStream({
    pull(controller) {
      let some = n < 0 ? `${['identifier', ...keys].join(separator)}\n` : ''
      n = Math.max(n, 0)
      for (const end = Math.min(count, n + 500); n < end; n++) {
        const one = product(n) as Record<string, unknown>
        some += `${[`p${n}`, ...keys.map((key) => cell(one[key]))].join(separator)}\n`
      }
      if (some) controller.enqueue(Buffer.from(some))
      else controller.close()
    },
  })
}

const rates: Record<string, number> = {}
for (const engine of ['sqlite', 'postgres']) {
  const at = createTempFolder()
  const surroundings = { at, env: { ...settings, ...(engine === 'postgres' && { ATOLL_DATABASE_URL: database.url }) } }
  await createTenantByCli(surroundings, 'acme')
  {
    await using server = await startAtoll(surroundings)
    const headers = await signIn(server.url, 'acme')
    const post = async (path: string, body: unknown) => {
      const json = { ...headers, 'content-type': 'application/json' }
      const response = await fetch(`${server.url}/api${path}`, {
        method: 'POST',
        headers: json,
        body: JSON.stringify(body),
      })
      if (!response.ok) throw new Error(await response.text())
    }
    const createOthers = async (prefix: string) => {
      const times: number[] = []
      for (let n = 0; n < BLUEPRINTS; n++) {
        const began = performance.now()
        await post('/blueprints', { ...productsBlueprint, key: `${prefix}${n}`, name: prefix })
        times.push(performance.now() - began)
      }
      return median(times)
    }
    await post('/blueprints', productsBlueprint)
    const send = async (query: string, body: ReadableStream) => {
      const began = performance.now()
      const path = `${server.url}/api/blueprints/products/entities/import?format=csv&${query}`
      const { imported, ...rest } = (await (await fetch(path, { method: 'POST', headers, body })).json()) as {
        imported: number
      }
      if (!imported) throw new Error(JSON.stringify(rest))
      return performance.now() - began
    }
    const alone = await createOthers('before')
    const ms = await send('', toCsv(',', '.', rows))
    rates[engine] = rows / (ms / 1000)
    const beside = await createOthers('after')
    console.log(
      `${engine}: import ${Math.round(rates[engine])} rows/s; a blueprint takes ${alone.toFixed(1)} ms beside none, ${beside.toFixed(1)} ms beside ${rows} entities (${(beside / alone).toFixed(2)})`,
    )
    if (engine === 'sqlite') {
      const dialects: [string, string, string, string][] = [
        ['commas', '', ',', '.'],
        ['semicolons', '', ';', '.'],
        ['semicolons, decimal commas', '&decimal=comma', ';', ','],
        ['tabs', '', '\t', '.'],
      ]
      const count = Math.min(rows, 30_000)
      const times = new Map<string, number[]>(dialects.map(([name]) => [name, []]))
      for (let round = 0; round < ROUNDS; round++)
        for (const [name, query, separator, decimal] of dialects)
          times.get(name)!.push(await send(`mode=upsert&dryRun=true${query}`, toCsv(separator, decimal, count)))
      const base = median(times.get('commas')!)
      for (const [name, list] of times)
        console.log(`dry run with ${name}: ${(median(list) / base).toFixed(3)} of the time with commas`)
    }
  }
  rmSync(at, { recursive: true })
}
console.log(`import on PostgreSQL: ${(rates.postgres! / rates.sqlite!).toFixed(2)} of the rate on SQLite`)
await database.stop()
