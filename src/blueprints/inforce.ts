import { and, eq } from 'drizzle-orm'
import { iso, now } from '../core/clock'
import type { Db, Tx } from '../storage/port'
import { touch } from '../tenancy/memory'
import { alterationOf, type Refusal } from './alteration'
import { forgetRetired, renumber } from './numbers'
import { alterations, blueprints } from './tables'

/** From the first entity to the last that there is now: later ones are made by those who know of the alteration. */
export async function fromTheStart(db: Db, key: string) {
  const upto = 'select count(*), coalesce(max(seq), 0) from entities where blueprint = ?'
  const [row] = (await db.ask(upto, [key])) as number[][]
  return { created: -1, entity: -1, done: 0, total: Number(row![0]), upto: Number(row![1]) }
}

/** The alteration, if it is still in this state; what it depends on stays so until the transaction ends. */
export async function alterationIn(tx: Tx, key: string, form: number, state: 'preparing' | 'cleaning') {
  const row = await tx.select().from(alterations).where(eq(alterations.blueprint, key)).get()
  return row?.form === form && row.state === state ? row : undefined
}
type Row = NonNullable<Awaited<ReturnType<typeof alterationIn>>>

/** How far it is: up to which entity, and how many more those are than before. */
export const advance = (tx: Tx, { blueprint, done }: Row, [created, entity]: [number, number], more: number) =>
  tx
    .update(alterations)
    .set({ created, entity, done: done + more })
    .where(eq(alterations.blueprint, blueprint))

/** All entities are gone through once more. */
export async function prepareAnew(tx: Tx, key: string) {
  const preparing = and(eq(alterations.blueprint, key), eq(alterations.state, 'preparing'))
  await tx
    .update(alterations)
    .set(await fromTheStart(tx, key))
    .where(preparing)
}

/** All entities are prepared: from the end of this transaction on, the blueprint is what it was to become. */
export async function putInForce(tx: Tx, { blueprint: key, form, change }: Row) {
  const before = (await tx.select().from(blueprints).where(eq(blueprints.key, key)).get())!
  const { definition, steps } = alterationOf(before.definition, change.definition)
  const { name = before.name, description = before.description } = change
  const fields = { name, description, definition, form, version: before.version + 1, updated: iso(now()) }
  await tx.update(blueprints).set(fields).where(eq(blueprints.key, key))
  await renumber(tx, key, steps, change.numbers)
  await begin(tx, key, { state: 'cleaning' })
}

/** It cannot be; what was prepared goes again. */
export async function giveUp(tx: Tx, { blueprint: key }: Row, problem: Refusal) {
  const { version } = (await tx.select().from(blueprints).where(eq(blueprints.key, key)).get())!
  // From now on, nobody writes for it any more.
  await tx
    .update(blueprints)
    .set({ version: version + 1 })
    .where(eq(blueprints.key, key))
  await begin(tx, key, { state: 'cleaning', problem })
}

/** Nothing is left of what was before. */
export async function finish(tx: Tx, { blueprint: key, problem }: Row) {
  await forgetRetired(tx, key)
  const row = eq(alterations.blueprint, key)
  if (problem) await tx.update(alterations).set({ state: 'failed' }).where(row)
  else await tx.delete(alterations).where(row)
  await touch(tx, 'blueprints')
}

async function begin(tx: Tx, key: string, more: { state: 'cleaning'; problem?: Refusal }) {
  await tx
    .update(alterations)
    .set({ ...(await fromTheStart(tx, key)), ...more })
    .where(eq(alterations.blueprint, key))
  await touch(tx, 'blueprints')
}
