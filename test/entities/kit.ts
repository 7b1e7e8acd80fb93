import { expect } from 'bun:test'
import { house, rules } from '../house'

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

export const identifiers = (body: { identifier: string }[]) => body.map(({ identifier }) => identifier)

/** Where the next page is, relative to `/api`. */
export const nextOf = (headers: Headers) => headers.get('link')?.match(/<\/api([^>]*)>; rel="next"/)?.[1]
