import type { Actor } from '../../accounts/actors'
import type { PublicCtx } from '../../accounts/context'
import type { Model } from '../../blueprints/model'
import { isInScope, type RowScope, requireRowScope, rowScopeOf } from '../../blueprints/permissions'
import { notFound, Problem } from '../../core/problem'
import type { Doc } from '../store/doc'
import type { StoredEntity } from '../store/rows'
import { extractDocumentJson } from '../store/serializer'
import { type EntityIdentity, isComputed } from './computed-fields'
import { createDocument, type ParsedBody, parseBody, parseIdentifier, updateDocument } from './document'

type NewEntity = { identity: EntityIdentity; doc: Doc }

/** Returns the new entity that a body describes, without its computed properties. @throws 400, 401, 403 */
export function createDraft(
  model: Model,
  actor: Actor | undefined,
  body: unknown,
  _id = Bun.randomUUIDv7(),
): NewEntity {
  requireRowScope(model, 'create', actor)
  const input = parseBody(body, actor)
  const identity = {
    _id,
    identifier: parseIdentifier(input.identifier) ?? _id,
    user: input.user === undefined ? (actor?.user ?? null) : input.user,
    workspace: input.workspace === undefined ? (actor?.workspace?._id ?? null) : input.workspace,
  }
  return { identity, doc: createDocument(model, input, actor) }
}

/**
 * Returns the entity after a change, without its computed properties. `sent` is set for callers who may change but not
 * read the entity: the response may show them only the properties that they sent. @throws 400, 403
 */
export function createChange(model: Model, { actor }: PublicCtx, before: StoredEntity, input: ParsedBody) {
  const readScope = rowScopeOf(model, 'read', actor)
  const isReadable = !!readScope && isInScope(readScope, before)
  const { user = before.user, workspace = before.workspace } = input
  const { _id, identifier } = before
  return {
    ...updateDocument(model, JSON.parse(extractDocumentJson(before.shown)), input, actor, isReadable),
    known: { _id, identifier, user, workspace } as EntityIdentity,
    user,
    workspace,
    by: actor,
    sent: isReadable ? undefined : Object.keys(input.properties).filter((key) => !isComputed(model, key)),
  }
}

/**
 * Returns the row if it is in the row scope. @throws 404 when the caller may not read it, 403 when they may only read
 * it
 */
export function requireWritable<Row extends Pick<StoredEntity, 'user' | 'workspace'>>(
  model: Model,
  row: Row | undefined,
  rowScope: RowScope,
  ctx: PublicCtx,
): Row {
  if (!row) return notFound('entity')
  if (!isInScope(rowScope, row)) {
    const readScope = rowScopeOf(model, 'read', ctx.actor)
    if (!readScope || !isInScope(readScope, row)) notFound('entity')
    throw new Problem(403, 'FORBIDDEN', 'You do not have permission to change this entity.')
  }
  return row
}
