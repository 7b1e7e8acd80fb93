import { afterEach, expect, setDefaultTimeout, test } from 'bun:test'
import fc from 'fast-check'
import { DAY_MS, moveClock, now } from '../../../src/core/clock'
import { MAX_TRACKED_CHANGES, removeUnusedTracking } from '../../../src/entities/changes/tracked-changes'
import { withLease } from '../../../src/jobs/with-lease'
import { checkProperty, PROPERTY_TIMEOUT_MS } from '../../property-runner'
import { fullAccessRules } from '../../test-tenant'
import { waitUntil } from '../../wait-until'
import { createThingsFixture, type Entity, importThings, recordStatements } from '../fixtures'

setDefaultTimeout(PROPERTY_TIMEOUT_MS)
afterEach(() => moveClock())

const fields = [
  { key: 'name', type: 'string', indexed: true },
  { key: 'stage', type: 'string', indexed: true },
  { key: 'tags', type: 'string', multi: true },
  { key: 'next', type: 'relation', target: 'things', onDelete: 'nullify' },
]
type Fixture = Awaited<ReturnType<typeof createThingsFixture>>

const isTracked = async ({ tenant: { db } }: Fixture) =>
  (await db.query("select 1 from tracked_blueprints where blueprint = 'things'")).length > 0
const countNotes = async ({ tenant: { db } }: Fixture) =>
  Number((await db.query('select count(*) from tracked_changes'))[0]![0])

async function createTrackedFixture() {
  const fixture = await createThingsFixture(fields)
  await fixture.as('user').get(`${fixture.path}?$count=true`)
  await waitUntil(() => isTracked(fixture))
  return fixture
}

const LETTERS = ['a', 'B', 'ß', 'x'.repeat(300)]
const word = fc.array(fc.constantFrom(...LETTERS), { minLength: 1, maxLength: 3 }).map((parts) => parts.join(''))
const thing = fc.record({ name: word, stage: fc.constantFrom('won', 'lost'), tags: fc.array(word, { maxLength: 2 }) })
const number = fc.nat(11)
const action = fc.oneof(
  fc.record({ act: fc.constant('create' as const), thing, next: fc.option(number) }),
  fc.record({ act: fc.constant('change' as const), number, thing }),
  fc.record({ act: fc.constant('remove' as const), number }),
  fc.record({ act: fc.constant('import' as const), things: fc.array(thing, { minLength: 2, maxLength: 4 }) }),
  fc.record({ act: fc.constant('fail' as const), things: fc.array(thing, { minLength: 1, maxLength: 3 }) }),
  fc.record({ act: fc.constant('clear' as const) }),
)

test('counts and patterns follow every kind of write', async () => {
  await checkProperty(
    6,
    fc.asyncProperty(fc.array(action, { minLength: 4, maxLength: 10 }), async (actions) => {
      const fixture = await createTrackedFixture()
      const { path } = fixture
      const user = fixture.as('user')
      const list = async (query: string) => {
        const { status, body, headers } = await user.get(`${path}?$limit=1000&${query}`)
        expect(status).toBe(200)
        return { found: body as (Entity & { name: string; stage: string; tags: string[]; next?: string })[], headers }
      }
      const compare = async () => {
        const { found: all } = await list('')
        const total = async (query: string) => Number((await list(`$count=true&${query}`)).headers.get('x-total-count'))
        expect(await total('')).toBe(all.length)
        expect(await total('stage=won')).toBe(all.filter(({ stage }) => stage === 'won').length)
        expect((await list('$count=estimate&stage=won')).headers.get('x-total-count')).toBe(
          `${all.filter(({ stage }) => stage === 'won').length}`,
        )
        expect(await total('next[$exists]=true')).toBe(all.filter(({ next }) => next).length)
        for (const part of ['a', 'b', 'ß', 'ba', 'xb']) {
          const hasPart = (text: string) => text.toLowerCase().includes(part)
          const named = (await list(`name[$like]=%25${encodeURIComponent(part)}%25`)).found
          expect(named.map(({ _id }) => _id)).toEqual(all.filter(({ name }) => hasPart(name)).map(({ _id }) => _id))
          const tagged = (await list(`tags[$like]=%25${encodeURIComponent(part)}%25`)).found
          expect(tagged.map(({ _id }) => _id)).toEqual(
            all.filter(({ tags }) => tags.some(hasPart)).map(({ _id }) => _id),
          )
        }
      }
      for (const one of actions) {
        const { found } = await list('$sort=created')
        const chosen = 'number' in one ? found[one.number % (found.length || 1)]?.identifier : undefined
        if (one.act === 'create') {
          const next = one.next === null ? undefined : found[one.next % (found.length || 1)]?.identifier
          await user.post(path, { ...one.thing, ...(next && { next }) })
        } else if (one.act === 'import') await importThings(fixture, one.things)
        else if (one.act === 'fail')
          await user.post(`${path}/batch`, [
            ...one.things.map((data) => ({ op: 'create', data })),
            { op: 'create', data: { stage: 1 } },
          ])
        else if (one.act === 'clear') await user.delete(`${path}?stage=won`)
        else if (chosen && one.act === 'change') await user.patch(`${path}/${chosen}`, one.thing)
        else if (chosen) await user.delete(`${path}/${chosen}`)
        await compare()
      }
    }),
  )
})

test('a count follows the removal of an entity of another blueprint that entities refer to', async () => {
  const fixture = await createThingsFixture(fields)
  const admin = fixture.as('admin')
  const others = { key: 'others', name: 'Others', fields: [], permissions: [] }
  await admin.post('/blueprints', others)
  const pages = { key: 'pages', name: 'Pages', permissions: fullAccessRules('tenant', 'user') }
  await admin.post('/blueprints', {
    ...pages,
    fields: [{ key: 'other', type: 'relation', target: 'others', onDelete: 'nullify' }],
  })
  const other = (await admin.post('/blueprints/others/entities', {})).body.identifier
  const created = await admin.post('/blueprints/pages/entities', { other })
  expect([created.status, created.body.message]).toEqual([201, undefined])
  const count = async () =>
    (await admin.get('/blueprints/pages/entities?other[$exists]=true&$count=true')).headers.get('x-total-count')
  expect(await count()).toBe('1')
  await waitUntil(
    async () => (await fixture.tenant.db.query("select 1 from tracked_blueprints where blueprint = 'pages'")).length,
  )
  expect(await count()).toBe('1')
  expect((await admin.delete(`/blueprints/others/entities/${other}`)).status).toBeLessThan(300)
  expect(await count()).toBe('0')
})

test('nothing is noted of a blueprint of which nothing is kept', async () => {
  const fixture = await createThingsFixture(fields)
  const user = fixture.as('user')
  const { body } = await user.post(fixture.path, { name: 'Ada' })
  await user.get(`${fixture.path}/${body._id}`)
  await user.patch(`${fixture.path}/${body._id}`, { name: 'Bea' })
  expect([await isTracked(fixture), await countNotes(fixture)]).toEqual([false, 0])
})

test('a count is kept while only entities of other blueprints change', async () => {
  const fixture = await createTrackedFixture()
  const { path, origin } = fixture
  await importThings(fixture, [
    { name: 'Ada', stage: 'won' },
    { name: 'Bea', stage: 'lost' },
  ])
  const others = { key: 'others', name: 'Others', fields: [], permissions: [] }
  await fixture.as('admin').post('/blueprints', others)
  const count = () => fixture.as('user').get(`${path}?stage=won&$count=true&$limit=0`)
  await count()
  const isCounting = (sql: string) => sql.startsWith('select count(*)')
  await fixture.as('admin').post('/blueprints/others/entities', {})
  expect((await recordStatements(origin, count)).filter(isCounting)).toEqual([])
  await fixture.as('user').post(path, { name: 'Cid', stage: 'won' })
  expect((await recordStatements(origin, count)).filter(isCounting)).not.toEqual([])
  expect((await count()).headers.get('x-total-count')).toBe('2')
})

test('only the latest changes are kept, and all of them until nobody has needed them for a day', async () => {
  const fixture = await createTrackedFixture()
  const { tenant, path } = fixture
  const user = fixture.as('user')
  await user.post(path, { name: 'Ada' })
  await tenant.write((tx) =>
    tx.executeMany('insert into tracked_changes (blueprint, number, entities) values (?, ?, ?)', [
      ['things', 500, '[1]'],
      ['things', MAX_TRACKED_CHANGES + 999, '[1]'],
    ]),
  )
  const like = async () => (await user.get(`${path}?name[$like]=%25e%25`)).body.map(({ name }: Entity) => name)
  expect(await like()).toEqual([])
  await user.post(path, { name: 'Bea' })
  expect(await countNotes(fixture)).toBe(2)
  expect(await like()).toEqual(['Bea'])

  await withLease(tenant, 'housekeeping', removeUnusedTracking)
  expect([await isTracked(fixture), await countNotes(fixture)]).toEqual([true, 2])
  moveClock(now() + 2 * DAY_MS)
  await withLease(tenant, 'housekeeping', removeUnusedTracking)
  expect([await isTracked(fixture), await countNotes(fixture)]).toEqual([false, 0])
  await user.post(path, { name: 'Eve' })
  expect(await like()).toEqual(['Eve', 'Bea'])
  await waitUntil(() => isTracked(fixture))
  await user.post(path, { name: 'Pete' })
  expect(await like()).toEqual(['Pete', 'Eve', 'Bea'])
})
