import { PasswordInput } from '@mantine/core'
import type { InputProps } from './field-kind'

/** An input for a password that somebody chooses. A form that has it says `isSecret`. */
export const NewPasswordInput = ({ field: _, value, onChange, ...rest }: InputProps) => (
  <PasswordInput
    {...rest}
    autoComplete="new-password"
    value={typeof value === 'string' ? value : ''}
    onChange={(event) => onChange(event.currentTarget.value || undefined)}
  />
)
