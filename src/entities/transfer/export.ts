import type { OpenCtx } from '../../accounts/guard'
import { modelOf } from '../../blueprints/blueprints'
import type { Model } from '../../blueprints/model'
import { mayRead, reachOrRefuse } from '../../blueprints/rules'
import { invalid, Problem } from '../../core/problem'
import { streamOf } from '../../core/stream'
import { waitsLong } from '../../tenancy/caller'
import type { Doc } from '../document'
import { narrowed, searchOf } from '../entities'
import { type Query, readQuery } from '../query'
import { searchable } from '../search'
import { type Form, writer } from '../wire'
import { cellOf, harmless, rowOf } from './csv'
import { formatOf, TYPES } from './format'
import { walk } from './walk'

/** What makes no sense where all that match are given, the oldest first. */
const OF_PAGES = ['$sort', '$limit', '$skip', '$page', '$count', '$populate', '$outerPopulate']
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
    if (search.get(option)) invalid({ path: option, message: `An export has all that match: ${option} is for lists.` })
  const query = readQuery(model, ctx.actor, `${search}`)
  if (query.search) await searchable(ctx, model)
  const { head, line } = format === 'csv' ? csv(model, ctx, query) : ndjson(model, ctx, query)

  async function* texts() {
    if (head) yield head
    for await (const slice of walk(ctx.db, model, reach, query)) {
      // What may be shown could be less by now.
      const { version } = await modelOf(ctx, key)
      if (version !== model.version) throw new Problem(409, 'CONFLICT', 'The blueprint was changed. Export again.')
      if (slice.length) yield slice.map(line).join('')
      // Reading may take no time for the event loop: others get their turn.
      await new Promise(setImmediate)
    }
  }
  waitsLong(request)
  return new Response(streamOf(texts()), {
    headers: { 'content-type': TYPES[format], 'content-disposition': `attachment; filename="${key}.${format}"` },
  })
}

type Lines = { head: string; line: (shown: string) => string }

function ndjson(model: Model, { actor }: OpenCtx, { flat, select }: Query): Lines {
  const form: Form = { flat, select }
  const write = writer(model, actor, form)
  return { head: '', line: (shown) => `${write(shown)}\n` }
}

function csv(model: Model, { actor }: OpenCtx, { select }: Query): Lines {
  const chosen = (name: string) =>
    !select || select.includes(name) || name === '_id' || name === 'identifier' || isOfMetadata(name)
  const isOfMetadata = (name: string) => select?.includes('metadata') && model.field.has(name)
  const system = SYSTEM.filter(chosen)
  const fields = model.fields.filter((field) => mayRead(field, actor) && chosen(field.key))
  return {
    head: rowOf([...system, ...fields.map(({ key }) => key)]),
    line: (shown) => {
      const entity = JSON.parse(`{${shown}}`) as Doc & { metadata: Doc }
      const own = system.map((name) => harmless((entity[name] ?? '') as string))
      return rowOf([...own, ...fields.map((field) => cellOf(field, entity.metadata[field.key]))])
    },
  }
}
