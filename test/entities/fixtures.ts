import { expect } from 'bun:test'
import { evaluateInTurn } from '../../src/entities/write/formula-evaluation'
import { costlyWork } from '../../src/tenancy/fair-queue'
import { resolveTenant } from '../../src/tenancy/tenants'
import { callApi, createTestTenant, fullAccessRules } from '../test-tenant'
import { waitUntil } from '../wait-until'

export type Entity = Record<string, unknown> & {
  _id: string
  identifier: string
  created: string
  updated: string
  user: string | null
  workspace: string | null
  metadata: Record<string, unknown>
}

/** Returns a tenant with one blueprint, `things`, the path of its entities, and a counter of table rows. */
export async function createThingsFixture(
  fields: object[],
  permissions: object[] = fullAccessRules('tenant', 'user'),
  more: object = {},
) {
  const own = await createTestTenant()
  const created = await own
    .as('admin')
    .post('/blueprints', { key: 'things', name: 'Things', fields, permissions, ...more })
  expect([created.status, created.body.message]).toEqual([201, undefined])
  const rows = async (table: 'entities' | 'entity_index') =>
    Number((await own.tenant.db.query(`select count(*) from ${table}`))[0]![0])
  return { ...own, path: '/blueprints/things/entities', rows }
}

/** Imports many things at once. */
export async function importThings(
  { origin, tokens, path }: Pick<Awaited<ReturnType<typeof createThingsFixture>>, 'origin' | 'tokens' | 'path'>,
  things: object[],
) {
  const raw = things.map((thing) => JSON.stringify(thing)).join('\n')
  const headers = { 'x-api-key': tokens.user }
  const { body } = await callApi('POST', `${origin}/api${path}/import?format=ndjson`, { headers, raw })
  expect(body).toMatchObject({ imported: things.length, failed: 0 })
}

/** Has the words of all things indexed by a first search, and waits until they are. */
export async function indexWords({ as, path, tenant }: Awaited<ReturnType<typeof createThingsFixture>>) {
  expect((await as('admin').get(`${path}?$q=word&$limit=1`)).status).toBe(200)
  await waitUntil(async () => (await tenant.db.query('select 1 from search_progress where done >= upto'))[0])
}

export const identifiers = (body: { identifier: string }[]) => body.map(({ identifier }) => identifier)

/** Returns the path of the next page, relative to `/api`. */
export const nextPagePath = (headers: Headers) => headers.get('link')?.match(/<\/api([^>]*)>; rel="next"/)?.[1]

/** A blueprint of a fixture. Users have full access to its entities unless `permissions` are given. */
export type BlueprintSpec = { key: string; fields?: object[]; permissions?: object[]; computed?: object }

/** Returns a tenant with several blueprints; `add` creates an entity, `at` returns the path of its blueprint. */
export async function createBlueprintsFixture(...blueprints: BlueprintSpec[]) {
  const own = await createTestTenant()
  const admin = own.as('admin')
  for (const { key, fields = [], permissions = fullAccessRules('tenant', 'user'), ...more } of blueprints) {
    const created = await admin.post('/blueprints', { key, name: key, fields, permissions, ...more })
    expect([created.status, created.body.message]).toEqual([201, undefined])
  }
  const at = (key: string, rest = '') => `/blueprints/${key}/entities${rest}`
  const add = async (key: string, identifier: string, body: object = {}, by = admin) => {
    const { status, body: entity } = await by.post(at(key), { identifier, ...body })
    expect([status, entity.details ?? entity.message], `${key} ${identifier}`).toEqual([201, undefined])
    return entity as Entity
  }
  /** Adds many entities, in groups that are small enough for the queue. */
  const addMany = async (key: string, count: number, body: (n: number) => object) => {
    for (let start = 0; start < count; start += 200)
      await Promise.all(
        Array.from({ length: Math.min(200, count - start) }, (_, n) => add(key, `${key}${start + n}`, body(start + n))),
      )
  }
  const identifiersOf = async (key: string) =>
    identifiers((await admin.get(at(key, '?$sort=identifier&$limit=1000'))).body)
  return { ...own, admin, user: own.as('user'), other: own.as('other'), at, add, addMany, has: identifiersOf }
}

/** Returns the statements that the server sends to the tenant's database during the work. */
export async function recordStatements(origin: string, work: () => Promise<unknown>): Promise<string[]> {
  const { db } = await resolveTenant(new Request(origin, { headers: { host: new URL(origin).host } }))
  const [statements, { query, select }] = [[] as string[], db]
  db.query = (sql, params) => {
    // The server polls this table once a second, independently of the work.
    if (!sql.includes('from versions')) statements.push(sql)
    return query(sql, params)
  }
  db.select = ((...of: never[]) => {
    statements.push('select')
    return (select as (...of: never[]) => unknown)(...of)
  }) as typeof select
  await work().finally(() => Object.assign(db, { query, select }))
  return statements
}

/** Runs the work while every formula of the tenant gets 503 BUSY: its budget is spent and its queue is full. */
export async function withFullFormulaQueue<T>(tenant: string, work: () => Promise<T>): Promise<T> {
  const otherCaller = { tenant, caller: 'somebody else' }
  await evaluateInTurn(otherCaller, async () => {
    for (const until = performance.now() + 500; performance.now() < until; );
  })
  const releases = Array.from({ length: 500 }, () => costlyWork.acquireSlot(otherCaller))
  try {
    return await work()
  } finally {
    for (const release of releases) release()
  }
}
