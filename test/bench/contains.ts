// `bun test/bench/contains.ts [sqlite|postgres] [rows] [seconds]`: how many lists with `$like=%text%`, and how many counted
// lists, a tenant gets on four connections while nobody writes to it, while somebody changes entities of another
// blueprint, and while somebody changes some of the same; and how long a change then takes.
import { rmSync } from 'node:fs'
import { createTempFolder, createTenantByCli, signIn, startAtoll } from '../fakes/cli'
import { startPostgres } from '../fakes/postgres'
import { measure } from './load'

const database = process.argv[2] === 'postgres' ? await startPostgres({ durable: true }) : undefined
const rows = Number(process.argv[3] ?? 100_000)
const seconds = Number(process.argv[4] ?? 3)
const WRITE_PAUSE_MS = 10 // between two changes

const STAGES = ['lead', 'contacted', 'offered', 'won', 'lost']
const NAMES = ['rossi', 'meier', 'dupont', 'novak', 'silva']
const permissions = ['create', 'read', 'update', 'delete'].map((operation) => ({
  ...{ operation, scope: 'tenant', roleBased: ['user'] },
}))
const blueprint = (key: string) => ({
  ...{ key, name: key, permissions },
  fields: [
    { key: 'name', type: 'string', indexed: true },
    { key: 'stage', type: 'string', indexed: true },
    { key: 'worth', type: 'number', indexed: true },
  ],
})
const makeContact = (n: number) => ({
  identifier: `contact-${n}`,
  name: `Ada ${NAMES[n % NAMES.length]} ${n}`,
  stage: STAGES[Math.floor(n / NAMES.length) % STAGES.length],
  worth: (n * 7919) % 10_000,
})

const at = createTempFolder()
const env = { ATOLL_IMPORT_LIMIT: '1000000000', ATOLL_RATE_LIMITS: 'off' }
const surroundings = { at, env: { ...env, ...(database && { ATOLL_DATABASE_URL: database.url }) } }
await createTenantByCli(surroundings, 'busy')
{
  await using server = await startAtoll(surroundings)
  const headers = await signIn(server.url, 'busy')
  const api = `${server.url}/api/blueprints`
  async function send(method: string, path: string, body: string, type = 'application/json') {
    const response = await fetch(`${api}${path}`, { method, headers: { ...headers, 'content-type': type }, body })
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
    await response.arrayBuffer()
  }
  for (const [key, count] of [
    ['contacts', rows],
    ['others', 1_000],
  ] as const) {
    await send('POST', '', JSON.stringify(blueprint(key)))
    for (let from = 0; from < count; from += 20_000) {
      const lines = Array.from({ length: Math.min(20_000, count - from) }, (_, n) => makeContact(from + n))
      const body = lines.map((line) => JSON.stringify(line)).join('\n')
      await send('POST', `/${key}/entities/import?format=ndjson`, body, 'application/x-ndjson')
    }
  }

  const list = '/api/blueprints/contacts/entities'
  const each = (path: (n: number) => string) => Array.from({ length: 50 }, (_, n) => path(n))
  const broad = (n: number, count: string) => `${list}?stage=won&worth[$gte]=${4_000 + n}&$limit=20&$count=${count}`
  const kinds = {
    'a text within names': each((n) => `${list}?name[$like]=%25rossi%20${12 + n}%25&$limit=20`),
    'a text in few names': each((n) => `${list}?name[$like]=%25a%20${1_000 + n * 7}%25&$limit=20`),
    'counted lists': each((n) => broad(n, 'true')),
    'estimated lists': each((n) => broad(n, 'estimate')),
  }

  /** Does the work while entities of a blueprint are changed, and returns how many ms the median change took. */
  async function whileWriting(key: string, work: () => Promise<void>): Promise<number> {
    const times: number[] = []
    let isOver = false
    const write = async () => {
      for (let n = 0; !isOver; n++, await Bun.sleep(WRITE_PAUSE_MS)) {
        const began = performance.now()
        await send('PATCH', `/${key}/entities/contact-${n % 1_000}`, JSON.stringify({ name: `Changed ${n}` }))
        times.push(performance.now() - began)
      }
    }
    const writing = write()
    await work()
    isOver = true
    await writing
    return times.sort((one, other) => one - other)[times.length >> 1] ?? Number.NaN
  }

  for (const [name, paths] of Object.entries(kinds)) {
    const show = async (when: string) => {
      const load = { url: server.url, headers, method: 'GET' as const, paths, connections: 4, seconds }
      const { perSecond, p50, p99, errors } = await measure(load)
      const ms = (value: number) => `${value.toFixed(1).padStart(6)} ms`
      console.log(
        `${name.padEnd(20)} ${when.padEnd(24)} ${perSecond.toFixed(0).padStart(6)}/s  p50 ${ms(p50)}  p99 ${ms(p99)}${errors ? `  ${errors} ERRORS` : ''}`,
      )
    }
    // The first ones start the threads, and have changes tracked.
    for (const path of paths.slice(0, 5)) await (await fetch(`${server.url}${path}`, { headers })).arrayBuffer()
    await show('nobody writes')
    for (const key of ['others', 'contacts']) {
      const median = await whileWriting(key, () => show(`${key} are changed`))
      console.log(`${''.padEnd(20)} a change of ${key}: ${median.toFixed(1)} ms`)
    }
  }
}
await database?.stop()
rmSync(at, { recursive: true })
process.exit()
