import { afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { getModel } from '../../../src/blueprints/blueprints'
import type { CompoundParts } from '../../../src/blueprints/compound-parts'
import { DAY_MS, moveClock } from '../../../src/core/clock'
import { requestCompoundIndex } from '../../../src/entities/indexing/index-demand'
import { seededRandom } from '../../blueprints/seeded-random'
import { databaseUrl } from '../../storage/engines'
import { fullAccessRules } from '../../test-tenant'
import { waitUntil } from '../../wait-until'
import {
  createThingsFixture,
  type Entity,
  identifiers,
  importThings,
  nextPagePath,
  recordStatements,
} from '../fixtures'
import { type Filter, referenceModel, toQueryString } from '../query/reference-model'
import { withThresholds } from '../query/small-thresholds'

setDefaultTimeout(120_000)

const LONG = 'x/~'.repeat(50)
const kinds = { stage: 'string', active: 'boolean', worth: 'number', name: 'text', born: 'date', code: 'string' }
const fields = [
  ...Object.entries(kinds).map(([key, type]) => ({ key, type })),
  { key: 'tags', type: 'string', multi: true },
]
const { holds, sort } = referenceModel(kinds)
type Fixture = Awaited<ReturnType<typeof createThingsFixture>>

const SEED = 90_210
const source = seededRandom(SEED)
const { chance, pick } = source
const stages = ['won', 'lost', 'a/b', 'a~1b', '~0', LONG, `${LONG}y`, 'ä😀']
const values: Record<string, unknown[]> = {
  stage: ['won', ...stages],
  active: [true, false],
  worth: [0, 1, -1, 1.5, 1e9, -2, 7],
  name: ['a', 'B', 'ä', '', LONG.repeat(3), `${LONG.repeat(3)}z`, '10', '9'],
  born: ['2026-01-31', '1999-12-31', '2026-02-01'],
  code: stages,
}
const shapes: [equal: string[], order: string | null][] = [
  [['stage', 'active'], 'worth'],
  [['stage'], 'name'],
  [['stage', 'active'], null],
  [['user'], 'worth'],
  [['user', 'stage'], 'born'],
  [['active', 'born', 'code'], 'name'],
  [['stage'], 'worth'],
  [['stage', 'code'], 'active'],
]
// On PostgreSQL each run takes longer, so there are fewer.
const RUNS = databaseUrl ? 40 : 150
const anyThing = (): Record<string, unknown> => ({
  ...(chance(0.95) && { stage: chance(0.5) ? 'won' : pick(stages) }),
  ...(chance(0.95) && { active: chance(0.6) }),
  ...(chance(0.8) && { worth: pick(values.worth!) }),
  ...(chance(0.9) && { name: pick(values.name!) }),
  ...(chance(0.8) && { born: pick(values.born!) }),
  ...(chance(0.5) && { code: pick(stages) }),
  tags: ['a'],
})

async function addIndex({ tenant }: Fixture, equal: string[], order: string | null) {
  const model = await getModel(tenant, 'things')
  const numberOf = (key: string) => model.field.get(key)?.number ?? (key as 'user')
  const parts: CompoundParts = {
    equal: equal.map(numberOf),
    order: order === null ? null : model.field.get(order)!.number,
  }
  for (let n = 0; n < 2; n++) requestCompoundIndex(model, parts)
  await waitUntil(
    () => getModel(tenant, 'things'),
    ({ compoundIndexes }) =>
      compoundIndexes.some(
        (one) => one.state === 'ready' && `${one.equal}` === `${parts.equal}` && one.order === parts.order,
      ),
  )
}

afterEach(() => moveClock())

describe('lists by compound indexes', () => {
  let own: Fixture
  const entities: Entity[] = []
  beforeAll(async () => {
    own = await createThingsFixture(fields, fullAccessRules('user', 'user'))
    for (let n = 0; n < 500; n++) {
      const { body } = await own.as(pick(['user', 'user', 'other'])).post(own.path, anyThing())
      entities.push(body)
      // What is written before, while and after an index is built.
      if (n === 200) await Promise.all(shapes.slice(0, 4).map(([equal, order]) => addIndex(own, equal, order)))
    }
    for (const [equal, order] of shapes.slice(4)) await addIndex(own, equal, order)
    for (let n = 0; n < 150; n++) {
      const at = source.below(entities.length)
      const { identifier, metadata } = entities[at]!
      if (chance(0.2)) {
        await own.as('admin').delete(`${own.path}/${identifier}`)
        entities.splice(at, 1)
      } else {
        const cleared = Object.fromEntries(
          Object.keys(metadata).map((key) => [key, chance(0.3) ? null : metadata[key]]),
        )
        const { status, body } = await own.as('admin').put(`${own.path}/${identifier}`, { ...cleared, ...anyThing() })
        expect(status).toBe(200)
        entities[at] = body
      }
    }
  })

  const anyQuery = () => {
    const [equal, order] = pick(shapes)
    const known = equal.filter((key) => key !== 'user')
    const filters: Filter[] = known.map((name) => ({ name, operator: '', text: `${pick(values[name]!)}` }))
    if (chance(0.3) && order && order !== 'active')
      filters.push({ name: order, operator: pick(['[$gte]', '[$lt]', '[$ne]']), text: `${pick(values[order]!)}` })
    if (chance(0.2) && order !== 'worth') filters.push({ name: 'worth', operator: '[$ne]', text: '7' })
    const by = [{ name: chance(0.2) ? 'created' : (order ?? 'created'), descending: chance(0.5) }]
    return { filters: filters.filter(({ text }) => text !== ''), by }
  }

  test.each(['admin', 'user', 'other'] as const)(
    'lists and pages agree with the reference model for %s',
    async (name) => {
      const reached = name === 'admin' ? entities : entities.filter(({ user }) => user === own.users[name])
      for (let run = 0; run < RUNS; run++) {
        const { filters, by } = anyQuery()
        const matching = sort(
          reached.filter((entity) => filters.every((filter) => holds(filter, entity))),
          by,
        )
        const [limit, skip] = [pick([1, 3, 20, 1_000]), pick([0, 0, 2, 30])]
        const query = toQueryString(filters, by, { $limit: limit, $skip: skip, $count: true })
        const label = `seed ${SEED}, run ${run}, as ${name}: ${query}`
        const { status, body, headers } = await own.as(name).get(`${own.path}?${query}`)
        expect([status, body.message], label).toEqual([200, undefined])
        const answer = [identifiers(body), headers.get('x-total-count')]
        expect(answer, label).toEqual([identifiers(matching.slice(skip, skip + limit)), `${matching.length}`])
        const seen: string[] = []
        for (let at: string | undefined = `${own.path}?${toQueryString(filters, by, { $limit: 7 })}`; at; ) {
          const page = await own.as(name).get(at)
          seen.push(...identifiers(page.body))
          at = nextPagePath(page.headers)
        }
        expect(seen, label).toEqual(identifiers(matching))
      }
    },
  )

  test.each(['usual', 'small'] as const)(
    'counts of ranges agree with the reference model before and after changes, with %s thresholds',
    (size) =>
      withThresholds(size, async () => {
        const admin = own.as('admin')
        const countRanges = async () => {
          for (let run = 0; run < RUNS / 2; run++) {
            const [from, to] = [`${source.below(500)}`, `${source.below(500)}`]
            const filters: Filter[] = [
              { name: 'stage', operator: '', text: 'won' },
              { name: 'worth', operator: pick(['[$gte]', '[$gt]']), text: from },
              ...(chance(0.5) ? [{ name: 'worth', operator: pick(['[$lte]', '[$lt]']), text: to }] : []),
            ]
            const by = [{ name: 'created', descending: chance(0.5) }]
            const query = toQueryString(filters, by, { $limit: 5, $count: true })
            const label = `seed ${SEED}, run ${run}: ${query}`
            const matching = sort(
              entities.filter((entity) => filters.every((filter) => holds(filter, entity))),
              by,
            )
            const { body, headers } = await admin.get(`${own.path}?${query}`)
            expect([identifiers(body), headers.get('x-total-count')], label).toEqual([
              identifiers(matching.slice(0, 5)),
              `${matching.length}`,
            ])
          }
        }
        for (let change = 0; change < 3; change++) {
          for (const [n, { identifier }] of entities.entries()) {
            if (n % 3 !== change) continue
            const { body } = await admin.patch(`${own.path}/${identifier}`, { worth: source.below(500) })
            entities[n] = body
          }
          const read = await recordStatements(own.origin, countRanges)
          const isMarked = read.some((sql) => /select count.* and \(i.value, i.created, i.entity\) >= /.test(sql))
          expect(isMarked).toBe(size === 'small')
        }
      }),
  )

  test('each list shape reads its compound index', async () => {
    for (const [equal, order] of shapes) {
      const filters = equal
        .filter((key) => key !== 'user')
        .map((key) => `${key}=${encodeURIComponent(`${values[key]![0]}`)}`)
      const own_ = equal.includes('user') ? [`user=${own.users.user}`] : []
      const path = `${own.path}?${[...filters, ...own_, `$sort=-${order ?? 'created'}`, '$explain=true'].join('&')}`
      const { body } = await own.as('admin').get(path)
      expect(body.driver, path).toEqual({ by: 'compound', of: [...equal, order ?? 'created'].join() })
      // Long texts may have to be read in another way.
      if (order !== 'name') expect(body.statements.length, path).toBeLessThanOrEqual(2)
    }
  })
})

describe('creation of compound indexes', () => {
  const createContacts = async (count = 60) => {
    const own = await createThingsFixture(fields)
    await importThings(
      own,
      Array.from({ length: count }, (_, n) => ({
        identifier: `c${n}`,
        stage: n % 2 ? 'won' : 'lost',
        active: n % 3 > 0,
        worth: n,
        ...{ born: '2026-01-31', code: n % 2 ? 'a' : 'b', name: n % 3 ? 'x' : 'y' },
      })),
    )
    const admin = own.as('admin')
    const listCompound = async () =>
      ((await admin.get('/blueprints/things/indexes')).body as { fields: string[]; state: string }[]).filter(
        ({ fields }) => fields.length > 1,
      )
    const settled = (count: number) =>
      waitUntil(listCompound, (found) => found.length === count && found.every(({ state }) => state === 'ready'))
    const found = async (query: string) => identifiers((await admin.get(`${own.path}?${query}`)).body)
    const rowsOf = async () =>
      Number((await own.tenant.db.query('select count(*) from entity_index where field < 0'))[0]![0])
    return { ...own, admin, listCompound, settled, found, rowsOf }
  }
  const WON = 'stage=won&active=true&$sort=-worth&$limit=3'

  test('the second broad list of a shape starts the build of its index, and the first one does not', () =>
    withThresholds('small', async () => {
      const { found, listCompound, settled, rowsOf } = await createContacts()
      const first = await found(WON)
      expect(await listCompound()).toEqual([])
      expect(await found('stage=lost&active=true&$sort=-worth&$limit=3')).toEqual(['c58', 'c56', 'c52'])
      expect(await settled(1)).toMatchObject([{ field: 'stage', fields: ['stage', 'active', 'worth'], reason: 'list' }])
      expect(await rowsOf()).toBe(60)
      expect(await found(WON)).toEqual(first)
      expect(first).toEqual(['c59', 'c55', 'c53'])
    }))

  test('a list of few entities builds no compound index', async () => {
    const { found, listCompound } = await createContacts()
    for (let n = 0; n < 3; n++) await found(WON)
    expect(await listCompound()).toEqual([])
  })

  test('a renamed field stays in its index, and removing or converting a field removes its compound indexes', () =>
    withThresholds('small', async () => {
      const { admin, found, listCompound, settled, rowsOf } = await createContacts()
      for (let n = 0; n < 2; n++) await found(WON)
      await settled(1)
      const renamed = fields.map((one) => (one.key === 'stage' ? { ...one, key: 'step', renamedFrom: 'stage' } : one))
      expect((await admin.put('/blueprints/things', { fields: renamed })).status).toBe(200)
      expect(await settled(1)).toMatchObject([{ fields: ['step', 'active', 'worth'] }])
      expect(await found(WON.replace('stage', 'step'))).toEqual(['c59', 'c55', 'c53'])
      const listed = renamed.map((one) => (one.key === 'step' ? { ...one, multi: true } : one))
      expect((await admin.put('/blueprints/things', { fields: listed })).status).toBe(200)
      await settled(0)
      expect(await rowsOf()).toBe(0)
      const answer = ['c59', 'c55', 'c53']
      // Not while the former values are cleaned up.
      await waitUntil(async () => {
        expect(await found(WON.replace('stage', 'step'))).toEqual(answer)
        return `${(await listCompound()).map(({ fields }) => fields)}` === 'active,worth'
      })
      await settled(1)
      expect(await found(WON.replace('stage', 'step'))).toEqual(answer)
      const shortened = listed.filter(({ key }) => key !== 'active')
      expect((await admin.put('/blueprints/things', { fields: shortened })).status).toBe(200)
      await settled(0)
      expect(await rowsOf()).toBe(0)
    }))

  test('a blueprint gets eight indexes for a thousand shapes, and a new one replaces an unused one', () =>
    withThresholds('small', async () => {
      const { found, settled, listCompound } = await createContacts()
      const filters = { stage: 'won', active: 'true', born: '2026-01-31', code: 'a', name: 'x' }
      const shapesOf = Object.entries(filters).flatMap(([key, value]) =>
        Object.keys(filters).map((order) => `${key}=${value}&$sort=${order}`),
      )
      // Of many that are asked for at once, some are given up until they are asked for again.
      await waitUntil(async () => {
        for (const query of shapesOf) await found(query)
        return (await listCompound()).length === 8
      })
      for (const query of shapesOf) await found(query)
      await settled(8)
      moveClock(Date.now() + 3 * DAY_MS)
      for (let n = 0; n < 2; n++) await found(WON)
      await waitUntil(listCompound, (list) =>
        list.some(({ fields, state }) => `${fields}` === 'stage,active,worth' && state === 'ready'),
      )
      await settled(8)
    }))
})
