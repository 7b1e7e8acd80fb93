// `bun test/bench/transfer.ts [rows] [sqlite|postgres]`: an import and an export of many rows; how much memory the server
// takes for them, and how long others wait meanwhile.
import { readFileSync, rmSync } from 'node:fs'
import { createTempFolder, createTenantByCli, signIn, startAtoll } from '../fakes/cli'
import { startPostgres } from '../fakes/postgres'
import { product, productsBlueprint } from './sample-data'

const rows = Number(process.argv[2] ?? 200_000)
const database = process.argv[3] === 'postgres' ? await startPostgres({ durable: true }) : undefined
const dataFolder = createTempFolder()
const LIMIT_SETTINGS = { ATOLL_IMPORT_LIMIT: '100000000000', ATOLL_RATE_LIMITS: 'off', ATOLL_DURABILITY: 'full' }
const surroundings = {
  at: dataFolder,
  env: { ...LIMIT_SETTINGS, ...(database && { ATOLL_DATABASE_URL: database.url }) },
}
await createTenantByCli(surroundings, 'acme')
{
  await using server = await startAtoll(surroundings)
  const headers = await signIn(server.url, 'acme')
  const json = { ...headers, 'content-type': 'application/json' }
  const path = `${server.url}/api/blueprints/products/entities`
  await fetch(`${server.url}/api/blueprints`, {
    method: 'POST',
    headers: json,
    body: JSON.stringify(productsBlueprint),
  })
  const { _id } = (await (
    await fetch(path, { method: 'POST', headers: json, body: JSON.stringify(product(0)) })
  ).json()) as { _id: string }

  const memory = () => Number(readFileSync(`/proc/${server.pid}/status`, 'utf8').match(/VmRSS:\s+(\d+)/)![1]) / 1024
  const quantile = (list: number[], q: number) => list.toSorted((a, b) => a - b)[Math.floor(list.length * q)] ?? 0

  /** Does something, while another caller reads and writes. */
  async function beside(name: string, work: () => Promise<unknown>) {
    const [reads, writes, sizes]: number[][] = [[], [], []]
    const start = memory()
    let over = false
    const timed = async (list: number[], ask: () => Promise<Response>) => {
      while (!over) {
        const began = performance.now()
        await (await ask()).text()
        list.push(performance.now() - began)
        sizes!.push(memory())
        await Bun.sleep(5)
      }
    }
    const others = [
      timed(reads!, () => fetch(`${path}/${_id}`, { headers })),
      timed(writes!, () => fetch(`${path}/${_id}`, { method: 'PUT', headers: json, body: '{"stock":1}' })),
    ]
    const began = performance.now()
    const told = await work()
    const ms = performance.now() - began
    over = true
    await Promise.all(others)
    const waits = [reads!, writes!].map((list) =>
      [0.5, 0.99, 0.9999].map((q) => quantile(list, q).toFixed(1)).join('/'),
    )
    console.log(
      `${name}: ${(ms / 1000).toFixed(1)} s, ${Math.round(rows / (ms / 1000))}/s; memory ${start.toFixed(0)} MB, then ${quantile(sizes!, 0.5).toFixed(0)}, at most ${Math.max(...sizes!).toFixed(0)} MB; others wait p50/p99/max ms: reads ${waits[0]}, writes ${waits[1]}; ${JSON.stringify(told)}`,
    )
  }

  const lines = (make: (n: number) => string) => {
    let n = 0
    return new ReadableStream({
      pull(controller) {
        let some = ''
        for (const end = Math.min(rows, n + 500); n < end; n++) some += make(n)
        if (some) controller.enqueue(Buffer.from(some))
        else controller.close()
      },
    })
  }
  const send = async (query: string, make: (n: number) => string) => {
    const body = lines(make)
    return (await fetch(`${path}/import?${query}`, { method: 'POST', headers, body })).json()
  }
  const line = (n: number) => `${JSON.stringify({ identifier: `p${n}`, ...product(n) })}\n`
  await beside('nothing', () => Bun.sleep(3_000))
  await beside('dry run', () => send('format=ndjson&dryRun=true', line))
  await beside('import', () => send('format=ndjson', line))
  for (const format of ['ndjson', 'csv'])
    await beside(`export ${format}`, async () => {
      const response = await fetch(`${path}/export?format=${format}`, { headers })
      let size = 0
      for await (const chunk of response.body!) size += chunk.byteLength
      return `${(size / 1e6).toFixed(0)} MB`
    })
  await beside('export to a slow reader, 5 s of it', async () => {
    const response = await fetch(`${path}/export`, { headers })
    const reader = response.body!.getReader()
    let size = 0
    for (let n = 0; n < 50; n++) {
      const { value } = await reader.read()
      size += value?.byteLength ?? 0
      await Bun.sleep(100)
    }
    await reader.cancel()
    return `${(size / 1e6).toFixed(0)} MB read`
  })
  await beside('atomic import', () => send('format=ndjson&atomic=true', (n) => `${JSON.stringify(product(n))}\n`))
}
rmSync(dataFolder, { recursive: true })
await database?.stop()
