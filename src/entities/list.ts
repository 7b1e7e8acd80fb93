import type { PublicCtx } from '../accounts/context'
import { getModel } from '../blueprints/blueprints'
import { type CompoundParts, partsKey } from '../blueprints/compound-parts'
import type { Model } from '../blueprints/model'
import { type RowScope, requireRowScope, rowScopeOf } from '../blueprints/permissions'
import { badRequest, Problem } from '../core/problem'
import { createJsonResponse } from '../core/response'
import { limitCostlyRequest } from '../limits/request-limit'
import type { Db } from '../storage/port'
import { trackChanges } from './changes/tracked-changes'
import { shouldUseColumns } from './columns/column-reads'
import { listAsOf } from './history/as-of-list'
import { parseAsOf } from './history/version-reads'
import { requestCompoundIndex } from './indexing/index-demand'
import { populatePage } from './populate/populate'
import { createPopulatePlan } from './populate/populate-plan'
import { beginCachedReads, requestCache } from './query/cached-reads'
import { adviseCompoundIndex, adviseCountedIndex, findCompoundRows, findCountedRows } from './query/compound-index'
import { type CursorPosition, decodeCursor, encodeCursor } from './query/cursor'
import { explainQuery } from './query/explain'
import { readFairly } from './query/fair-reads'
import { findFiltered } from './query/filtered-find'
import { readShownByIds } from './query/find'
import { resolveLikes } from './query/like-filter'
import { countMatching, estimateMatching } from './query/matching-count'
import { MAX_LIMIT, parseQuery, type Query } from './query/query-parser'
import { reportSlowList } from './query/slow-lists'
import type { PreparedRead } from './query/threaded-reads'
import { beginUnindexedRead } from './query/unindexed-reads'
import {
  createHeaders,
  getQueryString,
  parseResponseShape,
  readConsistently,
  splitPageOptions,
  withoutPrivilege,
} from './request'
import { prepareSearch } from './search/search-index'
import { chooseFormat, type EntityFormat, MAX_PAGE_CHARACTERS, PARTS, shownColumnSql } from './store/serializer'

const ENTITIES_PER_READ = 100 // entities read by one statement
const MAX_SHORT_SKIP = 1_000 // rows of an index that are passed at once

/**
 * Returns a page of the entities in the caller's row scope that match the query. @throws 400, 401, 403, 404, 503 BUSY
 */
export async function list(originalCtx: PublicCtx, key: string, request: Request): Promise<Response> {
  const ctx = withoutPrivilege(originalCtx, request)
  return readFairly(
    originalCtx,
    request,
    (db) => readConsistently(ctx, key, (model) => readList(originalCtx, ctx, db, model, request)),
    {
      ...{ name: 'list', args: [key], receive: (response) => response },
      prepare: (hasBegun) => prepareCostlyList(ctx, key, request, hasBegun),
    },
  )
}

/**
 * Tells whether a compound index leads to the page of a list, so that few rows are read. Otherwise it asks for the index,
 * without which only some lists are read at once.
 */
async function prepareCostlyList(
  ctx: PublicCtx,
  key: string,
  request: Request,
  hasBegun: boolean,
): Promise<PreparedRead> {
  const model = await getModel(ctx, key)
  // Whoever may not read is refused for that, whatever the query is.
  const rowScope = rowScopeOf(model, 'read', ctx.actor)
  if (!rowScope) return { size: 'large' }
  const { search, asOf } = splitPageOptions(getQueryString(request))
  const query = parseQuery(model, ctx.actor, search)
  if (asOf !== undefined || query.limit > ENTITIES_PER_READ) return { size: 'large' }
  if (query.ranked && !query.count && !query.likes.length) {
    const { words } = await prepareSearch(ctx, model, query)
    return { size: words === undefined ? 'unknown' : 'large' }
  }
  if (shouldUseColumns(ctx.db, model, rowScope, query, { isCounted: hasBegun })) return { size: 'small' }
  const rows = query.likes.length ? undefined : findCompoundRows(model, rowScope, query)
  // If the first rows of an index in order of time do not fill the page, those that would be counted are sorted.
  const needsCounted = query.count || (rows?.rest && rows.index.order === null)
  const counted = needsCounted && findCountedRows(model, rowScope, query)
  const parts = [
    ...(rows ? [] : [adviseCompoundIndex(rowScope, query)]),
    ...(needsCounted && !counted ? [adviseCountedIndex(rowScope, query)] : []),
  ]
  const [missing] = parts.filter((one) => one && !requestCompoundIndex(model, one))
  if (!missing) {
    if (!rows || (query.count && !counted)) return { size: 'large' }
    return { size: rows.rest || !isShort(model, query) ? 'unknown' : 'small' }
  }
  const isMissing = async () => !hasCompoundIndex(await getModel(ctx, key), missing)
  const end = await beginUnindexedRead(`${ctx.tenant} ${model._id} ${partsKey(missing)}`, isMissing, request.signal)
  return end ? { size: 'large', end } : prepareCostlyList(ctx, key, request, true)
}

/** Returns whether few rows are passed and few entities shown, with those of relations. */
function isShort(model: Model, { limit, skip, related }: Query) {
  if (skip > MAX_SHORT_SKIP) return false
  if (!related) return true
  const { populate, sets } = related
  const isOfOne = ([key = '', ...below]: string[]) => !below.length && !model.field.get(key)?.multi
  return populate !== true && !sets.length && populate.every(isOfOne) && limit * populate.length <= ENTITIES_PER_READ
}

const hasCompoundIndex = ({ compoundIndexes }: Model, parts: CompoundParts) =>
  compoundIndexes.some((index) => index.state === 'ready' && partsKey(index) === partsKey(parts))

async function readList(
  originalCtx: PublicCtx,
  ctx: PublicCtx,
  db: Db,
  model: Model,
  request: Request,
): Promise<Response> {
  const rowScope = requireRowScope(model, 'read', ctx.actor)
  const { search, cursor, explain, asOf } = splitPageOptions(getQueryString(request))
  if (explain && !originalCtx.actor?.privileged)
    throw new Problem(403, 'FORBIDDEN', 'Only admins and service accounts can use $explain.')
  const parsedQuery = parseQuery(model, ctx.actor, search)
  if (asOf !== undefined) {
    if (explain) badRequest({ path: '$explain', message: '$explain cannot be combined with $asOf.' })
    return listAsOf(ctx, db, { model, rowScope, query: parsedQuery, cursor, at: parseAsOf(model, asOf) }, request)
  }
  const query = await prepareSearch(ctx, model, parsedQuery)
  // The main thread has counted the request before a reader thread gets it.
  if (query.count && Bun.isMainThread) await limitCostlyRequest(ctx, request)
  if (query.count || query.likes.length || query.search !== undefined) trackChanges(ctx, model)
  else requestCache(ctx, model)
  const after = await parseStart(ctx, model, query, cursor)
  if (explain)
    return explainQuery(db, model, rowScope, query, (db) =>
      readPage(db, model, rowScope, query, after, PARTS, () => ''),
    )
  const began = performance.now()
  const shape = parseResponseShape(model, ctx, request, query)
  const plan = shape.related && (await createPopulatePlan(ctx, model, shape.related, shape.select))
  let endOf: ((shown: number) => CursorPosition) | undefined
  const read = async (format: EntityFormat, write: (text: string) => string) => {
    const read = await readPage(db, model, rowScope, query, after, format, write)
    endOf = read.endOf
    return read
  }
  const { entities, shown, more } = await (plan
    ? populatePage({ ...ctx, db }, plan, shape, (collect) => read(PARTS, collect))
    : read(...chooseFormat(model, ctx.actor, shape)))
  const headers = createHeaders(shape)
  if (more && endOf)
    headers.append(
      'link',
      `<${nextPageUrl(request, query, await encodeCursor(ctx, model, query, endOf(shown)))}>; rel="next"`,
    )
  if (query.clamped) headers.set('x-limit', `${MAX_LIMIT}`)
  if (query.count === 'estimate') {
    const { count, isEstimated } = await estimateMatching(db, model, rowScope, query)
    headers.set('x-total-count', `${count}`)
    if (isEstimated) headers.set('x-total-count-estimated', 'true')
  } else if (query.count) headers.set('x-total-count', `${await countMatching(db, model, rowScope, query)}`)
  await reportSlowList({ ...ctx, db }, { model, rowScope, query, began })
  return createJsonResponse(`[${entities}]`, headers, { isLate: !!ctx.place?.cluster })
}

/**
 * Returns the position that a list starts after. @throws 400 for a cursor of another list, or with `$skip` or `$page`
 */
async function parseStart(ctx: PublicCtx, model: Model, query: Query, cursor: string | undefined) {
  if (cursor === undefined) return
  if (query.skip) badRequest({ path: '$after', message: '$after cannot be combined with $skip or $page.' })
  return decodeCursor(ctx, model, query, cursor)
}

/**
 * Returns the entities of a page as JSON, separated by commas, their number, and whether there are more. `write` makes it
 * of their texts in a format. `endOf` returns the position where the page ends when it shows only the given number of entities.
 */
async function readPage(
  db: Db,
  model: Model,
  rowScope: RowScope,
  originalQuery: Query,
  after: CursorPosition | undefined,
  format: EntityFormat,
  write: (text: string) => string,
) {
  const query = await resolveLikes(db, model, originalQuery)
  const { limit } = query
  // Many large entities would fill the memory before the page is full, so a large page reads them in slices, and so does
  // one whose rows are filtered here, which have to be checked on more entities than the page shows.
  const isFiltered = query.likes.length > 0 || (query.words !== undefined && !query.ranked)
  const isShort = limit <= ENTITIES_PER_READ && !isFiltered
  const cached = isShort ? beginCachedReads(db, model, format) : undefined
  const readsWhole = isShort && !cached
  // One more row than the page shows tells whether there is a next page.
  const { rows, positionAfter } = await findFiltered<[string | number, unknown]>(
    db,
    readsWhole ? [shownColumnSql(model)] : ['e.seq', ...(cached?.positionColumn ? [cached.positionColumn] : [])],
    model,
    rowScope,
    query,
    { limit: limit + 1, after },
  )
  const ends: number[] = []
  let [entities, shown, passed] = ['', 0, 0]
  while (passed < Math.min(rows.length, limit) && entities.length <= MAX_PAGE_CHARACTERS) {
    const sliced = rows.slice(passed, Math.min(limit, passed + ENTITIES_PER_READ))
    const slice = sliced.map(([value]) => value)
    const positions = cached?.positionColumn ? sliced.map(([, position]) => position) : undefined
    const cachedTexts = cached?.read('seq', slice as number[], positions)
    const written = cachedTexts instanceof Promise ? await cachedTexts : cachedTexts
    const texts =
      readsWhole || written ? undefined : await readShownByIds(db, model, rowScope, query, slice as number[])
    for (const value of slice) {
      if (entities.length > MAX_PAGE_CHARACTERS) break
      passed++
      const stored = texts ? texts.get(value as number) : (value as string)
      const text = written ? written.get(value as number) : stored && format.write(stored)
      if (text !== undefined) {
        shown++
        // A growing string is flattened once, at the end; an array of strings would have to be joined and copied.
        entities += entities ? `,${write(text)}` : write(text)
      }
      ends[shown] = passed
    }
  }
  const more = limit > 0 && passed < rows.length
  return { entities, shown, more, endOf: (shown: number) => positionAfter(ends[shown]!) }
}

const nextPageUrl = ({ url }: Request, { listQueryString }: Query, cursor: string) =>
  `${url.slice(url.indexOf('/', 8), url.indexOf('?') >>> 0)}?${listQueryString}%24after=${cursor}`
