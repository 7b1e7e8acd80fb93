import { eq } from 'drizzle-orm'
import type { Tx } from '../storage/port'
import { retireCompoundIndexes } from './compound-indexes'
import {
  addFieldIndexes,
  addRequiredIndexes,
  deleteFieldIndexes,
  getIndexReason,
  isNeverIndexed,
  readMaintainedIndexes,
} from './field-indexes'
import { INDEX_KEYS } from './fields'
import type { SchemaDiff } from './schema-diff'
import type { Definition } from './shapes'
import { fields } from './tables'

const selectFields = (tx: Tx, blueprint: string) => tx.select().from(fields).where(eq(fields.blueprint, blueprint))

/** Returns a key that no field can have. It keeps the number reserved while index rows may still use it. */
const retiredKey = (number: number) => `-${number}`
const isRetiredKey = (key: string) => /^[-+]/.test(key)

// Not with Drizzle, which would insert null as the number.
async function insertFields(tx: Tx, blueprint: string, keys: string[]): Promise<Map<string, number>> {
  const rows = keys.map((key) => [blueprint, key, INDEX_KEYS])
  const inserted = await tx.executeMany(
    'insert into fields (blueprint, key, index_keys) values (?, ?, ?) returning key, number',
    rows,
  )
  return new Map(inserted.map(([key, number]) => [key as string, Number(number)]))
}

/** Assigns a number to each new field, and deletes those of removed fields, of which no entity may have index rows. */
export async function assignFieldNumbers(tx: Tx, blueprint: string, definition: Definition) {
  const existing = await selectFields(tx, blueprint)
  const keys = definition.fields.map(({ key }) => key)
  const removed = existing.filter(({ key }) => !keys.includes(key) && !isRetiredKey(key))
  await deleteFields(tx, blueprint, removed)
  const numbers = new Map(existing.map(({ key, number }) => [key, number]))
  const added = keys.filter((key) => !numbers.has(key))
  for (const [key, number] of await insertFields(tx, blueprint, added)) numbers.set(key, number)
  await addRequiredIndexes(tx, blueprint, definition, numbers)
  await retireCompoundIndexes(tx, blueprint, toIndexableNumbers(definition, numbers))
}

/**
 * Reserves numbers for fields whose index keys are made before the change is in force. A field that has an index keeps
 * having one.
 */
export async function reserveFieldNumbers(
  tx: Tx,
  blueprint: string,
  form: number,
  { reindexedKeys, definition, steps }: SchemaDiff,
) {
  const reservedKey = (key: string) => `+${form}:${key}`
  const inserted = await insertFields(tx, blueprint, [...reindexedKeys].map(reservedKey))
  const numbers = Object.fromEntries([...reindexedKeys].map((key) => [key, inserted.get(reservedKey(key))!]))
  const current = new Map((await selectFields(tx, blueprint)).map(({ key, number }) => [key, number]))
  const maintained = (await readMaintainedIndexes(tx, blueprint)).fields
  const reasons = definition.fields.flatMap((field, at) => {
    const number = numbers[field.key]
    if (number === undefined) return []
    const previous = maintained.get(current.get(steps[at]!.from ?? '') ?? 0)
    const reason = getIndexReason(definition, field) ?? (isNeverIndexed(field) ? undefined : previous)
    return reason ? [[number, reason] as const] : []
  })
  await addFieldIndexes(tx, blueprint, reasons, 'ready')
  const kept = new Map(
    steps.flatMap(({ key, from }) => (from && !reindexedKeys.has(key) ? [[key, current.get(from)!] as const] : [])),
  )
  await retireCompoundIndexes(tx, blueprint, toIndexableNumbers(definition, kept))
  return numbers
}

/** Gives each field its reserved number, or that of the field that it was mapped from. Other numbers are retired. */
export async function applyFieldNumbers(
  tx: Tx,
  blueprint: string,
  { definition, steps }: SchemaDiff,
  reserved: Record<string, number>,
) {
  const existing = await selectFields(tx, blueprint)
  const numbers = new Map(existing.map(({ key, number }) => [key, number]))
  const finalKeys = new Map(steps.map(({ key, from = '' }) => [reserved[key] ?? numbers.get(from)!, key]))
  await tx.delete(fields).where(eq(fields.blueprint, blueprint))
  await tx.executeMany(
    'insert into fields (number, blueprint, key, index_keys) values (?, ?, ?, ?)',
    existing.map(({ number, indexKeys }) => [
      ...[number, blueprint, finalKeys.get(number) ?? retiredKey(number), indexKeys],
    ]),
  )
  const finalNumbers = new Map([...finalKeys].map(([number, key]) => [key, number]))
  await addRequiredIndexes(tx, blueprint, definition, finalNumbers)
  await retireCompoundIndexes(tx, blueprint, toIndexableNumbers(definition, finalNumbers))
}

/** Returns the numbers of the fields that a compound index may have. */
const toIndexableNumbers = (definition: Definition, numbers: ReadonlyMap<string, number>) =>
  new Set(
    definition.fields.flatMap((field) => {
      const number = numbers.get(field.key)
      return number === undefined || isNeverIndexed(field) || field.multi ? [] : [number]
    }),
  )

/** Deletes the numbers of former fields after no index row uses them any more. */
export async function deleteRetiredFields(tx: Tx, blueprint: string) {
  const existing = await selectFields(tx, blueprint)
  await deleteFields(
    tx,
    blueprint,
    existing.filter(({ key }) => isRetiredKey(key)),
  )
}

async function deleteFields(tx: Tx, blueprint: string, removed: { number: number }[]) {
  const numbers = removed.map(({ number }) => number)
  for (const number of numbers) await tx.delete(fields).where(eq(fields.number, number))
  await deleteFieldIndexes(tx, blueprint, numbers)
}
