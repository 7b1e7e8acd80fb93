import { and, eq, inArray, isNotNull } from 'drizzle-orm'
import { now, toIsoString } from '../core/clock'
import type { Tx } from '../storage/port'
import { type CompoundParts, partNumbers } from './compound-parts'
import type { CompoundIndex, FieldIndex } from './field-indexes'
import { readBlueprintCode, readLastEntityNumber, takeNumber } from './number-sequence'
import { fieldIndexes } from './tables'

/** Returns the compound indexes of a blueprint. */
export const pickCompoundIndexes = (
  indexes: Iterable<FieldIndex & { number: number; parts: CompoundParts | null }>,
): CompoundIndex[] =>
  [...indexes].flatMap(({ number, parts, state, reason, since, used }) =>
    parts ? [{ number, ...parts, state, reason, since, used }] : [],
  )

/** Adds a compound index to a blueprint with entities. */
export async function addCompoundIndex(tx: Tx, blueprint: string, parts: CompoundParts) {
  const time = toIsoString(now())
  const number = -(await takeNumber(tx, 'compound indexes'))
  const upto = await readLastEntityNumber(tx, await readBlueprintCode(tx, blueprint))
  await tx
    .insert(fieldIndexes)
    .values({ blueprint, number, parts, state: 'building', reason: 'list', since: time, used: time, done: 0, upto })
}

/** Starts to remove compound indexes with fields other than the given ones. */
export async function retireCompoundIndexes(tx: Tx, blueprint: string, kept: ReadonlySet<number>) {
  const compound = await tx
    .select()
    .from(fieldIndexes)
    .where(and(eq(fieldIndexes.blueprint, blueprint), isNotNull(fieldIndexes.parts)))
  const numbers = compound
    .filter(({ parts, state }) => state !== 'removing' && partNumbers(parts!).some((part) => !kept.has(part)))
    .map(({ number }) => number)
  if (!numbers.length) return
  await tx
    .update(fieldIndexes)
    .set({ state: 'retiring' })
    .where(and(eq(fieldIndexes.blueprint, blueprint), inArray(fieldIndexes.number, numbers)))
}
