// `bun test/bench/neighbours.ts [sqlite|postgres] [rows] [seconds] [rounds]`: how many reads by id a tenant gets while one user of
// another tenant asks costly questions on four connections, as a part of what it gets alone.
import { rmSync } from 'node:fs'
import { createTempFolder, createTenantByCli, signIn, startAtoll } from '../fakes/cli'
import { startPostgres } from '../fakes/postgres'
import { type Figures, measure } from './load'

const database = process.argv[2] === 'postgres' ? await startPostgres({ durable: true }) : undefined
const rows = Number(process.argv[3] ?? 100_000)
const seconds = Number(process.argv[4] ?? 2)
const ROUNDS = Number(process.argv[5] ?? 5)
const CONNECTIONS = 4

const STAGES = ['lead', 'contacted', 'offered', 'won', 'lost']
const NAMES = ['rossi', 'meier', 'dupont', 'novak', 'silva']
const FULL_ACCESS = ['create', 'read', 'update', 'delete'].map((operation) => ({
  operation,
  scope: 'tenant',
  roleBased: ['user'],
}))
const companies = { key: 'companies', name: 'Companies', fields: [{ key: 'name', type: 'string' }] }
const contacts = {
  key: 'contacts',
  name: 'Contacts',
  fields: [
    { key: 'name', type: 'string' },
    { key: 'stage', type: 'string' },
    { key: 'worth', type: 'number' },
    { key: 'company', type: 'relation', target: 'companies' },
    { key: 'notes', type: 'text' },
  ],
}
const makeCompany = (n: number) => ({ identifier: `company-${n}`, name: `Company ${n}` })
const makeContact = (n: number) => ({
  identifier: `contact-${n}`,
  name: `Ada ${NAMES[n % NAMES.length]} ${n}`,
  stage: STAGES[Math.floor(n / NAMES.length) % STAGES.length],
  worth: (n * 7919) % 10_000,
  company: `company-${n % 1_000}`,
  notes: `Notes on contact ${n}, of whom there is always something to be told in a sentence or two.`,
})

const at = createTempFolder()
const env = { ATOLL_IMPORT_LIMIT: '1000000000', ATOLL_RATE_LIMITS: 'off', ATOLL_DURABILITY: 'normal' }
const surroundings = { at, env: { ...env, ...(database && { ATOLL_DATABASE_URL: database.url }) } }
for (const tenant of ['busy', 'quiet']) await createTenantByCli(surroundings, tenant)
{
  await using server = await startAtoll(surroundings)
  const api = `${server.url}/api/blueprints`

  async function fill(tenant: string, many: number) {
    const headers = await signIn(server.url, tenant)
    const post = async (path: string, body: string, type: string) => {
      const response = await fetch(`${api}${path}`, {
        method: 'POST',
        headers: { ...headers, 'content-type': type },
        body,
      })
      if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
      await response.text()
    }
    for (const [blueprint, make, count] of [
      [companies, makeCompany, 1_000],
      [contacts, makeContact, many],
    ] as const) {
      await post('', JSON.stringify({ ...blueprint, permissions: FULL_ACCESS }), 'application/json')
      for (let from = 0; from < count; from += 20_000) {
        const lines = Array.from({ length: Math.min(20_000, count - from) }, (_, n) => JSON.stringify(make(from + n)))
        await post(`/${blueprint.key}/entities/import?format=ndjson`, lines.join('\n'), 'application/x-ndjson')
      }
    }
    return headers
  }

  const busy = await fill('busy', rows)
  const quiet = await fill('quiet', 1_000)
  const list = '/api/blueprints/contacts/entities'
  const each = (path: (n: number) => string) => Array.from({ length: 50 }, (_, n) => path(n))
  const kinds: Record<string, string[]> = {
    'counted lists': each((n) => `${list}?stage=won&worth[$gte]=${4_000 + n}&$sort=-created&$limit=20&$count=true`),
    'a text within names': each((n) => `${list}?name[$like]=%25rossi%20${12 + n}%25&$limit=20`),
    charts: each(
      (n) =>
        `/api/blueprints/contacts/charts/${['pie?x=stage', 'bar?x=worth', 'sum?sum=worth&groupBy=stage'][n % 3]}&worth[$gte]=${n}`,
    ),
    'exports with populate': [`${list}/export?format=ndjson&$populate=company,user`],
    'large populated pages': each((n) => `${list}?$populate=company,user&$limit=1000&$skip=${n}`),
    'broad searches, filtered': each((n) => `${list}?$q=sentence&worth=${n}&$count=true&$limit=20`),
  }
  // The first search reads the words of all entities.
  while ((await fetch(`${server.url}${list}?$q=first&$limit=1`, { headers: busy })).status === 503) await Bun.sleep(200)

  const load = (headers: Record<string, string>, paths: string[]) => ({
    ...{ url: server.url, headers, method: 'GET' as const, paths },
    ...{ connections: CONNECTIONS, seconds },
  })
  const reads = each((n) => `${list}/contact-${n * 7}`)
  const figures = (name: string, { perSecond, p50, p99, errors }: Figures) =>
    `${name.padEnd(26)} ${perSecond.toFixed(1).padStart(9)}/s  p50 ${p50.toFixed(2).padStart(7)} ms  p99 ${p99.toFixed(2).padStart(8)} ms${errors ? `  ${errors} ERRORS` : ''}`
  await measure(load(quiet, reads))
  for (const [name, paths] of Object.entries(kinds)) {
    const response = await fetch(`${server.url}${paths[0]}`, { headers: busy })
    if (!response.ok) throw new Error(`${paths[0]}: ${await response.text()}`)
    await response.arrayBuffer()
    const lonely = await measure(load(busy, paths))
    const rounds: { ratio: number; alone: Figures; beside: Figures; costly: Figures }[] = []
    // By turns, as the machine is not as fast in one second as in another.
    for (let round = 0; round < ROUNDS; round++) {
      const alone = await measure(load(quiet, reads))
      const [costly, beside] = await Promise.all([
        measure({ ...load(busy, paths), seconds: seconds + 1 }),
        Bun.sleep(500).then(() => measure(load(quiet, reads))),
      ])
      rounds.push({ ratio: beside.perSecond / alone.perSecond, alone, beside, costly })
    }
    rounds.sort((one, other) => one.ratio - other.ratio)
    const { ratio, alone, beside, costly } = rounds[ROUNDS >> 1]!
    const span = `${rounds[0]!.ratio.toFixed(3)} to ${rounds.at(-1)!.ratio.toFixed(3)}`
    console.log(`${name}: reads by id beside them are ${ratio.toFixed(3)} of reads alone (${span})`)
    console.log(`  ${figures('reads alone', alone)}\n  ${figures('reads beside', beside)}`)
    console.log(`  ${figures('the costly ones alone', lonely)}\n  ${figures('the costly ones beside', costly)}`)
  }
}
await database?.stop()
rmSync(at, { recursive: true })
process.exit()
