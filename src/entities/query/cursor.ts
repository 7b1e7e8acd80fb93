import type { Model } from '../../blueprints/model'
import { decrypt, encrypt } from '../../core/encryption'
import { badRequest } from '../../core/problem'
import { deriveKey } from '../../tenancy/installation-keys'
import type { Tenant } from '../../tenancy/tenants'
import type { SortPosition } from './order'
import type { Query } from './query-parser'

/**
 * Where a page ended: the place of its last entity in the order. The best of a search have no place that lasts, because
 * every entity that comes changes how well the others fit: those are the numbers of all that were shown; `from` is where
 * the list goes on, once it is no more by how well they fit.
 */
export type CursorPosition = { place: SortPosition } | { shown: number[]; from?: number }

const MAX_CURSOR_LENGTH = 16_384 // characters

/**
 * `$after` of the next page. It is encrypted, for it holds numbers of ours, and bound to its
 * tenant, blueprint and order: there is no other list that it is good for.
 */
export async function encodeCursor(
  tenant: Tenant,
  model: Model,
  query: Query,
  position: CursorPosition,
): Promise<string> {
  return encrypt(await getCursorKey(tenant), serializePosition(position), toAad(model, query)).toString('base64url')
}

/** Where the page ended that a cursor is of. @throws 400 when it is not of this list */
export async function decodeCursor(
  tenant: Tenant,
  model: Model,
  query: Query,
  cursor: string,
): Promise<CursorPosition> {
  const bytes = Buffer.from(cursor, 'base64url')
  // Letters that don't count would be taken as well.
  if (cursor.length > MAX_CURSOR_LENGTH || bytes.toString('base64url') !== cursor) return throwForeignCursor()
  const key = await getCursorKey(tenant)
  try {
    return parsePosition(decrypt(key, bytes, toAad(model, query)))
  } catch {
    return throwForeignCursor()
  }
}

const throwForeignCursor = () =>
  badRequest({
    path: '$after',
    message:
      'This $after does not belong to this list and order. Start without it, then follow the link to the next page.',
  })

const keysByDb = new WeakMap<Tenant['db'], Promise<Uint8Array>>()

function getCursorKey({ db, tenant }: Tenant) {
  const key = keysByDb.get(db) ?? deriveKey(tenant, 'cursor')
  keysByDb.set(db, key)
  key.catch(() => keysByDb.delete(db))
  return key
}

/** What a place means depends on the order; with the types, for values are compared by those. */
function toAad({ _id }: Model, { order, ranked, search = '' }: Query): string {
  const terms = order.map(({ target, descending }) => {
    const of = target.at === 'column' ? target.column : `${target.label} ${target.field.type}`
    return `${descending ? '-' : '+'}${of}`
  })
  return JSON.stringify([_id, ...(ranked ? [search] : terms)])
}

/** Of numbers only how far each is from the one before, which is shorter. */
function serializePosition(position: CursorPosition): string {
  if ('place' in position) return JSON.stringify(position)
  const sorted = position.shown.toSorted((one, other) => one - other)
  return JSON.stringify({ ...position, shown: sorted.map((number, at) => number - (sorted[at - 1] ?? 0)) })
}

function parsePosition(text: string): CursorPosition {
  const position = JSON.parse(text) as CursorPosition
  if ('place' in position) return position
  let last = 0
  return {
    ...position,
    shown: position.shown.map((further) => {
      last += further
      return last
    }),
  }
}
