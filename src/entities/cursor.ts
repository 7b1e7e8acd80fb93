import type { Model } from '../blueprints/model'
import { decrypted, encrypted } from '../core/encryption'
import { invalid } from '../core/problem'
import { keyOf } from '../tenancy/secrets'
import type { Tenant } from '../tenancy/tenants'
import type { Place } from './order'
import type { Query } from './query'

/**
 * Where a page ended: the place of its last entity in the order. The best of a search have no place that lasts, because
 * every entity that comes changes how well the others fit: those are the numbers of all that were shown; `from` is where
 * the list goes on, once it is no more by how well they fit.
 */
export type Passed = { place: Place } | { shown: number[]; from?: number }

const LONGEST = 16_384 // characters

/**
 * `$after` of the next page. It is encrypted, for it holds numbers of ours, and bound to its
 * tenant, blueprint and order: there is no other list that it is good for.
 */
export async function cursorOf(tenant: Tenant, model: Model, query: Query, passed: Passed): Promise<string> {
  return encrypted(await secretOf(tenant), encoded(passed), nameOf(model, query)).toString('base64url')
}

/** Where the page ended that a cursor is of. @throws 400 when it is not of this list */
export async function readCursor(tenant: Tenant, model: Model, query: Query, cursor: string): Promise<Passed> {
  const bytes = Buffer.from(cursor, 'base64url')
  // Letters that don't count would be taken as well.
  if (cursor.length > LONGEST || bytes.toString('base64url') !== cursor) return foreign()
  const key = await secretOf(tenant)
  try {
    return decoded(decrypted(key, bytes, nameOf(model, query)))
  } catch {
    return foreign()
  }
}

const foreign = () =>
  invalid({
    path: '$after',
    message: 'This $after is not of this list, in this order. Ask without it, then follow the link to the next page.',
  })

const keys = new WeakMap<Tenant['db'], Promise<Uint8Array>>()

function secretOf({ db, tenant }: Tenant) {
  const key = keys.get(db) ?? keyOf(tenant, 'cursor')
  keys.set(db, key)
  key.catch(() => keys.delete(db))
  return key
}

/** What a place means depends on the order; with the types, for values are compared by those. */
function nameOf({ _id }: Model, { order, ranked, search = '' }: Query): string {
  const terms = order.map(({ target, descending }) => {
    const of = target.at === 'column' ? target.column : `${target.label} ${target.field.type}`
    return `${descending ? '-' : '+'}${of}`
  })
  return JSON.stringify([_id, ...(ranked ? [search] : terms)])
}

/** Of numbers only how far each is from the one before, which is shorter. */
function encoded(passed: Passed): string {
  if ('place' in passed) return JSON.stringify(passed)
  const sorted = passed.shown.toSorted((one, other) => one - other)
  return JSON.stringify({ ...passed, shown: sorted.map((number, at) => number - (sorted[at - 1] ?? 0)) })
}

function decoded(text: string): Passed {
  const passed = JSON.parse(text) as Passed
  if ('place' in passed) return passed
  let last = 0
  return {
    ...passed,
    shown: passed.shown.map((further) => {
      last += further
      return last
    }),
  }
}
