import type { PublicCtx } from '../../accounts/context'
import { getModel } from '../../blueprints/blueprints'
import type { Model } from '../../blueprints/model'
import { isInScope, listHiddenKeys, type RowScope, requireRowScope } from '../../blueprints/permissions'
import { sha256 } from '../../core/crypto'
import { badRequest } from '../../core/problem'
import { parseOptional } from '../../core/shapes'
import { deriveKey } from '../../tenancy/installation-keys'
import { matchesQuery } from '../query/matches'
import { parseQuery, type Query } from '../query/query-parser'
import { createSerializer } from '../store/serializer'
import type { Change, EntityVersion } from './change'

/** Which entities a subscriber sees, and in which shape. */
export type View = {
  model: Model
  actor: PublicCtx['actor']
  rowScope: RowScope
  query: Query
  /** Identifies everything that decides what is sent. If it changes, events sent before may no longer be right. */
  fingerprint: string
  shapeKey: string
  flat: boolean
  write: (shown: string) => string
}

/** The query of a stream: its blueprint, its filters, and whether the flat shape is pinned. */
export type StreamQuery = { key: string; search: string; pinned: boolean }

const ALLOWED_OPTIONS = ['$select', '$flat', '$q', '$qProps', '$timezone']

/** Rejects options that make sense only for lists. @throws 400 */
export function assertNoListOptions(search: URLSearchParams) {
  for (const [name, value] of search)
    if (name.startsWith('$') && parseOptional(value) && !ALLOWED_OPTIONS.includes(name))
      badRequest({ path: name, message: `${name} is not supported for live changes.` })
}

/** Returns the caller's current view; the view `before` if it is still current. @throws 400, 401, 403, 404 */
export async function getView(ctx: PublicCtx, { key, search, pinned }: StreamQuery, before?: View): Promise<View> {
  const { actor } = ctx
  const model = await getModel(ctx, key)
  if (before?.model === model && before.actor === actor) return before
  const rowScope = requireRowScope(model, 'read', actor)
  const query = parseQuery(model, actor, search)
  const { select } = query
  const flat = query.flat || pinned
  const hidden = listHiddenKeys(model, actor)
  const shapeKey = JSON.stringify([model.version, flat, select, hidden])
  const fingerprint = sha256(JSON.stringify([model._id, model.form, rowScope, search, flat, hidden]))
  return {
    model,
    actor,
    rowScope,
    query,
    fingerprint,
    shapeKey,
    flat,
    write: createSerializer(model, actor, { flat, select }),
  }
}

/**
 * Returns a seal for event ids, which proves that a subscriber had this view after change number `since`. Earlier
 * changes cannot be resumed, because the subscriber may not have been allowed to see them at the time.
 */
export async function createSeal({ tenant }: PublicCtx, { fingerprint }: View, since: number): Promise<string> {
  const hasher = new Bun.CryptoHasher('sha256', await deriveKey(tenant, 'changes'))
  return `${since}.${hasher.update(`${since} ${fingerprint}`).digest('hex').slice(0, 32)}`
}

/** Returns the text of an event. @see https://html.spec.whatwg.org/multipage/server-sent-events.html */
export const formatEvent = (event: string, number: number, seal: string, data: string) =>
  `event: ${event}\nid: ${number}.${seal}\ndata: ${data}\n\n`

/**
 * Returns the event of a change, or an empty text. An entity that becomes visible is sent as created, one that is no
 * longer visible as deleted.
 */
export function formatChange(view: View, seal: string, change: Change): string {
  const { number, before, after } = change
  const [wasVisible, isVisible] = [canSee(view, before), canSee(view, after)]
  if (isVisible)
    return formatEvent(wasVisible ? 'update' : 'create', number, seal, change.render(view.shapeKey, view.write))
  if (!wasVisible) return ''
  const { _id, identifier } = before!.system
  return formatEvent('delete', number, seal, JSON.stringify({ _id, identifier }))
}

const canSee = ({ model, rowScope, query }: View, version: EntityVersion | undefined) =>
  !!version && isInScope(rowScope, version.system) && matchesQuery(model, query, version)
