import { invalid } from '../../core/problem'

export const TYPES = { ndjson: 'application/x-ndjson', csv: 'text/csv;charset=utf-8;header=present' }
export type Format = keyof typeof TYPES

/** The format that a query asks for. @throws 400 for one that is not known */
export function formatOf(search: URLSearchParams): Format | undefined {
  const format = search.get('format')
  if (!format || format === 'undefined') return
  if (Object.hasOwn(TYPES, format)) return format as Format
  return invalid({ path: 'format', message: 'The format is ndjson or csv.' })
}
