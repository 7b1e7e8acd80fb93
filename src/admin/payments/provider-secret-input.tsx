import { PasswordInput } from '@mantine/core'
import type { InputProps } from '../fields/field-kind'

/** An input for a secret that the server never returns: empty keeps the stored one. */
export const SecretInput = ({ field: _, value, onChange, ...rest }: InputProps) => (
  <PasswordInput
    {...rest}
    autoComplete="off"
    placeholder="Unchanged while it is empty"
    value={typeof value === 'string' ? value : ''}
    onChange={(event) => onChange(event.currentTarget.value || undefined)}
  />
)
