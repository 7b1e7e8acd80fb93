import type { PublicCtx } from '../../accounts/context'
import type { Model } from '../../blueprints/model'
import { isInScope, type RowScope } from '../../blueprints/permissions'
import { badRequest } from '../../core/problem'
import { createJsonResponse } from '../../core/response'
import { limitCostlyRequest } from '../../limits/request-limit'
import type { Db } from '../../storage/port'
import { decodeCursor, encodeCursor } from '../query/cursor'
import { matchesQuery } from '../query/matches'
import { isCreated, type SortPosition } from '../query/order'
import { MAX_LIMIT, type Query } from '../query/query-parser'
import { isLongText, type Order, targetKey } from '../query/target'
import { compareValues } from '../query/value-order'
import { createHeaders, getQueryString, parseResponseShape } from '../request'
import type { Doc } from '../store/doc'
import { type IndexKeys, toIndexKeys } from '../store/index-keys'
import type { EntityHeader } from '../store/serializer'
import { createSerializer, MAX_PAGE_CHARACTERS } from '../store/serializer'
import { assertPresentOnly, packState } from './as-of'
import { scanStatesAsOf } from './state-scan'
import type { EntityState } from './version'
import { isOfScope, notKept, readPresent, readStateAsOf } from './version-reads'

const MAX_SKIPPED = 10_000 // entities that may come before a page; more are reached by $after

type AsOfQuery = { model: Model; rowScope: RowScope; query: Query; cursor?: string; at: number }

/**
 * Returns a page of the entities that matched as of a time, in the order that they had. Entities are judged by the owners
 * that they had then, and by those that they have now, or last had. @throws 400, 410 HISTORY_NOT_KEPT, 429
 */
export async function listAsOf(
  ctx: PublicCtx,
  db: Db,
  { model, rowScope, query, cursor, at }: AsOfQuery,
  request: Request,
): Promise<Response> {
  assertPresentOnly(query)
  if (query.skip > MAX_SKIPPED)
    badRequest({ path: '$skip', message: `With $asOf, at most ${MAX_SKIPPED} entities can be skipped. Use $after.` })
  if (cursor !== undefined && query.skip)
    badRequest({ path: '$after', message: '$after cannot be combined with $skip or $page.' })
  if (Bun.isMainThread) await limitCostlyRequest(ctx, request)
  const bound = toCursorQuery(query, at)
  const after = cursor === undefined ? undefined : await decodeCursor(ctx, model, bound, cursor)
  const page = new SortedPage(model, query, (after as { place: SortPosition } | undefined)?.place)
  for await (const found of scanStatesAsOf(db, model, at)) {
    if (!isInScope(rowScope, found.owners ?? NOBODY)) continue
    if (!found.known) throw notKept('The state that some of these entities had then is no longer kept.')
    if (found.state && isOfScope(rowScope, found.state))
      page.add(found.state, toKeys(model, found.state, found.isPresent))
  }
  const places = page.sorted().slice(query.skip)
  const shape = parseResponseShape(model, ctx, request, query)
  const write = createSerializer(model, ctx.actor, shape)
  let [entities, passed] = ['', 0]
  for (const { identifier } of places.slice(0, query.limit)) {
    if (entities.length > MAX_PAGE_CHARACTERS) break
    passed++
    const again = await readAgain(db, model, identifier, at)
    const state = again.known ? again.state : undefined
    if (state) entities += `${entities && ','}${write(packState(state))}`
  }
  const headers = createHeaders(shape)
  if (query.limit && passed < places.length) {
    const next = await encodeCursor(ctx, model, bound, { place: places[passed - 1]!.place })
    headers.append('link', `<${nextPageUrl(request, next)}>; rel="next"`)
  }
  if (query.clamped) headers.set('x-limit', `${MAX_LIMIT}`)
  return createJsonResponse(`[${entities}]`, headers)
}

const NOBODY = { user: null, workspace: null }

const readAgain = async (db: Db, model: Model, identifier: string, at: number) =>
  readStateAsOf(db, model, identifier, await readPresent(db, model, identifier), at)

/** A cursor belongs to its time and order, and to no list of the present. */
const toCursorQuery = (query: Query, at: number): Query => ({
  ...query,
  ranked: true,
  search: JSON.stringify([
    'as of',
    at,
    ...query.order.map(({ target, descending }) => [targetKey(target), descending]),
  ]),
})

function nextPageUrl({ url }: Request, cursor: string) {
  const search = new URLSearchParams(getQueryString({ url } as Request))
  for (const name of ['$skip', '$page']) search.delete(name)
  search.set('$after', cursor)
  return `${url.slice(url.indexOf('/', 8), url.indexOf('?') >>> 0)}?${search}`
}

/** Returns the index keys of a state; a value that the blueprint would not accept any more has none. */
function toKeys(model: Model, { doc }: EntityState, isPresent: boolean): IndexKeys {
  if (isPresent) return toIndexKeys(model, doc)
  const fitting: Doc = {}
  for (const field of model.fields)
    if (doc[field.key] !== undefined && !field.validate(doc[field.key]).length) fitting[field.key] = doc[field.key]
  return toIndexKeys(model, fitting)
}

type Place = { place: SortPosition; identifier: string }

/** Collects the first places of a list, as many as a page needs. */
class SortedPage {
  #places: Place[] = []
  #directions: boolean[]
  #isSorted = true
  #limit: number

  constructor(
    private model: Model,
    private query: Query,
    private after: SortPosition | undefined,
  ) {
    // One more than the page shows tells whether there is a next page.
    this.#limit = query.skip + query.limit + 1
    const last = query.order[0]?.descending ?? true
    this.#directions = [...query.order.map(({ descending }) => descending), last, last]
  }

  add({ header, doc }: EntityState, keys: IndexKeys) {
    const { query, after } = this
    // Words are never searched here.
    if (!matchesQuery(this.model, query, { system: header, keys, doc, searchTerms: () => new Set() })) return
    const values = query.order.map((order) => sortValueOf(order, header, keys, doc))
    const place: SortPosition = [...values, header.created, header.identifier]
    if (after && this.#compare(place, after) <= 0) return
    this.#places.push({ place, identifier: header.identifier })
    this.#isSorted = false
    if (this.#places.length > 2 * this.#limit + 1_000) this.sorted()
  }

  sorted(): Place[] {
    if (!this.#isSorted)
      this.#places = this.#places.sort((one, other) => this.#compare(one.place, other.place)).slice(0, this.#limit)
    this.#isSorted = true
    return this.#places
  }

  /** Missing values come last in both directions. */
  #compare(one: SortPosition, other: SortPosition): number {
    for (const [at, isDescending] of this.#directions.entries()) {
      const [left = null, right = null] = [one[at], other[at]]
      if (left === right) continue
      if (left === null || right === null) return left === null ? 1 : -1
      return compareValues(left, right) * (isDescending ? -1 : 1)
    }
    return 0
  }
}

function sortValueOf({ target }: Order, header: EntityHeader, keys: IndexKeys, doc: Doc): string | number | null {
  if (isCreated(target)) return header.created
  if (target.at === 'field') {
    const key = (keys[target.label] as string | undefined) ?? null
    // The key of a long text ends with a hash, which has no order.
    return isLongText(target, key) ? (doc[target.field.key] as string) : key
  }
  return header[target.column.slice(2).replaceAll('"', '') as keyof EntityHeader]
}
