import { eq, sql } from 'drizzle-orm'
import { prepareOncePerDb } from '../storage/pool'
import type { Tenant } from '../tenancy/tenants'
import { entityStore } from './entity-store'
import { compileFormula, type Formula } from './formulas/formula'
import { type AlterationState, compileField, type Model, type ModelField } from './model'
import { diffDefinitions } from './schema-diff'
import type { Definition } from './shapes'
import { alterations, blueprints, fields } from './tables'

const statements = prepareOncePerDb((db) => ({
  byKey: db
    .select()
    .from(blueprints)
    .where(eq(blueprints.key, sql.placeholder('key')))
    .prepare(),
  fieldsOf: db
    .select({ key: fields.key, number: fields.number })
    .from(fields)
    .where(eq(fields.blueprint, sql.placeholder('key')))
    .prepare(),
  alterationOf: db
    .select()
    .from(alterations)
    .where(eq(alterations.blueprint, sql.placeholder('key')))
    .prepare(),
}))

export type BlueprintRow = typeof blueprints.$inferSelect
export type AlterationRow = typeof alterations.$inferSelect

export const findBlueprintRow = ({ db }: Pick<Tenant, 'db'>, key: string) => statements(db).byKey.get({ key })
export const findAlterationRow = ({ db }: Pick<Tenant, 'db'>, key: string) => statements(db).alterationOf.get({ key })

/** Reads a blueprint and makes it ready for use. */
export async function loadModel(tenant: Tenant, key: string): Promise<Model | undefined> {
  for (;;) {
    const row = await findBlueprintRow(tenant, key)
    if (!row) return
    const numbers = new Map((await statements(tenant.db).fieldsOf.all({ key })).map((one) => [one.key, one.number]))
    const alteration = await findAlterationRow(tenant, key)
    // These are of one state only if nothing has changed meanwhile.
    if ((await findBlueprintRow(tenant, key))?.version !== row.version) continue
    const model = await compileModel(tenant, row, row.definition, numbers)
    if (alteration) model.alteration = await toAlterationState(tenant, row, alteration, numbers)
    await entityStore().undoAbandonedImports(tenant, model)
    if (alteration && alteration.state !== 'failed') entityStore().resumeAlteration(tenant, key)
    return model
  }
}

/** A blueprint with this definition, whose fields have these numbers. */
export async function compileModel(
  { tenant }: Pick<Tenant, 'tenant'>,
  { definition: _, ...row }: BlueprintRow,
  definition: Definition,
  numbers: Map<string, number>,
): Promise<Model> {
  const fields = await Promise.all(definition.fields.map((field) => compileField(field, numbers.get(field.key) ?? 0)))
  return {
    ...definition,
    ...row,
    tenant,
    fields,
    field: new Map(fields.map((field) => [field.key, field])),
    formulas: await compileFormulas(fields, definition.computed),
    guarded: fields.some(({ readRoles }) => readRoles?.length),
  }
}

async function toAlterationState(
  tenant: Pick<Tenant, 'tenant'>,
  row: BlueprintRow,
  { form, state, change }: AlterationRow,
  numbers: Map<string, number>,
): Promise<AlterationState> {
  if (state !== 'preparing') return { form, state }
  const alteration = diffDefinitions(row.definition, change.definition)
  const keptNumbers = alteration.steps.flatMap(({ key, from }) => (from ? [[key, numbers.get(from)!] as const] : []))
  const next = await compileModel(
    tenant,
    row,
    alteration.definition,
    new Map([...keptNumbers, ...Object.entries(change.numbers)]),
  )
  return { form, state, diff: alteration, next }
}

/** One that was good when it was saved must not make its blueprint unusable. */
const toFailingFormula = (error: unknown): Formula => ({
  referencedNames: new Set(),
  evaluate: () => Promise.reject(error),
})

const compileFormulas = (fields: ModelField[], computed: Definition['computed'] = {}) =>
  Promise.all(
    fields
      .filter(({ key }) => Object.hasOwn(computed, key))
      .map(async (field) => ({ field, formula: await compileFormula(computed[field.key]!).catch(toFailingFormula) })),
  )
