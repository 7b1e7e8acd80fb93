import { and, eq, inArray, sql } from 'drizzle-orm'
import { now, toIsoString } from '../core/clock'
import type { Tx } from '../storage/port'
import type { CompoundParts } from './compound-parts'
import { type FieldTypeName, fieldTypes } from './fields'
import type { FieldType } from './fields/field-type'
import { namesFiles } from './file-fields'
import { hasEntities, readBlueprintCode, readLastEntityNumber } from './number-sequence'
import type { Definition, Field, IndexReason } from './shapes'
import { fieldIndexes } from './tables'

/** The index of a field. */
export type FieldIndex = Pick<typeof fieldIndexes.$inferSelect, 'state' | 'reason' | 'since' | 'used'>

export type CompoundIndex = FieldIndex & CompoundParts & { number: number }

type FieldOptions = Pick<Field, 'indexed' | 'target' | 'unique' | 'multi'> & { key: string; type: FieldTypeName }

/** Returns whether a field has no index whatever happens. Relations always have one, because references are found by it. */
export const isNeverIndexed = ({ indexed, target }: Pick<Field, 'indexed' | 'target'>) => indexed === false && !target

/**
 * Returns why a field has an index from the beginning, or undefined when it gets one only once a query needs it. The
 * values of lists and objects are found by an index alone, and limitations count by it.
 */
export function getIndexReason(
  definition: Pick<Definition, 'limitations' | 'computed'>,
  field: FieldOptions,
): IndexReason | undefined {
  if (isNeverIndexed(field)) return
  // Before the others, because files are looked for in the indexes with this reason.
  if (namesFiles(definition, field)) return 'file'
  if (field.indexed) return 'setting'
  if (field.target) return 'relation'
  if (field.unique) return 'unique'
  if (field.multi || !(fieldTypes[field.type] as FieldType).toIndexKey) return 'list or object'
  return definition.limitations?.some(({ properties }) => properties?.includes(field.key)) ? 'limitation' : undefined
}

/** Adds indexes to a blueprint. Those of a blueprint without entities are `ready` at once. */
export async function addFieldIndexes(
  tx: Tx,
  blueprint: string,
  reasons: Iterable<readonly [number: number, reason: IndexReason]>,
  state: 'building' | 'ready',
) {
  const time = toIsoString(now())
  const upto = state === 'building' ? await readLastEntityNumber(tx, await readBlueprintCode(tx, blueprint)) : 0
  for (const [number, reason] of reasons)
    await tx
      .insert(fieldIndexes)
      .values({ blueprint, number, state, reason, since: time, used: time, done: 0, upto })
      .onConflictDoUpdate({
        target: [fieldIndexes.blueprint, fieldIndexes.number],
        set: { reason },
        setWhere: sql`${reason} = 'file'`,
      })
}

/** Adds the indexes that the fields of a definition have from the beginning, unless they exist. */
export async function addRequiredIndexes(
  tx: Tx,
  blueprint: string,
  definition: Definition,
  numbers: Map<string, number>,
) {
  const reasons = definition.fields.flatMap((field) => {
    const reason = getIndexReason(definition, field)
    return reason ? [[numbers.get(field.key)!, reason] as const] : []
  })
  const others = definition.fields.filter((field) => !namesFiles(definition, field))
  await tx
    .update(fieldIndexes)
    .set({ reason: 'filter' })
    .where(
      and(
        eq(fieldIndexes.blueprint, blueprint),
        eq(fieldIndexes.reason, 'file'),
        inArray(
          fieldIndexes.number,
          others.map(({ key }) => numbers.get(key)!),
        ),
      ),
    )
  const isUsed = await hasEntities(tx, await readBlueprintCode(tx, blueprint))
  await addFieldIndexes(tx, blueprint, reasons, isUsed ? 'building' : 'ready')
}

/** The indexes that writers maintain: field indexes, with their reasons by number, and compound indexes. */
export type MaintainedIndexes = {
  fields: ReadonlyMap<number, IndexReason>
  compound: readonly (CompoundParts & { number: number })[]
}

/** Returns the indexes that the writers of a blueprint maintain. */
export async function readMaintainedIndexes(tx: Tx, blueprint: string): Promise<MaintainedIndexes> {
  const select = "select number, reason, parts from field_indexes where blueprint = ? and state <> 'removing'"
  const rows = (await tx.query(select, [blueprint])) as [number, IndexReason, string | null][]
  return {
    fields: new Map(rows.flatMap(([number, reason, parts]) => (parts ? [] : [[Number(number), reason]]))),
    compound: rows.flatMap(([number, , parts]) => (parts ? [{ number: Number(number), ...JSON.parse(parts) }] : [])),
  }
}

/** Forgets the indexes of fields that no entity has index rows of any more. */
export async function deleteFieldIndexes(tx: Tx, blueprint: string, numbers: number[]) {
  if (!numbers.length) return
  await tx.delete(fieldIndexes).where(and(eq(fieldIndexes.blueprint, blueprint), inArray(fieldIndexes.number, numbers)))
}

/** Makes every writer of a blueprint's entities notice that its indexes have changed. */
export const announceIndexChange = (tx: Tx, blueprint: string) =>
  tx.query('update blueprints set indexing = indexing + 1 where key = ?', [blueprint])
