import { Select } from '@mantine/core'
import type { InputProps } from '../fields/field-kind'

const DAY_MS = 86_400_000
const CHOICES = [
  { value: '30', label: 'in 30 days' },
  { value: '90', label: 'in 90 days' },
  { value: '365', label: 'in a year' },
]

/** An input for when a token expires. Its value is a number of days as a text; without one, the token does not expire. */
export const ExpiryInput = ({ field: _, value, onChange, ...rest }: InputProps) => (
  <Select
    {...rest}
    data={CHOICES}
    placeholder="Never"
    clearable
    value={typeof value === 'string' ? value : null}
    onChange={(days) => onChange(days ?? undefined)}
  />
)

/** Returns the time after so many days. */
export const toExpiry = (days: unknown) => new Date(Date.now() + Number(days) * DAY_MS).toISOString()
