import { and, eq } from 'drizzle-orm'
import { now, toIsoString } from '../core/clock'
import type { Db, Tx } from '../storage/port'
import { bumpVersion } from '../tenancy/cache'
import { applyFieldNumbers, deleteRetiredFields } from './field-numbers'
import { nextHistory } from './history'
import { readBlueprintCode, readLastEntityNumber } from './number-sequence'
import { type ChangeError, diffDefinitions } from './schema-diff'
import { alterations, blueprints } from './tables'

/**
 * Returns the progress at the start. Entities after `upto` (a `seq`) are written by processes that know the alteration.
 */
export async function initialProgress(db: Db, key: string) {
  const code = await readBlueprintCode(db, key)
  const upto = await readLastEntityNumber(db, code)
  const [[total] = []] = upto ? await db.query('select count(*) from entities where blueprint = ?', [code]) : [[0]]
  return { created: -1, entity: -1, done: 0, total: Number(total), upto }
}

/** Returns the alteration if it is still in this state, in which it stays until the transaction ends. */
export async function findAlteration(tx: Tx, key: string, form: number, state: 'preparing' | 'cleaning') {
  const row = await tx.select().from(alterations).where(eq(alterations.blueprint, key)).get()
  return row?.form === form && row.state === state ? row : undefined
}
type Row = NonNullable<Awaited<ReturnType<typeof findAlteration>>>

/** Records the last processed entity, and adds `more` to the number of processed ones. */
export const advanceProgress = (tx: Tx, { blueprint, done }: Row, [created, entity]: [number, number], more: number) =>
  tx
    .update(alterations)
    .set({ created, entity, done: done + more })
    .where(eq(alterations.blueprint, blueprint))

/** Restarts the backfill from the first entity. */
export async function restartBackfill(tx: Tx, key: string) {
  const preparing = and(eq(alterations.blueprint, key), eq(alterations.state, 'preparing'))
  await tx
    .update(alterations)
    .set(await initialProgress(tx, key))
    .where(preparing)
}

/** Puts a change into force after all entities have been prepared: it applies when the transaction ends. */
export async function cutOver(tx: Tx, { blueprint: key, form, change }: Row) {
  const before = (await tx.select().from(blueprints).where(eq(blueprints.key, key)).get())!
  const diff = diffDefinitions(before.definition, change.definition, Object.keys(change.numbers))
  const { name = before.name, description = before.description } = change
  const fields = {
    name,
    description,
    definition: diff.definition,
    ...(await nextHistory(tx, before, diff.definition, diff.steps)),
    form,
    version: before.version + 1,
    updated: toIsoString(now()),
  }
  await tx.update(blueprints).set(fields).where(eq(blueprints.key, key))
  await applyFieldNumbers(tx, key, diff, change.numbers)
  await startCleanup(tx, key, { state: 'cleaning' })
}

/** Gives up an alteration, and starts the cleanup of what was prepared. */
export async function abortAlteration(tx: Tx, { blueprint: key }: Row, problem: ChangeError) {
  const { version } = (await tx.select().from(blueprints).where(eq(blueprints.key, key)).get())!
  // With the new version, no process writes for the alteration any more.
  await tx
    .update(blueprints)
    .set({ version: version + 1 })
    .where(eq(blueprints.key, key))
  await startCleanup(tx, key, { state: 'cleaning', problem })
}

/** Ends an alteration after its cleanup. One with a problem stays as `failed`. */
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
