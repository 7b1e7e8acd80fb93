import { Checkbox, Stack } from '@mantine/core'
import type { OperatorToken } from '../api/schema'
import type { InputProps } from '../fields/field-kind'

export type OperatorScope = OperatorToken['scopes'][number]

/** What each scope allows. */
const SCOPES: Record<OperatorScope, { label: string; description: string }> = {
  read: { label: 'Read', description: 'See all lists: tenants, backups, tasks, health, settings, the log.' },
  tenants: { label: 'Tenants', description: 'Create, suspend, resume and delete tenants, and set their limits.' },
  hosts: { label: 'Hosts', description: 'Set the hosts of tenants, and order certificates.' },
  backups: { label: 'Backups', description: 'Back up, restore and copy tenants.' },
  moves: { label: 'Moves', description: 'Move tenants to other homes.' },
  support: { label: 'Support', description: 'Sign in to a tenant as an administrator.' },
}

/** Returns scopes as a text. */
export const listScopes = (scopes: OperatorScope[]) => scopes.map((scope) => SCOPES[scope].label).join(', ')

/** An input for the scopes of a token. */
export const ScopesInput = ({ field: _, value, onChange, onBlur: _onBlur, autoFocus: _focus, ...rest }: InputProps) => (
  <Checkbox.Group
    {...rest}
    value={Array.isArray(value) ? value.map(String) : []}
    onChange={(scopes) => onChange(scopes.length ? scopes : undefined)}
  >
    <Stack gap="xs" mt="xs">
      {Object.entries(SCOPES).map(([scope, words]) => (
        <Checkbox key={scope} value={scope} {...words} />
      ))}
    </Stack>
  </Checkbox.Group>
)
