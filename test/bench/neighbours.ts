// `bun test/bench/neighbours.ts [sqlite|postgres] [rows] [seconds] [rounds] [pattern of kinds]`: how many reads by id a tenant gets while one user of
// another tenant asks costly questions on four connections, as a part of what it gets alone.
import { rmSync } from 'node:fs'
import { createTempFolder, createTenantByCli, signIn, startAtoll } from '../fakes/cli'
import { startPostgres } from '../fakes/postgres'
import { type Figures, type Load, measure } from './load'

const database = process.argv[2] === 'postgres' ? await startPostgres({ durable: true }) : undefined
const rows = Number(process.argv[3] ?? 100_000)
const seconds = Number(process.argv[4] ?? 2)
const ROUNDS = Number(process.argv[5] ?? 5)
const onlyKinds = process.argv[6] && new RegExp(process.argv[6])
const CONNECTIONS = 4
const MAX_WARM_UP_MS = 15_000
const CHUNKS = 10_000 // of knowledge, with vectors of 768 numbers

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
  // One company has thousands of contacts.
  company: `company-${n % 20 ? n % 1_000 : 0}`,
  notes: `Notes on contact ${n}, of whom there is always something to be told in a sentence or two.`,
})

/** A blueprint whose formula takes about two thirds of the budget of a write. */
const sums = {
  key: 'sums',
  name: 'Sums',
  fields: [
    { key: 'number', type: 'integer' },
    { key: 'sum', type: 'number' },
  ],
  computed: { sum: '$sum([1..number].($x := $; $sum([1..60].($ * $x))))' },
}

/** What is sent by POST to one path. */
type Posts = { path: string; bodies: string[]; type?: string }
const ECHO_PATH = '/api/ai/sources/echo/chat-completion/plain'
const SENTENCE = 'Tell me "something"\nof which there is always a sentence or two to be told. '
const repeat = (length: number) => SENTENCE.repeat(Math.ceil(length / SENTENCE.length)).slice(0, length)
/** The last message is short, because it is the answer. */
const createChat = (count: number, length: number) =>
  JSON.stringify({
    messages: [
      ...Array.from({ length: count - 1 || 1 }, () => ({ role: 'assistant', content: repeat(length) })),
      { role: 'user', content: 'Is that all?' },
    ],
  })
const createBatch = (count: number) =>
  JSON.stringify({
    operations: Array.from({ length: count }, (_, n) => ({
      op: 'upsert',
      identifier: `contact-${n}`,
      data: { ...makeContact(n), notes: repeat(900) },
    })),
  })

const at = createTempFolder()
const env = {
  ...{ ATOLL_IMPORT_LIMIT: '1000000000', ATOLL_RATE_LIMITS: 'off', ATOLL_DURABILITY: 'normal' },
  ...{ ATOLL_AI_BODY_LIMIT: '16M', ATOLL_AI_ECHO: 'on', ATOLL_ALLOW_PRIVATE_NETWORK: 'on' },
}
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

  const post = async (headers: Record<string, string>, path: string, body: object) => {
    const response = await fetch(`${server.url}${path}`, {
      ...{ method: 'POST', headers: { ...headers, 'content-type': 'application/json' } },
      body: JSON.stringify(body),
    })
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
    // biome-ignore lint/suspicious/noExplicitAny: each path has its own answer
    return (await response.json()) as any
  }

  /** Uploads texts with vectors, which a server beside makes of their words, and returns the agent that knows them. */
  async function fillKnowledge(headers: Record<string, string>) {
    const modelServer = Bun.spawn([process.execPath, `${import.meta.dir}/../fakes/model-process.ts`], {
      ...{ stdin: 'pipe', stdout: 'pipe', stderr: 'inherit' },
    })
    const { value } = await modelServer.stdout.getReader().read()
    const apiUrl = new TextDecoder().decode(value).trim()
    const { _id: sourceId } = await post(headers, '/api/integration-sources', {
      ...{ name: 'models', kind: 'openai', metadata: { apiUrl, embeddingModel: 'words-768' } },
      authentication: { token: 'sk-1' },
    })
    const { _id: agent } = await post(headers, '/api/integrations', {
      ...{ trigger: { kind: 'chat' }, target: { kind: 'ai', sourceId, vectorStores: ['tenant'] } },
    })
    const storage = `/api/ai/sources/${sourceId}/storage`
    const { vectorStore } = await post(headers, storage, { integrationId: agent, scope: 'tenant' })
    for (let from = 0; from < CHUNKS; from += 500) {
      const sections = Array.from({ length: 500 }, (_, n) => `## Topic ${from + n}\n\n${repeat(900)}\n`)
      await post(headers, `${storage}/upload`, {
        ...{ vectorStoreId: vectorStore._id, content: sections.join('\n'), fileName: `chapter-${from}.md` },
      })
    }
    return { agent, modelServer }
  }

  const busy = await fill('busy', rows)
  await post(busy, '/api/blueprints', { ...sums, permissions: FULL_ACCESS })
  const quiet = await fill('quiet', 1_000)
  const list = '/api/blueprints/contacts/entities'
  const each = (path: (n: number) => string) => Array.from({ length: 50 }, (_, n) => path(n))
  const { agent, modelServer } = await fillKnowledge(busy)
  const kinds: Record<string, string[] | Posts> = {
    'counted lists': each((n) => `${list}?stage=won&worth[$gte]=${4_000 + n}&$sort=-created&$limit=20&$count=true`),
    'a text within names': each((n) => `${list}?name[$like]=%25rossi%20${12 + n}%25&$limit=20`),
    charts: each(
      (n) =>
        `/api/blueprints/contacts/charts/${['pie?x=stage', 'bar?x=worth', 'sum?sum=worth&groupBy=stage'][n % 3]}&worth[$gte]=${n}`,
    ),
    'exports with populate': [`${list}/export?format=ndjson&$populate=company,user`],
    'large populated pages': each((n) => `${list}?$populate=company,user&$limit=1000&$skip=${n}`),
    'broad searches, filtered': each((n) => `${list}?$q=sentence&worth=${n}&$count=true&$limit=20`),
    'an entity with thousands': [
      '/api/blueprints/companies/entities/company-0?$outerPopulate=contacts:contacts:tenant',
    ],
    'AI bodies of 15 MiB': { path: ECHO_PATH, bodies: [createChat(2_000, 7_500)] },
    'AI bodies of 15 MiB, one text': { path: ECHO_PATH, bodies: [createChat(1, 15_000_000)] },
    'AI bodies of 1 MiB': { path: ECHO_PATH, bodies: [createChat(100, 10_000)] },
    'batches of 1 MiB': { path: `${list}/batch`, bodies: [createBatch(800)] },
    imports: {
      path: `${list}/import?format=ndjson&mode=upsert`,
      bodies: [Array.from({ length: 5_000 }, (_, n) => JSON.stringify(makeContact(n))).join('\n')],
      type: 'application/x-ndjson',
    },
    'formulas at their budget': { path: '/api/blueprints/sums/entities', bodies: ['{"number":60}'] },
    'searches of knowledge': {
      path: `/api/ai/agents/${agent}/search`,
      bodies: each((n) => JSON.stringify({ question: `Who knows of topic ${n} and of chapter ${n * 7}?` })),
    },
  }
  // The first search reads the words of all entities.
  while ((await fetch(`${server.url}${list}?$q=first&$limit=1`, { headers: busy })).status === 503) await Bun.sleep(200)

  const load = (headers: Record<string, string>, asked: string[] | Posts): Load => ({
    ...{ url: server.url, connections: CONNECTIONS, seconds },
    ...(Array.isArray(asked)
      ? { headers, method: 'GET', paths: asked }
      : {
          headers: { ...headers, 'content-type': asked.type ?? 'application/json' },
          ...{ method: 'POST', paths: [asked.path], bodies: asked.bodies },
        }),
  })
  const reads = each((n) => `${list}/contact-${n * 7}`)
  const figures = (name: string, { perSecond, p50, p99, errors }: Figures) =>
    `${name.padEnd(26)} ${perSecond.toFixed(1).padStart(9)}/s  p50 ${p50.toFixed(2).padStart(7)} ms  p99 ${p99.toFixed(2).padStart(8)} ms${errors ? `  ${errors} ERRORS` : ''}`
  await measure(load(quiet, reads))
  /** Asks for each path once: fields are indexed and counts are remembered from their first use on. */
  const warmUp = async ({ url, headers, paths }: Load) => {
    const until = performance.now() + MAX_WARM_UP_MS
    for (const path of paths) {
      if (performance.now() > until) return
      await (await fetch(`${url}${path}`, { headers })).arrayBuffer()
    }
  }
  for (const [name, paths] of Object.entries(kinds)) {
    if (onlyKinds && !onlyKinds.test(name)) continue
    const {
      url,
      headers,
      method,
      paths: [path],
      bodies,
    } = load(busy, paths)
    const ask = () => fetch(`${url}${path}`, { headers, method, body: bodies?.[0] })
    let response = await ask()
    // The last requests of the former kind may still be under way.
    for (let tries = 0; response.status === 503 && tries < 50; tries++) {
      await Bun.sleep(100)
      response = await ask()
    }
    if (!response.ok) throw new Error(`${path}: ${await response.text()}`)
    await response.arrayBuffer()
    if (method === 'GET') await warmUp(load(busy, paths))
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
  modelServer.kill()
}
await database?.stop()
rmSync(at, { recursive: true })
process.exit()
