import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import fc from 'fast-check'
import { tenantMigrations } from '../../migrations'
import type { Actor } from '../../src/accounts/actors'
import { create, modelOf } from '../../src/blueprints/blueprints'
import { insert } from '../../src/entities/adding'
import { Version } from '../../src/entities/changes/change'
import { type Complete, newDocument } from '../../src/entities/document'
import { keysOf } from '../../src/entities/keys'
import { meets } from '../../src/entities/meets'
import { list } from '../../src/entities/pages'
import { readQuery } from '../../src/entities/query'
import { Storage } from '../../src/storage/store'
import type { Tenant } from '../../src/tenancy/tenants'
import { among, mostly } from '../blueprints/kinds'
import { check, patience } from '../properties'
import { engines } from '../storage/engines'
import { place } from '../storage/things'
import { type AnyField, anyDoc, anyFields, anyIdentifier, anyQuery, USERS } from './anything'
import { type Entity, identifiers } from './kit'
import { queryOf } from './naive'

setDefaultTimeout(patience)

const tenants = engines.map(([name, engine]) => {
  const storage = new Storage(engine(), { open: 2, deadline: 60_000 })
  const at = { ...place(), bucket: 'judged' }
  const tenant: Tenant = { tenant: at.tenant, ...storage.store(at, tenantMigrations) }
  return { name, storage, tenant }
})
afterAll(() => Promise.all(tenants.map(({ storage }) => storage.close())))

const actor: Actor = { ...{ user: 'admin', roles: [], privileged: true, workspace: null, via: 'api-key', scopes: [] } }
const anyThing = (fields: AnyField[]) =>
  fc.record({ identifier: anyIdentifier, user: fc.option(among(...USERS)), doc: anyDoc(fields) })
const anyWords = fc.array(among('a', 'b', 'ä', 'lo', 'long', 'true', '10', '中', 'B', 'zz'), { maxLength: 2 })

let blueprints = 0

test('what is judged here is what the list finds, whatever is kept and asked for, on every engine', () =>
  check(
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
          const answer = { request: new Request('http://a'), set: { headers: {} } }
          await create(ctx, { key, name: key, fields: fields as never }, answer)
          const model = await modelOf(tenant, key)
          await tenant.write(async (tx) => {
            for (const [n, { identifier, user, doc: properties }] of things.entries()) {
              const doc = newDocument(model, { properties, twice: new Map() }, actor) as Complete
              const system = { _id: `${key}-${n}`, identifier, user, workspace: null }
              await insert(tx, model, { ...system, doc, keys: keysOf(model, doc), by: actor }, new Map())
            }
          })
          const select = 'select identifier, shown, keys from entities where blueprint = ?'
          const rows = (await tenant.db.ask(select, [key])) as [string, string, string][]
          for (const [{ filters }, words] of questions) {
            const query = queryOf(filters, [], { $limit: 1_000, ...(words.length ? { $q: words.join(' ') } : {}) })
            const found = await list(ctx, key, new Request(`http://a/api/b?${query}`))
            const asked = readQuery(model, actor, query)
            const met = rows.filter(([, shown, keys]) => meets(model, asked, new Version({ shown, keys })))
            const names = met.map(([identifier]) => identifier).sort()
            expect(names, `${name}: ${query}`).toEqual(identifiers((await found.json()) as Entity[]).sort())
          }
        }
      },
    ),
  ))
