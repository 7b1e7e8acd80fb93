import { expect } from 'bun:test'
import { tenantOf } from '../../src/tenancy/tenants'
import { ask, house, rules } from '../house'

export type Entity = Record<string, unknown> & {
  _id: string
  identifier: string
  created: string
  updated: string
  user: string | null
  workspace: string | null
  metadata: Record<string, unknown>
}

/** A tenant with one blueprint, `things`, and where its entities are. */
export async function shelf(fields: object[], permissions: object[] = rules('tenant', 'user'), more: object = {}) {
  const own = await house()
  const made = await own
    .as('admin')
    .post('/blueprints', { key: 'things', name: 'Things', fields, permissions, ...more })
  expect([made.status, made.body.message]).toEqual([201, undefined])
  const rows = async (table: 'entities' | 'entity_index') =>
    Number((await own.tenant.db.ask(`select count(*) from ${table}`))[0]![0])
  return { ...own, path: '/blueprints/things/entities', rows }
}

/** Puts many things on a shelf at once. */
export async function importAll(
  { origin, tokens, path }: Pick<Awaited<ReturnType<typeof shelf>>, 'origin' | 'tokens' | 'path'>,
  things: object[],
) {
  const raw = things.map((thing) => JSON.stringify(thing)).join('\n')
  const headers = { 'x-api-key': tokens.user }
  const { body } = await ask('POST', `${origin}/api${path}/import?format=ndjson`, { headers, raw })
  expect(body).toMatchObject({ imported: things.length, failed: 0 })
}

export const identifiers = (body: { identifier: string }[]) => body.map(({ identifier }) => identifier)

/** Where the next page is, relative to `/api`. */
export const nextOf = (headers: Headers) => headers.get('link')?.match(/<\/api([^>]*)>; rel="next"/)?.[1]

/** Who may do everything with a blueprint, as its rules say it: nobody but admins when none are given. */
export type Made = { key: string; fields?: object[]; permissions?: object[]; computed?: object }

/** A tenant with several blueprints; `add` makes an entity, `at` is where those of a blueprint are. */
export async function library(...blueprints: Made[]) {
  const own = await house()
  const admin = own.as('admin')
  for (const { key, fields = [], permissions = rules('tenant', 'user'), ...more } of blueprints) {
    const made = await admin.post('/blueprints', { key, name: key, fields, permissions, ...more })
    expect([made.status, made.body.message]).toEqual([201, undefined])
  }
  const at = (key: string, rest = '') => `/blueprints/${key}/entities${rest}`
  const add = async (key: string, identifier: string, body: object = {}, by = admin) => {
    const { status, body: told } = await by.post(at(key), { identifier, ...body })
    expect([status, told.details ?? told.message], `${key} ${identifier}`).toEqual([201, undefined])
    return told as Entity
  }
  /** Many of them, so many at a time that each finds room in the queue. */
  const addMany = async (key: string, count: number, body: (n: number) => object) => {
    for (let start = 0; start < count; start += 200)
      await Promise.all(
        Array.from({ length: Math.min(200, count - start) }, (_, n) => add(key, `${key}${start + n}`, body(start + n))),
      )
  }
  const has = async (key: string) => identifiers((await admin.get(at(key, '?$sort=identifier&$limit=1000'))).body)
  return { ...own, admin, user: own.as('user'), other: own.as('other'), at, add, addMany, has }
}

/** What the server asks the tenant's database meanwhile. */
export async function askedBy(origin: string, work: () => Promise<unknown>): Promise<string[]> {
  const { db } = await tenantOf(new Request(origin, { headers: { host: new URL(origin).host } }))
  const [asked, { ask, select }] = [[] as string[], db]
  db.ask = (sql, params) => {
    // Once a second it looks whether another process has changed something, whatever it is asked.
    if (!sql.includes('from versions')) asked.push(sql)
    return ask(sql, params)
  }
  db.select = ((...of: never[]) => {
    asked.push('select')
    return (select as (...of: never[]) => unknown)(...of)
  }) as typeof select
  await work().finally(() => Object.assign(db, { ask, select }))
  return asked
}
