import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import fc from 'fast-check'
import { tenantMigrations } from '../../../migrations'
import type { Actor } from '../../../src/accounts/actors'
import { getModel, insert } from '../../../src/blueprints/blueprints'
import { EntityVersion } from '../../../src/entities/changes/change'
import { toLogged } from '../../../src/entities/changes/change-log'
import { list } from '../../../src/entities/list'
import { matchesQuery } from '../../../src/entities/query/matches'
import { parseQuery } from '../../../src/entities/query/query-parser'
import type { ComputedDoc } from '../../../src/entities/store/doc'
import { toIndexKeys } from '../../../src/entities/store/index-keys'
import { shownInForceSql } from '../../../src/entities/store/serializer'
import { createDocument } from '../../../src/entities/write/document'
import { insertEntity } from '../../../src/entities/write/insert'
import { DatabasePool } from '../../../src/storage/pool'
import type { Tenant } from '../../../src/tenancy/tenants'
import { anyOf, mostly } from '../../blueprints/value-arbitraries'
import { checkProperty, PROPERTY_TIMEOUT_MS } from '../../property-runner'
import { comparedEngines } from '../../storage/engines'
import { freshLocation } from '../../storage/fixtures'
import { type Entity, identifiers } from '../fixtures'
import { anyDoc, anyFields, anyIdentifier, anyQuery, type FieldSpec, USERS } from './arbitraries'
import { toQueryString } from './reference-model'

const NO_TARGETS = { scopes: new Map(), files: new Map() }

setDefaultTimeout(PROPERTY_TIMEOUT_MS)

const tenants = comparedEngines.map(([name, engine]) => {
  const storage = new DatabasePool(engine(), { openCount: 2, deadline: 60_000 })
  const at = { ...freshLocation(), bucket: 'judged' }
  const tenant: Tenant = { tenant: at.tenant, ...storage.getStore(at, tenantMigrations) }
  return { name, storage, tenant }
})
afterAll(() => Promise.all(tenants.map(({ storage }) => storage.close())))

const actor: Actor = { ...{ user: 'admin', roles: [], privileged: true, workspace: null, via: 'api-key', scopes: [] } }
const anyThing = (fields: FieldSpec[]) =>
  fc.record({ identifier: anyIdentifier, user: fc.option(anyOf(...USERS)), doc: anyDoc(fields) })
const anyWords = fc.array(anyOf('a', 'b', 'ä', 'lo', 'long', 'true', '10', '中', 'B', 'zz'), { maxLength: 2 })

let blueprints = 0

test('matchesQuery finds the same entities as a list for random queries, on every engine', () =>
  checkProperty(
    25,
    fc.asyncProperty(
      anyFields.chain((fields) =>
        fc.record({
          fields: fc.constant(fields),
          things: fc.uniqueArray(anyThing(fields), {
            minLength: 4,
            maxLength: 20,
            selector: ({ identifier }) => identifier,
          }),
          questions: fc.array(fc.tuple(anyQuery(fields), mostly(fc.constant<string[]>([]), anyWords)), {
            minLength: 1,
            maxLength: 12,
          }),
        }),
      ),
      async ({ fields, things, questions }) => {
        const key = `b${++blueprints}`
        for (const { name, tenant } of tenants) {
          const ctx = { ...tenant, actor }
          await insert(ctx, { key, name: key, fields: fields as never })
          const model = await getModel(tenant, key)
          await tenant.write(async (tx) => {
            for (const [n, { identifier, user, doc: properties }] of things.entries()) {
              const doc = createDocument(model, { properties, conflicts: new Map() }, actor) as ComputedDoc
              const system = { _id: `${key}-${n}`, identifier, user, workspace: null }
              await insertEntity(tx, model, { ...system, doc, keys: toIndexKeys(model, doc), by: actor }, NO_TARGETS)
            }
          })
          const select = `select identifier, ${shownInForceSql()}, keys from entities where blueprint = ?`
          const rows = (await tenant.db.query(select, [model.code])) as [string, string, string][]
          for (const [{ filters }, words] of questions) {
            const query = toQueryString(filters, [], {
              $limit: 1_000,
              ...(words.length ? { $q: words.join(' ') } : {}),
            })
            const found = await list(ctx, key, new Request(`http://a/api/b?${query}`))
            const parsed = parseQuery(model, actor, query)
            const matching = rows.filter(([, shown, keys]) =>
              matchesQuery(model, parsed, new EntityVersion(toLogged({ shown, keys }, model))),
            )
            const names = matching.map(([identifier]) => identifier).sort()
            expect(names, `${name}: ${query}`).toEqual(identifiers((await found.json()) as Entity[]).sort())
          }
        }
      },
    ),
  ))

test('the search terms of a version are collected once, however many subscribers search it', async () => {
  const { tenant } = tenants[0]!
  const ctx = { ...tenant, actor }
  await insert(ctx, { key: 'notes', name: 'Notes', fields: [{ key: 'text', type: 'text' }], permissions: [] })
  const model = await getModel(tenant, 'notes')
  const version = new EntityVersion({ shown: '"identifier":"a","metadata":{"text":"Two words"}', keys: '{}' })
  const parsed = parseQuery(model, actor, '$q=wor')
  expect(matchesQuery(model, parsed, version)).toBe(true)
  expect(version.searchTerms(model)).toBe(version.searchTerms(model))
  expect(version.searchTerms({ ...model })).not.toBe(version.searchTerms(model))
})
