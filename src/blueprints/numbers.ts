import { eq } from 'drizzle-orm'
import type { Tx } from '../storage/port'
import type { Step } from './alteration'
import type { Definition } from './shapes'
import { fields } from './tables'

const numbersOf = (tx: Tx, blueprint: string) => tx.select().from(fields).where(eq(fields.blueprint, blueprint))

/** No field is called so: its number is kept from others for as long as entities may have something by it. */
const retired = (number: number) => `-${number}`
const isRetired = (key: string) => /^[-+]/.test(key)

// Not by Drizzle, which would say that the number is null.
const add = async (tx: Tx, blueprint: string, key: string) =>
  Number((await tx.ask('insert into fields (blueprint, key) values (?, ?) returning number', [blueprint, key]))[0]![0])

/** Gives each new field its number, and takes back those of fields that are gone, where no entity has any. */
export async function number(tx: Tx, blueprint: string, definition: Definition) {
  const have = await numbersOf(tx, blueprint)
  const keys = definition.fields.map(({ key }) => key)
  for (const { number, key } of have)
    if (!keys.includes(key) && !isRetired(key)) await tx.delete(fields).where(eq(fields.number, number))
  for (const key of keys) if (!have.some((field) => field.key === key)) await add(tx, blueprint, key)
}

/** Numbers for fields whose index is built before they are in force. */
export async function reserve(tx: Tx, blueprint: string, form: number, keys: Iterable<string>) {
  const numbers: Record<string, number> = {}
  for (const key of keys) numbers[key] = await add(tx, blueprint, `+${form}:${key}`)
  return numbers
}

/** Each field gets the number that was reserved for it, or that of the field which it was. */
export async function renumber(tx: Tx, blueprint: string, steps: Step[], reserved: Record<string, number>) {
  const have = await numbersOf(tx, blueprint)
  const numbers = new Map(have.map(({ key, number }) => [key, number]))
  const final = new Map(steps.map(({ key, from = '' }) => [reserved[key] ?? numbers.get(from)!, key]))
  await tx.delete(fields).where(eq(fields.blueprint, blueprint))
  await tx.each(
    'insert into fields (number, blueprint, key) values (?, ?, ?)',
    have.map(({ number }) => [number, blueprint, final.get(number) ?? retired(number)]),
  )
}

/** Once no entity has anything by them, the numbers of former fields are free. */
export async function forgetRetired(tx: Tx, blueprint: string) {
  for (const { number, key } of await numbersOf(tx, blueprint))
    if (isRetired(key)) await tx.delete(fields).where(eq(fields.number, number))
}
