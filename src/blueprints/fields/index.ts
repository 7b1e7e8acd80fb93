import { boolean } from './boolean'
import { date } from './date'
import { datetime } from './datetime'
import { decimal } from './decimal'
import { email } from './email'
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
