import { PasswordInput } from '@mantine/core'
import type { InputProps } from '../fields/field-kind'

/** An input for a secret, which the server never returns. */
export const SecretInput = ({ field: _, value, onChange, ...rest }: InputProps) => (
  <PasswordInput
    {...rest}
    autoComplete="off"
    value={typeof value === 'string' ? value : ''}
    onChange={(event) => onChange(event.currentTarget.value || undefined)}
  />
)
