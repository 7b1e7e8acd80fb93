// `bun test/bench/wrong-estimates.ts [sqlite|postgres] [rows] [cycles]`: a long run in which every estimate of the planner is wrong,
// because all that a filter matches comes or goes while it is cached. Every answer has to be right, and reads of a neighbour
// keep their share.
import { rmSync } from 'node:fs'
import { apiCaller, createTempFolder, createTenantByCli, SOURCE_COMMAND, signIn, startAtoll } from '../fakes/cli'
import { startPostgres } from '../fakes/postgres'
import { makeContact } from './contacts'
import { type Load, measure } from './load'

const database = process.argv[2] === 'postgres' ? await startPostgres({ durable: true }) : undefined
const rows = Number(process.argv[3] ?? 100_000)
const cycles = Number(process.argv[4] ?? 20)
const [CONNECTIONS, SECONDS, ROWS_PER_IMPORT] = [4, 1, 20_000]
/** How many entities come or go at once: far more than what counts as few. */
const WAVE = 10_000
/** The planner keeps an estimate for five seconds. */
const ESTIMATE_MS = 5_000

const at = createTempFolder()
const env = {
  ...{ ATOLL_IMPORT_LIMIT: '1000000000', ATOLL_DURABILITY: 'normal' },
  ...(database && { ATOLL_DATABASE_URL: database.url }),
}
const surroundings = { at, env, program: SOURCE_COMMAND }
for (const tenant of ['busy', 'quiet']) await createTenantByCli(surroundings, tenant)
const medianOf = (list: number[]) => list.toSorted((one, other) => one - other)[list.length >> 1]!
{
  await using server = await startAtoll(surroundings)
  const list = '/api/blueprints/contacts/entities'

  async function prepare(tenant: string, many: number) {
    const headers = await signIn(server.url, tenant)
    const call = apiCaller(server.url, headers)
    const operations = ['create', 'read', 'update', 'delete']
    await call('POST', '/api/blueprints', {
      ...{ key: 'contacts', name: 'Contacts' },
      permissions: operations.map((operation) => ({ operation, scope: 'tenant', roleBased: ['admin'] })),
      fields: [
        ...['name', 'email', 'stage', 'born', 'notes'].map((key) => ({ key, type: 'string' })),
        ...['worth', 'company'].map((key) => ({ key, type: 'number' })),
        { key: 'active', type: 'boolean' },
      ],
    })
    const importRows = async (from: number, count: number, stage?: string) => {
      const body = Array.from({ length: count }, (_, n) => {
        const contact = makeContact(from + n)
        return JSON.stringify({ identifier: `contact-${from + n}`, ...contact, stage: stage ?? contact.stage })
      }).join('\n')
      const path = `${server.url}${list}/import?format=ndjson`
      const type = { 'content-type': 'application/x-ndjson' }
      const response = await fetch(path, { method: 'POST', headers: { ...headers, ...type }, body })
      if (!response.ok) throw new Error(await response.text())
      await response.text()
    }
    for (let from = 0; from < many; from += ROWS_PER_IMPORT)
      await importRows(from, Math.min(ROWS_PER_IMPORT, many - from))
    return { headers, call, importRows }
  }
  const busy = await prepare('busy', rows)
  const quiet = await prepare('quiet', 1_000)

  const filters = [
    'stage=hot&$sort=name',
    'stage=hot&worth[$gte]=100&$sort=-created',
    'stage[$ne]=hot&worth[$lt]=50&$sort=company',
    'stage[$in]=hot,warm&active=true&$sort=worth',
  ]
  /** Asks each list, and compares its count with that of all entities that were read one by one. */
  const readAll = async () => {
    const totals: number[] = []
    for (const filter of filters) {
      const path = `${list}?${filter}&$limit=20&$count=true`
      const { status, headers, body } = await busy.call('GET', path)
      if (status !== 200) throw new Error(`${path}: ${status} ${JSON.stringify(body)}`)
      const total = Number(headers.get('x-total-count'))
      if (body.length !== Math.min(total, 20)) throw new Error(`${path}: ${body.length} of ${total}`)
      totals.push(total)
    }
    return totals
  }
  /** Returns what the lists have to count, of entities that were made with these numbers. */
  const countExpected = (isWave: boolean) => {
    const all = [
      ...Array.from({ length: rows }, (_, n) => makeContact(n)),
      ...(isWave ? Array.from({ length: WAVE }, (_, n) => ({ ...makeContact(rows + n), stage: 'hot' })) : []),
    ]
    const isHot = ({ stage }: { stage: string }) => stage === 'hot'
    return [
      all.filter(isHot),
      all.filter((one) => isHot(one) && one.worth >= 100),
      all.filter((one) => !isHot(one) && one.worth < 50),
      all.filter((one) => isHot(one) && one.active),
    ].map((found) => found.length)
  }
  const expected = { without: countExpected(false), with: countExpected(true) }

  const load = (headers: Record<string, string>, paths: string[], seconds = SECONDS): Load => ({
    ...{ url: server.url, headers, method: 'GET', paths, connections: CONNECTIONS, seconds },
  })
  const reads = Array.from({ length: 50 }, (_, n) => `${list}/contact-${n * 7}`)
  const lists = filters.map((filter) => `${list}?${filter}&$limit=20&$count=true`)
  const [ratios, p99s, changes] = [[] as number[], [] as number[], [] as number[]]
  let answers = 0
  for (let cycle = 0; cycle < cycles; cycle++) {
    const isWave = cycle % 2 === 0
    const alone = await measure(load(quiet.headers, reads))
    await readAll() // from now on, the estimates are cached
    const startedAt = performance.now()
    if (isWave) await busy.importRows(rows, WAVE, 'hot')
    else {
      const { status, body } = await busy.call('DELETE', `${list}/all?confirm=contacts&stage=hot`)
      if (status !== 200) throw new Error(JSON.stringify(body))
    }
    changes.push(performance.now() - startedAt)
    const totals = await readAll()
    const right = isWave ? expected.with : expected.without
    if (`${totals}` !== `${right}`) throw new Error(`cycle ${cycle}: ${totals} instead of ${right}`)
    answers += totals.length
    const [beside] = await Promise.all([
      measure(load(quiet.headers, reads)),
      measure(load(busy.headers, lists, SECONDS + 1)),
    ])
    ratios.push(beside.perSecond / alone.perSecond)
    p99s.push(beside.p99)
  }
  const late = changes.filter((ms) => ms > ESTIMATE_MS).length
  console.log(`${answers} answers after a change of ${WAVE} entities, all of them right`)
  console.log(
    `a change takes ${medianOf(changes).toFixed(0)} ms; ${late} of ${cycles} took longer than an estimate lasts`,
  )
  console.log(
    `reads of a neighbour beside them: ${medianOf(ratios).toFixed(2)} of those alone (least ${Math.min(...ratios).toFixed(2)}), p99 ${medianOf(p99s).toFixed(1)} ms`,
  )
}
await database?.stop()
rmSync(at, { recursive: true })
process.exit()
