// `bun test/bench/peer.ts --peer <PocketBase's program>`: what Atoll answers per second as a part of what PocketBase does, on the
// same rows with equal rules, by turns. `npm run bench -- --peer` runs it; CONTRIBUTING.md has the options.
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { apiCaller, createTenantByCli, SOURCE_COMMAND, signIn, startAtoll } from '../fakes/cli'
import { createTempFolder } from '../temp-folder'
import { COMPANIES, emailOf, makeContact, USER_PASSWORD, USERS } from './contacts'
import { compareLoads, type Load, printFigures } from './load'
import { fillPocketBase, idOf, makeRecord, signInToPocketBase, startPocketBase } from './pocketbase'

const PARTS = ['reads', 'sign-ins', 'creates', 'durable']
const { values: options } = parseArgs({
  options: {
    peer: { type: 'string' },
    'peer-durable': { type: 'string' },
    'peer-parts': { type: 'string', default: PARTS.join() },
    rows: { type: 'string', default: '100000' },
    seconds: { type: 'string', default: '4' },
    rounds: { type: 'string', default: '3' },
  },
})
const { peer = '' } = options
const parts = options['peer-parts'].split(',')
const unknownPart = parts.find((part) => !PARTS.includes(part))
if (!peer || unknownPart) throw new Error(`--peer names a program, and --peer-parts some of ${PARTS}.`)
const [rows, seconds, rounds] = [Number(options.rows), Number(options.seconds), Number(options.rounds)]
/** The setting by which this program flushes each commit: `NAME=VALUE`. PocketBase itself has none. */
const [durableName = '', durableValue = ''] = options['peer-durable']?.split('=') ?? []

const ROWS_PER_IMPORT = 20_000
const BODIES = 2_000
const TENANT = 'peer'
const LIST = '/api/blueprints/contacts/entities'
const RECORDS = '/api/collections/contacts/records'

const folder = createTempFolder('peer')
const peerFolder = join(folder, 'pocketbase')
const surroundings = (durability: string) => ({
  at: folder,
  program: SOURCE_COMMAND,
  env: { ATOLL_DURABILITY: durability, ATOLL_IMPORT_LIMIT: '1000000000' },
})
const report: Record<string, unknown> = { rows, at: new Date().toISOString() }

function printPair(name: string, unit: string, ours: number, theirs: number) {
  report[name] = { atoll: ours, peer: theirs, ratio: ours / theirs }
  const [one, other] = [ours, theirs].map((value) => value.toFixed(1).padStart(9))
  console.log(`${name.padEnd(44)} Atoll ${one} ${unit}  PocketBase ${other} ${unit}  ${(ours / theirs).toFixed(2)}`)
}

async function fillAtoll(): Promise<number> {
  await createTenantByCli(surroundings('normal'), TENANT)
  await using server = await startAtoll(surroundings('normal'))
  const headers = await signIn(server.url, TENANT)
  const call = async (path: string, body: unknown) => {
    const answer = await apiCaller(server.url, headers)('POST', path, body)
    if (answer.status >= 300) throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
  }
  const importRows = async (key: string, many: number, make: (n: number) => object) => {
    for (let from = 0; from < many; from += ROWS_PER_IMPORT) {
      const count = Math.min(ROWS_PER_IMPORT, many - from)
      const body = Array.from({ length: count }, (_, n) => JSON.stringify(make(from + n))).join('\n')
      const type = { 'content-type': 'application/x-ndjson' }
      const path = `/api/blueprints/${key}/entities/import?format=ndjson`
      const response = await fetch(server.url + path, { method: 'POST', headers: { ...headers, ...type }, body })
      if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
      await response.text()
    }
  }
  const operations = ['create', 'read', 'update', 'delete']
  const permissions = operations.map((operation) => ({ operation, scope: 'tenant', roleBased: ['user'] }))
  const companies = { key: 'companies', name: 'Companies', fields: [{ key: 'name', type: 'string' }] }
  const contacts = {
    key: 'contacts',
    name: 'Contacts',
    fields: [
      { key: 'name', type: 'string', required: true },
      { key: 'email', type: 'email' },
      { key: 'stage', type: 'string' },
      { key: 'worth', type: 'number' },
      { key: 'company', type: 'relation', target: 'companies' },
      { key: 'active', type: 'boolean' },
      { key: 'born', type: 'date' },
      { key: 'notes', type: 'text' },
    ],
  }
  for (const one of [companies, contacts]) await call('/api/blueprints', { ...one, permissions })
  await importRows('companies', COMPANIES, (n) => ({ identifier: `company-${n}`, name: `Company ${n}` }))
  for (let n = 0; n < USERS; n++)
    await call('/api/signup', { username: emailOf(n), email: emailOf(n), password: USER_PASSWORD, authType: 'oauth' })
  const startedAt = performance.now()
  await importRows('contacts', rows, makeBody)
  const perSecond = rows / ((performance.now() - startedAt) / 1_000)
  await server.end('SIGTERM')
  return perSecond
}

const makeBody = (n: number) => {
  const { company, ...contact } = makeContact(n)
  return { ...contact, company: `company-${company}` }
}

type Sides = { atoll: Load; peer: Load }
type Pair = Record<keyof Sides, { url: string; headers: Record<string, string> }>

/** Measures both sides by turns, and prints the ratio. */
async function compare(name: string, sides: Sides) {
  for (const [side, { url, headers, method, paths, bodies }] of Object.entries(sides)) {
    const response = await fetch(url + paths[0], { method, headers, body: bodies?.[0] })
    if (!response.ok) throw new Error(`${side}, ${name}: ${response.status} ${await response.text()}`)
    await response.arrayBuffer()
  }
  const { atoll, peer } = await compareLoads(sides, rounds)
  const ratio = atoll!.perSecond / peer!.perSecond
  report[name] = { atoll, peer, ratio }
  printFigures(`${name}: PocketBase`, peer!)
  printFigures(`${name}: Atoll`, atoll!, { ratio, of: 'PocketBase' })
}

const toSides = (pair: Pair, connections: number, ours: Partial<Load>, theirs: Partial<Load>): Sides => {
  const shared = { method: 'GET' as const, paths: [], connections, seconds }
  return { atoll: { ...shared, ...pair.atoll, ...ours }, peer: { ...shared, ...pair.peer, ...theirs } }
}

/** Starts both, and lets somebody use them. */
async function withBoth(durability: 'normal' | 'full', use: (pair: Pair, ids: string[]) => Promise<void>) {
  const isDurable = durability === 'full'
  await using atoll = await startAtoll(surroundings(durability))
  await using other = await startPocketBase(peer, peerFolder, isDurable ? { [durableName]: durableValue } : {})
  const headers = {
    ...(await signIn(atoll.url, TENANT, emailOf(0), USER_PASSWORD)),
    'content-type': 'application/json',
  }
  const pair = {
    atoll: { url: atoll.url, headers },
    peer: { url: other.url, headers: await signInToPocketBase(other.url) },
  }
  const found = await apiCaller(atoll.url, headers)('GET', `${LIST}?$sort=worth&$limit=1000`)
  await use(
    pair,
    found.body.map(({ identifier }: { identifier: string }) => identifier),
  )
  await atoll.end('SIGTERM')
}

const each = (path: (n: number) => string) => Array.from({ length: 50 }, (_, n) => path(n))
const filters = {
  narrow: ['worth=777', 'worth=777'],
  broad: ['stage=won&worth[$gte]=5000', "stage='won'&&worth>=5000"],
  'of a company': ['company=company-7&active=true', `company='${idOf('company', 7)}'&&active=true`],
  'name contains': ['name[$like]=%25rossi 12%25', "name~'rossi 12'"],
} as const

async function assertEqualTotals({ atoll, peer }: Pair) {
  for (const [name, [ours, theirs]] of Object.entries(filters)) {
    const answer = await apiCaller(atoll.url, atoll.headers)('GET', `${LIST}?${ours}&$limit=1&$count=true`)
    const path = `${RECORDS}?perPage=1&filter=${encodeURIComponent(theirs)}`
    const other = await apiCaller(peer.url, peer.headers)('GET', path)
    const [one, total] = [Number(answer.headers.get('x-total-count')), other.body.totalItems]
    if (one !== total) throw new Error(`${name}: Atoll has ${one}, and PocketBase ${total}.`)
    console.log(`${`equal totals, ${name}`.padEnd(44)} ${total}`)
  }
}

async function compareReads(pair: Pair, ids: string[]) {
  const records = ids.map((_, n) => `${RECORDS}/${idOf('contact', Math.floor((n * rows) / ids.length))}`)
  await compare('get by id', toSides(pair, 32, { paths: ids.map((id) => `${LIST}/${id}`) }, { paths: records }))
  const ourList = (query: (n: number) => string) => ({
    paths: each((n) => `${LIST}?${query(n).replaceAll(' ', '%20')}&$sort=-created&$limit=20`),
  })
  const theirList = (filter: (n: number) => string, counted = false) => ({
    paths: each(
      (n) =>
        `${RECORDS}?filter=${encodeURIComponent(filter(n))}&sort=-created&perPage=20${counted ? '' : '&skipTotal=1'}`,
    ),
  })
  const broad = (n: number) => `stage=won&worth[$gte]=${5_000 + n}`
  const theirBroad = (n: number) => `stage='won'&&worth>=${5_000 + n}`
  const lists: Record<string, [ours: Partial<Load>, theirs: Partial<Load>]> = {
    'list, narrow': [ourList((n) => `worth=${700 + n}`), theirList((n) => `worth=${700 + n}`)],
    'list, of a company': [
      ourList((n) => `company=company-${n}&active=true`),
      theirList((n) => `company='${idOf('company', n)}'&&active=true`),
    ],
    'list, broad': [ourList(broad), theirList(theirBroad)],
    'list, broad, counted': [ourList((n) => `${broad(n)}&$count=true`), theirList(theirBroad, true)],
    'list, name contains a text': [
      ourList((n) => `name[$like]=%25rossi ${12 + n}%25`),
      theirList((n) => `name~'rossi ${12 + n}'`),
    ],
  }
  for (const [name, [ours, theirs]] of Object.entries(lists)) await compare(name, toSides(pair, 8, ours, theirs))
}

async function compareSignIns(pair: Pair) {
  const names = Array.from({ length: USERS }, (_, n) => emailOf(n))
  const ours = names.map((username) => JSON.stringify({ username, password: USER_PASSWORD, authType: 'oauth' }))
  const theirs = names.map((identity) => JSON.stringify({ identity, password: USER_PASSWORD }))
  const post = (path: string, bodies: string[]) => ({ method: 'POST' as const, paths: [path], bodies })
  const path = '/api/collections/users/auth-with-password'
  await compare('sign-in', toSides(pair, 4, post('/api/signin', ours), post(path, theirs)))
}

async function compareWrites(pair: Pair, ids: string[], kind: string) {
  const bodies = (make: (n: number) => object) =>
    Array.from({ length: BODIES }, (_, n) => JSON.stringify(make(rows + n)))
  const ours = { method: 'POST' as const, paths: [LIST], bodies: bodies(makeBody) }
  const theirs = { method: 'POST' as const, paths: [RECORDS], bodies: bodies(makeRecord) }
  for (const connections of [1, 16, 64])
    await compare(`create, ${kind}, ${connections} in flight`, toSides(pair, connections, ours, theirs))
  const changes = bodies((n) => ({ stage: makeContact(n).stage, worth: n % 9_973 }))
  const change = (paths: string[]) => ({ method: 'PATCH' as const, paths, bodies: changes })
  await compare(
    `update of two fields, ${kind}, 16 in flight`,
    toSides(
      pair,
      16,
      change(ids.map((id) => `${LIST}/${id}`)),
      change(ids.map((_, n) => `${RECORDS}/${idOf('contact', n)}`)),
    ),
  )
}

async function compareStarts() {
  const megabytes = (pid: number) =>
    Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1_000
  const startedAt = performance.now()
  await using atoll = await startAtoll(surroundings('normal'))
  const ours = performance.now() - startedAt
  await using other = await startPocketBase(peer, peerFolder)
  await Bun.sleep(1_000)
  printPair('start to the first answer', 'ms', ours, other.ms)
  printPair('idle memory', 'MB', megabytes(atoll.pid), megabytes(other.pid))
  await atoll.end('SIGTERM')
}

const imported = await fillAtoll()
printPair('rows by import, and by batch', '/s', imported, await fillPocketBase(peer, peerFolder, rows))
await compareStarts()
if (parts.includes('reads'))
  await withBoth('normal', async (pair, ids) => {
    await assertEqualTotals(pair)
    await compareReads(pair, ids)
  })
const sizeOf = (...names: string[]) => statSync(join(folder, ...names)).size / 1_000_000
printPair('data on the disk', 'MB', sizeOf('tenants', TENANT, 'data.db'), sizeOf('pocketbase', 'data.db'))
if (parts.includes('sign-ins')) await withBoth('normal', compareSignIns)
if (parts.includes('creates')) await withBoth('normal', (pair, ids) => compareWrites(pair, ids, 'not durable'))
if (parts.includes('durable') && durableName) await withBoth('full', (pair, ids) => compareWrites(pair, ids, 'durable'))
else if (parts.includes('durable'))
  console.log('No durable figures: --peer-durable NAME=VALUE says how the program flushes each commit.')
mkdirSync('test/bench/results', { recursive: true })
writeFileSync('test/bench/results/peer.json', `${JSON.stringify(report, null, 2)}\n`)
process.exit()
