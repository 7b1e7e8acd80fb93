import { boolean } from './boolean'
import { date } from './date'
import { datetime } from './datetime'
import { decimal } from './decimal'
import { email, uniqueEmail } from './email'
import type { FieldType } from './field-type'
import { file } from './file'
import { integer } from './integer'
import { number } from './number'
import { object } from './object'
import { relation } from './relation'
import { string } from './string'
import { text } from './text'
import { time } from './time'
import { url } from './url'

/** All field types. A new one is a file in this folder and a line here. */
export const fieldTypes = {
  string,
  text,
  number,
  integer,
  decimal,
  boolean,
  date,
  datetime,
  time,
  object,
  file,
  email,
  url,
  relation,
}

export type FieldTypeName = keyof typeof fieldTypes
export const fieldTypeNames = Object.keys(fieldTypes) as FieldTypeName[]

/** The version of index keys: the keys of unique e-mail addresses are addresses since 1, and exact texts before. */
export const INDEX_KEYS = 1

/** Returns the type of a field whose index keys have a version. */
export const typeOfField = (
  { type, unique }: { type: FieldTypeName; unique?: boolean },
  indexKeys = INDEX_KEYS,
): FieldType => (type === 'email' && unique && indexKeys > 0 ? uniqueEmail : fieldTypes[type])
