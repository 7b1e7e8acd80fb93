import type { PublicCtx } from '../accounts/context'
import type { Model } from '../blueprints/model'
import type { Awaitable } from '../core/awaitable'
import { etagOf, isNotModified } from '../core/etag'
import { createJsonResponse } from '../core/response'
import { populateOne } from './populate/populate'
import type { PopulatePlan } from './populate/populate-plan'
import { readFairly } from './query/fair-reads'
import type { ThreadedRead } from './query/threaded-reads'
import { headersOf } from './request'
import type { ShownRow } from './store/rows'
import { createSerializer, type ResponseShape } from './store/serializer'

/** Answers with an entity that was read or written; with a plan, with the related entities in it. */
export function respondWithEntity(
  model: Model,
  ctx: PublicCtx,
  row: ShownRow,
  request: Request,
  shape: ResponseShape,
  { plan, status = 200, threaded }: { plan?: PopulatePlan; status?: number; threaded?: ThreadedRead<string> } = {},
): Awaitable<Response> {
  const [shown, , , version, updated] = row
  const headers = headersOf(shape)
  // A populated entity has no ETag, because it also changes with entities that its version does not cover.
  if (plan)
    return readFairly(ctx, request, (db) => populateOne({ ...ctx, db }, plan, shape, shown), threaded).then((body) =>
      createJsonResponse(body, headers, { status, isLate: !!ctx.place?.cluster }),
    )
  const toJson = () => createSerializer(model, ctx.actor, shape)(shown)
  const etag = etagOf(version, updated, model.form)
  return respondUnlessKnown(request, shape, etag, toJson, { status, isLate: !!ctx.place?.cluster })
}

/** Answers with an entity, or with 304 when the caller has this version of it already. */
export function respondUnlessKnown(
  request: Request,
  shape: ResponseShape,
  etag: string,
  toJson: () => string,
  options: { status?: number; isLate?: boolean } = {},
) {
  const headers = headersOf(shape)
  return request.method === 'GET' && isNotModified(request, etag)
    ? createJsonResponse(null, headers, { status: 304, etag })
    : createJsonResponse(toJson(), headers, { ...options, etag })
}
