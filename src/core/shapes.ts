import {
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
import { listFieldErrors } from './validation'

/** The words every area's shapes are written in. `t.Integer` and `t.Date` also accept strings and slow answers down. */
export const id = t.String({ minLength: 1, maxLength: 128 })
export const text = (maxLength: number, minLength = 0) => t.String({ minLength, maxLength })

/** Text of a pattern; `message` is the sentence for what the pattern refuses. */
export const textMatching = (pattern: string, message: string, options: StringOptions = {}) =>
  t.String({ ...options, pattern, ...withMessage(message) })

/** The whole address of a page or a server. */
export const webAddress = (options: StringOptions = {}) =>
  textMatching('^https?://', 'Write a whole address that begins with https:// or http://.', options)

/** Options of a shape for whose pattern, or whose names, callers are told this sentence. */
export const withMessage = (message: string): object => ({ [ERROR_MESSAGE]: message })

/** An object all of whose keys count: one that it does not name is refused. */
export const strictObject = <Properties extends TProperties>(properties: Properties, options: ObjectOptions = {}) =>
  t.Object(properties, { ...options, ...withKeyPolicy({ strict: true }) })

/** Options of a shape of an object that say how its keys are judged. */
export const withKeyPolicy = (policy: KeyPolicy): object => ({ [KEY_POLICY]: policy })

/** A line that a person wrote: no control characters, and where it may not be empty, not only blanks. */
export const line = (maxLength: number, minLength = 0) =>
  minLength
    ? textMatching('^(?=.*\\S)[^\\u0000-\\u001f\\u007f]*$', NONBLANK_LINE_MESSAGE, { minLength, maxLength })
    : textMatching('^[^\\u0000-\\u001f\\u007f]*$', LINE_MESSAGE, { minLength, maxLength })
const LINE_MESSAGE = 'Write one line of text, without control characters.'
const NONBLANK_LINE_MESSAGE = 'Write one line of text that is not blank, without control characters.'
/** A role of users, as lists of roles name it. */
export const roleName = textMatching(
  '^[^,\\u0000-\\u001f\\u007f]+$',
  'Write the role without commas and control characters.',
  { minLength: 1, maxLength: 100 },
)
export const time = t.String({ description: 'ISO 8601, UTC, with milliseconds' })

/** Any object. As a record of anything it would be looked through, key by key, more than once. */
TypeRegistry.Set('Free', (_, value) => value !== null && typeof value === 'object' && !Array.isArray(value))
export const jsonObject = t.Unsafe<Record<string, unknown>>({
  ...{ [Kind]: 'Free', type: 'object', additionalProperties: true },
  description: 'free-form',
})
export const IdParams = t.Object({ id: t.String() })
export const SuccessShape = t.Object({ success: t.Literal(true) })

/** Any part of a thing. Input shapes carry no defaults, or a change would reset what it does not mention. What a thing needs as a whole (`x-schema`), a part of it does not. */
export const partialOf = <Fields extends TProperties>(thing: TObject<Fields>) =>
  t.Partial(thing, { 'x-schema': undefined })

/**
 * A body that may be left out, or be `null`. It is left open, because Elysia closes what is not an object alone, and then does
 * not take out what the shape does not name.
 */
export const optionalBody = <Fields extends TProperties>({ properties }: TObject<Fields>) =>
  t.Optional(t.Nullable(t.Object(properties, { additionalProperties: true })))

/** What a delete answers. */
export const success = { success: true } as const

/** Nothing is told as `null`: left to itself, Elysia would answer without a body. */
export const toJsonOrNull = <Thing>(thing: Thing | null) => (thing ?? Response.json(null)) as Thing | null

/** A flag in a query, which may be left out; clients send what they lack as nothing, or as this word. */
export const flag = t.Optional(t.Union(['true', '1', 'false', '0', '', 'undefined'].map((value) => t.Literal(value))))
export const isTrue = (value: string | null | undefined) => value === 'true' || value === '1'

/** Whether a text is a word for true or false. */
export const isFlag = (value: string) => /^(true|1|false|0)$/.test(value)

/** What a query says of something; clients send what they lack as nothing, or as this word. */
export const parseOptional = (value: string | null | undefined) => (value && value !== 'undefined' ? value : undefined)

/** A flag in a query, where lists have one; undefined where nothing is said. @throws 400 for another word */
export function parseFlag<Name extends string>(query: { [name in Name]?: string }, name: Name): boolean | undefined {
  const value = parseOptional(query[name])
  if (value && !isFlag(value)) badRequest({ path: name, message: `${name} must be true or false.` })
  return value === undefined ? undefined : isTrue(value)
}

/**
 * What came by another way than HTTP, checked like a body, without what the shape does not name: that goes first, for shapes
 * of routes are closed as soon as one is asked. @throws 400 with every flaw
 */
export function parseWithShape<Shape extends TSchema>(shape: Shape, value: unknown): Static<Shape> {
  const cleaned = Value.Clean(shape, structuredClone(value))
  const errors = listFieldErrors(shape, cleaned)
  if (errors.length) badRequest(...errors)
  return cleaned as Static<Shape>
}
