import { eq } from 'drizzle-orm'
import type { Tx } from '../storage/port'
import type { FieldMapping } from './schema-diff'
import type { Definition } from './shapes'
import { fields } from './tables'

const selectFields = (tx: Tx, blueprint: string) => tx.select().from(fields).where(eq(fields.blueprint, blueprint))

/** Returns a key that no field can have. It keeps the number reserved while index rows may still use it. */
const retiredKey = (number: number) => `-${number}`
const isRetiredKey = (key: string) => /^[-+]/.test(key)

// Not with Drizzle, which would insert null as the number.
const insertField = async (tx: Tx, blueprint: string, key: string) =>
  Number(
    (await tx.query('insert into fields (blueprint, key) values (?, ?) returning number', [blueprint, key]))[0]![0],
  )

/** Assigns a number to each new field, and deletes those of removed fields, of which no entity may have index rows. */
export async function assignFieldNumbers(tx: Tx, blueprint: string, definition: Definition) {
  const existing = await selectFields(tx, blueprint)
  const keys = definition.fields.map(({ key }) => key)
  for (const { number, key } of existing)
    if (!keys.includes(key) && !isRetiredKey(key)) await tx.delete(fields).where(eq(fields.number, number))
  for (const key of keys) if (!existing.some((field) => field.key === key)) await insertField(tx, blueprint, key)
}

/** Reserves numbers for fields whose index is built before the change is in force. */
export async function reserveFieldNumbers(tx: Tx, blueprint: string, form: number, keys: Iterable<string>) {
  const numbers: Record<string, number> = {}
  for (const key of keys) numbers[key] = await insertField(tx, blueprint, `+${form}:${key}`)
  return numbers
}

/** Gives each field its reserved number, or that of the field that it was mapped from. Other numbers are retired. */
export async function applyFieldNumbers(
  tx: Tx,
  blueprint: string,
  steps: FieldMapping[],
  reserved: Record<string, number>,
) {
  const existing = await selectFields(tx, blueprint)
  const numbers = new Map(existing.map(({ key, number }) => [key, number]))
  const finalKeys = new Map(steps.map(({ key, from = '' }) => [reserved[key] ?? numbers.get(from)!, key]))
  await tx.delete(fields).where(eq(fields.blueprint, blueprint))
  await tx.executeMany(
    'insert into fields (number, blueprint, key) values (?, ?, ?)',
    existing.map(({ number }) => [number, blueprint, finalKeys.get(number) ?? retiredKey(number)]),
  )
}

/** Deletes the numbers of former fields after no index row uses them any more. */
export async function deleteRetiredFields(tx: Tx, blueprint: string) {
  for (const { number, key } of await selectFields(tx, blueprint))
    if (isRetiredKey(key)) await tx.delete(fields).where(eq(fields.number, number))
}
