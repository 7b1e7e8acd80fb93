import { TimeZoneSelect } from '../ui/time-zone-select'
import type { InputProps } from './field-kind'

/** An input for a time zone. Without a value it is UTC. */
export const TimeZoneInput = ({ field: _, value, onChange, ...rest }: InputProps) => (
  <TimeZoneSelect
    {...rest}
    value={typeof value === 'string' ? value : 'UTC'}
    onChange={(zone) => onChange(zone ?? undefined)}
  />
)
