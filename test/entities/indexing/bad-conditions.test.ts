import { Database } from 'bun:sqlite'
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { appendFileSync, rmSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { apiCaller, createTempFolder, createTenantByCli, signIn, startAtoll } from '../../fakes/cli'
import { mountDisk } from '../../fakes/small-disk'
import { databaseUrl } from '../../storage/engines'
import { fullAccessRules } from '../../test-tenant'
import { waitUntil } from '../../wait-until'
import { createWorkspace } from '../../workspaces/workspace-fixtures'
import { createThingsFixture, identifiers, importThings } from '../fixtures'
import { withThresholds } from '../query/small-thresholds'

setDefaultTimeout(120_000)

const PATH = '/api/blueprints/things/entities'
const THINGS = 20_000
const env = { ATOLL_RATE_LIMITS: 'off', ...(databaseUrl && { ATOLL_DATABASE_URL: databaseUrl }) }
type Call = ReturnType<typeof apiCaller>

async function createThings(call: Call, url: string, headers: Record<string, string>, count: number) {
  const fields = ['title', 'notes'].map((key) => ({ key, type: 'string' }))
  await call('POST', '/api/blueprints', { key: 'things', name: 'Things', fields })
  const words = (n: number) => Array.from({ length: 20 }, (_, at) => `${(n * 31 + at * 7_919).toString(36)}`).join(' ')
  const things = Array.from({ length: count }, (_, n) => ({ title: `number ${n % 100}`, notes: words(n) }))
  const body = things.map((one) => JSON.stringify(one)).join('\n')
  const answer = await fetch(`${url}${PATH}/import?format=ndjson`, { method: 'POST', headers, body })
  expect(await answer.json()).toMatchObject({ imported: count, failed: 0 })
}

const countOf = async (call: Call, query: string) => {
  const { status, headers } = await call('GET', `${PATH}?${query}&$count=true&$limit=1`)
  expect(status).toBe(200)
  return Number(headers.get('x-total-count'))
}
const readWordState = async (call: Call) =>
  (await call('GET', `${PATH}?$q=number&$limit=1&$explain=true`)).body.indexes[0]?.state as string
const isReady = (state: string | undefined) => state === 'ready'

test('the build of the full-text index resumes after SIGKILL, and indexes each entity once', async () => {
  const at = { at: createTempFolder(), env }
  const id = `words-${crypto.randomUUID().slice(0, 8)}`
  await createTenantByCli(at, id)
  const file = join(at.at, 'tenants', id, 'data.db')
  let headers: Record<string, string>
  {
    await using server = await startAtoll(at)
    headers = await signIn(server.url, id)
    const call = apiCaller(server.url, headers)
    await createThings(call, server.url, headers, THINGS)
    expect((await call('GET', `${PATH}?$q=number&$limit=1`)).body).toHaveLength(1)
    if (!databaseUrl) await waitUntil(() => readProgress(file).done)
    await server.end('SIGKILL')
    if (!databaseUrl) expect(readProgress(file)).toMatchObject({ isReady: 0 })
  }
  await using server = await startAtoll(at)
  const call = apiCaller(server.url, headers)
  for (let state = ''; !isReady(state); state = await readWordState(call))
    expect(await countOf(call, '$q=number 7!')).toBe(THINGS / 100)
  expect(await countOf(call, '$q=number 7!')).toBe(THINGS / 100)
  if (!databaseUrl) expect(readProgress(file)).toEqual({ done: THINGS, isReady: 1, rows: THINGS })
})

/** Returns how far the words are indexed, and how many entities have theirs in the index. */
function readProgress(file: string) {
  using db = new Database(file, { readonly: true })
  const rows = '(select count(*) from search_words) as rows'
  const progress = db.query(`select done, done >= upto as isReady, ${rows} from search_progress`).get()
  return (progress ?? { done: 0 }) as { done: number; isReady?: number; rows?: number }
}

/** Fills a disk but for some bytes, while a server may write to it. */
function fillDisk(folder: string, file: string, left: number) {
  for (;;) {
    const { bavail, bsize } = statfsSync(folder)
    const bytes = Math.min(bavail * bsize - left, 1 << 20)
    if (bytes <= 0) return
    try {
      appendFileSync(file, Buffer.alloc(bytes))
    } catch (error) {
      if ((error as { code?: string }).code !== 'ENOSPC') throw error
    }
  }
}

const probeDisk = mountDisk(createTempFolder(), '1m')
probeDisk?.[Symbol.dispose]()

describe.skipIf(!probeDisk || !!databaseUrl)('a disk that fills while indexes are built', () => {
  test('lists and searches stay correct while a full disk blocks index builds, which resume once there is space', async () => {
    const at = { at: createTempFolder(), env }
    using _ = mountDisk(at.at, '48m')!
    await createTenantByCli(at, 'acme')
    await using server = await startAtoll(at)
    const headers = await signIn(server.url, 'acme')
    const call = apiCaller(server.url, headers)
    await createThings(call, server.url, headers, THINGS)
    const ballast = join(at.at, 'ballast')
    fillDisk(at.at, ballast, 512 << 10)
    const assertAnswers = async () =>
      expect([await countOf(call, '$q=number 7!'), await countOf(call, 'title=number 7&$sort=notes')]).toEqual([
        THINGS / 100,
        THINGS / 100,
      ])
    await assertAnswers()
    const create = () => call('POST', PATH, { title: 'more', notes: 'x'.repeat(50_000) })
    await waitUntil(create, ({ status }) => status === 507)
    for (let times = 0; times < 5; times++) await assertAnswers()
    expect(await readWordState(call)).toBe('building')
    rmSync(ballast)
    for (let state: string | undefined; !isReady(state); state = await readWordState(call)) await assertAnswers()
    await waitUntil(
      () => call('GET', '/api/blueprints/things/indexes'),
      ({ body }) => body.length > 0 && body.every(({ state }: { state: string }) => isReady(state)),
      60_000,
    )
    await assertAnswers()
    await server.end('SIGTERM')
    const lines = (await server.logged).split('\n').filter((line) => /INDEXING_INTERRUPTED|INTERNAL/.test(line))
    expect(lines).toEqual([])
  })
})

test('a filter on a field that was just renamed finds the same while indexes of both its names are built', async () => {
  const fixture = await createThingsFixture([
    { key: 'title', type: 'string' },
    { key: 'price', type: 'integer' },
  ])
  const { as, path } = fixture
  const admin = as('admin')
  await importThings(
    fixture,
    Array.from({ length: 3_000 }, (_, n) => ({ identifier: `t${n}`, title: `title ${n % 50}`, price: n })),
  )
  const expected = Array.from({ length: 60 }, (_, n) => `t${7 + 50 * (59 - n)}`)
  const queries = (key: string) => [
    `${key}=title 7&$sort=-price`,
    `${key}[$like]=%25E 7&$sort=-price`,
    `$q=title 7!&$sort=-price`,
  ]
  const assertFound = async (key: string) => {
    for (const query of queries(key)) {
      const { status, body } = await admin.get(`${path}?${query}`)
      expect([status, identifiers(body)], query).toEqual([200, expected])
    }
  }
  for (const [from, to] of [
    ['title', 'name'],
    ['name', 'title'],
  ] as const) {
    // The first queries have indexes built, beside which the field is renamed.
    await assertFound(from)
    const fields = [
      { key: to, type: 'string', renamedFrom: from },
      { key: 'price', type: 'integer' },
    ]
    expect((await admin.put('/blueprints/things', { fields })).status).toBe(200)
    for (let times = 0; times < 3; times++) await assertFound(to)
    const { status } = await admin.get(`${path}?${from}=title 7`)
    expect(status).toBe(400)
  }
})

test('a list whose rule no index serves shows what the caller may read, by an index that leaves the rule to be checked', () =>
  withThresholds('small', async () => {
    const rules = [...fullAccessRules('user', 'user'), { operation: 'read', roleBased: ['user'], scope: 'workspace' }]
    const fields = ['stage', 'place'].map((key) => ({ key, type: 'string' }))
    const { as, path, users } = await createThingsFixture([...fields, { key: 'worth', type: 'integer' }], rules)
    const [admin, user] = [as('admin'), as('user')]
    const { _id: north } = await createWorkspace(user, { name: 'North' })
    expect((await user.post(`/workspaces/${north}/activate`)).status).toBe(200)
    const places = [
      { user: users.user, workspace: null },
      { user: users.other, workspace: north },
      ...Array.from({ length: 6 }, () => ({ user: users.other, workspace: null })),
    ]
    const things = Array.from({ length: 240 }, (_, n) => ({
      ...{ identifier: `t${n}`, worth: (n * 7) % 240, stage: n % 3 ? 'won' : 'lost', place: 'here' },
      ...places[n % places.length]!,
    }))
    for (const thing of things) expect((await admin.post(path, thing)).status).toBe(201)
    const readable = things
      .filter((thing) => thing.stage === 'won' && (thing.user === users.user || thing.workspace === north))
      .sort((one, other) => other.worth - one.worth)
    const query = 'stage=won&place=here&$sort=-worth'
    const listIndexes = async () =>
      ((await admin.get('/blueprints/things/indexes')).body as { fields?: string[]; state: string }[]).filter(
        ({ fields = [] }) => fields.length > 1,
      )
    const assertListed = async () => {
      for (const limit of [5, 1_000]) {
        const { headers, body } = await user.get(`${path}?${query}&$limit=${limit}&$count=true`)
        expect(identifiers(body)).toEqual(identifiers(readable.slice(0, limit)))
        expect(headers.get('x-total-count')).toBe(`${readable.length}`)
      }
    }
    for (let times = 0; times < 3; times++) await assertListed()
    await waitUntil(listIndexes, (found) => found.length > 0 && found.every(({ state }) => state === 'ready'))
    await assertListed()
    const fieldsOf = (await listIndexes()).map(({ fields }) => `${fields}`)
    expect(fieldsOf).toContain('stage,place,worth')
    expect(fieldsOf.length).toBeLessThanOrEqual(2)
  }))
