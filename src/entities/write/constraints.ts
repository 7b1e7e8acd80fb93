import type { PublicCtx } from '../../accounts/context'
import { getModel } from '../../blueprints/blueprints'
import type { Model } from '../../blueprints/model'
import { BLUEPRINT_CODE } from '../../blueprints/number-sequence'
import { type Caller, isInScope, mayReadField, type RowScope, rowScopeOf } from '../../blueprints/permissions'
import { config } from '../../config'
import { badRequest, Problem } from '../../core/problem'
import { Busy, Conflict } from '../../storage/errors'
import type { Tx } from '../../storage/port'
import { IS_LOGGED } from '../changes/change-log'
import { IS_TRACKED } from '../changes/tracked-changes'
import { INDEXED_UP_TO } from '../search/search-terms'
import type { Doc } from '../store/doc'
import type { IndexKeys } from '../store/index-keys'
import type { StoredEntity } from '../store/rows'
import { idSql } from '../store/serializer'
import { lookUpEach, toChunks } from '../store/sql-fragments'
import type { EntityIdentity } from './computed-fields'
import { assertFilesUsable, type NamedFiles } from './file-values'
import { assertMayCompare, hiddenConflict } from './hidden-conflicts'

/** A blueprint was changed while an entity was being checked against it. */
export class StaleBlueprint extends Busy {}

/** An entity was changed while another change of it was being computed. */
export class StaleEntity extends StaleBlueprint {}

/** The rows of other blueprints that the writer may read, by the key of the blueprint. */
export type ReadableScopes = Map<string, RowScope | undefined>

/** What the entities of a request may refer to, as far as the writer may read it. */
export type ReadableTargets = { scopes: ReadableScopes; files: NamedFiles; later?: LaterEntities }

/** Entities that the same transaction creates later: that they may be referred to is checked at its end. */
export type LaterEntities = { expect(target: string, identifier: string): boolean }

/** Checks that an entity is unchanged since a change of it was computed. @throws StaleEntity */
export async function assertEntityFresh(tx: Tx, { seq, _id, version, versionRow }: StoredEntity) {
  const select = `select version, version_row from entities where seq = ? and ${idSql()} = ?`
  const [row] = await tx.query(select, [seq, _id])
  // An import that is undone restores the version, but not the latest one of the history.
  if (row?.[0] !== version || row[1] !== versionRow) throw new StaleEntity()
}

/** Up to which number the entities of a blueprint have their words indexed, and whether its changes are logged and tracked. */
export type BlueprintFeatures = { indexedUpTo: number; logged: boolean; tracked: boolean }

/** The SQL for the features of a blueprint; each of its three parameters is the blueprint's key. */
export const FEATURES = `${INDEXED_UP_TO}, ${IS_LOGGED}, ${IS_TRACKED}`

/** Returns the features that were read as `FEATURES`. */
export const toFeatures = ([indexedUpTo, logged, tracked]: unknown[]): BlueprintFeatures => ({
  indexedUpTo: Number(indexedUpTo ?? 0),
  logged: !!logged,
  tracked: !!tracked,
})

/** Checks that a blueprint is unchanged and returns its features. @throws StaleBlueprint */
export async function requireFreshBlueprint(
  tx: Tx,
  { key, _id, version, indexing }: Model,
): Promise<BlueprintFeatures> {
  const select = `select version, indexing, ${FEATURES} from blueprints where key = ? and _id = ?`
  const [row] = await tx.query(select, [key, key, key, key, _id])
  if (row?.[0] !== version || row[1] !== indexing) throw new StaleBlueprint()
  return toFeatures(row.slice(2))
}

/** Small changes must not add up to an entity that could not be written at once. @throws 400 */
export function assertSize({ length }: string) {
  if (length > config.ATOLL_BODY_LIMIT)
    badRequest({ path: '', message: `The entity would be larger than ${config.ATOLL_BODY_LIMIT} characters.` })
}

/**
 * Checks unique fields in the writing transaction, so that no other write can come in between.
 * @throws 409 UNIQUE_VIOLATION, or CONFLICT when the caller may not read the field; 429
 */
export async function assertUnique(tx: Tx, model: Model, keys: IndexKeys, by: Caller | undefined, old: IndexKeys = {}) {
  for (const field of model.fields) {
    const label = `f${field.number}`
    const key = keys[label]
    if (!field.unique || key === undefined || key === old[label]) continue
    const isHidden = !mayReadField(field, by)
    if (isHidden) assertMayCompare(model, by)
    const where = 'where field = ? and path = ? and value = ? limit 1'
    const rows = await tx.query(`select 1 from entity_index ${where}`, [field.number, '', key])
    if (!rows.length) continue
    if (isHidden) throw hiddenConflict(model, by)
    throw new Problem(409, 'UNIQUE_VIOLATION', `Another entity already has this ${field.key}.`, {
      details: [{ path: `/${field.key}`, message: `${field.key} must be unique.` }],
    })
  }
}

/** An entity can also be addressed by its `_id`, so no other entity may have it as its identifier. @throws Conflict */
export async function assertIdentifierFree(tx: Tx, { code }: Model, { _id, identifier }: EntityIdentity) {
  if (identifier === _id) return
  const rows = await tx.query('select 1 from entities where _id = ? and blueprint = ?', [identifier, code])
  if (rows.length) throw new Conflict()
}

/** A relation that names an entity which is not there, or which the writer may not read. */
export class MissingReference extends Problem {
  constructor(
    key: string,
    readonly target: string,
    readonly identifier: string,
  ) {
    const message = `There is no entity "${identifier}" of "${target}".`
    super(400, 'INVALID_INPUT', message, { details: [{ path: `/${key}`, message }] })
  }
}

/** Checks that changed relations and file fields refer to what the writer may read. @throws 400 */
export async function assertReferencesExist(
  tx: Tx,
  model: Model,
  doc: Doc,
  stored: Doc,
  { scopes, files, later }: ReadableTargets,
) {
  for (const { key, target } of model.fields) {
    if (!target || doc[key] === undefined || Bun.deepEquals(doc[key], stored[key])) continue
    const identifiers = [doc[key]].flat() as string[]
    const readable = await findReadable(tx, target, scopes.get(target), identifiers)
    const missing = identifiers.find((identifier) => !readable.has(identifier) && !later?.expect(target, identifier))
    if (missing !== undefined) throw new MissingReference(key, target, missing)
  }
  await assertFilesUsable(tx, model, doc, stored, files)
}

/** Returns those of the identifiers that belong to entities in the row scope. */
export async function findReadable(
  tx: Pick<Tx, 'query'>,
  blueprint: string,
  rowScope: RowScope | undefined,
  identifiers: string[],
): Promise<Set<string>> {
  const readable = new Set<string>()
  if (!rowScope) return readable
  for (const chunk of toChunks([...new Set(identifiers)])) {
    const condition = `e.blueprint = ${BLUEPRINT_CODE} and e.identifier = j.value`
    const { sql, params } = lookUpEach('entities', condition, chunk, blueprint)
    const rows = (await tx.query(`select identifier, "user", workspace from ${sql}`, params)) as [
      string,
      string | null,
      string | null,
    ][]
    for (const [identifier, user, workspace] of rows)
      if (isInScope(rowScope, { user, workspace })) readable.add(identifier)
  }
  return readable
}

/** Returns the rows of the blueprint's relation targets that the caller may read. */
export async function getReadableScopes(ctx: PublicCtx, { fields }: Model): Promise<ReadableScopes> {
  const scopes: ReadableScopes = new Map()
  for (const { target } of fields)
    if (target && !scopes.has(target)) {
      // A missing target is refused where it is used.
      const model = await Promise.resolve(getModel(ctx, target)).catch(() => undefined)
      scopes.set(target, model && rowScopeOf(model, 'read', ctx.actor))
    }
  return scopes
}
