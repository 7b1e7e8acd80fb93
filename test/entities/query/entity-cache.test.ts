import { beforeEach, describe, expect, spyOn, test } from 'bun:test'
import { getModel } from '../../../src/blueprints/blueprints'
import type { Model } from '../../../src/blueprints/model'
import { beginCachedReads, readCachedEntity } from '../../../src/entities/query/cached-reads'
import { clearIdleCaches } from '../../../src/entities/query/entity-cache'
import { readShown } from '../../../src/entities/store/rows'
import { createSerializer, FLAT_SHAPE, PARTS } from '../../../src/entities/store/serializer'
import type { Db } from '../../../src/storage/port'
import type { Tenant } from '../../../src/tenancy/tenants'
import { seededRandom } from '../../blueprints/seeded-random'
import { databaseUrl } from '../../storage/engines'
import { fullAccessRules } from '../../test-tenant'
import { waitUntil } from '../../wait-until'
import { createBlueprintsFixture, type Entity } from '../fixtures'

const format = { ...PARTS, write: (shown: string) => shown }

type Names = (number | string)[]

/**
 * Returns a database of tracked entities, whose texts are their versions, and the entities that were read from it. One that is
 * remote answers later, and tells the position of the changes in each answer.
 */
function createDb(isRemote: boolean) {
  const state = { started: 1, changes: [] as number[], versions: new Map<number, number>(), read: [] as number[] }
  const position = () => (state.started ? `${state.started} ${state.changes.length || ''}` : null)
  const answers: [RegExp, (params: unknown[]) => unknown[][]][] = [
    [
      /from entities/,
      (params) => {
        const entities = new Set(params.slice(1).map((name) => Number(`${name}`.replace('id', ''))))
        const found = [...entities].filter((entity) => state.versions.has(entity))
        state.read.push(...found)
        return found.map((entity) => [entity, `id${entity}`, 1, `${state.versions.get(entity)}`, position()])
      },
    ],
    [
      /^select c\.number, c\.entities/,
      ([after, , started]) =>
        started === state.started ? state.changes.map((one, n) => [n + 1, `[${one}]`]).slice(after as number) : [],
    ],
    [/^select \(select concat/, () => [[position()]]],
    [/from tracked_blueprints/, () => (state.started ? [[state.started, state.changes.length]] : [])],
    [/from tracked_changes/, ([, after]) => state.changes.slice(after as number).map((entity) => [`[${entity}]`])],
  ]
  const answer = (sql: string, params: unknown[] = []) => answers.find(([about]) => about.test(sql))![1](params)
  const query: Db['query'] = async (sql, params) => answer(sql, params)
  const origin = isRemote ? { query } : { query, queryAtOnce: answer }
  const change = (entity: number, version: number | undefined) => {
    if (version === undefined) state.versions.delete(entity)
    else state.versions.set(entity, version)
    state.changes.push(entity)
  }
  return { state, change, position, db: { query, origin } as unknown as Db }
}

describe.each([
  ['in this process', false],
  ['of another process', true],
])('the cache of entities of a database %s', (_, isRemote) => {
  let model: Model
  beforeEach(() => {
    model = { _id: 'one', key: 'things', code: 'things', version: 1, form: 0 } as Model
  })
  /** Reads entities as a list does that found them just now, and returns each with its text. */
  async function read(db: Db, by: 'seq' | 'identifier', names: Names, as = format) {
    const texts = await beginCachedReads(db, model, as)?.read(by, names)
    return texts && [...texts].map(([name, text]) => `${name}:${text.trim()}`)
  }

  test('an entity is read once until it changes, by its number or identifier, and a removed one is not found', async () => {
    const { db, state, change } = createDb(isRemote)
    for (const entity of [1, 2, 3]) change(entity, 1)
    expect(await read(db, 'seq', [1, 2])).toEqual(['1:1', '2:1'])
    expect(await read(db, 'seq', [2, 1])).toEqual(['2:1', '1:1'])
    expect(await read(db, 'identifier', ['id1', 'id3'])).toEqual(['id1:1', 'id3:1'])
    expect(state.read).toEqual([1, 2, 3])
    change(1, 2)
    change(3, undefined)
    expect(await read(db, 'identifier', ['id1', 'id2', 'id3'])).toEqual(['id2:1', 'id1:2'])
    expect(state.read).toEqual([1, 2, 3, 1])
  })

  test('everything is read again after a thousand changes, and when tracking begins anew', async () => {
    const { db, state, change } = createDb(isRemote)
    change(1, 1)
    for (let n = 0; n < 2; n++) expect(await read(db, 'seq', [1])).toEqual(['1:1'])
    for (let n = 0; n <= 1_000; n++) change(2, n)
    expect(await read(db, 'seq', [1])).toEqual(['1:1'])
    expect(state.read).toEqual([1, 1])
    state.started = 2
    for (let n = 0; n < 2; n++) expect(await read(db, 'seq', [1])).toEqual(['1:1'])
    expect(state.read).toEqual([1, 1, 1])
  })

  test('nothing is cached while changes are not tracked, or the blueprint is altered', async () => {
    const { db, state } = createDb(isRemote)
    expect(beginCachedReads(db, { ...model, alteration: {} } as Model, format)).toBeUndefined()
    expect(beginCachedReads({ ...db, origin: undefined } as Db, model, format)).toBeUndefined()
    state.started = 0
    expect(await read(db, 'seq', [1])).toBeUndefined()
    expect(state.read).toEqual([])
  })

  test('entities that were not read for long are read again, those in use are not, and a change of both is noticed', async () => {
    const { db, state, change } = createDb(isRemote)
    const large = { ...format, write: (shown: string) => shown.padEnd(50_000) }
    for (let entity = 1; entity <= 200; entity++) change(entity, 1)
    const readOne = (entity: number) =>
      entity === 1 ? read(db, 'identifier', ['id1'], large) : read(db, 'seq', [entity], large)
    for (let entity = 2; entity <= 200; entity++)
      expect([await readOne(1), await readOne(entity)]).toEqual([['id1:1'], [`${entity}:1`]])
    const countReads = (entity: number) => state.read.filter((one) => one === entity).length
    expect([countReads(1), countReads(2)]).toEqual([1, 1])
    expect([await readOne(1), await readOne(2)]).toEqual([['id1:1'], ['2:1']])
    expect([countReads(1), countReads(2)]).toEqual([1, 2])
    change(1, 2)
    expect([await readOne(1), countReads(1)]).toEqual([['id1:2'], 2])
  })

  test('reads skip a cache while it has few of their entities, and try it again later', async () => {
    const { db, change, state } = createDb(isRemote)
    const skippedReads = isRemote ? 20 * 500 : 500
    const large = { ...format, write: (shown: string) => shown.padEnd(50_000) }
    for (let entity = 0; entity < 1_000; entity++) change(entity, 1)
    const readOne = (entity: number) => read(db, 'seq', [entity], large)
    // In this process, everything is kept until it is full; then 500 entities are looked for.
    let reads = 0
    while (await readOne(reads % 1_000)) reads++
    expect(reads).toBeWithin(500, isRemote ? 501 : 600)
    for (let n = 1; n < skippedReads; n++) expect(await readOne(n)).toBeUndefined()
    const before = state.read.length
    expect(await readOne(1)).toBeDefined()
    expect(state.read).toHaveLength(before + 1)
    // What is asked for again and again stays.
    for (let n = 0; n < 2_000; n++) expect(await readOne(n % 10)).toBeDefined()
  })

  test('the caches of all blueprints share their room, and those unused for longest are cleared', async () => {
    const { db, state, change } = createDb(isRemote)
    const large = { ...format, write: (shown: string) => shown.padEnd(50_000) }
    for (let entity = 1; entity <= 60; entity++) change(entity, 1)
    const models = Array.from({ length: 8 }, (_, n) => ({ ...model, _id: `${n}` }) as Model)
    // Three million characters each.
    const entities = Array.from({ length: 60 }, (_, n) => n + 1)
    const readAll = (one: Model) => beginCachedReads(db, one, large)!.read('seq', entities)
    for (const one of models) await readAll(one)
    expect(state.read).toHaveLength(8 * 60)
    await readAll(models[7]!)
    await readAll(models[6]!)
    expect(state.read).toHaveLength(8 * 60)
    await readAll(models[0]!)
    expect(state.read).toHaveLength(9 * 60)
  })

  test('a cache that is not used between two checks is cleared', async () => {
    const { db, state, change } = createDb(isRemote)
    change(1, 1)
    for (let n = 0; n < 3; n++) {
      expect(await read(db, 'seq', [1])).toEqual(['1:1'])
      clearIdleCaches()
    }
    expect(state.read).toEqual([1])
    clearIdleCaches()
    expect(await read(db, 'seq', [1])).toEqual(['1:1'])
    expect(state.read).toEqual([1, 1])
  })

  test('an entity of more than 64 KiB is read each time', async () => {
    const { db, state, change } = createDb(isRemote)
    change(1, 1)
    const huge = { ...format, write: (shown: string) => shown.padEnd(70_000) }
    for (let n = 0; n < 3; n++) expect(await read(db, 'seq', [1], huge)).toEqual(['1:1'])
    expect(state.read).toEqual([1, 1, 1])
  })
})

describe('reads of cached entities', () => {
  let model: Model
  beforeEach(() => {
    model = { _id: 'one', key: 'things', code: 'things', version: 1, form: 0 } as Model
  })

  test('reads of this process that began before a change return nothing, so that they are repeated', async () => {
    const { db, change } = createDb(false)
    change(1, 1)
    const reads = beginCachedReads(db, model, format)!
    expect(await reads.read('seq', [1])).toEqual(new Map([[1, '1']]))
    change(2, 1)
    expect(await reads.read('seq', [1])).toBeUndefined()
    expect(await beginCachedReads(db, model, format)!.read('seq', [1, 2])).toHaveProperty('size', 2)
  })

  /** Reads entities as a list does that found them at a position. */
  const readAt = (db: Db, entities: number[], ...positions: unknown[]) =>
    beginCachedReads(db, model, format)!.read('seq', entities, positions)

  test('reads of another process return the texts of the position of their list, though others have read later ones', async () => {
    const { db, change, position, state } = createDb(true)
    for (const entity of [1, 2]) change(entity, 1)
    const before = position()
    await readAt(db, [1, 2], before)
    change(1, 2)
    expect(await readAt(db, [1], position())).toEqual(new Map([[1, '2']]))
    expect(await readAt(db, [2], before)).toEqual(new Map([[2, '1']]))
    expect(state.read).toEqual([1, 2, 1])
    // The first one has changed since, so the list has to ask which of its entities still match.
    expect(await readAt(db, [1, 2], before)).toBeUndefined()
    expect(await readAt(db, [2], before, position())).toBeUndefined()
    expect(await readAt(db, [1, 2], position())).toEqual(
      new Map([
        [2, '1'],
        [1, '2'],
      ]),
    )
  })

  test('reads of another process do not keep a text that is older than the changes that were noticed meanwhile', async () => {
    const { db, change, position } = createDb(true)
    for (const entity of [1, 2]) change(entity, 1)
    await readAt(db, [2], position())
    const { query } = db
    const slow = Promise.withResolvers<void>()
    const slowDb = {
      ...db,
      query: async (...args: Parameters<Db['query']>) => {
        const rows = await query(...args)
        await slow.promise
        return rows
      },
    }
    const reads = beginCachedReads(slowDb, model, format)!.read('seq', [1], [position()])
    await Bun.sleep(0)
    change(1, 2)
    await readAt(db, [2], position())
    slow.resolve()
    expect(await reads).toEqual(new Map([[1, '1']]))
    expect(await readAt(db, [1], position())).toEqual(new Map([[1, '2']]))
  })

  test('entities that are read while their cache is cleared take no room of others', async () => {
    const { db, change, position, state } = createDb(true)
    const large = { ...format, write: (shown: string) => shown.padEnd(60_000) }
    change(1, 1)
    const readOf = (model: Model) => beginCachedReads(db, model, large)!.read('seq', [1], [position()])
    // Together more than all caches may hold, of blueprints that are never read again.
    for (let n = 0; n < 300; n++) {
      const reads = readOf({ ...model, _id: `gone${n}` } as Model)
      for (let checks = 0; checks < 2; checks++) clearIdleCaches()
      await reads
    }
    const models = ['one', 'two'].map((_id) => ({ ...model, _id }) as Model)
    for (const one of models) await readOf(one)
    const before = state.read.length
    for (const one of models) await readOf(one)
    expect(state.read).toHaveLength(before)
  })

  test('reads of another process read the changes once for all lists that wait for them', async () => {
    const { db, change, position } = createDb(true)
    for (const entity of [1, 2]) change(entity, 1)
    await readAt(db, [1, 2], position())
    change(1, 2)
    using query = spyOn(db.origin!, 'query')
    const both = await Promise.all([readAt(db, [2], position()), readAt(db, [2], position())])
    expect(both).toEqual([new Map([[2, '1']]), new Map([[2, '1']])])
    expect(query).toHaveBeenCalledTimes(1)
  })
})

test('lists show each entity as a read of it alone does, after random creates, updates, renames, removals and imports', async () => {
  const { add, at, as, tenant } = await createBlueprintsFixture(
    { key: 'companies', fields: [{ key: 'name', type: 'string' }] },
    {
      key: 'contacts',
      fields: [
        { key: 'name', type: 'string' },
        { key: 'stage', type: 'string' },
        { key: 'company', type: 'relation', target: 'companies' },
      ],
    },
  )
  const user = as('user')
  const { below, pick } = seededRandom(Number(process.env.TEST_SEED ?? Date.now() % 1e6))
  for (let n = 0; n < 5; n++) await add('companies', `company${n}`, { name: `Company ${n}` })
  for (let n = 0; n < 40; n++)
    await add('contacts', `contact${n}`, { name: `${n}`, stage: pick(['lead', 'won']), company: `company${n % 5}` })
  const list = async (query: string) => (await user.get(at('contacts', query))).body as Entity[]
  const isCached = async (key: string) => {
    const model = await getModel(tenant, key)
    return !!(await beginCachedReads({ ...tenant.db, origin: tenant.db }, model, PARTS)?.read('seq', [1]))
  }
  await list('?$populate=company')
  await waitUntil(async () => (await isCached('contacts')) && (await isCached('companies')))

  let made = 40
  const steps: (() => Promise<unknown>)[] = [
    () => add('contacts', `contact${made++}`, { name: 'new', stage: 'lead', company: `company${below(5)}` }),
    async () => user.patch(at('contacts', `/${await anyContact()}`), { name: `changed ${below(1e6)}` }),
    async () => user.patch(at('contacts', `/${await anyContact()}`), { stage: pick(['lead', 'won']), company: null }),
    async () => user.patch(at('contacts', `/${await anyContact()}`), { identifier: `contact${made++}` }),
    async () => user.delete(at('contacts', `/${await anyContact()}`)),
    () => user.patch(at('companies', `/company${below(5)}`), { name: `renamed ${below(1e6)}` }),
    () => user.post(at('contacts', '/import'), [{ identifier: `contact${made++}`, name: 'imported', stage: 'won' }]),
  ]
  const anyContact = async () => pick(await list('?$limit=100')).identifier
  const queries = [
    '?stage=lead&$sort=name',
    '?$sort=-updated&$limit=30',
    '?$populate=company&$sort=name',
    '?$select=name,company',
  ]
  for (let round = 0; round < 60; round++) {
    await Promise.all([pick(steps)(), pick(steps)(), list(pick(queries))])
    const query = pick(queries)
    const more = query.match(/\$(?:populate|select)=[a-z,]+/)?.[0]
    const entities = await list(query)
    const model = await getModel(tenant, 'contacts')
    const toJson = createSerializer(model, undefined, FLAT_SHAPE)
    if (!more)
      for (const entity of entities)
        expect(entity).toEqual(JSON.parse(toJson((await readShown(tenant.db, model, entity.identifier))![0])))
    const alone = await Promise.all(
      entities.map(
        async ({ identifier }) => (await user.get(at('contacts', `/${identifier}${more ? `?${more}` : ''}`))).body,
      ),
    )
    expect(entities).toEqual(alone)
  }
})

describe('an entity that is read alone', () => {
  const setUp = async () => {
    const fixture = await createBlueprintsFixture({
      key: 'notes',
      fields: [
        { key: 'text', type: 'string' },
        { key: 'secret', type: 'string', readRoles: ['editor'] },
      ],
      permissions: fullAccessRules('user', 'user'),
    })
    const [user, tenant] = [fixture.as('user'), fixture.tenant as Tenant]
    const { _id } = await fixture.add('notes', 'first', { text: 'one' }, user)
    const get = async (name: string, etag?: string) => {
      const answer = await user.get(fixture.at('notes', `/${name}`), etag ? { 'if-none-match': etag } : {})
      return { status: answer.status, body: answer.body as Entity, etag: answer.headers.get('etag')! }
    }
    await user.get(fixture.at('notes'))
    const isCached = async () => !!readCachedEntity(tenant, await getModel(tenant, 'notes'), PARTS, 'first')
    if (!databaseUrl) await waitUntil(isCached)
    return { ...fixture, user, get, _id }
  }

  test('it has the same ETag from memory and from the database, by identifier and by _id, until it changes', async () => {
    const { get, user, at, _id } = await setUp()
    const first = await get('first')
    for (const name of ['first', _id]) expect(await get(name)).toEqual(first)
    expect((await get('first', first.etag)).status).toBe(304)
    await user.patch(at('notes', '/first'), { text: 'two' })
    for (const name of ['first', _id]) {
      const changed = await get(name, first.etag)
      expect(changed).toMatchObject({ status: 200, body: { metadata: { text: 'two' } } })
      expect(changed.etag).not.toBe(first.etag)
    }
    await user.delete(at('notes', '/first'))
    for (const name of ['first', _id]) expect((await get(name)).status).toBe(404)
  })

  test('an identifier may be the _id of a removed entity, whose name it takes over', async () => {
    const { add, get, user, at, _id } = await setUp()
    for (let n = 0; n < 2; n++) expect((await get(_id)).body.metadata).toEqual({ text: 'one' })
    await user.delete(at('notes', '/first'))
    await add('notes', _id, { text: 'other' }, user)
    for (let n = 0; n < 2; n++) expect((await get(_id)).body.metadata).toEqual({ text: 'other' })
  })

  test('callers see the fields that they may read, and 404 for entities that they do not reach, whoever read before', async () => {
    const { as, at, add, user } = await setUp()
    const admin = as('admin')
    await add('notes', 'other', { text: 'other' })
    await admin.patch(at('notes', '/first'), { secret: 'hidden' })
    for (let n = 0; n < 2; n++) {
      expect((await admin.get(at('notes', '/first'))).body.metadata).toEqual({ text: 'one', secret: 'hidden' })
      expect((await user.get(at('notes', '/first'))).body.metadata).toEqual({ text: 'one' })
      expect((await admin.get(at('notes', '/other'))).status).toBe(200)
      expect((await user.get(at('notes', '/other'))).status).toBe(404)
      expect((await user.get(at('notes', '/first?$select=text'))).body.metadata).toEqual({ text: 'one' })
    }
  })
})
