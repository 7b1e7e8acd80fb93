import { eq } from 'drizzle-orm'
import type { Tx } from '../storage/port'
import type { FieldMapping } from './schema-diff'
import type { Definition } from './shapes'
import { fields } from './tables'

const selectFields = (tx: Tx, blueprint: string) => tx.select().from(fields).where(eq(fields.blueprint, blueprint))

/** No field is called so: its number is kept from others for as long as entities may have something by it. */
const retiredKey = (number: number) => `-${number}`
const isRetiredKey = (key: string) => /^[-+]/.test(key)

// Not by Drizzle, which would say that the number is null.
const insertField = async (tx: Tx, blueprint: string, key: string) =>
  Number(
    (await tx.query('insert into fields (blueprint, key) values (?, ?) returning number', [blueprint, key]))[0]![0],
  )

/** Gives each new field its number, and takes back those of fields that are gone, where no entity has any. */
export async function assignFieldNumbers(tx: Tx, blueprint: string, definition: Definition) {
  const existing = await selectFields(tx, blueprint)
  const keys = definition.fields.map(({ key }) => key)
  for (const { number, key } of existing)
    if (!keys.includes(key) && !isRetiredKey(key)) await tx.delete(fields).where(eq(fields.number, number))
  for (const key of keys) if (!existing.some((field) => field.key === key)) await insertField(tx, blueprint, key)
}

/** Numbers for fields whose index is built before they are in force. */
export async function reserveFieldNumbers(tx: Tx, blueprint: string, form: number, keys: Iterable<string>) {
  const numbers: Record<string, number> = {}
  for (const key of keys) numbers[key] = await insertField(tx, blueprint, `+${form}:${key}`)
  return numbers
}

/** Each field gets the number that was reserved for it, or that of the field which it was. */
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

/** Once no entity has anything by them, the numbers of former fields are free. */
export async function deleteRetiredFields(tx: Tx, blueprint: string) {
  for (const { number, key } of await selectFields(tx, blueprint))
    if (isRetiredKey(key)) await tx.delete(fields).where(eq(fields.number, number))
}
