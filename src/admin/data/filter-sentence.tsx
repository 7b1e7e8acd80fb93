import { useQueries } from '@tanstack/react-query'
import { readList } from '../../core/list-text'
import type { FormField } from '../fields/field-form'
import { describeOperator, type Filter, fromPattern, hasSeveralValues } from './filters'
import { entityLabelQuery, userLabelQuery, workspaceLabelQuery } from './label-queries'

const grouped = new Intl.NumberFormat(undefined, { maximumFractionDigits: 12 })
const moment = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' })
const day = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeZone: 'UTC' })

/** Returns a value as people write it. */
function formatValue(field: FormField | undefined, text: string): string {
  const time = Date.parse(text)
  if (field?.type === 'boolean') return text === 'true' ? 'yes' : text === 'false' ? 'no' : text
  if (field?.type === 'date' && !Number.isNaN(time)) return day.format(time)
  if (field?.type === 'datetime' && !Number.isNaN(time)) return moment.format(time)
  const isNumber = field && ['number', 'integer', 'decimal'].includes(field.type)
  return isNumber && text !== '' && Number.isFinite(Number(text)) ? grouped.format(Number(text)) : text
}

/** The query for what a value refers to. */
function toLabelQuery(field: FormField | undefined, value: string) {
  if (field?.type === 'relation' && field.target) return entityLabelQuery(field.target, value)
  if (field?.key === 'user') return userLabelQuery(value)
  if (field?.key === 'workspace') return workspaceLabelQuery(value)
  return undefined
}

/** Returns a condition as a sentence: "worth is at least 50 000". */
export function useFilterSentence({ name, operator, value }: Filter, field: FormField | undefined): string {
  const values =
    operator === '$like' ? [fromPattern(value)] : hasSeveralValues(operator) ? (readList(value) ?? [value]) : [value]
  const labels = useQueries({
    queries: values.map((each) => {
      const query = toLabelQuery(field, each)
      return {
        queryKey: (query?.queryKey ?? ['no label']) as readonly unknown[],
        queryFn: (query?.queryFn ?? (() => null)) as () => Promise<string | null>,
        enabled: !!query && !!each,
      }
    }),
  })
  const title = field?.title || name
  if (operator === '$exists') return value === 'false' ? `${title} is empty` : `${title} has a value`
  const valueTexts = values.map((each, n) => labels[n]?.data ?? formatValue(field, each))
  return `${title} ${describeOperator(operator, field)} ${valueTexts.join(', ')}`
}
