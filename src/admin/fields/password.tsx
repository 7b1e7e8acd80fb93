import { PasswordInput } from '@mantine/core'
import type { ComponentType } from 'react'
import type { InputProps } from './field-kind'

const passwordInput = (autoComplete: string): ComponentType<InputProps> =>
  function PasswordLine({ field: _, value, onChange, ...rest }) {
    return (
      <PasswordInput
        {...rest}
        autoComplete={autoComplete}
        value={typeof value === 'string' ? value : ''}
        onChange={(event) => onChange(event.currentTarget.value || undefined)}
      />
    )
  }

/** An input for a password that somebody chooses. Its field says `isSecret`. */
export const NewPasswordInput = passwordInput('new-password')

/** An input for a secret of another service, which the server never returns. Its field says `isSecret`. */
export const SecretInput = passwordInput('off')
