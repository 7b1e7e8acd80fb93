import type { OpenCtx } from '../accounts/guard'
import type { Model } from '../blueprints/model'
import { type Reach, reachOrRefuse } from '../blueprints/rules'
import { jsonAnswer } from '../core/headers'
import { invalid, Problem } from '../core/problem'
import { isOn } from '../core/shapes'
import type { Db } from '../storage/port'
import { cursorOf, type Passed, readCursor } from './cursor'
import { formOf, headersOf, narrowed, searchOf, steady } from './entities'
import { explained } from './explain'
import { readFairly } from './fair-reads'
import { countFitting, findFitting, narrowedBy } from './fitting'
import { shownAmong } from './plan'
import { populatedPage } from './populate'
import { MAX_LIMIT, type Query, readQuery } from './query'
import { planOf } from './related'
import { searchable } from './search'
import { PAGE, shownIn, writer } from './wire'

const AT_ONCE = 100 // entities read by one statement

/** A list of entities: those within the caller's reach that match the query. */
export async function list(asked: OpenCtx, key: string, request: Request): Promise<Response> {
  const ctx = narrowed(asked, request)
  return readFairly(ctx, request, (db) => steady(ctx, key, (model) => listOf(asked, ctx, db, model, request)))
}

async function listOf(asked: OpenCtx, ctx: OpenCtx, db: Db, model: Model, request: Request): Promise<Response> {
  const reach = reachOrRefuse(model, 'read', ctx.actor)
  const { search, cursor, explain } = ofPage(searchOf(request))
  if (explain && !asked.actor?.privileged)
    throw new Problem(403, 'FORBIDDEN', 'Only admins and service accounts are told how a query is answered.')
  const query = readQuery(model, ctx.actor, search)
  const after = await startOf(ctx, model, query, cursor)
  if (query.search) await searchable(ctx, model)
  if (explain) return explained(ctx, model, reach, query, (db) => page(db, model, reach, query, after, () => ''))
  const form = formOf(model, ctx, request, query)
  const plan = form.related && (await planOf(ctx, model, form.related, form.select))
  let endOf: ((shown: number) => Passed) | undefined
  const read = async (write: (shown: string) => string) => {
    const read = await page(db, model, reach, query, after, write)
    endOf = read.endOf
    return read
  }
  const { entities, shown, more } = await (plan
    ? populatedPage({ ...ctx, db }, plan, form, read)
    : read(writer(model, ctx.actor, form)))
  const headers = headersOf(form)
  if (more && endOf)
    headers.append('link', `<${nextPage(request, query, await cursorOf(ctx, model, query, endOf(shown)))}>; rel="next"`)
  if (query.clamped) headers.set('x-limit', `${MAX_LIMIT}`)
  if (query.count)
    headers.set('x-total-count', `${await countFitting(db, model, reach, await narrowedBy(db, model, query))}`)
  return jsonAnswer(`[${entities}]`, headers)
}

/** Where a list begins. @throws 400 for a cursor of another list, or beside another way to say it */
async function startOf(ctx: OpenCtx, model: Model, query: Query, cursor: string | undefined) {
  if (cursor === undefined) return
  if (query.skip) invalid({ path: '$after', message: '$after says where the page begins: leave $skip and $page out.' })
  return readCursor(ctx, model, query, cursor)
}

/**
 * The entities of a page as JSON, one after the other; how many those are, and whether there are more; and where
 * the page ends, should it show so many.
 */
async function page(
  db: Db,
  model: Model,
  reach: Reach,
  asked: Query,
  after: Passed | undefined,
  write: (shown: string) => string,
) {
  const query = await narrowedBy(db, model, asked)
  const { limit } = query
  // Many large entities would fill the memory before the page ends: only so many are read at once.
  const few = limit <= AT_ONCE
  // One more than is shown tells whether there is a next page.
  const { rows: found, passed: passedBy } = await findFitting<[string | number]>(
    db,
    [few ? shownIn(model) : 'e.seq'],
    model,
    reach,
    query,
    { limit: limit + 1, after },
  )
  const ends: number[] = []
  let [entities, shown, passed] = ['', 0, 0]
  while (passed < Math.min(found.length, limit) && entities.length <= PAGE) {
    const slice = found.slice(passed, Math.min(limit, passed + AT_ONCE)).map(([one]) => one)
    const texts = few ? undefined : await shownAmong(db, model, reach, query, slice as number[])
    for (const one of slice) {
      if (entities.length > PAGE) break
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
  const more = limit > 0 && passed < found.length
  return { entities, shown, more, endOf: (shown: number) => passedBy(ends[shown]!) }
}

const nextPage = ({ url }: Request, { others }: Query, cursor: string) =>
  `${url.slice(url.indexOf('/', 8), url.indexOf('?') >>> 0)}?${others}%24after=${cursor}`

/** What a query says of one page only, and the rest, which all pages of a list have alike. @throws 400 */
export function ofPage(search: string): { search: string; cursor?: string; explain: boolean } {
  if (!/after=|explain=/.test(search)) return { search, explain: false }
  const rest = new URLSearchParams(search)
  const [cursor, explain] = ['$after', '$explain'].map((name) => {
    const value = rest.get(name)
    rest.delete(name)
    return value && value !== 'undefined' ? value : undefined
  })
  if (explain && !/^(true|false|0|1)$/.test(explain))
    invalid({ path: '$explain', message: '$explain must be true or false.' })
  return { search: `${rest}`, cursor, explain: isOn(explain) }
}
