import { Kind, OptionalKind, type TSchema } from '@sinclair/typebox'
import { type ValueError, ValueErrorType } from '@sinclair/typebox/errors'
import { Value } from '@sinclair/typebox/value'
import { ERROR_MESSAGE } from './schema-annotations'

/** An error in the input, and its place: a JSON pointer, or the name of a query parameter. */
export type FieldError = { path: string; message: string }

export const MAX_FIELD_ERRORS = 100
const MAX_SHOWN_KEY_LENGTH = 60 // characters of a key in a message

/** Returns the validation errors of a value, one for each place. `at` is the prefix of the paths. */
export const listFieldErrors = (shape: TSchema, value: unknown, at = ''): FieldError[] =>
  toFieldErrors(Value.Errors(shape, value)).map(({ path, message }) => ({ path: at + path, message }))

/**
 * Returns TypeBox's errors as messages that never show the value, which may be a secret. Of several errors about one
 * place the first is returned.
 */
export function toFieldErrors(errors: Iterable<ValueError>): FieldError[] {
  const errorByPath = new Map<string, FieldError>()
  for (const { path, message } of iterateFieldErrors(errors)) {
    if (!errorByPath.has(path)) errorByPath.set(path, { path, message })
    if (errorByPath.size >= MAX_FIELD_ERRORS) break
  }
  return [...errorByPath.values()]
}

function* iterateFieldErrors(errors: Iterable<ValueError>): Generator<FieldError> {
  for (const error of errors)
    if (error.type === ValueErrorType.Union && error.value !== undefined) yield* iterateUnionErrors(error)
    else yield { path: error.path, message: toMessage(error) }
}

/** Values that some clients send for a missing value. */
const EMPTY_WORDS = ['', 'undefined']

type UnionBranch = { schema: TSchema; errors: ValueError[] }

/** Of a union, yields the errors of the branch that the value is closest to. */
function* iterateUnionErrors({ schema, path, value, errors }: ValueError): Generator<FieldError> {
  const variants = (schema.anyOf as TSchema[]).map((branch, n) => ({ schema: branch, errors: [...(errors[n] ?? [])] }))
  const branches = variants.filter(({ schema }) => schema[Kind] !== 'Null' && !EMPTY_WORDS.includes(schema.const))
  const toError = (message: string) => ({ path, message })
  if (branches.length > 1 && branches.every(({ schema }) => 'const' in schema))
    return yield toError(unknownValueMessage(path, branches))
  const candidates = branches.length > 1 ? branches.filter(({ schema }) => isOfType(schema, value)) : branches
  if (!candidates.length)
    return yield toError(`${fieldNameOf(path)} must be ${branches.map(describeExpected).join(' or ')}.`)
  const closest = candidates.filter(({ errors }) => !errors.some(isLiteral))
  if (closest.length) return yield* iterateFieldErrors(closest.toSorted((a, b) => depthOf(b) - depthOf(a))[0]!.errors)
  const literals = candidates.flatMap(({ errors }) => errors.find(isLiteral) ?? [])
  const [first] = literals
  if (!first) return
  const alternatives = literals.filter(({ path }) => path === first.path).map(({ schema }) => ({ schema }))
  yield {
    path: first.path,
    message: first.value === undefined ? toMessage(first) : unknownValueMessage(first.path, alternatives),
  }
}

const isLiteral = ({ type, schema }: ValueError) =>
  type === ValueErrorType.Literal || (type === ValueErrorType.ObjectRequiredProperty && 'const' in schema)
const depthOf = ({ errors }: UnionBranch) => Math.max(...errors.map(({ path }) => path.length))

const unknownValueMessage = (path: string, words: { schema: TSchema }[]) =>
  words.length === 1
    ? `${fieldNameOf(path)} must be ${describeExpected(words[0]!)}.`
    : `Unknown ${fieldNameOf(path)}. Use one of: ${words.map(({ schema }) => schema.const).join(', ')}.`

function isOfType({ type, const: word }: TSchema, value: unknown): boolean {
  if (word !== undefined) return value === word
  if (type === 'array') return Array.isArray(value)
  if (type === 'object') return typeof value === 'object' && value !== null && !Array.isArray(value)
  return typeof value === type
}

function toMessage({ type, schema, path, value }: ValueError): string {
  const name = fieldNameOf(path)
  if (path && value === undefined) return `${name} is required.`
  switch (type) {
    case ValueErrorType.StringPattern:
      return (schema[ERROR_MESSAGE as never] as string | undefined) ?? `${name} has an invalid format.`
    case ValueErrorType.StringFormat:
      return FORMAT_MESSAGES[schema.format as keyof typeof FORMAT_MESSAGES] ?? `${name} has an invalid format.`
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
      return tooManyItemsMessage(path, schema.maxItems)
    case ValueErrorType.ArrayUniqueItems:
      return `${name} must not contain the same item twice.`
    case ValueErrorType.ObjectMaxProperties:
      return tooManyKeysMessage(path, schema.maxProperties)
    case ValueErrorType.ObjectAdditionalProperties:
      return (schema[ERROR_MESSAGE as never] as string | undefined) ?? `${name} is not allowed here.`
    case ValueErrorType.Literal:
      if (schema[OptionalKind as never]) return `${name} must be ${schema.const} or omitted.`
  }
  if (!path && schema.type === 'object') return 'Send a JSON object.'
  return `${name} must be ${describeExpected({ schema })}.`
}

export const tooManyItemsMessage = (path: string, maxItems?: number) =>
  `${fieldNameOf(path)} must have at most ${maxItems} items.`
export const tooManyKeysMessage = (path: string, maxKeys?: number) =>
  `${fieldNameOf(path)} must have at most ${maxKeys} keys.`

/** Error messages for the formats that shapes use. */
export const FORMAT_MESSAGES = {
  'date-time': 'Write the time as 2030-01-31T12:00:00Z.',
  'time-zone': 'There is no such time zone. Use an IANA name such as Europe/Lisbon.',
}

/** Returns what a shape accepts, for an error message. */
function describeExpected({ schema }: { schema: TSchema }): string {
  if ('const' in schema) return JSON.stringify(schema.const)
  if (Array.isArray(schema.anyOf))
    return schema.anyOf.map((branch: TSchema) => describeExpected({ schema: branch })).join(' or ')
  if (schema.type === 'number' || schema.type === 'integer') return describeNumber(schema)
  return TYPE_NAMES[schema.type as keyof typeof TYPE_NAMES] ?? 'another value'
}

const TYPE_NAMES = { string: 'text', boolean: 'true or false', array: 'a list', object: 'an object', null: 'null' }

function describeNumber({ minimum, maximum = Number.MAX_SAFE_INTEGER, exclusiveMinimum, multipleOf }: TSchema): string {
  const number = multipleOf === 1 ? 'a whole number' : 'a number'
  const most = maximum < Number.MAX_SAFE_INTEGER ? maximum : undefined
  if (exclusiveMinimum !== undefined)
    return `${number} above ${exclusiveMinimum}${most === undefined ? '' : `, at most ${most}`}`
  if (minimum !== undefined && most !== undefined) return `${number} from ${minimum} to ${most}`
  if (minimum !== undefined) return `${number}, at least ${minimum}`
  return most === undefined ? number : `${number}, at most ${most}`
}

/** Returns the name of a place in messages, such as `fields[0].key`. */
export function fieldNameOf(path: string): string {
  const keys = path.split('/').slice(1)
  const name = keys.map((key, n) => (/^\d+$/.test(key) ? `[${key}]` : `${n ? '.' : ''}${toReadableKey(key)}`)).join('')
  return name || 'The body'
}

/** Returns a key of the input as messages show it. */
function toReadableKey(key: string): string {
  const plain = key.replaceAll('~1', '/').replaceAll('~0', '~')
  return plain.length > MAX_SHOWN_KEY_LENGTH ? `${plain.slice(0, MAX_SHOWN_KEY_LENGTH)}…` : plain
}
