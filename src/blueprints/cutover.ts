import { and, eq } from 'drizzle-orm'
import { now, toIsoString } from '../core/clock'
import type { Db, Tx } from '../storage/port'
import { bumpVersion } from '../tenancy/cache'
import { applyFieldNumbers, deleteRetiredFields } from './field-numbers'
import { type ChangeError, diffDefinitions } from './schema-diff'
import { alterations, blueprints } from './tables'

/** From the first entity to the last that there is now: later ones are made by those who know of the alteration. */
export async function initialProgress(db: Db, key: string) {
  const countQuery = 'select count(*), coalesce(max(seq), 0) from entities where blueprint = ?'
  const [row] = (await db.query(countQuery, [key])) as number[][]
  return { created: -1, entity: -1, done: 0, total: Number(row![0]), upto: Number(row![1]) }
}

/** The alteration, if it is still in this state; what it depends on stays so until the transaction ends. */
export async function findAlteration(tx: Tx, key: string, form: number, state: 'preparing' | 'cleaning') {
  const row = await tx.select().from(alterations).where(eq(alterations.blueprint, key)).get()
  return row?.form === form && row.state === state ? row : undefined
}
type Row = NonNullable<Awaited<ReturnType<typeof findAlteration>>>

/** How far it is: up to which entity, and how many more those are than before. */
export const advanceProgress = (tx: Tx, { blueprint, done }: Row, [created, entity]: [number, number], more: number) =>
  tx
    .update(alterations)
    .set({ created, entity, done: done + more })
    .where(eq(alterations.blueprint, blueprint))

/** All entities are gone through once more. */
export async function restartBackfill(tx: Tx, key: string) {
  const preparing = and(eq(alterations.blueprint, key), eq(alterations.state, 'preparing'))
  await tx
    .update(alterations)
    .set(await initialProgress(tx, key))
    .where(preparing)
}

/** All entities are prepared: from the end of this transaction on, the blueprint is what it was to become. */
export async function cutOver(tx: Tx, { blueprint: key, form, change }: Row) {
  const before = (await tx.select().from(blueprints).where(eq(blueprints.key, key)).get())!
  const { definition, steps } = diffDefinitions(before.definition, change.definition)
  const { name = before.name, description = before.description } = change
  const fields = { name, description, definition, form, version: before.version + 1, updated: toIsoString(now()) }
  await tx.update(blueprints).set(fields).where(eq(blueprints.key, key))
  await applyFieldNumbers(tx, key, steps, change.numbers)
  await startCleanup(tx, key, { state: 'cleaning' })
}

/** It cannot be; what was prepared goes again. */
export async function abortAlteration(tx: Tx, { blueprint: key }: Row, problem: ChangeError) {
  const { version } = (await tx.select().from(blueprints).where(eq(blueprints.key, key)).get())!
  // From now on, nobody writes for it any more.
  await tx
    .update(blueprints)
    .set({ version: version + 1 })
    .where(eq(blueprints.key, key))
  await startCleanup(tx, key, { state: 'cleaning', problem })
}

/** Nothing is left of what was before. */
export async function completeAlteration(tx: Tx, { blueprint: key, problem }: Row) {
  await deleteRetiredFields(tx, key)
  const row = eq(alterations.blueprint, key)
  if (problem) await tx.update(alterations).set({ state: 'failed' }).where(row)
  else await tx.delete(alterations).where(row)
  await bumpVersion(tx, 'blueprints')
}

async function startCleanup(tx: Tx, key: string, more: { state: 'cleaning'; problem?: ChangeError }) {
  await tx
    .update(alterations)
    .set({ ...(await initialProgress(tx, key)), ...more })
    .where(eq(alterations.blueprint, key))
  await bumpVersion(tx, 'blueprints')
}
