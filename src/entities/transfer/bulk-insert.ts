import type { Model } from '../../blueprints/model'
import { isInScope, type RowScope } from '../../blueprints/permissions'
import { now } from '../../core/clock'
import type { Tx } from '../../storage/port'
import * as rows from '../store/rows'
import { idSql } from '../store/serializer'
import { lookUpEach, toChunks } from '../store/sql-fragments'
import { findReadable, type ReadableTargets } from '../write/constraints'
import { type DeletedEntityRow, toDeletedEntity } from '../write/deletion'
import { areFilesUsable } from '../write/file-values'
import { type EntityDraft, type InsertedEntity, insertPrepared, prepareEntity } from '../write/insert'
import type { SizeLimit } from './size-limit'

/**
 * Inserts entities in a few statements instead of several for each, if it is certain that no check would reject them.
 * Otherwise returns undefined and inserts nothing; the caller then inserts them one by one, which reports the error.
 */
export async function insertBulk(
  tx: Tx,
  model: Model,
  drafts: EntityDraft[],
  { scopes, files, later }: ReadableTargets,
  sizeLimit: SizeLimit,
): Promise<InsertedEntity[] | undefined> {
  // A limitation counts entities that are already inserted.
  if (drafts.length < 2 || model.limitations?.length) return
  if (await isAnyNameTaken(tx, model, drafts)) return
  for (const field of model.fields.filter(({ unique }) => unique))
    if (await isAnyValueTaken(tx, `f${field.number}`, field.number, drafts)) return
  for (const { key, target } of model.fields) {
    if (!target) continue
    const earlier = target === model.key ? earlierPositions(drafts, scopes.get(target)) : undefined
    const others = drafts.flatMap(({ doc }, n) =>
      ([doc[key] ?? []].flat() as string[]).filter((name) => !((earlier?.get(name) ?? n) < n)),
    )
    const readable = others.length ? await findReadable(tx, target, scopes.get(target), others) : undefined
    if (others.some((identifier) => !readable?.has(identifier) && !later?.expect(target, identifier))) return
  }
  if (!(await areFilesUsable(tx, model, drafts, files))) return
  const time = now()
  return insertPrepared(
    tx,
    model,
    drafts.map((draft) => {
      const prepared = prepareEntity(model, draft, time)
      sizeLimit.consume(prepared.shown.length)
      return prepared
    }),
  )
}

async function isAnyNameTaken(tx: Tx, model: Model, drafts: EntityDraft[]) {
  const chosen = drafts.filter(({ _id, identifier }) => identifier !== _id).map(({ identifier }) => identifier)
  return new Set(chosen).size < chosen.length || (await findExistingNames(tx, model, chosen)).size > 0
}

async function isAnyValueTaken(tx: Tx, label: string, field: number, drafts: EntityDraft[]) {
  const values = drafts.flatMap(({ keys }) => keys[label] ?? [])
  if (new Set(values).size < values.length) return true
  const condition = "e.field = ? and e.path = '' and e.value = j.value"
  const { sql, params } = lookUpEach('entity_index', condition, values, field)
  return values.length > 0 && (await tx.query(`select 1 from ${sql}`, params)).length > 0
}

/** Returns the positions of the drafts that later drafts may refer to, by identifier. */
const earlierPositions = (drafts: EntityDraft[], rowScope: RowScope | undefined) =>
  new Map(
    drafts.flatMap((draft, n) => (rowScope && isInScope(rowScope, draft) ? [[draft.identifier, n] as const] : [])),
  )

/** Returns those of the names that are the identifier or `_id` of an entity. */
export async function findExistingNames(tx: Pick<Tx, 'query'>, model: Model, names: string[]): Promise<Set<string>> {
  const wanted = [...new Set(names)]
  const found = await Promise.all([
    selectByIdentifier(tx, model, 'identifier', wanted),
    selectById(tx, model, '_id', wanted),
  ])
  return new Set(found.flat().map(([name]) => name as string))
}

/** Reads entities in order to change them, by identifier or else by `_id`. */
export async function readStoredByNames(
  tx: Tx,
  model: Model,
  names: string[],
): Promise<Map<string, rows.StoredEntity>> {
  return readByNames(tx, model, rows.storedColumns(model), names, rows.toStored)
}

/** Reads entities in order to remove them, without their stored JSON, because there may be many. */
export async function readDeletedByNames(tx: Tx, model: Model, names: string[]) {
  const columns = `${idSql()}, "user", workspace, seq, keys, created, identifier`
  return readByNames(tx, model, columns, names, ([_id, user, workspace, ...row]) => ({
    ...toDeletedEntity(model.key, row as DeletedEntityRow),
    ...({ _id, user, workspace } as Pick<rows.StoredEntity, '_id' | 'user' | 'workspace'>),
  }))
}

async function readByNames<Row extends { _id: string; identifier: string }>(
  tx: Tx,
  model: Model,
  columns: string,
  names: string[],
  toEntity: (row: unknown[]) => Row,
): Promise<Map<string, Row>> {
  const entitiesByName = new Map<string, Row>()
  for (const row of (await selectByIdentifier(tx, model, columns, names)).map(toEntity))
    entitiesByName.set(row.identifier, row)
  const missing = names.filter((name) => !entitiesByName.has(name))
  for (const row of (await selectById(tx, model, columns, missing)).map(toEntity)) entitiesByName.set(row._id, row)
  return entitiesByName
}

const selectByIdentifier = (tx: Pick<Tx, 'query'>, { code }: Model, columns: string, names: string[]) =>
  selectEach(tx, columns, 'e.blueprint = ? and e.identifier = j.value', names, [code])

/** Filters by blueprint in memory: SQLite would scan the whole blueprint instead of looking up the ids. */
const selectById = async (tx: Pick<Tx, 'query'>, { code }: Model, columns: string, ids: string[]) =>
  (await selectEach(tx, `${columns}, blueprint`, 'e._id = j.value', ids)).filter((row) => row.at(-1) === code)

async function selectEach(
  tx: Pick<Tx, 'query'>,
  columns: string,
  condition: string,
  names: string[],
  conditionParams: unknown[] = [],
): Promise<unknown[][]> {
  const found = await Promise.all(
    toChunks(names).map((chunk) => {
      const { sql, params } = lookUpEach('entities', condition, chunk, ...conditionParams)
      return tx.query(`select ${columns} from ${sql}`, params)
    }),
  )
  return found.flat()
}
