import type { OpenCtx } from '../../accounts/guard'
import { modelOf } from '../../blueprints/blueprints'
import type { Model } from '../../blueprints/model'
import { mayRead, type Reach, reaches, reachOrRefuse } from '../../blueprints/rules'
import { invalid } from '../../core/problem'
import { hashed } from '../../core/secret'
import { given } from '../../core/shapes'
import { keyOf } from '../../tenancy/secrets'
import { meets } from '../meets'
import { type Query, readQuery } from '../query'
import { writer } from '../wire'
import type { Change, Version } from './change'

/** Which entities a listener sees, and how. */
export type View = {
  model: Model
  actor: OpenCtx['actor']
  reach: Reach
  query: Query
  /** All that decides what is told: another one means that what was told before may not be right any more. */
  print: string
  form: string
  flat: boolean
  write: (shown: string) => string
}

/** What is asked of changes: of which blueprint, by which query, in which shape. */
export type Question = { key: string; search: string; pinned: boolean }

const TAKEN = ['$select', '$flat', '$q', '$qProps']

/** Changes come one by one, as they happen. @throws 400 for what makes sense for lists only */
export function refuseOfLists(search: URLSearchParams) {
  for (const [name, value] of search)
    if (name.startsWith('$') && given(value) && !TAKEN.includes(name))
      invalid({ path: name, message: `Changes come as they happen: ${name} is for lists.` })
}

/** What the caller sees now; the view that they had before, if that is still it. @throws 400, 401, 403, 404 */
export async function viewOf(ctx: OpenCtx, { key, search, pinned }: Question, before?: View): Promise<View> {
  const { actor } = ctx
  const model = await modelOf(ctx, key)
  if (before?.model === model && before.actor === actor) return before
  const reach = reachOrRefuse(model, 'read', actor)
  const query = readQuery(model, actor, search)
  const { select } = query
  const flat = query.flat || pinned
  const hidden = model.fields.filter((field) => !mayRead(field, actor)).map((field) => field.key)
  const form = JSON.stringify([model.version, flat, select, hidden])
  const print = hashed(JSON.stringify([model._id, model.form, reach, search, flat, hidden]))
  return { model, actor, reach, query, print, form, flat, write: writer(model, actor, { flat, select }) }
}

/**
 * Says in an id that somebody had this view after change number `since`, which only we can: what was before that they may
 * never have been allowed to see, although they may see what is there now.
 */
export async function sealOf({ tenant }: OpenCtx, { print }: View, since: number): Promise<string> {
  const hasher = new Bun.CryptoHasher('sha256', await keyOf(tenant, 'changes'))
  return `${since}.${hasher.update(`${since} ${print}`).digest('hex').slice(0, 32)}`
}

/** An event as it is sent. @see https://html.spec.whatwg.org/multipage/server-sent-events.html */
export const eventOf = (event: string, number: number, seal: string, data: string) =>
  `event: ${event}\nid: ${number}.${seal}\ndata: ${data}\n\n`

/** A change as the listener sees it: what comes into sight is new to them, and what goes out of it is gone. */
export function told(view: View, seal: string, change: Change): string {
  const { number, before, after } = change
  const [was, is] = [sees(view, before), sees(view, after)]
  if (is) return eventOf(was ? 'update' : 'create', number, seal, change.text(view.form, view.write))
  if (!was) return ''
  const { _id, identifier } = before!.system
  return eventOf('delete', number, seal, JSON.stringify({ _id, identifier }))
}

const sees = ({ model, reach, query }: View, version: Version | undefined) =>
  !!version && reaches(reach, version.system) && meets(model, query, version)
