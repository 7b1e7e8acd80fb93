import { textKey, truncatedPrefix } from '../../blueprints/fields/index-key-codec'
import type { Model } from '../../blueprints/model'
import { BoundedMap } from '../../core/bounded-map'
import { decrypt, encrypt } from '../../core/encryption'
import { badRequest } from '../../core/problem'
import { weakCached } from '../../core/weak-cache'
import { deriveKey } from '../../tenancy/installation-keys'
import type { Tenant } from '../../tenancy/tenants'
import type { SortPosition } from './order'
import type { Query } from './query-parser'
import { wholeValueSql } from './sql-conditions'

/**
 * Where a page ended: the sort position of its last entity. Ranked results have no stable position, because every new
 * entity changes the rank of the others; their cursor holds the numbers of all entities shown so far. `from` is the
 * number to continue from once the list is no longer ranked.
 */
export type CursorPosition = { place: SortPosition } | { shown: number[]; from?: number }

const MAX_CURSOR_LENGTH = 16_384 // characters
const MAX_CURSOR_TEXT = 1_000 // characters of a text in a cursor

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
  const serialized = serializePosition(shortenTexts(position))
  const existing = latestCursors(query).get(serialized)
  if (existing) return existing
  const cursor = encrypt(await getCursorKey(tenant), serialized, toAad(model, query)).toString('base64url')
  latestCursors(query).set(serialized, cursor)
  return cursor
}

/** Repeated pages end at the same position. A query belongs to the blueprint of a tenant. */
const latestCursors = weakCached((_: Query) => new BoundedMap<string, string>(MAX_LATEST_CURSORS))
const MAX_LATEST_CURSORS = 4

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
  let position: CursorPosition
  try {
    position = parsePosition(decrypt(key, bytes, toAad(model, query)))
  } catch {
    return throwForeignCursor()
  }
  return 'place' in position ? { place: await completeTexts(tenant, query, position.place) } : position
}

/** A long text is its index key in a cursor, and is read again from the entity. */
type ShortenedText = { key: string }

const shortenTexts = (position: CursorPosition) =>
  'place' in position
    ? {
        place: position.place.map((value) =>
          typeof value === 'string' && value.length > MAX_CURSOR_TEXT ? { key: textKey(value) } : value,
        ) as SortPosition,
      }
    : position

/** Where the entity was changed or removed meanwhile, the place is before all texts with the same beginning. */
async function completeTexts({ db }: Tenant, { order }: Query, place: SortPosition): Promise<SortPosition> {
  const complete = async (value: SortPosition[number] | ShortenedText, at: number) => {
    if (value === null || typeof value !== 'object') return value
    const { sql, params } = wholeValueSql(order[at]!.target)
    const [[text] = []] = await db.query(`select ${sql} from entities e where e.seq = ?`, [...params, place.at(-1)])
    return typeof text === 'string' && textKey(text) === value.key ? text : truncatedPrefix(value.key)
  }
  return Promise.all(place.map(complete))
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
function toAad({ _id }: Model, { order, ranked, words = '', search = words }: Query): string {
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
