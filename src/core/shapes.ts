import {
  FormatRegistry,
  Kind,
  type ObjectOptions,
  type Static,
  type StringOptions,
  type TObject,
  type TProperties,
  type TSchema,
  TypeRegistry,
} from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { t } from 'elysia'
import { badRequest } from './problem'
import { ERROR_MESSAGE, KEY_POLICY, type KeyPolicy } from './schema-annotations'
import { findTimeZone } from './time-zone'
import { listFieldErrors } from './validation'

/**
 * The building blocks of all areas' shapes. `t.Integer` and `t.Date` are not used: they also accept strings and slow
 * responses down.
 */
export const id = t.String({ minLength: 1, maxLength: 128 })
export const text = (maxLength: number, minLength = 0) => t.String({ minLength, maxLength })

/** Returns a text that matches a pattern; `message` is the error for a text that does not. */
export const textMatching = (pattern: string, message: string, options: StringOptions = {}) =>
  t.String({ ...options, pattern, ...withMessage(message) })

/** Returns the shape of an absolute URL of a page or a server. */
export const webAddress = (options: StringOptions = {}) =>
  textMatching('^https?://', 'Write a whole address that begins with https:// or http://.', options)

/** Returns options of a shape: the error message for a value that its pattern does not match. */
export const withMessage = (message: string): object => ({ [ERROR_MESSAGE]: message })

/** Returns an object shape that refuses keys which it does not name. */
export const strictObject = <Properties extends TProperties>(properties: Properties, options: ObjectOptions = {}) =>
  t.Object(properties, { ...options, ...withKeyPolicy({ strict: true }) })

/** Returns options of an object shape: the policy for its keys. */
export const withKeyPolicy = (policy: KeyPolicy): object => ({ [KEY_POLICY]: policy })

/**
 * Returns the shape of a line of text without control characters. Where it may not be empty, it may not be blank
 * either.
 */
export const line = (maxLength: number, minLength = 0) =>
  minLength
    ? textMatching('^(?=.*\\S)[^\\u0000-\\u001f\\u007f]*$', NONBLANK_LINE_MESSAGE, { minLength, maxLength })
    : textMatching('^[^\\u0000-\\u001f\\u007f]*$', LINE_MESSAGE, { minLength, maxLength })
const LINE_MESSAGE = 'Write one line of text, without control characters.'
const NONBLANK_LINE_MESSAGE = 'Write one line of text that is not blank, without control characters.'
/** The name of a role, without commas because roles are also listed in one text. */
export const roleName = textMatching(
  '^[^,\\u0000-\\u001f\\u007f]+$',
  'Write the role without commas and control characters.',
  { minLength: 1, maxLength: 100 },
)
export const time = t.String({ description: 'ISO 8601, UTC, with milliseconds' })

FormatRegistry.Set('time-zone', (name) => findTimeZone(name) !== undefined)
/** Returns the shape of the IANA name of a time zone. */
export const timeZoneName = (description: string) => t.String({ format: 'time-zone', maxLength: 64, description })

/** Any object. A record of unknown values would be visited key by key, more than once. */
TypeRegistry.Set('Free', (_, value) => value !== null && typeof value === 'object' && !Array.isArray(value))
export const jsonObject = t.Unsafe<Record<string, unknown>>({
  ...{ [Kind]: 'Free', type: 'object', additionalProperties: true },
  description: 'free-form',
})
export const IdParams = t.Object({ id: t.String() })
export const SuccessShape = t.Object({ success: t.Literal(true) })

/**
 * Returns a shape with all properties optional. Input shapes have no defaults, because a change would reset what it
 * does not mention. Rules for the whole object (`x-schema`) do not apply to a part of it.
 */
export const partialOf = <Fields extends TProperties>(thing: TObject<Fields>) =>
  t.Partial(thing, { 'x-schema': undefined })

/**
 * Returns the shape of a body that may be omitted or `null`. It accepts additional properties, because Elysia closes a
 * union and then refuses them instead of removing them.
 */
export const optionalBody = <Fields extends TProperties>({ properties }: TObject<Fields>) =>
  t.Optional(t.Nullable(t.Object(properties, { additionalProperties: true })))

/** The response of a delete. */
export const success = { success: true } as const

/** Returns `null` as JSON: Elysia would send an empty body for it. */
export const toJsonOrNull = <Thing>(thing: Thing | null) => (thing ?? Response.json(null)) as Thing | null

/** A flag in a query, which may be omitted. Some clients send a missing value as an empty text or as `undefined`. */
export const flag = t.Optional(t.Union(['true', '1', 'false', '0', '', 'undefined'].map((value) => t.Literal(value))))
export const isTrue = (value: string | null | undefined) => value === 'true' || value === '1'

/** Whether a text is a word for true or false. */
export const isFlag = (value: string) => /^(true|1|false|0)$/.test(value)

/**
 * Returns a value of a query, or undefined for an empty text and `undefined`, which some clients send for a missing
 * value.
 */
export const parseOptional = (value: string | null | undefined) => (value && value !== 'undefined' ? value : undefined)

/** Returns a flag of a query, or undefined when it is omitted. @throws 400 INVALID_INPUT for another word */
export function parseFlag<Name extends string>(query: { [name in Name]?: string }, name: Name): boolean | undefined {
  const value = parseOptional(query[name])
  if (value && !isFlag(value)) badRequest({ path: name, message: `${name} must be true or false.` })
  return value === undefined ? undefined : isTrue(value)
}

/**
 * Checks a value that did not come as a body, and returns it without the properties that the shape does not name. These
 * are removed first, because Elysia closes the shapes of routes when the first request arrives.
 * @throws 400 INVALID_INPUT with all errors
 */
export function parseWithShape<Shape extends TSchema>(shape: Shape, value: unknown): Static<Shape> {
  const cleaned = Value.Clean(shape, structuredClone(value))
  const errors = listFieldErrors(shape, cleaned)
  if (errors.length) badRequest(...errors)
  return cleaned as Static<Shape>
}
