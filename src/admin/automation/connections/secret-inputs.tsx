import { Anchor, PasswordInput, Text } from '@mantine/core'
import { useState } from 'react'
import type { InputProps } from '../../fields/field-kind'
import { type Header, HeadersInput } from '../integrations/headers-input'

/** The value of a secret that is stored, which nobody can read. */
export const STORED_SECRET = true

/** Says that a secret is stored, and offers to remove it. */
function StoredNotice({ value, onChange }: InputProps) {
  const [isStored] = useState(value === STORED_SECRET)
  if (!isStored) return null
  const isKept = value !== undefined && value !== null
  return (
    <Text size="xs" c="dimmed">
      {isKept ? 'It is set. What you type replaces it. ' : 'It will be removed. '}
      <Anchor
        component="button"
        type="button"
        size="xs"
        underline="always"
        onClick={() => onChange(isKept ? undefined : STORED_SECRET)}
      >
        {isKept ? 'Remove it' : 'Keep it'}
      </Anchor>
    </Text>
  )
}

/** An input for a secret, which nobody can read again; where two are allowed, with a comma between them. */
export function SecretInput(props: InputProps) {
  const { field, value, onChange, ...rest } = props
  const [initial] = useState(value)
  const change = (text: string) => {
    const several = field.multi && text.includes(',') ? text.split(',').map((each) => each.trim()) : undefined
    onChange(several ?? (text || initial))
  }
  return (
    <div>
      <PasswordInput
        {...rest}
        autoComplete="new-password"
        placeholder={value === STORED_SECRET ? '••••••••' : undefined}
        value={Array.isArray(value) ? value.join(',') : typeof value === 'string' ? value : ''}
        onChange={(event) => change(event.currentTarget.value)}
      />
      <StoredNotice {...props} />
    </div>
  )
}

/** An input for headers that are secret. */
export function HeadersSecretInput(props: InputProps) {
  const { description, error, value, onChange } = props
  const [initial] = useState(value)
  const [headers, setHeaders] = useState<Header[]>([])
  const change = (next: Header[]) => {
    setHeaders(next)
    const entries = next.filter(({ name }) => name).map(({ name, value }) => [name, value])
    onChange(entries.length ? Object.fromEntries(entries) : initial)
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
