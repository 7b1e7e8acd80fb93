import type { Blueprint, Field } from '../api/schema'
import { isDateField } from './chart-data'
import type { ChartInterval, ChartKind, NewChart } from './saved-chart'

/** The kinds as a person chooses them. */
export const CHART_KINDS: { value: ChartKind; label: string }[] = [
  { value: 'bar', label: 'Bars' },
  { value: 'line', label: 'Line' },
  { value: 'pie', label: 'Pie' },
  { value: 'number', label: 'Number' },
]

/** The intervals as a person chooses them; without one, dates are grouped by the day of the week. */
export const CHART_INTERVALS: { value: ChartInterval | ''; label: string }[] = [
  { value: 'hour', label: 'Hour' },
  { value: 'day', label: 'Day' },
  { value: 'week', label: 'Week' },
  { value: 'month', label: 'Month' },
  { value: 'quarter', label: 'Quarter' },
  { value: 'year', label: 'Year' },
  { value: '', label: 'Day of the week' },
]

const NUMERIC_TYPES: Field['type'][] = ['number', 'integer', 'decimal']
const UNGROUPABLE_TYPES: Field['type'][] = ['object', 'text', 'file']

type FieldOption = { value: string; label: string }

const toOption = ({ key, title }: Field): FieldOption => ({ value: key, label: title || key })

/** Returns the fields that can be added up. */
export const listSummableFields = (fields: Field[]): FieldOption[] =>
  fields.filter(({ type }) => NUMERIC_TYPES.includes(type)).map(toOption)

/** Returns the fields that can group, with the times that every entity has. */
export const listGroupingFields = (fields: Field[]): FieldOption[] => [
  ...fields.filter(({ type }) => !UNGROUPABLE_TYPES.includes(type)).map(toOption),
  { value: 'created', label: 'Time of creation' },
  { value: 'updated', label: 'Time of the last change' },
]

/** Returns the field that a new chart groups by: one with few values, else the time of creation. */
export function findBestGrouping(fields: Field[]): Pick<NewChart, 'groupBy' | 'interval'> {
  const withFewValues =
    fields.find((field) => field.enum || field.type === 'boolean') ?? fields.find(({ type }) => type === 'relation')
  if (withFewValues) return { groupBy: withFewValues.key }
  const date = fields.find(({ key, type }) => isDateField(key, { key, type }))
  return { groupBy: date?.key ?? 'created', interval: date ? 'month' : 'day' }
}

/** Returns what a chart shows in words, such as "Worth of contacts by stage". */
export function describeChart({ kind, sum, groupBy, interval }: NewChart, { name, fields }: Blueprint): string {
  const titleOf = (key: string) => fields.find((field) => field.key === key)?.title || key
  const measure = sum ? `${titleOf(sum)} of ${name.toLowerCase()}` : name
  const capital = measure.charAt(0).toUpperCase() + measure.slice(1)
  if (kind === 'number' || !groupBy) return capital
  const group = groupBy === 'updated' ? 'change' : groupBy === 'created' ? 'creation' : titleOf(groupBy)
  return `${capital} by ${interval ? `${interval} of ${group}` : group}`
}
