import type { OpenCtx } from '../accounts/guard'
import { noteCreated } from '../accounts/idempotency/claim'
import { modelOf } from '../blueprints/blueprints'
import type { Model } from '../blueprints/model'
import { type Reach, reaches, reachOf, reachOrRefuse } from '../blueprints/rules'
import { etagOf, isKnown, refuseStale } from '../core/etag'
import { jsonAnswer, jsonHeaders } from '../core/headers'
import { invalid, missing, Problem } from '../core/problem'
import { Conflict } from '../storage/errors'
import type { Db, Tx } from '../storage/port'
import { forget } from '../tenancy/memory'
import { drafted, insert } from './adding'
import { computed } from './computed'
import { readInput } from './document'
import { changeOf, draftOf, reachable } from './drafts'
import { readFairly } from './fair-reads'
import { narrowedWhole } from './fitting'
import { throttleGuests } from './guests'
import { among, find } from './plan'
import { populatedOne } from './populate'
import { type Query, readQuery } from './query'
import { Outdated, Overtaken, refuseOvertaken, type Sight } from './refusals'
import { type Plan, planOf } from './related'
import * as removal from './removal'
import { type LeavingRow, leavingOf } from './removal'
import * as rows from './rows'
import { searchable } from './search'
import { FLAT, type Form, writer } from './wire'

/** One entity, by identifier or `_id`. */
export async function get(asked: OpenCtx, key: string, identifier: string, request: Request): Promise<Response> {
  const ctx = narrowed(asked, request)
  return steady(ctx, key, (model) => getOf(ctx, model, identifier, request))
}

async function getOf(ctx: OpenCtx, model: Model, identifier: string, request: Request): Promise<Response> {
  const reach = reachOrRefuse(model, 'read', ctx.actor)
  const row = (await rows.shown(ctx.db, model, identifier)) ?? missing('entity')
  if (!reaches(reach, { user: row[1], workspace: row[2] })) missing('entity')
  const form = formOf(model, ctx, request)
  const plan = form.related && (await planOf(ctx, model, form.related, form.select))
  return answer(model, ctx, row, request, form, { plan })
}

/** A new entity of the caller's. @throws 400, 403 also LIMIT_REACHED, 409 IDENTIFIER_EXISTS, UNIQUE_VIOLATION. */
export async function create(ctx: OpenCtx, key: string, body: unknown, request: Request): Promise<Response> {
  throttleGuests(ctx, key, request)
  return upToDate(ctx, key, async (model, { actor, write }) => {
    const [draft, form] = [draftOf(model, actor, body), formOf(model, ctx, request)]
    const doc = await computed(model, draft.doc, draft.known, actor)
    const entity = drafted(model, draft.known, doc, actor)
    const sight = await sightOf(ctx, model)
    const plan = form.related && (await planOf(ctx, model, form.related, form.select))
    const row = await write(async (tx) => {
      await noteCreated(tx, `/api/blueprints/${key}/entities/${entity._id}`)
      return insert(tx, model, entity, sight)
    }).catch(taken)
    return answer(model, ctx, row, request, form, { plan, status: 201 })
  })
}

/** Changes the properties that are sent; `null` clears one. @throws 400, 403, 404, 409, 412. */
export async function change(
  ctx: OpenCtx,
  key: string,
  identifier: string,
  body: unknown,
  request: Request,
): Promise<Response> {
  throttleGuests(ctx, key, request)
  return upToDate(ctx, key, async (model, { actor, db, write }) => {
    const reach = reachOrRefuse(model, 'update', actor)
    const [input, form] = [readInput(body, actor), formOf(model, ctx, request)]
    const sight = await sightOf(ctx, model)
    const plan = form.related && (await planOf(ctx, model, form.related, form.select))
    const workOut = async (from: Db) => {
      const before = await writable(from, model, identifier, reach, ctx, request)
      const { doc, known, ...rest } = changeOf(model, ctx, before, input)
      return { before, ...rest, doc: await computed(model, doc, known, actor) }
    }
    // Formulas take their time, so they are worked out before the write, and again when somebody came in between.
    const ahead = model.formulas.length ? await workOut(db) : undefined
    const { row, sent } = await write(async (tx) => {
      if (ahead) await refuseOvertaken(tx, ahead.before)
      const { before, sent, ...changed } = ahead ?? (await workOut(tx))
      return { sent, row: await rows.update(tx, model, before, changed, sight) }
    })
    return sent
      ? answer(model, ctx, row, request, { ...form, select: sent })
      : answer(model, ctx, row, request, form, { plan })
  })
}

/** Removes one entity. @throws 403, 404, 409 ENTITY_IN_USE, 412. */
export async function remove(ctx: OpenCtx, key: string, identifier: string, request: Request) {
  const model = await modelOf(ctx, key)
  const reach = reachOrRefuse(model, 'delete', ctx.actor)
  throttleGuests(ctx, key, request)
  return removal.removing(ctx, async (tx, references) => {
    const row = await writable(tx, model, identifier, reach, ctx, request)
    await removal.remove(tx, [{ ...row, blueprint: model.key }], { references, by: ctx })
    return { success: true as const, identifier: row.identifier }
  })
}

/** What would have only some of them, where all that match are removed. */
const OF_PAGES = ['$limit', '$skip', '$page']

/** Removes all entities that match the query and that the caller may remove, a slice at a time. */
export async function removeMatching(asked: OpenCtx, key: string, request: Request) {
  const ctx = narrowed(asked, request)
  const model = await modelOf(ctx, key)
  const reach = reachOrRefuse(model, 'delete', ctx.actor)
  throttleGuests(ctx, key, request)
  const search = new URLSearchParams(searchOf(request))
  if (search.get('confirm') !== key)
    invalid({ path: 'confirm', message: `To remove everything that matches, add confirm=${key} to the query.` })
  search.delete('confirm')
  // Elsewhere an empty filter counts as none, but here one that failed to be filled in would remove everything.
  for (const [name, value] of search)
    if (value === '' || value === 'undefined') invalid({ path: name, message: `The filter "${name}" is empty.` })
    else if (OF_PAGES.includes(name))
      invalid({ path: name, message: `All that match are removed: ${name} is for lists.` })
  const query = readQuery(model, ctx.actor, `${search}`)
  // A filter tells by what it removes; so it looks only at what the caller may read.
  const filtered = query.conditions.length || query.likes.length || query.search
  const sight = filtered ? reachOf(model, 'read', ctx.actor) : reach
  if (!sight) throw new Problem(403, 'FORBIDDEN', 'You may not read these entities, so you cannot filter them.')
  if (query.search) await searchable(ctx, model)
  const within = reach.all ? sight : reach
  const narrow = await narrowedWhole(ctx.db, model, query)
  const deletedCount = await removal.removingMany(ctx, async (tx, references, most) => {
    await refuseAltered(tx, model)
    const also = async (found: number[]) =>
      ((await among(tx, LEAVING.join(', '), model, within, narrow, found)) as LeavingRow[]).map(leavingOf)
    const { rows: found } = await find<LeavingRow>(tx, LEAVING, model, within, narrow, { limit: most })
    const gone = await removal.remove(tx, rows.portion(found.map(leavingOf)), { references, by: ctx, also })
    return gone.filter(({ blueprint }) => blueprint === key).length
  })
  return { success: true as const, deletedCount }
}

/** Whether a blueprint has entities. */
export const any = async (db: Db, blueprint: string) =>
  (await db.ask('select 1 from entities where blueprint = ? limit 1', [blueprint])).length > 0

/** Removes all entities of a blueprint, a slice at a time; those that refer to them can't hold them. */
export async function removeAll(ctx: OpenCtx, { key }: Model) {
  await removal.removingMany(ctx, async (tx, references, most) => {
    const slice = `select ${LEAVING.join(', ')} from entities e where e.blueprint = ? limit ?`
    const found = (await tx.ask(slice, [key, most])) as LeavingRow[]
    return (await removal.remove(tx, rows.portion(found.map(leavingOf)), { references, by: ctx, forced: key })).length
  })
}

const LEAVING = ['e.seq', 'e.keys', 'e.created', 'e.blueprint', 'e.identifier']

/** Which rows of the blueprints that this one points to the caller may see. */
export async function sightOf(ctx: OpenCtx, { fields }: Model): Promise<Sight> {
  const sight: Sight = new Map()
  for (const { target } of fields)
    if (target && !sight.has(target)) {
      const model = await Promise.resolve(modelOf(ctx, target)).catch(() => undefined)
      sight.set(target, model && reachOf(model, 'read', ctx.actor))
    }
  return sight
}

/**
 * Reads by what a blueprint is, and once more when its entities got another form meanwhile: what was read may be neither.
 */
export async function steady<T>(ctx: OpenCtx, key: string, read: (model: Model) => Promise<T>): Promise<T> {
  for (;;) {
    const model = await modelOf(ctx, key)
    const result = await read(model)
    const known = modelOf(ctx, key)
    const now = known instanceof Promise ? await known : known
    if (now.form === model.form) return result
  }
}

/** For writes that go on for long: by the texts of another form they would find others. @throws 409 */
async function refuseAltered(tx: Tx, { key, form }: Model) {
  const [row] = await tx.ask('select form from blueprints where key = ?', [key])
  if (row?.[0] !== form)
    throw new Problem(409, 'CONFLICT', 'The blueprint was changed meanwhile. Look again what matches.')
}

// Whoever was overtaken was so by a change that went through, so it goes on for all. A blueprint changes a few times in a row.
const OVERTAKEN = 200 // times
const CHANGED = 10 // times

/** Does it again when what was read has changed meanwhile: the blueprint, or the entity. */
export async function upToDate<T>(
  ctx: OpenCtx,
  key: string,
  work: (model: Model, ctx: OpenCtx) => Promise<T>,
): Promise<T> {
  for (let tries = 0; ; tries++) {
    try {
      return await work(await modelOf(ctx, key), ctx)
    } catch (error) {
      if (!(error instanceof Outdated)) throw error
      const overtaken = error instanceof Overtaken
      if (tries >= (overtaken ? OVERTAKEN : CHANGED)) throw error
      if (!overtaken) forget(ctx, 'blueprints')
    }
  }
}

/** The row that a change is for. @throws 403, 404, 412 */
async function writable(from: Db, model: Model, name: string, reach: Reach, ctx: OpenCtx, request: Request) {
  const row = reachable(model, await rows.stored(from, model, name), reach, ctx)
  refuseStale(request, etagOf(row.version, row.updated, model.form))
  return row
}

function answer(
  model: Model,
  ctx: OpenCtx,
  row: rows.Shown,
  request: Request,
  form: Form,
  { plan, status = 200 }: { plan?: Plan; status?: number } = {},
): Response | Promise<Response> {
  const [shown, , , version, updated] = row
  const headers = headersOf(form)
  // It has no ETag, for it changes with entities whose versions this one does not count.
  if (plan)
    return readFairly(ctx, request, (db) => populatedOne({ ...ctx, db }, plan, form, shown)).then((body) =>
      jsonAnswer(body, headers, status),
    )
  const etag = etagOf(version, updated, model.form)
  headers.set('etag', etag)
  if (request.method === 'GET' && isKnown(request, etag)) return jsonAnswer(null, headers, 304)
  return jsonAnswer(writer(model, ctx.actor, form)(shown), headers, status)
}

/** The form that a request asks for. `Accept-Version: v1`, the only version there is, pins the flat one. */
export function formOf(model: Model, { actor }: OpenCtx, request: Request, query?: Query): Form {
  const search = searchOf(request)
  if (!search) return FLAT
  const { flat, select, related } = query ?? readQuery(model, actor, search)
  return { flat: flat || request.headers.has('accept-version'), select, related }
}

const wrapped = new Headers([...jsonHeaders, ['deprecation', 'true'], ['link', '</openapi>; rel="deprecation"']])

/** For an answer in one of the two forms, of which one is not to be used any more. */
export const headersOf = ({ flat }: Pick<Form, 'flat'>) => new Headers(flat ? jsonHeaders : wrapped)

/** The text of a request's query. */
export function searchOf({ url }: Request) {
  const start = url.indexOf('?')
  return start < 0 ? '' : url.slice(start + 1)
}

/** With `bypassAdmin=true` a privileged caller is as anybody with the same roles. */
export function narrowed(ctx: OpenCtx, request: Request): OpenCtx {
  if (!ctx.actor?.privileged || !request.url.includes('bypassAdmin=')) return ctx
  const asked = new URLSearchParams(searchOf(request)).get('bypassAdmin')
  return asked === 'true' || asked === '1' ? { ...ctx, actor: { ...ctx.actor, privileged: false } } : ctx
}

/** A key that exists is an identifier that does. */
export function taken(error: unknown): never {
  if (error instanceof Conflict)
    throw new Problem(409, 'IDENTIFIER_EXISTS', 'There is an entity with this identifier already.', { cause: error })
  throw error
}
