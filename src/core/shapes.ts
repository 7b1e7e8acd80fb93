import type { TObject, TProperties } from '@sinclair/typebox'
import { t } from 'elysia'

/** The words every area's shapes are written in. `t.Integer` and `t.Date` also accept strings and slow answers down. */
export const id = t.String({ minLength: 1, maxLength: 128 })
export const text = (maxLength: number, minLength = 0) => t.String({ minLength, maxLength })

/** A line that a person wrote: no control characters. */
export const line = (maxLength: number, minLength = 0) =>
  t.String({ minLength, maxLength, pattern: '^[^\\u0000-\\u001f\\u007f]*$' })
export const time = t.String({ description: 'ISO 8601, UTC, with milliseconds' })
export const free = t.Record(t.String(), t.Unknown(), { description: 'free-form' })
export const one = t.Object({ id: t.String() })
export const done = t.Object({ success: t.Literal(true) })

/** Any part of a thing. Input shapes carry no defaults, or a change would reset what it does not mention. */
export const change = <Fields extends TProperties>(thing: TObject<Fields>) => t.Partial(thing)

/** What a delete answers. */
export const success = { success: true } as const
