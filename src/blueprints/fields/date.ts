import { fieldType } from './type'

/** Whether such a day exists: the calendar turns 31 April into 1 May. */
export const isDate = (text: string) => {
  const day = /^\d{4}-\d{2}-\d{2}$/.test(text) ? new Date(`${text}T00:00:00Z`) : undefined
  return !!day && !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text)
}

/** A day: YYYY-MM-DD. */
export const date = fieldType<string>({
  check: (value) => (typeof value === 'string' && isDate(value) ? undefined : 'must be a date: YYYY-MM-DD'),
  key: (value) => value,
  parse: (text) => (isDate(text) ? text : undefined),
  bounds: 'value',
})
