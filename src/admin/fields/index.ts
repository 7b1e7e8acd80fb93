import { boolean } from './boolean'
import { date, datetime, time } from './date-kinds'
import type { FieldKind, FieldType } from './field-kind'
import { file } from './file'
import { email, url } from './links'
import { numberKind } from './number-kind'
import { object } from './object'
import { relation } from './relation'
import { string } from './string'
import { text } from './text'

/** All types of fields, by the names that blueprints use. */
export const fieldKinds: Record<FieldType, FieldKind> = {
  string,
  text,
  number: numberKind('Number', false),
  integer: numberKind('Whole number', true),
  decimal: numberKind('Exact decimal', false, true),
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
