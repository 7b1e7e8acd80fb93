import type { PublicCtx } from '../../accounts/context'
import type { Model } from '../../blueprints/model'
import { isInScope, requireRowScope } from '../../blueprints/permissions'
import { badRequest, notFound } from '../../core/problem'
import { createJsonResponse } from '../../core/response'
import { parseQuery, type Query } from '../query/query-parser'
import { getQueryString, headersOf, parseResponseShape, splitPageOptions } from '../request'
import { createSerializer, packEntity } from '../store/serializer'
import type { EntityState } from './version'
import { isOfScope, notKept, parseAsOf, readPresent, readStateAsOf } from './version-reads'

/** Returns an entity as of the time in `$asOf`. @throws 400, 403, 404, 410 HISTORY_NOT_KEPT */
export async function getAsOf(ctx: PublicCtx, model: Model, name: string, request: Request): Promise<Response> {
  const rowScope = requireRowScope(model, 'read', ctx.actor)
  const { search, asOf = '' } = splitPageOptions(getQueryString(request))
  const query = parseQuery(model, ctx.actor, search)
  assertPresentOnly(query)
  const at = parseAsOf(model, asOf)
  const present = await readPresent(ctx.db, model, name)
  const found = await readStateAsOf(ctx.db, model, present?.header.identifier ?? name, present, at)
  const isVisible = found.owners ? isInScope(rowScope, found.owners) : rowScope.all
  if (!isVisible) notFound('entity')
  if (!found.known) throw notKept('The state that this entity had then is no longer kept.')
  const shape = parseResponseShape(model, ctx, request, query)
  if (!found.state || !isOfScope(rowScope, found.state)) return notFound('entity')
  return createJsonResponse(createSerializer(model, ctx.actor, shape)(packState(found.state)), headersOf(shape))
}

/** Returns a state as it is passed on until it is sent. */
export const packState = ({ header, doc }: EntityState) => packEntity(header, JSON.stringify(doc))

/** @throws 400 for options that know only the present */
export function assertPresentOnly({ search, related, count }: Query) {
  const refuse = (path: string, because: string) =>
    badRequest({ path, message: `${path} cannot be combined with $asOf: ${because}.` })
  if (search !== undefined) refuse('$q', 'words are indexed of the present only')
  if (related) refuse('$populate', 'related entities are read as they are now')
  if (count) refuse('$count', 'earlier states are counted nowhere')
}
