import { eq, sql } from 'drizzle-orm'
import { yieldToEventLoop } from '../core/event-loop'
import { prepareFirst, prepareQuery } from '../storage/prepared-statements'
import type { Tenant } from '../tenancy/tenants'
import { pickCompoundIndexes } from './compound-indexes'
import type { CompoundParts } from './compound-parts'
import { entityStore } from './entity-store'
import type { FieldIndex } from './field-indexes'
import { namesFiles } from './file-fields'
import { compileFormula, type Formula } from './formulas/formula'
import { type AlterationState, compileField, type Model, type ModelField } from './model'
import { diffDefinitions } from './schema-diff'
import type { Definition } from './shapes'
import { alterations, blueprints, fieldIndexes, fields } from './tables'

const selectByKey = prepareFirst((db) =>
  db
    .select()
    .from(blueprints)
    .where(eq(blueprints.key, sql.placeholder('key'))),
)
const selectFields = prepareQuery((db) =>
  db
    .select({ key: fields.key, number: fields.number, indexKeys: fields.indexKeys })
    .from(fields)
    .where(eq(fields.blueprint, sql.placeholder('key'))),
)
const selectAlteration = prepareFirst((db) =>
  db
    .select()
    .from(alterations)
    .where(eq(alterations.blueprint, sql.placeholder('key'))),
)

const selectIndexes = prepareQuery((db) =>
  db
    .select()
    .from(fieldIndexes)
    .where(eq(fieldIndexes.blueprint, sql.placeholder('key'))),
)

type StoredIndex = FieldIndex & { number: number; parts: CompoundParts | null }
export type BlueprintRow = typeof blueprints.$inferSelect
export type AlterationRow = typeof alterations.$inferSelect

export const findBlueprintRow = ({ db }: Pick<Tenant, 'db'>, key: string) => selectByKey(db, { key })
export const findAlterationRow = ({ db }: Pick<Tenant, 'db'>, key: string) => selectAlteration(db, { key })

/** Loads the model of a blueprint, or undefined. Continues an unfinished alteration, and undoes interrupted imports. */
export async function loadModel(tenant: Tenant, key: string): Promise<Model | undefined> {
  for (;;) {
    const row = await findBlueprintRow(tenant, key)
    if (!row) return
    const fieldRows = await selectFields(tenant.db, { key })
    const numbers = new Map(fieldRows.map((field) => [field.key, field.number]))
    const indexKeys = new Map(fieldRows.map((field) => [field.number, field.indexKeys]))
    const alteration = await findAlterationRow(tenant, key)
    const indexes = new Map((await selectIndexes(tenant.db, { key })).map((index) => [index.number, index]))
    // The rows are consistent only if the blueprint has not changed meanwhile.
    const latest = await findBlueprintRow(tenant, key)
    if (latest?.version !== row.version || latest.indexing !== row.indexing) continue
    const model = await compileModel(tenant, row, row.definition, numbers, indexes, indexKeys)
    if (alteration) model.alteration = await toAlterationState(tenant, row, alteration, numbers, indexes, indexKeys)
    // The main thread has loaded it before, and does what follows.
    if (!Bun.isMainThread) return model
    await entityStore().undoAbandonedImports(tenant, model)
    if (alteration && alteration.state !== 'failed') entityStore().resumeAlteration(tenant, key)
    if (indexes.values().some(({ state }) => state !== 'ready')) entityStore().resumeIndexing(tenant, key)
    return model
  }
}

/**
 * Returns the model of a blueprint with this definition and these numbers of fields. Numbers without a version of their
 * index keys have the latest.
 */
export async function compileModel(
  { tenant }: Pick<Tenant, 'tenant'>,
  { definition: _, ...row }: BlueprintRow,
  definition: Definition,
  numbers: Map<string, number>,
  indexes: Map<number, StoredIndex> = new Map(),
  indexKeys: Map<number, number> = new Map(),
): Promise<Model> {
  const fields: ModelField[] = []
  for (const field of definition.fields) {
    const number = numbers.get(field.key) ?? 0
    fields.push(await compileField(field, number, indexes.get(number), indexKeys.get(number)))
    // A pattern may take some ms.
    if (field.pattern !== undefined) await yieldToEventLoop()
  }
  return {
    ...definition,
    ...row,
    tenant,
    indexKeys,
    fields,
    field: new Map(fields.map((field) => [field.key, field])),
    compoundIndexes: pickCompoundIndexes(indexes.values()),
    formulas: await compileFormulas(fields, definition.computed),
    fileFields: fields.filter((field) => namesFiles(definition, field)),
    guarded: fields.some(({ readRoles }) => readRoles?.length),
  }
}

async function toAlterationState(
  tenant: Pick<Tenant, 'tenant'>,
  row: BlueprintRow,
  { form, state, change }: AlterationRow,
  numbers: Map<string, number>,
  indexes: Map<number, StoredIndex>,
  indexKeys: Map<number, number>,
): Promise<AlterationState> {
  if (state !== 'preparing') return { form, state }
  const alteration = diffDefinitions(row.definition, change.definition, Object.keys(change.numbers))
  const keptNumbers = alteration.steps.flatMap(({ key, from }) => (from ? [[key, numbers.get(from)!] as const] : []))
  const next = await compileModel(
    tenant,
    row,
    alteration.definition,
    new Map([...keptNumbers, ...Object.entries(change.numbers)]),
    indexes,
    indexKeys,
  )
  return { form, state, diff: alteration, next }
}

/** A formula that was valid when it was saved must not make its blueprint unusable. */
const toFailingFormula = (error: unknown): Formula => ({
  referencedNames: new Set(),
  evaluate: () => Promise.reject(error),
})

async function compileFormulas(fields: ModelField[], computed: Definition['computed'] = {}) {
  const formulas: Model['formulas'] = []
  for (const field of fields.filter(({ key }) => Object.hasOwn(computed, key))) {
    formulas.push({ field, formula: await compileFormula(computed[field.key]!).catch(toFailingFormula) })
    await yieldToEventLoop()
  }
  return formulas
}
