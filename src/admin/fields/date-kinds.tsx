import { TextInput } from '@mantine/core'
import { IconCalendar, IconCalendarTime, IconClock } from '@tabler/icons-react'
import { ORDER_OPERATORS } from '../data/operators'
import { RelativeTime } from '../ui/relative-time'
import type { FieldKind, InputProps } from './field-kind'
import { valueListInput } from './list-input'
import { TextCell } from './text-cell'
import { lineInput } from './text-input'

const mediumDate = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeZone: 'UTC' })

const DateInput = lineInput('date')
const TimeInput = lineInput('time')

export const date: FieldKind = {
  label: 'Date',
  icon: IconCalendar,
  operators: ORDER_OPERATORS,
  width: 130,
  Cell: ({ value }) => {
    const day = Date.parse(String(value))
    return <span title={String(value)}>{Number.isNaN(day) ? String(value) : mediumDate.format(day)}</span>
  },
  Input: DateInput,
  ListInput: valueListInput(DateInput),
}

export const time: FieldKind = {
  label: 'Time of day',
  icon: IconClock,
  operators: ORDER_OPERATORS,
  width: 110,
  Cell: TextCell,
  Input: TimeInput,
  ListInput: valueListInput(TimeInput),
}

/** Returns a moment as the local time that the input of the browser takes, or an empty text. */
function toLocalInput(value: unknown): string {
  const moment = new Date(String(value ?? ''))
  if (Number.isNaN(moment.getTime())) return ''
  return new Date(moment.getTime() - moment.getTimezoneOffset() * 60_000).toISOString().slice(0, 19)
}

/** Returns a local time as an ISO moment, or undefined for what is no time. */
function toIsoMoment(local: string): string | undefined {
  const moment = new Date(local)
  return Number.isNaN(moment.getTime()) ? undefined : moment.toISOString()
}

/** Without it, browsers take years of six digits, which are no dates for JavaScript. */
const LATEST_MOMENT = '9999-12-31T23:59:59'

const MomentInput = ({ field: _, value, onChange, ...rest }: InputProps) => (
  <TextInput
    {...rest}
    type="datetime-local"
    step={1}
    max={LATEST_MOMENT}
    value={toLocalInput(value)}
    onChange={({ currentTarget: { value: local } }) => onChange(toIsoMoment(local))}
  />
)

export const datetime: FieldKind = {
  label: 'Date and time',
  icon: IconCalendarTime,
  operators: ORDER_OPERATORS,
  width: 150,
  Cell: ({ value }) => <RelativeTime time={String(value)} />,
  Input: MomentInput,
  ListInput: valueListInput(MomentInput),
}
