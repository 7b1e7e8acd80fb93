import { Anchor, PasswordInput, Text } from '@mantine/core'
import { createContext, useContext, useState } from 'react'
import type { InputProps } from '../../fields/field-kind'
import { type Header, HeadersInput } from '../integrations/headers-input'

/** The names of the secrets that are stored. */
export const StoredSecrets = createContext<readonly string[]>([])

const useIsStored = ({ key }: InputProps['field']) => useContext(StoredSecrets).includes(key.split('/').at(-1)!)

/** Says that a secret is stored, and offers to remove it. */
function StoredNotice({ field, value, onChange }: InputProps) {
  if (!useIsStored(field)) return null
  return (
    <Text size="xs" c="dimmed">
      {value === null ? 'It will be removed. ' : 'It is set. What you type replaces it. '}
      <Anchor
        component="button"
        type="button"
        size="xs"
        underline="always"
        onClick={() => onChange(value === null ? undefined : null)}
      >
        {value === null ? 'Keep it' : 'Remove it'}
      </Anchor>
    </Text>
  )
}

/** An input for a secret, which nobody can read again; where two are allowed, with a comma between them. */
export function SecretInput(props: InputProps) {
  const { field, value, onChange, ...rest } = props
  const isStored = useIsStored(field)
  const change = (text: string) => {
    const several = field.multi && text.includes(',') ? text.split(',').map((each) => each.trim()) : undefined
    onChange(several ?? (text || undefined))
  }
  return (
    <div>
      <PasswordInput
        {...rest}
        autoComplete="new-password"
        placeholder={isStored && value !== null ? '••••••••' : undefined}
        value={Array.isArray(value) ? value.join(',') : String(value ?? '')}
        onChange={(event) => change(event.currentTarget.value)}
      />
      <StoredNotice {...props} />
    </div>
  )
}

/** An input for headers that are secret. */
export function HeadersSecretInput(props: InputProps) {
  const { description, error, onChange } = props
  const [headers, setHeaders] = useState<Header[]>([])
  const change = (next: Header[]) => {
    setHeaders(next)
    const named = next.filter(({ name }) => name).map(({ name, value }) => [name, value])
    onChange(named.length ? Object.fromEntries(named) : undefined)
  }
  return (
    <div>
      <HeadersInput headers={headers} onChange={change} />
      <Text size="xs" c={error ? 'red' : 'dimmed'}>
        {error ?? description}
      </Text>
      <StoredNotice {...props} />
    </div>
  )
}
