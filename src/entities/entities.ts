import type { PublicCtx } from '../accounts/context'
import { getModel } from '../blueprints/blueprints'
import { historyOf } from '../blueprints/history'
import type { Model } from '../blueprints/model'
import { isInScope, type RowScope, requireRowScope, rowScopeOf } from '../blueprints/permissions'
import { type Awaitable, andThen } from '../core/awaitable'
import { assertIfMatch, etagOf } from '../core/etag'
import { badRequest, notFound, Problem } from '../core/problem'
import { parseFlag } from '../core/shapes'
import { recordCreatedPath } from '../http/idempotency/claim'
import { assertQuotaLeft, reserveQuota } from '../limits/quota-check'
import type { Db, Tx } from '../storage/port'
import { DELETE_COLUMNS } from './blueprint-removal'
import { respondUnlessKnown, respondWithEntity } from './entity-response'
import type { EntityUploads } from './form'
import { getAsOf } from './history/as-of'
import { eraseRemoved } from './history/version-log'
import { createPopulatePlan } from './populate/populate-plan'
import { readCachedEntity } from './query/cached-reads'
import { find, readMatchingByIds } from './query/find'
import { requireResolvedLikes } from './query/like-filter'
import { parseQuery } from './query/query-parser'
import { findIdsWithWords } from './query/unindexed-search'
import { getQueryString, parseResponseShape, readConsistently, withoutPrivilege } from './request'
import { prepareSearch } from './search/search-index'
import type { Doc } from './store/doc'
import { readShown, readStored, type StoredEntity } from './store/rows'
import { chooseFormat, FLAT_SHAPE } from './store/serializer'
import { computeFields } from './write/computed-fields'
import { assertEntityFresh, getReadableScopes, requireFreshBlueprint } from './write/constraints'
import {
  type DeletedEntityRow,
  deleteEntities,
  deleteInBatches,
  deleteInTransaction,
  takeBatch,
  toDeletedEntity,
} from './write/deletion'
import { parseBody } from './write/document'
import { assertFilesAccepted, type NamedFiles, resolveFileValues } from './write/file-values'
import { limitGuestWrites } from './write/guest-rate-limit'
import { createChange, createDraft, requireWritable } from './write/input'
import { insertEntity, toEntityDraft } from './write/insert'
import { createJointly, updateJointly } from './write/joint-writes'
import { rethrowConflict, retryOnStale } from './write/retry'
import { updateEntity } from './write/update'

/**
 * Returns one entity, found by identifier or `_id`; without a promise when all but the entity is cached.
 * @throws 400, 401, 403, 404.
 */
export function get(originalCtx: PublicCtx, key: string, identifier: string, request: Request): Awaitable<Response> {
  const ctx = withoutPrivilege(originalCtx, request)
  return readConsistently(ctx, key, (model) => readEntity(ctx, model, identifier, request))
}

function readEntity(ctx: PublicCtx, model: Model, identifier: string, request: Request): Awaitable<Response> {
  const rowScope = requireRowScope(model, 'read', ctx.actor)
  if (request.url.includes('asOf=')) return getAsOf(ctx, model, identifier, request)
  // With parameters, the entity is looked up first: 404 comes before 400.
  const [format, write] = chooseFormat(model, ctx.actor, FLAT_SHAPE)
  const cached = getQueryString(request) ? undefined : readCachedEntity(ctx, model, format, identifier)
  if (cached) {
    if (!isInScope(rowScope, cached)) notFound('entity')
    return respondUnlessKnown(request, FLAT_SHAPE, cached.etag, () => write(cached.text))
  }
  return andThen(readShown(ctx.db, model, identifier), (row = notFound('entity')) => {
    if (!isInScope(rowScope, { user: row[1], workspace: row[2] })) notFound('entity')
    const shape = parseResponseShape(model, ctx, request)
    if (!shape.related) return respondWithEntity(model, ctx, row, request, shape)
    const threaded = { name: 'get', args: [model.key, identifier], receive: (response: Response) => response.text() }
    return andThen(createPopulatePlan(ctx, model, shape.related, shape.select), (plan) =>
      respondWithEntity(model, ctx, row, request, shape, { plan, threaded }),
    )
  })
}

/** Creates an entity. @throws 400, 401, 403 (also LIMIT_REACHED, QUOTA_EXCEEDED), 404, 409 IDENTIFIER_EXISTS, UNIQUE_VIOLATION. */
export async function create(
  ctx: PublicCtx,
  key: string,
  body: unknown,
  request: Request,
  uploads?: EntityUploads,
): Promise<Response> {
  limitGuestWrites(ctx, key, request)
  return retryOnStale(ctx, key, async (model, { actor, write }) => {
    requireRowScope(model, 'create', actor)
    const { bodies, files } = await resolveFileValues(ctx, model, [body], uploads?.files)
    const [draft, shape] = [createDraft(model, actor, bodies[0]), parseResponseShape(model, ctx, request)]
    const doc = await computeFields(model, draft.doc, draft.identity, actor)
    const entity = toEntityDraft(model, draft.identity, doc, actor)
    const readable = { scopes: await getReadableScopes(ctx, model), files }
    const plan = shape.related && (await createPopulatePlan(ctx, model, shape.related, shape.select))
    await assertQuotaLeft(ctx, 'storage')
    using reservation = await reserveQuota(ctx, 'entities', 1)
    if (uploads) await storeUploads(uploads, model, doc, {}, files)
    const { row } = await write(
      async (tx) => {
        await recordCreatedPath(tx, `/api/blueprints/${key}/entities/${entity._id}`)
        await uploads?.insert(tx)
        return insertEntity(tx, model, entity, readable)
      },
      { joint: createJointly(ctx, model, entity, readable) },
    ).catch(rethrowConflict)
    reservation?.keep()
    uploads?.keep()
    return respondWithEntity(model, ctx, row, request, shape, { plan, status: 201 })
  })
}

/** Changes the properties that the body contains; `null` clears a property. @throws 400, 401, 403, 404, 409, 412. */
export async function update(
  ctx: PublicCtx,
  key: string,
  identifier: string,
  body: unknown,
  request: Request,
  uploads?: EntityUploads,
): Promise<Response> {
  limitGuestWrites(ctx, key, request)
  return retryOnStale(ctx, key, async (model, { actor, db, write }) => {
    const rowScope = requireRowScope(model, 'update', actor)
    const { bodies, files } = await resolveFileValues(ctx, model, [body], uploads?.files)
    const [input, shape] = [parseBody(bodies[0], actor), parseResponseShape(model, ctx, request)]
    const readable = { scopes: await getReadableScopes(ctx, model), files }
    const plan = shape.related && (await createPopulatePlan(ctx, model, shape.related, shape.select))
    const computeChange = async (executor: Db, stored?: Promise<StoredEntity | undefined>) => {
      const before = assertWritable(
        await (stored ?? readStored(executor, model, identifier)),
        model,
        rowScope,
        ctx,
        request,
      )
      const { doc, known, ...rest } = createChange(model, ctx, before, input)
      return { before, ...rest, doc: await computeFields(model, doc, known, actor) }
    }
    // Formulas are slow, so they are computed before the write, and again if the entity has changed in between.
    const precomputed = model.formulas.length ? await computeChange(db) : undefined
    await assertQuotaLeft(ctx, 'storage')
    if (uploads) {
      const { doc, comparable } = precomputed ?? (await computeChange(db))
      await storeUploads(uploads, model, doc, comparable, files)
    }
    const apply = async (
      tx: Tx,
      computed: ReturnType<typeof computeChange>,
      features = requireFreshBlueprint(tx, model),
    ) => {
      features.catch(() => {}) // a problem of the change comes first
      const { before, sent, ...changed } = await computed
      return { sent, row: await updateEntity(tx, model, before, changed, readable, features) }
    }
    const { row, sent } = await write(
      async (tx) => {
        await uploads?.insert(tx)
        if (precomputed) await assertEntityFresh(tx, precomputed.before)
        return apply(tx, precomputed ? Promise.resolve(precomputed) : computeChange(tx))
      },
      {
        joint:
          uploads || precomputed
            ? undefined
            : updateJointly(ctx, model, {
                identifier,
                apply: (tx, stored, features) => apply(tx, computeChange(tx, Promise.resolve(stored)), features),
              }),
      },
    )
    uploads?.keep()
    return sent
      ? respondWithEntity(model, ctx, row, request, { ...shape, select: sent })
      : respondWithEntity(model, ctx, row, request, shape, { plan })
  })
}

/** Stores the files of a form whose values are valid, as far as that is known before the transaction. @throws 400 */
async function storeUploads(uploads: EntityUploads, model: Model, doc: Doc, stored: Doc, files: NamedFiles) {
  assertFilesAccepted(model, doc, stored, files)
  await uploads.store()
}

/**
 * Removes one entity. With `?purge=true`, admins also remove its history and that of all that is removed with it, or the
 * history of an entity that was removed before. @throws 400, 401, 403, 404, 409 ENTITY_IN_USE, 412.
 */
export async function remove(ctx: PublicCtx, key: string, identifier: string, request: Request) {
  const model = await getModel(ctx, key)
  const rowScope = requireRowScope(model, 'delete', ctx.actor)
  const purges = parsePurge(ctx, request)
  limitGuestWrites(ctx, key, request)
  return deleteInTransaction(ctx, async (tx, references) => {
    if (purges && !(await readStored(tx, model, identifier))) {
      const history = historyOf(model)
      const isErased = history && (await eraseRemoved(tx, history, identifier))
      return isErased ? { success: true as const, identifier } : notFound('entity')
    }
    const row = await getWritableRow(tx, model, identifier, rowScope, ctx, request)
    await deleteEntities(tx, [{ ...row, blueprint: model.key }], {
      ...{ references, by: ctx },
      ...(purges && { erased: { of: () => true, extent: 'all' } }),
    })
    return { success: true as const, identifier: row.identifier }
  })
}

/** Returns whether a removal also removes the history. @throws 400, 403 for callers who are not privileged */
function parsePurge({ actor }: PublicCtx, request: Request): boolean {
  const { purge } = Object.fromEntries(new URLSearchParams(getQueryString(request)))
  if (!parseFlag({ purge }, 'purge')) return false
  if (!actor?.privileged)
    throw new Problem(403, 'FORBIDDEN', 'Only admins and service accounts can remove the history of an entity.')
  return true
}

/** Options that would limit the deletion to a part of the matching entities. */
const PAGE_OPTIONS = ['$limit', '$skip', '$page']

/**
 * Removes all entities that match the query and that the caller may delete, a batch at a time.
 * @throws 400, 401, 403, 404, 409 ENTITY_IN_USE, 409 CONFLICT when the blueprint changed meanwhile
 */
export async function removeMatching(originalCtx: PublicCtx, key: string, request: Request) {
  const ctx = withoutPrivilege(originalCtx, request)
  const model = await getModel(ctx, key)
  const deleteScope = requireRowScope(model, 'delete', ctx.actor)
  limitGuestWrites(ctx, key, request)
  const search = new URLSearchParams(getQueryString(request))
  if (search.get('confirm') !== key)
    badRequest({ path: 'confirm', message: `To delete all matching entities, add confirm=${key} to the query.` })
  search.delete('confirm')
  // Elsewhere an empty filter is ignored, but here a filter that was left empty by mistake would delete everything.
  for (const [name, value] of search)
    if (value === '' || value === 'undefined') badRequest({ path: name, message: `The filter "${name}" is empty.` })
    else if (PAGE_OPTIONS.includes(name))
      badRequest({ path: name, message: `${name} is not supported here: all matching entities are deleted.` })
  const query = await prepareSearch(ctx, model, parseQuery(model, ctx.actor, `${search}`))
  // The set of removed entities reveals what a filter matched, so filters apply only to entities that the caller may
  // read.
  const filtered = query.conditions.length || query.likes.length || query.search || query.words
  const readScope = filtered ? rowScopeOf(model, 'read', ctx.actor) : deleteScope
  if (!readScope) throw new Problem(403, 'FORBIDDEN', 'Filtering requires permission to read these entities.')
  const visibleScope = deleteScope.all ? readScope : deleteScope
  const resolvedQuery = await requireResolvedLikes(ctx.db, model, query)
  let candidates = query.words === undefined ? undefined : await findIdsWithWords(ctx.db, model, query)
  const deletedCount = await deleteInBatches(ctx, async (tx, references, limit) => {
    await assertFormUnchanged(tx, model)
    const filterRemovable = async (ids: number[]) => {
      const rows = await readMatchingByIds(tx, DELETE_COLUMNS.join(', '), model, visibleScope, resolvedQuery, ids)
      return (rows as DeletedEntityRow[]).map((row) => toDeletedEntity(key, row))
    }
    const findNext = async () => {
      const { rows } = await find<DeletedEntityRow>(tx, DELETE_COLUMNS, model, visibleScope, resolvedQuery, { limit })
      return rows.map((row) => toDeletedEntity(key, row))
    }
    const findNextCandidates = async () => {
      while (candidates?.length) {
        const next = await filterRemovable(candidates.slice(0, limit))
        if (next.length) return next
        candidates = candidates.slice(limit)
      }
      return []
    }
    const removed = await deleteEntities(tx, takeBatch(await (candidates ? findNextCandidates() : findNext())), {
      references,
      by: ctx,
      filterRemovable,
    })
    return removed.filter(({ blueprint }) => blueprint === key).length
  })
  return { success: true as const, deletedCount }
}

/** Index keys of another form would match other entities, so a long deletion stops. @throws 409 CONFLICT */
async function assertFormUnchanged(tx: Tx, { key, form }: Model) {
  const [row] = await tx.query('select form from blueprints where key = ?', [key])
  if (row?.[0] !== form) throw new Problem(409, 'CONFLICT', 'The blueprint changed during the request. Retry.')
}

/** Returns the stored row that the caller wants to change. @throws 403, 404, 412 */
async function getWritableRow(
  executor: Db,
  model: Model,
  name: string,
  rowScope: RowScope,
  ctx: PublicCtx,
  request: Request,
) {
  return assertWritable(await readStored(executor, model, name), model, rowScope, ctx, request)
}

/** Returns a stored row if the caller may change it. @throws 403, 404, 412 */
function assertWritable(
  stored: StoredEntity | undefined,
  model: Model,
  rowScope: RowScope,
  ctx: PublicCtx,
  request: Request,
) {
  const row = requireWritable(model, stored, rowScope, ctx)
  assertIfMatch(request.headers.get('if-match'), etagOf(row.version, row.updated, model.form))
  return row
}
