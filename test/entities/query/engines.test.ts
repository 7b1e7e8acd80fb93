import { afterAll, expect, setDefaultTimeout, setSystemTime, test } from 'bun:test'
import fc from 'fast-check'
import { tenantMigrations } from '../../../migrations'
import type { Actor } from '../../../src/accounts/actors'
import { getModel, insert } from '../../../src/blueprints/blueprints'
import type { Model } from '../../../src/blueprints/model'
import { list } from '../../../src/entities/list'
import type { ComputedDoc } from '../../../src/entities/store/doc'
import { toIndexKeys } from '../../../src/entities/store/index-keys'
import { readStored } from '../../../src/entities/store/rows'
import { deleteRows } from '../../../src/entities/write/deletion'
import { createDocument } from '../../../src/entities/write/document'
import { insertEntity } from '../../../src/entities/write/insert'
import { updateEntity } from '../../../src/entities/write/update'
import { DatabasePool } from '../../../src/storage/pool'
import type { Tenant } from '../../../src/tenancy/tenants'
import { checkProperty, PROPERTY_TIMEOUT_MS } from '../../property-runner'
import { comparedEngines } from '../../storage/engines'
import { freshLocation } from '../../storage/fixtures'
import { type Entity, identifiers, nextPagePath } from '../fixtures'
import {
  type AnyQuery,
  anyDoc,
  anyFields,
  anyIdentifier,
  anyQuery,
  type FieldSpec,
  MOMENTS,
  USERS,
  WORKSPACES,
} from './arbitraries'
import { referenceModel, toQueryString } from './reference-model'
import { withThresholds } from './small-thresholds'

const NO_TARGETS = { scopes: new Map(), files: new Map() }

/** The same entities are stored in every engine, and each must answer like the reference model. */

setDefaultTimeout(PROPERTY_TIMEOUT_MS)

const tenants = comparedEngines.map(([name, engine]) => {
  const storage = new DatabasePool(engine(), { openCount: 2, deadline: 60_000 })
  const at = { ...freshLocation(), bucket: 'compared' }
  const tenant: Tenant = { tenant: at.tenant, ...storage.getStore(at, tenantMigrations) }
  return { name, storage, tenant }
})
afterAll(() => Promise.all(tenants.map(({ storage }) => storage.close())))

const actorDefaults = { via: 'api-key' as const, scopes: [], privileged: false }
const admin: Actor = { ...actorDefaults, user: 'admin', roles: [], privileged: true, workspace: null }
const anyActor = fc
  .record({
    user: fc.constantFrom(...USERS),
    roles: fc.constantFrom<string[][]>(['user'], ['member'], ['user', 'member'], ['guide']),
    workspace: fc.option(fc.constantFrom(...WORKSPACES)),
  })
  .map(({ user, roles, workspace }): Actor => {
    return {
      ...actorDefaults,
      user,
      roles,
      workspace: workspace ? { _id: workspace, name: '', roles: [], labels: [] } : null,
    }
  })
const permissions = (
  [
    ['user', 'user'],
    ['workspace', 'member'],
    ['tenant', 'guide'],
  ] as const
).map(([scope, role]) => ({ operation: 'read' as const, scope, roleBased: [role] }))

const isInScope = ({ privileged, user, roles, workspace }: Actor, entity: Entity) =>
  privileged ||
  roles.includes('guide') ||
  (roles.includes('user') && entity.user === user) ||
  (roles.includes('member') && !!workspace && entity.workspace === workspace._id)

type Thing = { identifier: string; user: string | null; workspace: string | null; made: string; doc: object }
type Change = { at: number; made: string; doc: object | null }

const anyThing = (fields: FieldSpec[]): fc.Arbitrary<Thing> =>
  fc.record({
    identifier: anyIdentifier,
    user: fc.option(fc.constantFrom(...USERS), { freq: 3 }),
    workspace: fc.option(fc.constantFrom(...WORKSPACES), { freq: 1 }),
    made: fc.constantFrom(...MOMENTS),
    doc: anyDoc(fields),
  })
const anyChange = (fields: FieldSpec[]): fc.Arbitrary<Change> =>
  fc.record({ at: fc.nat(20), made: fc.constantFrom(...MOMENTS), doc: fc.option(anyDoc(fields), { freq: 3 }) })

let blueprints = 0

/** Creates a blueprint for each run in the same tenants, so that entities of other blueprints are present, too. */
async function fillTenants(fields: FieldSpec[], things: Thing[], changes: Change[] = []) {
  const key = `b${++blueprints}`
  const entities: Entity[] = things.map(({ identifier, user, workspace, made, doc }, n) => {
    const own = { _id: `${key}-${n}`, identifier, created: made, updated: made, user, workspace }
    return { ...own, metadata: doc as Entity['metadata'] }
  })
  for (const { tenant } of tenants) {
    await insert({ ...tenant, actor: admin }, { key, name: key, fields: fields as never, permissions })
    await insertInto(tenant, await getModel(tenant, key), entities, changes)
  }
  for (const { at, made, doc } of changes) {
    const n = at % (entities.length || 1)
    if (!doc) entities.splice(n, 1)
    else if (entities[n]) entities[n] = { ...entities[n], metadata: doc as Entity['metadata'], updated: made }
  }
  // They are in the order of their times, and in that of their insertion where times are equal.
  return { key, entities: entities.sort((one, other) => Date.parse(one.created) - Date.parse(other.created)) }
}

/** Inserts the entities, then changes and deletes some. */
const insertInto = (tenant: Tenant, model: Model, entities: Entity[], changes: Change[]) =>
  tenant
    .write(async (tx) => {
      const left = entities.map(({ identifier }) => identifier)
      // Without formulas, a document is complete without computing.
      const checked = (doc: object) =>
        createDocument(
          model,
          { properties: doc as Record<string, unknown>, conflicts: new Map() },
          admin,
        ) as ComputedDoc
      for (const { metadata, created, updated: _, ...system } of entities) {
        setSystemTime(new Date(created))
        const doc = checked(metadata)
        await insertEntity(tx, model, { ...system, doc, keys: toIndexKeys(model, doc), by: admin }, NO_TARGETS)
      }
      for (const { at, made, doc } of changes) {
        const before = left.length && (await readStored(tx, model, left[at % left.length]!))
        if (!before) continue
        setSystemTime(new Date(made))
        if (doc) await updateEntity(tx, model, before, { doc: checked(doc), comparable: {}, by: admin }, NO_TARGETS)
        else await deleteRows(tx, [{ ...before, blueprint: model.key }], { histories: new Map() })
        if (!doc) left.splice(at % left.length, 1)
      }
    })
    .finally(() => setSystemTime())

/** Compares the answers of all engines with the reference model. */
async function compare(key: string, fields: FieldSpec[], entities: Entity[], actor: Actor, question: AnyQuery) {
  const { holds, sort } = referenceModel(Object.fromEntries(fields.map(({ key, type }) => [key, type])))
  const { by, limit, skip } = question
  const filters = question.filters.map((one) =>
    one.name === '_id' && one.operator !== '[$exists]' ? { ...one, text: withKey(one.text, key) } : one,
  )
  const query = toQueryString(filters, by, { $limit: limit, $skip: skip, $count: true })
  const matching = entities.filter((entity) => isInScope(actor, entity) && filters.every((one) => holds(one, entity)))
  const sorted = sort(matching, by.length ? by : [{ name: 'created', descending: true }])
  const page = sorted.slice(skip, skip + limit)
  const bodies = []
  for (const { name, tenant } of tenants) {
    const answer = await list({ ...tenant, actor }, key, new Request(`http://a/api/b?${query}`))
    const text = await answer.text()
    const { headers } = answer
    const label = `${name}: ${query}`
    expect(identifiers(JSON.parse(text)), label).toEqual(identifiers(page))
    expect([headers.get('x-total-count'), !!nextPagePath(headers)], label).toEqual([
      `${sorted.length}`,
      limit > 0 && sorted.length > skip + limit,
    ])
    bodies.push(text)
  }
  expect(new Set(bodies).size, query).toBe(1)
  expect(JSON.parse(bodies[0]!)).toEqual(JSON.parse(JSON.stringify(page.map((one) => ({ ...one, ...one.metadata })))))
}

const withKey = (text: string, key: string) => text.replace(/\d+/g, (n) => `${key}-${n}`)

test('every engine answers random queries on random entities like the reference model', () =>
  checkProperty(
    40,
    fc.asyncProperty(
      anyFields.chain((fields) =>
        fc.record({
          fields: fc.constant(fields),
          things: fc.uniqueArray(anyThing(fields), {
            minLength: 4,
            maxLength: 20,
            selector: ({ identifier }) => identifier,
          }),
          changes: fc.array(anyChange(fields), { maxLength: 6 }),
          questions: fc.array(fc.tuple(fc.oneof(fc.constant(admin), anyActor), anyQuery(fields)), {
            minLength: 1,
            maxLength: 10,
          }),
        }),
      ),
      async ({ fields, things, changes, questions }) => {
        const { key, entities } = await fillTenants(fields, things, changes)
        for (const [actor, query] of questions)
          for (const size of ['small', 'usual'] as const)
            await withThresholds(size, () => compare(key, fields, entities, actor, query))
      },
    ),
  ))

test('every engine answers random queries on 2,600 entities with common values like the reference model', async () => {
  const fields = (
    [
      ['string', false],
      ['integer', false],
      ['string', true],
      ['boolean', false],
      ['object', false],
    ] as const
  ).map(([type, multi], n): FieldSpec => ({ key: `p${n}`, type, multi, indexed: true }))
  const things = fc.sample(anyThing(fields), { numRuns: 2_600, seed: 1 }).map((thing, n): Thing => {
    const common = { p0: 'a', p1: 1, p2: ['a', 'b'], p3: true, p4: { a: 'a', B: 10 } }
    return { ...thing, identifier: `${n}`, user: 'ada', doc: n % 5 ? { ...thing.doc, ...common } : thing.doc }
  })
  const { key, entities } = await fillTenants(fields, things)
  await checkProperty(
    30,
    fc.asyncProperty(fc.oneof(fc.constant(admin), anyActor), anyQuery(fields), async (actor, query) => {
      for (const size of ['middle', 'usual'] as const)
        await withThresholds(size, () => compare(key, fields, entities, actor, query))
    }),
  )
})
