import type { OpenCtx } from '../accounts/guard'
import { modelOf } from '../blueprints/blueprints'
import type { Model } from '../blueprints/model'
import { type Reach, reaches, reachOf, reachOrRefuse } from '../blueprints/rules'
import { config } from '../config'
import { now } from '../core/clock'
import { etagOf, isKnown, refuseStale } from '../core/etag'
import { Limiter } from '../core/limiter'
import { invalid, missing, Problem, tooMany } from '../core/problem'
import { Busy, Conflict } from '../storage/errors'
import type { Db, Tx } from '../storage/port'
import { addressOf } from '../tenancy/caller'
import { forget } from '../tenancy/memory'
import type { Tenant } from '../tenancy/tenants'
import { changedDocument, type Doc, newDocument, readInput } from './document'
import { type Keys, keysOf, rowsOf } from './keys'
import { count, find } from './plan'
import { type Query, readQuery } from './query'
import { COLUMNS, type Form, type Row, writer } from './wire'

const SLICE = 200 // entities removed in one write, so that others get their turn

/** A list of entities: those within the caller's reach that match the query. */
export async function list(ctx: OpenCtx, key: string, request: Request): Promise<Response> {
  const model = await modelOf(ctx, key)
  const reach = reachOrRefuse(model, 'read', ctx.actor)
  const query = readQuery(model, ctx.actor, searchOf(request))
  const form = formOf(model, ctx, request, query)
  // One more than is shown tells whether there is a next page.
  const rows = await find(ctx.db, model, reach, { ...query, limit: query.limit + 1 })
  const write = writer(model, ctx.actor, form)
  const shown = rows.length > query.limit ? rows.slice(0, query.limit) : rows
  const headers = headersOf(form)
  if (rows.length > query.limit) link(headers, `<${nextPage(request, query)}>; rel="next"`)
  if (query.count) headers['x-total-count'] = `${await count(ctx.db, model, reach, query)}`
  return new Response(`[${shown.map(write).join(',')}]`, { headers })
}

/** One entity, by identifier or `_id`. */
export async function get(ctx: OpenCtx, key: string, identifier: string, request: Request): Promise<Response> {
  const model = await modelOf(ctx, key)
  const reach = reachOrRefuse(model, 'read', ctx.actor)
  const row = await rowOf(ctx.db, model, identifier)
  if (!reaches(reach, ownersOf(row))) missing('entity')
  return answer(model, ctx, row, request, formOf(model, ctx, request))
}

/** A new entity of the caller's. @throws 400, 403, 409 IDENTIFIER_EXISTS, UNIQUE_VIOLATION. */
export async function create(ctx: OpenCtx, key: string, body: unknown, request: Request): Promise<Response> {
  throttleGuests(ctx, key, request)
  return upToDate(ctx, key, async (model, { actor, write }) => {
    reachOrRefuse(model, 'create', actor)
    const [input, form, _id] = [readInput(body, actor), formOf(model, ctx, request), Bun.randomUUIDv7()]
    const doc = newDocument(model, input, actor)
    const draft = {
      _id,
      identifier: input.identifier ?? _id,
      user: input.user === undefined ? (actor?.user ?? null) : input.user,
      workspace: input.workspace === undefined ? (actor?.workspace?._id ?? null) : input.workspace,
      doc,
      keys: keysOf(model, doc),
    }
    const row = await write((tx) => insert(tx, model, draft)).catch(taken)
    return answer(model, ctx, row, request, form, 201)
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
  return upToDate(ctx, key, async (model, { actor, write }) => {
    const reach = reachOrRefuse(model, 'update', actor)
    const [input, form] = [readInput(body, actor), formOf(model, ctx, request)]
    const row = await write(async (tx) => {
      const before = await writable(tx, model, identifier, reach, ctx)
      refuseStale(request, etagOf(before[5], before[7]))
      return update(tx, model, before, input, changedDocument(model, JSON.parse(before[4]), input, actor))
    })
    return answer(model, ctx, row, request, form)
  })
}

/** Removes one entity. @throws 403, 404, 412. */
export async function remove(ctx: OpenCtx, key: string, identifier: string, request: Request) {
  const model = await modelOf(ctx, key)
  const reach = reachOrRefuse(model, 'delete', ctx.actor)
  throttleGuests(ctx, key, request)
  return ctx.write(async (tx) => {
    const row = await writable(tx, model, identifier, reach, ctx)
    refuseStale(request, etagOf(row[5], row[7]))
    await erase(tx, model, row[0])
    return { success: true as const, identifier: row[1] }
  })
}

/** Removes all entities that match the query and that the caller may remove, a slice at a time. */
export async function removeMatching(ctx: OpenCtx, key: string, request: Request) {
  const model = await modelOf(ctx, key)
  const reach = reachOrRefuse(model, 'delete', ctx.actor)
  throttleGuests(ctx, key, request)
  const search = new URLSearchParams(searchOf(request))
  if (search.get('confirm') !== key)
    invalid({ path: 'confirm', message: `To remove all that match, say which blueprint: ?confirm=${key}` })
  search.delete('confirm')
  const query = { ...readQuery(model, ctx.actor, `${search}`), limit: SLICE, skip: 0 }
  let deletedCount = 0
  for (;;) {
    const removed = await ctx.write(async (tx) => {
      const rows = await find(tx, model, reach, query)
      for (const row of rows) await erase(tx, model, row[0])
      return rows.length
    })
    deletedCount += removed
    if (removed < SLICE) return { success: true as const, deletedCount }
  }
}

/** Whether a blueprint has entities. */
export const any = async (db: Db, blueprint: string) =>
  (await db.ask('select 1 from entities where blueprint = ? limit 1', [blueprint])).length > 0

/** Removes all entities of a blueprint, a slice at a time. */
export async function removeAll({ write }: Tenant, model: Model) {
  for (let left = true; left; )
    left = await write(async (tx) => {
      const rows = await tx.ask('select _id from entities where blueprint = ? limit ?', [model.key, SLICE])
      for (const [_id] of rows) await erase(tx, model, _id as string)
      return rows.length === SLICE
    })
}

/** A blueprint was changed while its entity was being checked against it. */
class Outdated extends Busy {}

/** Does it again with the new blueprint when the one that was read has changed meanwhile. */
async function upToDate<T>(ctx: OpenCtx, key: string, work: (model: Model, ctx: OpenCtx) => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries++) {
    try {
      return await work(await modelOf(ctx, key), ctx)
    } catch (error) {
      if (!(error instanceof Outdated) || tries === 3) throw error
      forget(ctx, 'blueprints')
    }
  }
}

async function refuseOutdated(tx: Tx, { key, version }: Model) {
  const [row] = await tx.ask('select version from blueprints where key = ?', [key])
  if (row?.[0] !== version) throw new Outdated()
}

type Draft = { _id: string; identifier: string; user: string | null; workspace: string | null; doc: Doc; keys: Keys }

const INSERT = `insert into entities (_id, blueprint, identifier, "user", workspace, doc, keys, version, created, updated)
  values (?, ?, ?, ?, ?, ?, ?, 1, ?, ?) returning seq`
const INSERT_ROW = 'insert into entity_index (field, path, value, created, entity) values (?, ?, ?, ?, ?)'
const DELETE_ROW = 'delete from entity_index where field = ? and path = ? and value = ? and created = ? and entity = ?'

async function insert(tx: Tx, model: Model, { _id, identifier, user, workspace, doc, keys }: Draft): Promise<Row> {
  const [time, text, rows] = [now(), JSON.stringify(doc), rowsOf(model, keys)]
  await refuseOutdated(tx, model)
  await refuseDuplicates(tx, model, keys)
  await refuseDangling(tx, model, doc, {})
  const params = [_id, model.key, identifier, user, workspace, text, JSON.stringify(keys), time, time]
  const [[seq]] = (await tx.ask(INSERT, params)) as [[number]]
  for (const row of rows) await tx.ask(INSERT_ROW, [...row, time, seq])
  return [_id, identifier, user, workspace, text, 1, time, time]
}

async function update(tx: Tx, model: Model, before: Row, input: ReturnType<typeof readInput>, doc: Doc): Promise<Row> {
  const [_id, identifier, , , stored, version, created] = before
  const [[seq, had]] = (await tx.ask('select seq, keys from entities where _id = ?', [_id])) as [[number, string]]
  const [old, keys] = [JSON.parse(had) as Keys, keysOf(model, doc)]
  await refuseOutdated(tx, model)
  await refuseDuplicates(tx, model, keys, old)
  await refuseDangling(tx, model, doc, JSON.parse(stored))
  const [gone, come] = difference(rowsOf(model, old), rowsOf(model, keys))
  for (const row of gone) await tx.ask(DELETE_ROW, [...row, created, seq])
  for (const row of come) await tx.ask(INSERT_ROW, [...row, created, seq])
  const user = input.user === undefined ? before[2] : input.user
  const workspace = input.workspace === undefined ? before[3] : input.workspace
  const [text, time] = [JSON.stringify(doc), now()]
  await tx.ask(
    'update entities set "user" = ?, workspace = ?, doc = ?, keys = ?, version = ?, updated = ? where seq = ?',
    [user, workspace, text, JSON.stringify(keys), version + 1, time, seq],
  )
  return [_id, identifier, user, workspace, text, version + 1, created, time]
}

async function erase(tx: Tx, model: Model, _id: string) {
  const [[seq, keys, created]] = (await tx.ask('select seq, keys, created from entities where _id = ?', [_id])) as [
    [number, string, number],
  ]
  for (const row of rowsOf(model, JSON.parse(keys))) await tx.ask(DELETE_ROW, [...row, created, seq])
  await tx.ask('delete from entities where seq = ?', [seq])
}

/** The rows that only one of the two has. */
function difference<T extends unknown[]>(one: T[], other: T[]): [T[], T[]] {
  const name = (row: T) => row.join('\u0000')
  const [left, right] = [new Set(one.map(name)), new Set(other.map(name))]
  return [one.filter((row) => !right.has(name(row))), other.filter((row) => !left.has(name(row)))]
}

/** In the writing transaction, where nobody can come in between. */
async function refuseDuplicates(tx: Tx, model: Model, keys: Keys, old: Keys = {}) {
  for (const field of model.fields) {
    const label = `f${field.number}`
    const key = keys[label]
    if (!field.unique || key === undefined || key === old[label]) continue
    const rows = await tx.ask('select 1 from entity_index where field = ? and path = ? and value = ? limit 1', [
      field.number,
      '',
      key,
    ])
    if (!rows.length) continue
    throw new Problem(409, 'UNIQUE_VIOLATION', `Another entity has this ${field.key} already.`, {
      details: [{ path: `/${field.key}`, message: `${field.key} must be unique.` }],
    })
  }
}

/** Relations lead somewhere. */
async function refuseDangling(tx: Tx, model: Model, doc: Doc, stored: Doc) {
  for (const { key, target } of model.fields) {
    if (!target || doc[key] === undefined || Bun.deepEquals(doc[key], stored[key])) continue
    for (const identifier of [doc[key]].flat() as string[]) {
      const rows = await tx.ask('select 1 from entities where blueprint = ? and identifier = ?', [target, identifier])
      if (!rows.length) invalid({ path: `/${key}`, message: `There is no entity "${identifier}" of "${target}".` })
    }
  }
}

const BY_IDENTIFIER = `select ${COLUMNS} from entities e where e.blueprint = ? and e.identifier = ?`
const BY_ID = `select ${COLUMNS} from entities e where e.blueprint = ? and e._id = ?`

async function rowOf(db: Db, model: Model, identifier: string): Promise<Row> {
  if (!/^[^\s/]{1,128}$/.test(identifier) || identifier.includes('\0')) missing('entity')
  const params = [model.key, identifier]
  const [row] = await db.ask(BY_IDENTIFIER, params)
  return (row ?? (await db.ask(BY_ID, params))[0] ?? missing('entity')) as Row
}

/** The row, if the caller may do this to it: 404 when it is out of sight, 403 when it is only out of reach. */
async function writable(tx: Tx, model: Model, identifier: string, reach: Reach, { actor }: OpenCtx): Promise<Row> {
  const row = await rowOf(tx, model, identifier)
  if (reaches(reach, ownersOf(row))) return row
  const sight = reachOf(model, 'read', actor)
  if (!sight || !reaches(sight, ownersOf(row))) missing('entity')
  throw new Problem(403, 'FORBIDDEN', 'You may read this entity, but not change it.')
}

const ownersOf = ([, , user, workspace]: Row) => ({ user, workspace })

const JSON_TYPE = 'application/json;charset=utf-8'

function answer(model: Model, ctx: OpenCtx, row: Row, request: Request, form: Form, status = 200): Response {
  const etag = etagOf(row[5], row[7])
  const headers = headersOf(form)
  headers.etag = etag
  if (request.method === 'GET' && isKnown(request, etag)) return new Response(null, { status: 304, headers })
  return new Response(writer(model, ctx.actor, form)(row), { status, headers })
}

const FLAT: Form = { flat: true }

/** The form that a request asks for. `Accept-Version: v1`, the only version there is, pins the flat one. */
function formOf(model: Model, { actor }: OpenCtx, request: Request, query?: Query): Form {
  const search = searchOf(request)
  if (!search) return FLAT
  const { flat, select } = query ?? readQuery(model, actor, search)
  return { flat: flat || request.headers.has('accept-version'), select }
}

function headersOf({ flat }: Form): Record<string, string> {
  const headers: Record<string, string> = { 'content-type': JSON_TYPE }
  if (flat) return headers
  headers.deprecation = 'true'
  link(headers, '</openapi>; rel="deprecation"')
  return headers
}

function link(headers: Record<string, string>, value: string) {
  headers.link = headers.link ? `${headers.link}, ${value}` : value
}

function nextPage(request: Request, { skip, limit }: Query) {
  const search = new URLSearchParams(searchOf(request))
  search.delete('$page')
  search.set('$skip', `${skip + limit}`)
  return `${URL.parse(request.url)?.pathname ?? ''}?${search}`
}

function searchOf({ url }: Request) {
  const start = url.indexOf('?')
  return start < 0 ? '' : url.slice(start + 1)
}

const guests = new Limiter(10, 5_000)

/** Guests have no account that could be blocked, so their address answers for them. */
function throttleGuests({ tenant, actor }: OpenCtx, blueprint: string, request: Request) {
  if (actor || config.ATOLL_RATE_LIMITS === 'off') return
  const wait = guests.take(`${tenant} ${blueprint} ${addressOf(request)}`)
  if (wait) tooMany(wait / 1000, 'Too many changes by guests.')
}

function taken(error: unknown): never {
  if (error instanceof Conflict)
    throw new Problem(409, 'IDENTIFIER_EXISTS', 'There is an entity with this identifier already.', { cause: error })
  throw error
}
