import type { Actor } from '../accounts/actors'
import type { OpenCtx } from '../accounts/guard'
import type { Model } from '../blueprints/model'
import { type Reach, reaches, reachOf, reachOrRefuse } from '../blueprints/rules'
import { missing, Problem } from '../core/problem'
import type { Known } from './computed'
import { changedDocument, type Doc, type Input, identifierOf, isComputed, newDocument, readInput } from './document'
import type { Stored } from './rows'
import { docOf } from './wire'

type Draft = { known: Known; doc: Doc }

/** The new entity that a caller means, but for what is computed. @throws 400, 401, 403 */
export function draftOf(model: Model, actor: Actor | undefined, body: unknown, _id = Bun.randomUUIDv7()): Draft {
  reachOrRefuse(model, 'create', actor)
  const input = readInput(body, actor)
  const known = {
    _id,
    identifier: identifierOf(input.identifier) ?? _id,
    user: input.user === undefined ? (actor?.user ?? null) : input.user,
    workspace: input.workspace === undefined ? (actor?.workspace?._id ?? null) : input.workspace,
  }
  return { known, doc: newDocument(model, input, actor) }
}

/**
 * What an entity becomes by a change, but for what is computed. Who may change but not read it is told no more than what
 * they `sent`.
 */
export function changeOf(model: Model, { actor }: OpenCtx, before: Stored, input: Input) {
  const read = reachOf(model, 'read', actor)
  const seen = !!read && reaches(read, before)
  const { user = before.user, workspace = before.workspace } = input
  const { _id, identifier } = before
  return {
    ...changedDocument(model, JSON.parse(docOf(before.shown)), input, actor, seen),
    known: { _id, identifier, user, workspace } as Known,
    user,
    workspace,
    by: actor,
    sent: seen ? undefined : Object.keys(input.properties).filter((key) => !isComputed(model, key)),
  }
}

/** The row, if there is one and the caller may do this to it: 404 when it is out of sight, 403 when it is only out of reach. */
export function reachable<Row extends Pick<Stored, 'user' | 'workspace'>>(
  model: Model,
  row: Row | undefined,
  reach: Reach,
  ctx: OpenCtx,
): Row {
  if (!row) return missing('entity')
  if (!reaches(reach, row)) {
    const sight = reachOf(model, 'read', ctx.actor)
    if (!sight || !reaches(sight, row)) missing('entity')
    throw new Problem(403, 'FORBIDDEN', 'You may read this entity, but not change it.')
  }
  return row
}
