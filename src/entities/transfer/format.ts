import { badRequest } from '../../core/problem'

export const CONTENT_TYPES = { ndjson: 'application/x-ndjson', csv: 'text/csv;charset=utf-8;header=present' }
export type Format = keyof typeof CONTENT_TYPES

/** Returns the format that a query asks for, or undefined. @throws 400 for an unknown format */
export function parseFormat(search: URLSearchParams): Format | undefined {
  const format = search.get('format')
  if (!format || format === 'undefined') return
  if (Object.hasOwn(CONTENT_TYPES, format)) return format as Format
  return badRequest({ path: 'format', message: 'format must be ndjson or csv.' })
}
