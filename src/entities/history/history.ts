import type { PublicCtx } from '../../accounts/context'
import { getModel } from '../../blueprints/blueprints'
import type { Model } from '../../blueprints/model'
import { isInScope, mayReadField, requireRowScope } from '../../blueprints/permissions'
import { toIsoString } from '../../core/clock'
import { badRequest, notFound, Problem } from '../../core/problem'
import { createJsonResponse } from '../../core/response'
import { isFlag, isTrue, parseOptional } from '../../core/shapes'
import * as entities from '../entities'
import { readFairly } from '../query/fair-reads'
import { createHeaders, getQueryString, readConsistently, withoutPrivilege } from '../request'
import type { Doc } from '../store/doc'
import { createSerializer, MAX_PAGE_CHARACTERS, packEntity } from '../store/serializer'
import { isComputed } from '../write/computed-fields'
import { CREATED, type EntityState, REMOVED } from './version'
import { readPresent, requireHistory, type VersionStep, walkVersions } from './version-reads'

const DEFAULT_LIMIT = 20
const MAX_LIMIT = 100

/** Returns a page of the versions of an entity, the latest first. @throws 400, 400 HISTORY_OFF, 401, 403, 404 */
export async function list(originalCtx: PublicCtx, key: string, name: string, request: Request): Promise<Response> {
  const ctx = withoutPrivilege(originalCtx, request)
  return readFairly(originalCtx, request, (db) =>
    readConsistently(ctx, key, async (model) => {
      const rowScope = requireRowScope(model, 'read', ctx.actor)
      requireHistory(model)
      const { limit, after, showsEntities, flat } = parseQuery(request)
      const present = await readPresent(db, model, name)
      const identifier = present?.header.identifier ?? name
      const write = createSerializer(model, ctx.actor, { flat })
      const texts: string[] = []
      let [size, last, more, isVisible] = [0, 0, false, !!present && isInScope(rowScope, present.header)]
      for await (const step of walkVersions(db, model, rowScope, identifier, present)) {
        isVisible = true
        const { number } = step.version
        if (number >= after) continue
        more = texts.length === limit || size > MAX_PAGE_CHARACTERS
        if (more) break
        const text = toVersionJson(ctx, model, step, showsEntities ? write : undefined)
        texts.push(text)
        size += text.length
        last = number
      }
      if (!isVisible) notFound('entity')
      const headers = createHeaders({ flat: true })
      if (more) headers.append('link', `<${nextPageUrl(request, last)}>; rel="next"`)
      return createJsonResponse(`[${texts}]`, headers)
    }),
  )
}

function toVersionJson(
  ctx: PublicCtx,
  model: Model,
  { version, before, after, isKnown }: VersionStep,
  write: ((shown: string) => string) | undefined,
): string {
  const { number, action, at, author } = version
  const name = action === CREATED ? 'create' : action === REMOVED ? 'remove' : 'change'
  const changes = isKnown ? listChanges(ctx, model, before, after) : {}
  const text = JSON.stringify({ version: number, action: name, at: toIsoString(at), by: author, changes })
  if (!write || !after) return text
  const shown = packEntity({ ...after.header, updated: at }, JSON.stringify(after.doc))
  return `${text.slice(0, -1)},"entity":${write(shown)}}`
}

function listChanges({ actor }: PublicCtx, model: Model, before?: EntityState, after?: EntityState) {
  const changes: Record<string, { from: unknown; to: unknown }> = {}
  const compare = (key: string, from: unknown = null, to: unknown = null) => {
    if (!Bun.deepEquals(from, to)) changes[key] = { from, to }
  }
  compare('user', before?.header.user, after?.header.user)
  compare('workspace', before?.header.workspace, after?.header.workspace)
  for (const field of model.fields)
    if (mayReadField(field, actor)) compare(field.key, before?.doc[field.key], after?.doc[field.key])
  return changes
}

function parseQuery(request: Request) {
  const options = new Map([...new URLSearchParams(getQueryString(request))].filter(([, value]) => parseOptional(value)))
  for (const name of options.keys())
    if (!['$limit', '$after', '$entity', '$flat', 'bypassAdmin'].includes(name))
      badRequest({ path: name, message: `A history has no option "${name}". Use $limit, $after or $entity.` })
  const toInteger = (name: string, standard: number) => {
    const text = options.get(name) ?? `${standard}`
    if (!/^\d{1,15}$/.test(text)) badRequest({ path: name, message: `${name} must be a non-negative integer.` })
    return Number(text)
  }
  const toFlag = (name: string, standard: boolean) => {
    const text = options.get(name) ?? `${standard}`
    if (!isFlag(text)) badRequest({ path: name, message: `${name} must be true or false.` })
    return isTrue(text)
  }
  return {
    limit: Math.min(toInteger('$limit', DEFAULT_LIMIT), MAX_LIMIT),
    after: options.has('$after') ? toInteger('$after', 0) : Number.POSITIVE_INFINITY,
    showsEntities: toFlag('$entity', false),
    flat: toFlag('$flat', true) || request.headers.has('accept-version'),
  }
}

function nextPageUrl({ url }: Request, last: number) {
  const search = new URLSearchParams(getQueryString({ url } as Request))
  search.set('$after', `${last}`)
  return `${url.slice(url.indexOf('/', 8), url.indexOf('?') >>> 0)}?${search}`
}

/**
 * Gives an entity the properties of one of its versions, as an ordinary change of those that the caller may read. An
 * entity that was removed is created again with its identifier; admins restore its owners, too.
 * @throws 400, 401, 403, 404, 409, 410 HISTORY_NOT_KEPT, 412
 */
export async function restore(
  ctx: PublicCtx,
  key: string,
  name: string,
  number: string,
  request: Request,
): Promise<Response> {
  const model = await getModel(ctx, key)
  const rowScope = requireRowScope(model, 'read', ctx.actor)
  requireHistory(model)
  const present = await readPresent(ctx.db, model, name)
  const identifier = present?.header.identifier ?? name
  const state = await findState()
  const metadata: Doc = {}
  for (const field of model.fields) {
    if (isComputed(model, field.key) || !mayReadField(field, ctx.actor)) continue
    const value = state.doc[field.key]
    // Of what stays as it is, callers may not be allowed to write all.
    if (Bun.deepEquals(value, present?.doc[field.key])) continue
    metadata[field.key] = value ?? null
  }
  if (present) return entities.update(ctx, key, identifier, { metadata }, request)
  const { user, workspace } = state.header
  return entities.create(ctx, key, { identifier, user, workspace, metadata }, request)

  async function findState(): Promise<EntityState> {
    let isVisible = !!present && isInScope(rowScope, present.header)
    for await (const { version, after } of walkVersions(ctx.db, model, rowScope, identifier, present)) {
      isVisible = true
      if (`${version.number}` !== number) continue
      if (after) return after
      throw new Problem(400, 'INVALID_INPUT', `Version ${number} is a removal. Restore an earlier version.`)
    }
    return notFound(isVisible ? 'version' : 'entity')
  }
}
