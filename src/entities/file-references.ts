import type { PublicCtx } from '../accounts/context'
import { getModel } from '../blueprints/blueprints'
import { filePathOf } from '../blueprints/file-fields'
import type { Model, ModelField } from '../blueprints/model'
import { isInScope, mayReadField, type RowScope, rowScopeOf } from '../blueprints/permissions'
import type { Db } from '../storage/port'
import type { Tenant } from '../tenancy/tenants'

const MAX_COMPARED_ENTITIES = 2_000 // entities of a field that name one file; of more, only so many are compared

/**
 * SQL for whether an entity names a file; `id` is an SQL expression for the id of the file. Files are named in the indexes
 * of file fields, which every write of an entity keeps up to date. Numbers of fields that are not in force have keys that
 * begin with a sign.
 */
export const isNamedSql = (id: string) =>
  `exists (select 1 from field_indexes x cross join fields f cross join entity_index i
   where x.reason = 'file' and f.number = x.number and f.key >= 'A' and i.field = x.number and i.path = ''
   and i.value >= '/api/files/' || ${id} || '/' and i.value < '/api/files/' || ${id} || '0')`

const NAMING = "i.field = ? and i.path = '' and i.value >= ? and i.value < ?"
// "0" is the character after "/".
const rangeOf = (id: string) => [filePathOf(id), filePathOf(id).replace(/\/$/, '0')]

/** Returns whether the caller, who may be a guest, may read a field of an entity that names a file. */
export async function isNamedReadably(ctx: PublicCtx, id: string): Promise<boolean> {
  for await (const { field, rowScope } of readableFileFields(ctx)) {
    const found = await findNaming(ctx.db, field, id, rowScope, 1)
    if (found.length) return true
  }
  return false
}

export type FileUse = { blueprint: string; field: string; identifier: string }

/** Returns where a file is named, as far as the caller may read it; at most `limit` places. */
export async function listFileUses(ctx: PublicCtx, id: string, limit: number): Promise<FileUse[]> {
  const uses: FileUse[] = []
  for await (const { model, field, rowScope } of readableFileFields(ctx)) {
    const found = await findNaming(ctx.db, field, id, rowScope, limit - uses.length)
    uses.push(...found.map((identifier) => ({ blueprint: model.key, field: field.key, identifier })))
    if (uses.length === limit) break
  }
  return uses
}

/** Returns the fields that name a file in any entity, whoever may read them. */
export async function listNamingFields(tenant: Tenant, id: string): Promise<ModelField[]> {
  const rows = (await tenant.db.query(
    `select f.blueprint, f.number from field_indexes x cross join fields f
     where x.reason = 'file' and f.number = x.number and f.key >= 'A'
       and exists (select 1 from entity_index i where i.field = f.number and i.path = '' and i.value >= ? and i.value < ?)`,
    rangeOf(id),
  )) as [string, number][]
  const fields: ModelField[] = []
  for (const [blueprint, number] of rows) {
    // A blueprint may have been removed meanwhile.
    const model = await Promise.resolve(getModel(tenant, blueprint)).catch(() => undefined)
    fields.push(...(model?.fileFields.filter((field) => field.number === Number(number)) ?? []))
  }
  return fields
}

async function* readableFileFields(
  ctx: PublicCtx,
): AsyncGenerator<{ model: Model; field: ModelField; rowScope: RowScope }, void> {
  const rows = await ctx.db.query(
    "select distinct blueprint from field_indexes where reason = 'file' order by blueprint",
  )
  for (const [key] of rows as [string][]) {
    // A blueprint may have been removed meanwhile.
    const model = await Promise.resolve(getModel(ctx, key)).catch(() => undefined)
    const rowScope = model && rowScopeOf(model, 'read', ctx.actor)
    if (!rowScope) continue
    for (const field of model.fileFields) if (mayReadField(field, ctx.actor)) yield { model, field, rowScope }
  }
}

/** Returns the identifiers of entities in the row scope that name a file in a field. */
async function findNaming(db: Db, { number }: ModelField, id: string, rowScope: RowScope, limit: number) {
  const rows = (await db.query(
    `select e.identifier, e."user", e.workspace from
       (select i.entity from entity_index i where ${NAMING} limit ?) n join entities e on e.seq = n.entity`,
    [number, ...rangeOf(id), rowScope.all ? limit : MAX_COMPARED_ENTITIES],
  )) as [string, string | null, string | null][]
  return rows
    .filter(([, user, workspace]) => isInScope(rowScope, { user, workspace }))
    .slice(0, limit)
    .map(([identifier]) => identifier)
}
