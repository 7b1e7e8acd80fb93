import type { OpenCtx } from '../../accounts/guard'
import { modelOf } from '../../blueprints/blueprints'
import type { Model } from '../../blueprints/model'
import { mayRead, reachOrRefuse } from '../../blueprints/rules'
import { invalid, Problem } from '../../core/problem'
import { given } from '../../core/shapes'
import { streamOf } from '../../core/stream'
import type { Db } from '../../storage/port'
import { waitsLong, waitsNoLonger } from '../../tenancy/caller'
import type { Doc } from '../document'
import { formOf, headersOf, narrowed, searchOf } from '../entities'
import { readFairly, streamFairly } from '../fair-reads'
import { narrowedBy } from '../fitting'
import { populatedLines } from '../populate'
import { type Query, readQuery } from '../query'
import { planOf } from '../related'
import { searchable } from '../search'
import { FLAT, type Form, writer } from '../wire'
import { cellOf, harmless, rowOf } from './csv'
import { formatOf, TYPES } from './format'
import { walk } from './walk'

/** What makes no sense where all that match are given, the oldest first. */
const OF_PAGES = ['$sort', '$limit', '$skip', '$page', '$after', '$count']
const SYSTEM = ['_id', 'identifier', 'created', 'updated', 'user', 'workspace']

/** All entities that match the query, those within the caller's reach, as they are read. @throws 400, 401, 403, 404 */
export async function exportAll(asked: OpenCtx, key: string, request: Request): Promise<Response> {
  const ctx = narrowed(asked, request)
  const model = await modelOf(ctx, key)
  const reach = reachOrRefuse(model, 'read', ctx.actor)
  const search = new URLSearchParams(searchOf(request))
  const format = formatOf(search) ?? 'ndjson'
  search.delete('format')
  for (const option of OF_PAGES)
    if (given(search.get(option)))
      invalid({ path: option, message: `An export has all that match: ${option} is for lists.` })
  const query = readQuery(model, ctx.actor, `${search}`)
  if (query.search) await searchable(ctx, model)
  const narrow = await readFairly(ctx, request, (db) => narrowedBy(db, model, query))
  if (query.related && format === 'csv')
    invalid({ path: '$populate', message: 'A cell of a CSV has no place for another entity. Export as NDJSON.' })
  // What makes no sense is told before anything is.
  if (query.related) await planOf(ctx, model, query.related, query.select)
  const form = format === 'csv' ? FLAT : formOf(model, ctx, request, query)
  const { head, lines } = format === 'csv' ? csv(model, ctx, query) : ndjson(model, ctx, form)

  async function* texts(db: Db) {
    try {
      if (head) yield head
      for await (const slice of walk(db, model, reach, narrow)) {
        // What may be shown could be less by now.
        const { version } = await modelOf(ctx, key)
        if (version !== model.version) throw new Problem(409, 'CONFLICT', 'The blueprint was changed. Export again.')
        if (slice.length) yield* lines(slice, db)
        await db.pause()
      }
    } finally {
      waitsNoLonger(request)
    }
  }
  waitsLong(request)
  const headers = headersOf(form)
  headers.set('content-type', TYPES[format])
  headers.set('content-disposition', `attachment; filename="${key}.${format}"`)
  return new Response(streamOf(streamFairly(ctx, request, texts)), { headers })
}

type Lines = { head: string; lines: (slice: string[], db: Db) => Iterable<string> | AsyncIterable<string> }

function ndjson(model: Model, ctx: OpenCtx, { related, ...form }: Form): Lines {
  const { select } = form
  const write = writer(model, ctx.actor, form)
  if (!related) return { head: '', lines: (slice) => [slice.map((shown) => `${write(shown)}\n`).join('')] }
  return {
    head: '',
    async *lines(slice, db) {
      // Each time anew, for what of the related may be shown could be less by now.
      yield* populatedLines({ ...ctx, db }, await planOf(ctx, model, related, select), form, slice)
    },
  }
}

function csv(model: Model, { actor }: OpenCtx, { select }: Query): Lines {
  const chosen = (name: string) =>
    !select || select.includes(name) || name === '_id' || name === 'identifier' || isOfMetadata(name)
  const isOfMetadata = (name: string) => select?.includes('metadata') && model.field.has(name)
  const system = SYSTEM.filter(chosen)
  const fields = model.fields.filter((field) => mayRead(field, actor) && chosen(field.key))
  return { head: rowOf([...system, ...fields.map(({ key }) => key)]), lines: (slice) => [slice.map(line).join('')] }

  function line(shown: string) {
    const entity = JSON.parse(`{${shown}}`) as Doc & { metadata: Doc }
    const own = system.map((name) => harmless((entity[name] ?? '') as string))
    return rowOf([...own, ...fields.map((field) => cellOf(field, entity.metadata[field.key]))])
  }
}
