import type { Model } from '../../blueprints/model'
import { decrypt, encrypt } from '../../core/encryption'
import { badRequest } from '../../core/problem'
import { deriveKey } from '../../tenancy/installation-keys'
import type { Tenant } from '../../tenancy/tenants'
import type { SortPosition } from './order'
import type { Query } from './query-parser'

/**
 * Where a page ended: the sort position of its last entity. Ranked results have no stable position, because every new
 * entity changes the rank of the others; their cursor holds the numbers of all entities shown so far. `from` is the
 * number to continue from once the list is no longer ranked.
 */
export type CursorPosition = { place: SortPosition } | { shown: number[]; from?: number }

const MAX_CURSOR_LENGTH = 16_384 // characters

/**
 * Returns the `$after` of the next page. It is encrypted, because it holds internal numbers, and bound to its tenant,
 * blueprint and order, so that it is valid for no other list.
 */
export async function encodeCursor(
  tenant: Tenant,
  model: Model,
  query: Query,
  position: CursorPosition,
): Promise<string> {
  return encrypt(await getCursorKey(tenant), serializePosition(position), toAad(model, query)).toString('base64url')
}

/** Returns the position in a cursor. @throws 400 when the cursor does not belong to this list */
export async function decodeCursor(
  tenant: Tenant,
  model: Model,
  query: Query,
  cursor: string,
): Promise<CursorPosition> {
  const bytes = Buffer.from(cursor, 'base64url')
  // Decoding ignores invalid characters, so a cursor that does not encode back to itself is rejected.
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

/** The meaning of a position depends on the order, and on the types of its fields, which decide how values compare. */
function toAad({ _id }: Model, { order, ranked, search = '' }: Query): string {
  const terms = order.map(({ target, descending }) => {
    const of = target.at === 'column' ? target.column : `${target.label} ${target.field.type}`
    return `${descending ? '-' : '+'}${of}`
  })
  // The terms of earlier versions had no letter after the number of the field; their cursors stay valid.
  const searchedTerms = search.replace(/\bf(\d+)w/g, 'f$1')
  return JSON.stringify([_id, ...(ranked ? [searchedTerms] : terms)])
}

/** Sorted numbers are stored as differences, which is shorter. */
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
