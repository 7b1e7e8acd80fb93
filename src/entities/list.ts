import type { PublicCtx } from '../accounts/context'
import type { Model } from '../blueprints/model'
import { type RowScope, requireRowScope } from '../blueprints/permissions'
import { badRequest, Problem } from '../core/problem'
import { createJsonResponse } from '../core/response'
import type { Db } from '../storage/port'
import { populatePage } from './populate/populate'
import { createPopulatePlan } from './populate/populate-plan'
import { type CursorPosition, decodeCursor, encodeCursor } from './query/cursor'
import { explainQuery } from './query/explain'
import { readFairly } from './query/fair-reads'
import { readShownByIds } from './query/find'
import { countFiltered, findFiltered, resolveLikes } from './query/like-filter'
import { MAX_LIMIT, parseQuery, type Query } from './query/query-parser'
import {
  createHeaders,
  getQueryString,
  parseResponseShape,
  readConsistently,
  splitPageOptions,
  withoutPrivilege,
} from './request'
import { ensureSearchIndex } from './search/search-index'
import { createSerializer, MAX_PAGE_CHARACTERS, shownColumnSql } from './store/serializer'

const ENTITIES_PER_READ = 100 // entities read by one statement

/** A list of entities: those within the caller's reach that match the query. */
export async function list(originalCtx: PublicCtx, key: string, request: Request): Promise<Response> {
  const ctx = withoutPrivilege(originalCtx, request)
  return readFairly(ctx, request, (db) =>
    readConsistently(ctx, key, (model) => readList(originalCtx, ctx, db, model, request)),
  )
}

async function readList(
  originalCtx: PublicCtx,
  ctx: PublicCtx,
  db: Db,
  model: Model,
  request: Request,
): Promise<Response> {
  const rowScope = requireRowScope(model, 'read', ctx.actor)
  const { search, cursor, explain } = splitPageOptions(getQueryString(request))
  if (explain && !originalCtx.actor?.privileged)
    throw new Problem(403, 'FORBIDDEN', 'Only admins and service accounts can use $explain.')
  const query = parseQuery(model, ctx.actor, search)
  const after = await parseStart(ctx, model, query, cursor)
  if (query.search) await ensureSearchIndex(ctx, model)
  if (explain)
    return explainQuery(ctx, model, rowScope, query, (db) => readPage(db, model, rowScope, query, after, () => ''))
  const shape = parseResponseShape(model, ctx, request, query)
  const plan = shape.related && (await createPopulatePlan(ctx, model, shape.related, shape.select))
  let endOf: ((shown: number) => CursorPosition) | undefined
  const read = async (write: (shown: string) => string) => {
    const read = await readPage(db, model, rowScope, query, after, write)
    endOf = read.endOf
    return read
  }
  const { entities, shown, more } = await (plan
    ? populatePage({ ...ctx, db }, plan, shape, read)
    : read(createSerializer(model, ctx.actor, shape)))
  const headers = createHeaders(shape)
  if (more && endOf)
    headers.append(
      'link',
      `<${nextPageUrl(request, query, await encodeCursor(ctx, model, query, endOf(shown)))}>; rel="next"`,
    )
  if (query.clamped) headers.set('x-limit', `${MAX_LIMIT}`)
  if (query.count)
    headers.set('x-total-count', `${await countFiltered(db, model, rowScope, await resolveLikes(db, model, query))}`)
  return createJsonResponse(`[${entities}]`, headers)
}

/** Where a list begins. @throws 400 for a cursor of another list, or beside another way to say it */
async function parseStart(ctx: PublicCtx, model: Model, query: Query, cursor: string | undefined) {
  if (cursor === undefined) return
  if (query.skip) badRequest({ path: '$after', message: '$after cannot be combined with $skip or $page.' })
  return decodeCursor(ctx, model, query, cursor)
}

/**
 * The entities of a page as JSON, one after the other; how many those are, and whether there are more; and where
 * the page ends, should it show so many.
 */
async function readPage(
  db: Db,
  model: Model,
  rowScope: RowScope,
  originalQuery: Query,
  after: CursorPosition | undefined,
  write: (shown: string) => string,
) {
  const query = await resolveLikes(db, model, originalQuery)
  const { limit } = query
  // Many large entities would fill the memory before the page ends: only so many are read at once.
  const readsWhole = limit <= ENTITIES_PER_READ
  // One more than is shown tells whether there is a next page.
  const { rows, positionAfter } = await findFiltered<[string | number]>(
    db,
    [readsWhole ? shownColumnSql(model) : 'e.seq'],
    model,
    rowScope,
    query,
    { limit: limit + 1, after },
  )
  const ends: number[] = []
  let [entities, shown, passed] = ['', 0, 0]
  while (passed < Math.min(rows.length, limit) && entities.length <= MAX_PAGE_CHARACTERS) {
    const slice = rows.slice(passed, Math.min(limit, passed + ENTITIES_PER_READ)).map(([one]) => one)
    const texts = readsWhole ? undefined : await readShownByIds(db, model, rowScope, query, slice as number[])
    for (const one of slice) {
      if (entities.length > MAX_PAGE_CHARACTERS) break
      passed++
      const text = texts ? texts.get(one as number) : (one as string)
      if (text !== undefined) {
        shown++
        // A text that grows is joined once, at its end; a list of texts would be joined and copied.
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
