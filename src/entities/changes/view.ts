import type { PublicCtx } from '../../accounts/context'
import { getModel } from '../../blueprints/blueprints'
import type { Model } from '../../blueprints/model'
import { isInScope, mayReadField, type RowScope, requireRowScope } from '../../blueprints/permissions'
import { sha256 } from '../../core/crypto'
import { badRequest } from '../../core/problem'
import { parseOptional } from '../../core/shapes'
import { deriveKey } from '../../tenancy/installation-keys'
import { matchesQuery } from '../query/matches'
import { parseQuery, type Query } from '../query/query-parser'
import { createSerializer } from '../store/serializer'
import type { Change, EntityVersion } from './change'

/** Which entities a listener sees, and how. */
export type View = {
  model: Model
  actor: PublicCtx['actor']
  rowScope: RowScope
  query: Query
  /** All that decides what is told: another one means that what was told before may not be right any more. */
  fingerprint: string
  shapeKey: string
  flat: boolean
  write: (shown: string) => string
}

/** What is asked of changes: of which blueprint, by which query, in which shape. */
export type StreamQuery = { key: string; search: string; pinned: boolean }

const ALLOWED_OPTIONS = ['$select', '$flat', '$q', '$qProps']

/** Changes come one by one, as they happen. @throws 400 for what makes sense for lists only */
export function assertNoListOptions(search: URLSearchParams) {
  for (const [name, value] of search)
    if (name.startsWith('$') && parseOptional(value) && !ALLOWED_OPTIONS.includes(name))
      badRequest({ path: name, message: `${name} is not supported for live changes.` })
}

/** What the caller sees now; the view that they had before, if that is still it. @throws 400, 401, 403, 404 */
export async function getView(ctx: PublicCtx, { key, search, pinned }: StreamQuery, before?: View): Promise<View> {
  const { actor } = ctx
  const model = await getModel(ctx, key)
  if (before?.model === model && before.actor === actor) return before
  const rowScope = requireRowScope(model, 'read', actor)
  const query = parseQuery(model, actor, search)
  const { select } = query
  const flat = query.flat || pinned
  const hidden = model.fields.filter((field) => !mayReadField(field, actor)).map((field) => field.key)
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
 * Says in an id that somebody had this view after change number `since`, which only we can: what was before that they may
 * never have been allowed to see, although they may see what is there now.
 */
export async function createSeal({ tenant }: PublicCtx, { fingerprint }: View, since: number): Promise<string> {
  const hasher = new Bun.CryptoHasher('sha256', await deriveKey(tenant, 'changes'))
  return `${since}.${hasher.update(`${since} ${fingerprint}`).digest('hex').slice(0, 32)}`
}

/** An event as it is sent. @see https://html.spec.whatwg.org/multipage/server-sent-events.html */
export const formatEvent = (event: string, number: number, seal: string, data: string) =>
  `event: ${event}\nid: ${number}.${seal}\ndata: ${data}\n\n`

/** A change as the listener sees it: what comes into sight is new to them, and what goes out of it is gone. */
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
