// `bun test/bench/first-search.ts [sqlite|postgres] [rows]`: measures the rate of creates during the first search of a
// blueprint, which indexes the words of all its entities, relative to their usual rate.
import { rmSync } from 'node:fs'
import { apiCaller, createTempFolder, createTenantByCli, SOURCE_COMMAND, signIn, startAtoll } from '../fakes/cli'
import { startPostgres } from '../fakes/postgres'
import { makeContact } from './contacts'
import { type Load, measure, printFigures } from './load'

const database = process.argv[2] === 'postgres' ? await startPostgres({ durable: true }) : undefined
const rows = Number(process.argv[3] ?? 100_000)
const [ROWS_PER_IMPORT, CONNECTIONS, SECONDS, ROUNDS] = [20_000, 16, 3, 3]

const at = createTempFolder()
const env = {
  ...{ ATOLL_IMPORT_LIMIT: '1000000000', ATOLL_DURABILITY: 'normal' },
  ...(database && { ATOLL_DATABASE_URL: database.url }),
}
const surroundings = { at, env, program: SOURCE_COMMAND }
await createTenantByCli(surroundings, 'bench')
{
  await using server = await startAtoll(surroundings)
  const headers = await signIn(server.url, 'bench')
  const call = apiCaller(server.url, headers)
  /** A blueprint of its own for each round, because only the first search of one reads everything. */
  const fill = async (key: string) => {
    await call('POST', '/api/blueprints', {
      ...{ key, name: key, permissions: [{ operation: 'create', scope: 'tenant', roleBased: ['admin'] }] },
      fields: [
        ...['name', 'email', 'stage', 'born', 'notes'].map((field) => ({ key: field, type: 'string' })),
        ...['worth', 'company'].map((field) => ({ key: field, type: 'number' })),
        { key: 'active', type: 'boolean' },
      ],
    })
    for (let from = 0; from < rows; from += ROWS_PER_IMPORT) {
      const count = Math.min(ROWS_PER_IMPORT, rows - from)
      const body = Array.from({ length: count }, (_, n) => JSON.stringify(makeContact(from + n))).join('\n')
      const path = `${server.url}/api/blueprints/${key}/entities/import?format=ndjson`
      const type = { 'content-type': 'application/x-ndjson' }
      const response = await fetch(path, { method: 'POST', headers: { ...headers, ...type }, body })
      if (!response.ok) throw new Error(await response.text())
      await response.text()
    }
  }
  const bodies = Array.from({ length: 2_000 }, (_, n) => JSON.stringify(makeContact(rows + n)))
  for (let round = 0; round < ROUNDS; round++) {
    const key = `contacts${round}`
    await fill(key)
    const list = `/api/blueprints/${key}/entities`
    const creates: Load = {
      ...{ url: server.url, headers: { ...headers, 'content-type': 'application/json' }, method: 'POST' },
      ...{ paths: [list], bodies, connections: CONNECTIONS, seconds: SECONDS },
    }
    await measure({ ...creates, seconds: 1 })
    const alone = await measure(creates)
    const startedAt = performance.now()
    const secondsSince = () => ((performance.now() - startedAt) / 1_000).toFixed(1)
    const searching = call('GET', `${list}?$q=sentence&$limit=1`).then(secondsSince)
    const isReady = async () =>
      (await call('GET', `${list}?$q=sentence&$limit=1&$explain=true`)).body.indexes[0].state === 'ready'
    const indexing = (async () => {
      while (!(await isReady())) await Bun.sleep(1_000)
      return secondsSince()
    })()
    await Bun.sleep(200)
    const beside = await measure(creates)
    const ratio = beside.perSecond / alone.perSecond
    printFigures('creates alone', alone)
    printFigures('creates beside the first search', beside, { ratio, of: 'those alone' })
    console.log(`the first search is answered after ${await searching} s, and indexed after ${await indexing} s`)
    printFigures('creates after it', await measure(creates))
  }
}
await database?.stop()
rmSync(at, { recursive: true })
process.exit()
