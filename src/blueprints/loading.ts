import { eq, sql } from 'drizzle-orm'
import { prepared } from '../storage/store'
import type { Tenant } from '../tenancy/tenants'
import { alterationOf } from './alteration'
import { type Formula, formula } from './formulas/formula'
import { kept } from './kept'
import { type Model, type ModelField, ready, type Underway } from './model'
import type { Definition } from './shapes'
import { alterations, blueprints, fields } from './tables'

const statements = prepared((db) => ({
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

export const rowOf = ({ db }: Pick<Tenant, 'db'>, key: string) => statements(db).byKey.get({ key })
export const alterationRow = ({ db }: Pick<Tenant, 'db'>, key: string) => statements(db).alterationOf.get({ key })

/** Reads a blueprint and makes it ready for use. */
export async function load(tenant: Tenant, key: string): Promise<Model | undefined> {
  for (;;) {
    const row = await rowOf(tenant, key)
    if (!row) return
    const numbers = new Map((await statements(tenant.db).fieldsOf.all({ key })).map((one) => [one.key, one.number]))
    const alteration = await alterationRow(tenant, key)
    // These are of one state only if nothing has changed meanwhile.
    if ((await rowOf(tenant, key))?.version !== row.version) continue
    const model = await modelFrom(tenant, row, row.definition, numbers)
    if (alteration) model.alteration = await underway(tenant, row, alteration, numbers)
    await kept.undoForsaken(tenant, model)
    if (alteration && alteration.state !== 'failed') kept.alter(tenant, key)
    return model
  }
}

/** A blueprint with this definition, whose fields have these numbers. */
export async function modelFrom(
  { tenant }: Pick<Tenant, 'tenant'>,
  { definition: _, ...row }: BlueprintRow,
  definition: Definition,
  numbers: Map<string, number>,
): Promise<Model> {
  const fields = await Promise.all(definition.fields.map((field) => ready(field, numbers.get(field.key) ?? 0)))
  return {
    ...definition,
    ...row,
    tenant,
    fields,
    field: new Map(fields.map((field) => [field.key, field])),
    formulas: await formulasOf(fields, definition.computed),
    guarded: fields.some(({ readRoles }) => readRoles?.length),
  }
}

async function underway(
  tenant: Pick<Tenant, 'tenant'>,
  row: BlueprintRow,
  { form, state, change }: AlterationRow,
  numbers: Map<string, number>,
): Promise<Underway> {
  if (state !== 'preparing') return { form, state }
  const alteration = alterationOf(row.definition, change.definition)
  const same = alteration.steps.flatMap(({ key, from }) => (from ? [[key, numbers.get(from)!] as const] : []))
  const next = await modelFrom(
    tenant,
    row,
    alteration.definition,
    new Map([...same, ...Object.entries(change.numbers)]),
  )
  return { form, state, alteration, next }
}

/** One that was good when it was saved must not make its blueprint unusable. */
const failing = (error: unknown): Formula => ({ names: new Set(), of: () => Promise.reject(error) })

const formulasOf = (fields: ModelField[], computed: Definition['computed'] = {}) =>
  Promise.all(
    fields
      .filter(({ key }) => Object.hasOwn(computed, key))
      .map(async (field) => ({ field, formula: await formula(computed[field.key]!).catch(failing) })),
  )
