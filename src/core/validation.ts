import { Kind, OptionalKind, type TSchema } from '@sinclair/typebox'
import { type ValueError, ValueErrorType } from '@sinclair/typebox/errors'
import { Value } from '@sinclair/typebox/value'
import { MESSAGE } from './annotations'

/** One thing that is wrong with what was sent, and where: a JSON pointer, or the name of a query parameter. */
export type Flaw = { path: string; message: string }

export const MAX_FLAWS = 100
const MAX_KEY_LENGTH = 60 // characters of a key in a message

/** What is wrong with a value by its shape: one sentence for each place. `at` stands before the paths. */
export const listFlaws = (shape: TSchema, value: unknown, at = ''): Flaw[] =>
  flawsOf(Value.Errors(shape, value)).map(({ path, message }) => ({ path: at + path, message }))

/** TypeBox's errors as sentences that never show the value, which may be a secret; of several about one place, the first. */
export function flawsOf(errors: Iterable<ValueError>): Flaw[] {
  const flaws = new Map<string, Flaw>()
  for (const { path, message } of eachFlaw(errors)) {
    if (!flaws.has(path)) flaws.set(path, { path, message })
    if (flaws.size >= MAX_FLAWS) break
  }
  return [...flaws.values()]
}

function* eachFlaw(errors: Iterable<ValueError>): Generator<Flaw> {
  for (const error of errors)
    if (error.type === ValueErrorType.Union && error.value !== undefined) yield* eachFlawOfUnion(error)
    else yield { path: error.path, message: messageOf(error) }
}

/** What clients send for what they lack. */
const EMPTY_WORDS = ['', 'undefined']

type Branch = { schema: TSchema; errors: ValueError[] }

/** Of what may be one of several things: what is wrong with the one that the value comes closest to. */
function* eachFlawOfUnion({ schema, path, value, errors }: ValueError): Generator<Flaw> {
  const all = (schema.anyOf as TSchema[]).map((one, n) => ({ schema: one, errors: [...(errors[n] ?? [])] }))
  const branches = all.filter(({ schema }) => schema[Kind] !== 'Null' && !EMPTY_WORDS.includes(schema.const))
  const say = (message: string) => ({ path, message })
  if (branches.length > 1 && branches.every(({ schema }) => 'const' in schema))
    return yield say(unknownOf(path, branches))
  const entered = branches.length > 1 ? branches.filter(({ schema }) => isOfType(schema, value)) : branches
  if (!entered.length) return yield say(`${nameOf(path)} must be ${branches.map(wantedOf).join(' or ')}.`)
  const told = entered.filter(({ errors }) => !errors.some(isLiteral))
  if (told.length) return yield* eachFlaw(told.toSorted((a, b) => depthOf(b) - depthOf(a))[0]!.errors)
  const literals = entered.flatMap(({ errors }) => errors.find(isLiteral) ?? [])
  const [first] = literals
  if (!first) return
  const same = literals.filter(({ path }) => path === first.path).map(({ schema }) => ({ schema }))
  yield { path: first.path, message: first.value === undefined ? messageOf(first) : unknownOf(first.path, same) }
}

const isLiteral = ({ type, schema }: ValueError) =>
  type === ValueErrorType.Literal || (type === ValueErrorType.ObjectRequiredProperty && 'const' in schema)
const depthOf = ({ errors }: Branch) => Math.max(...errors.map(({ path }) => path.length))

const unknownOf = (path: string, words: { schema: TSchema }[]) =>
  words.length === 1
    ? `${nameOf(path)} must be ${wantedOf(words[0]!)}.`
    : `Unknown ${nameOf(path)}. Use one of: ${words.map(({ schema }) => schema.const).join(', ')}.`

function isOfType({ type, const: word }: TSchema, value: unknown): boolean {
  if (word !== undefined) return value === word
  if (type === 'array') return Array.isArray(value)
  if (type === 'object') return typeof value === 'object' && value !== null && !Array.isArray(value)
  return typeof value === type
}

function messageOf({ type, schema, path, value }: ValueError): string {
  const name = nameOf(path)
  if (path && value === undefined) return `${name} is required.`
  switch (type) {
    case ValueErrorType.StringPattern:
      return (schema[MESSAGE as never] as string | undefined) ?? `${name} is not written as it has to be.`
    case ValueErrorType.StringFormat:
      return formats[schema.format as keyof typeof formats] ?? `${name} is not written as it has to be.`
    case ValueErrorType.StringMinLength:
      return schema.minLength === 1
        ? `${name} must not be empty.`
        : `${name} must have at least ${schema.minLength} characters.`
    case ValueErrorType.StringMaxLength:
      return `${name} must have at most ${schema.maxLength} characters.`
    case ValueErrorType.ArrayMinItems:
      return schema.minItems === 1
        ? `${name} must not be empty.`
        : `${name} must have at least ${schema.minItems} items.`
    case ValueErrorType.ArrayMaxItems:
      return `${name} must have at most ${schema.maxItems} items.`
    case ValueErrorType.ArrayUniqueItems:
      return `${name} must not have the same item twice.`
    case ValueErrorType.ObjectMaxProperties:
      return `${name} must have at most ${schema.maxProperties} keys.`
    case ValueErrorType.ObjectAdditionalProperties:
      return (schema[MESSAGE as never] as string | undefined) ?? `${name} is not known here.`
    case ValueErrorType.Literal:
      if (schema[OptionalKind as never]) return `${name} is ${schema.const}, or left out.`
  }
  if (!path && schema.type === 'object') return 'Send a JSON object.'
  return `${name} must be ${wantedOf({ schema })}.`
}

/** What is said of the formats that shapes name. */
export const formats = { 'date-time': 'Write the time as 2030-01-31T12:00:00Z.' }

/** What a shape takes, for a sentence. */
function wantedOf({ schema }: { schema: TSchema }): string {
  if ('const' in schema) return JSON.stringify(schema.const)
  if (Array.isArray(schema.anyOf)) return schema.anyOf.map((one: TSchema) => wantedOf({ schema: one })).join(' or ')
  if (schema.type === 'number' || schema.type === 'integer') return numberOf(schema)
  return types[schema.type as keyof typeof types] ?? 'another value'
}

const types = { string: 'text', boolean: 'true or false', array: 'a list', object: 'an object', null: 'null' }

function numberOf({ minimum, maximum = Number.MAX_SAFE_INTEGER, exclusiveMinimum, multipleOf }: TSchema): string {
  const number = multipleOf === 1 ? 'a whole number' : 'a number'
  const most = maximum < Number.MAX_SAFE_INTEGER ? maximum : undefined
  if (exclusiveMinimum !== undefined)
    return `${number} above ${exclusiveMinimum}${most === undefined ? '' : `, at most ${most}`}`
  if (minimum !== undefined && most !== undefined) return `${number} from ${minimum} to ${most}`
  if (minimum !== undefined) return `${number}, at least ${minimum}`
  return most === undefined ? number : `${number}, at most ${most}`
}

/** How a place is called: `fields[0].key`. */
export function nameOf(path: string): string {
  const keys = path.split('/').slice(1)
  const name = keys.map((key, n) => (/^\d+$/.test(key) ? `[${key}]` : `${n ? '.' : ''}${readable(key)}`)).join('')
  return name || 'The body'
}

/** A key that somebody sent, as a message shows it. */
function readable(key: string): string {
  const plain = key.replaceAll('~1', '/').replaceAll('~0', '~')
  return plain.length > MAX_KEY_LENGTH ? `${plain.slice(0, MAX_KEY_LENGTH)}…` : plain
}
