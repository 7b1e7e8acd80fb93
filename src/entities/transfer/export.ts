import type { PublicCtx } from '../../accounts/context'
import { getModel } from '../../blueprints/blueprints'
import type { Model } from '../../blueprints/model'
import { requireRowScope } from '../../blueprints/permissions'
import { toBodyStream } from '../../core/body-stream'
import { badRequest, Problem } from '../../core/problem'
import { parseOptional } from '../../core/shapes'
import type { Db } from '../../storage/port'
import { disableIdleTimeout, restoreIdleTimeout } from '../../tenancy/client-connection'
import { populateLines } from '../populate/populate'
import { createPopulatePlan } from '../populate/populate-plan'
import { readFairly, streamFairly } from '../query/fair-reads'
import { resolveLikes } from '../query/like-filter'
import { parseQuery } from '../query/query-parser'
import { streamInThread } from '../query/threaded-reads'
import { createHeaders, getQueryString, parseResponseShape, type RequestedShape, withoutPrivilege } from '../request'
import { prepareSearch } from '../search/search-index'
import { createSerializer, FLAT_SHAPE } from '../store/serializer'
import { csvFormat } from './csv-format'
import { takeExportOptions } from './export-options'
import { scanMatching } from './export-scan'
import { CONTENT_TYPES } from './format'

/** Options that make no sense for an export, which contains all matching entities, oldest first. */
const LIST_OPTIONS = ['$sort', '$limit', '$skip', '$page', '$after', '$count']

/** Streams all entities in the caller's row scope that match the query. @throws 400, 401, 403, 404, 503 BUSY */
export async function exportAll(originalCtx: PublicCtx, key: string, request: Request): Promise<Response> {
  const ctx = withoutPrivilege(originalCtx, request)
  const model = await getModel(ctx, key)
  const rowScope = requireRowScope(model, 'read', ctx.actor)
  const search = new URLSearchParams(getQueryString(request))
  const { format, csv } = takeExportOptions(model, ctx.actor, search)
  for (const option of LIST_OPTIONS)
    if (parseOptional(search.get(option)))
      badRequest({ path: option, message: `${option} is not supported: an export contains all matching entities.` })
  const query = await prepareSearch(ctx, model, parseQuery(model, ctx.actor, `${search}`))
  if (query.related && format === 'csv')
    badRequest({ path: '$populate', message: '$populate is not supported for CSV. Export as NDJSON.' })
  // Errors in the options are reported before the response begins.
  if (query.related) await createPopulatePlan(ctx, model, query.related, query.select)
  const shape: RequestedShape = format === 'csv' ? FLAT_SHAPE : parseResponseShape(model, ctx, request, query)
  const threaded = await streamInThread(originalCtx, request, { name: 'export', args: [key] }, () =>
    restoreIdleTimeout(request),
  )
  if (threaded) {
    disableIdleTimeout(request)
    return threaded
  }
  const resolvedQuery = await readFairly(ctx, request, (db) => resolveLikes(db, model, query))
  const { head, lines } = csv ? csvFormat(model, ctx, query, csv) : ndjsonFormat(model, ctx, shape)

  async function* texts(db: Db) {
    try {
      if (head) yield head
      for await (const slice of scanMatching(db, model, rowScope, resolvedQuery)) {
        // Permissions may have changed since the last slice.
        const { version } = await getModel(ctx, key)
        if (version !== model.version)
          throw new Problem(409, 'CONFLICT', 'The blueprint changed during the export. Retry.')
        if (slice.length) yield* lines(slice, db)
        await db.yieldToOthers()
      }
    } finally {
      restoreIdleTimeout(request)
    }
  }
  disableIdleTimeout(request)
  const headers = createHeaders(shape)
  headers.set('content-type', CONTENT_TYPES[format])
  headers.set('content-disposition', `attachment; filename="${key}.${format}"`)
  return new Response(toBodyStream(streamFairly(ctx, request, texts)), { headers })
}

/** How a file begins, and how the entities of a slice look in it. */
export type LineFormat = { head: string; lines: (slice: string[], db: Db) => Iterable<string> | AsyncIterable<string> }

function ndjsonFormat(model: Model, ctx: PublicCtx, { related, ...shape }: RequestedShape): LineFormat {
  const { select } = shape
  const write = createSerializer(model, ctx.actor, shape)
  if (!related) return { head: '', lines: (slice) => [slice.map((shown) => `${write(shown)}\n`).join('')] }
  return {
    head: '',
    async *lines(slice, db) {
      // A new plan for each slice, because permissions on related entities may have changed.
      yield* populateLines({ ...ctx, db }, await createPopulatePlan(ctx, model, related, select), shape, slice)
    },
  }
}
