import { Button, Group, MultiSelect, Select } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { api, fetchData } from '../api/client'
import { sendWithProof } from '../api/proof'
import { FieldForm, type FormField, type FormValues } from '../fields/field-form'
import type { InputProps } from '../fields/field-kind'
import { ownWorkspacesQuery } from '../people/workspace-queries'
import { refetchAccount } from './account-queries'
import { ExpiryInput, toExpiry } from './expiry-input'

const FORM_ID = 'new-api-token'

/** The areas of the API that scopes name, as docs/reference/permissions.md lists them. */
const AREAS = [
  ...['accounts', 'ai', 'blocks', 'blueprints', 'components', 'configurations', 'encrypted', 'entities', 'events'],
  ...['integrations', 'lambdas', 'mcp', 'payments', 'plugin-calls', 'plugins', 'users', 'webhooks', 'workspaces'],
]
const SCOPES = AREAS.flatMap((area) => [`${area}:read`, `${area}:write`])

const ScopesInput = ({ field: _, value, onChange, ...rest }: InputProps) => (
  <MultiSelect
    {...rest}
    data={SCOPES}
    searchable
    placeholder={Array.isArray(value) && value.length ? undefined : 'Everything that you may do'}
    value={Array.isArray(value) ? value.map(String) : []}
    onChange={(scopes) => onChange(scopes.length ? scopes : undefined)}
  />
)

function WorkspaceInput({ field: _, value, onChange, ...rest }: InputProps) {
  const { data: workspaces = [] } = useQuery(ownWorkspacesQuery)
  return (
    <Select
      {...rest}
      data={workspaces.map(({ _id, name }) => ({ value: _id, label: name }))}
      placeholder="Any"
      clearable
      searchable
      value={typeof value === 'string' ? value : null}
      onChange={(workspace) => onChange(workspace ?? undefined)}
    />
  )
}

const fields: FormField[] = [
  { key: 'nickname', title: 'Name', type: 'string', required: true, description: 'Where you use the token.' },
  {
    key: 'scopes',
    title: 'Scopes',
    type: 'string',
    multi: true,
    description: 'Areas that the token can read or write.',
    Input: ScopesInput,
  },
  { key: 'expiresAt', title: 'Expires', type: 'string', Input: ExpiryInput },
  {
    key: 'workspace',
    title: 'Workspace',
    type: 'string',
    description: 'The token works only there.',
    Input: WorkspaceInput,
  },
]

async function issueToken({ nickname, scopes, expiresAt, workspace }: FormValues): Promise<string> {
  const body = {
    nickname: String(nickname ?? ''),
    ...(scopes !== undefined && { scopes: scopes as string[] }),
    ...(expiresAt !== undefined && { expiresAt: toExpiry(expiresAt) }),
    ...(workspace !== undefined && { workspace: String(workspace) }),
  }
  const { token } = await sendWithProof((proof) =>
    fetchData(api.POST('/api/me/api-tokens', { body: { ...body, ...proof } })),
  )
  await refetchAccount()
  return token
}

/** A form for a new API token: its name, what it may do, until when, and where. */
export const NewApiTokenForm = ({
  onIssued,
  onCancel,
}: {
  onIssued: (token: string) => void
  onCancel: () => void
}) => (
  <>
    <FieldForm
      id={FORM_ID}
      fields={fields}
      draftKey="api-token"
      save={(_, values) => issueToken(values)}
      onSaved={onIssued}
    />
    <Group gap="xs" my="md">
      <Button type="submit" form={FORM_ID}>
        Create token
      </Button>
      <Button variant="subtle" color="gray" onClick={onCancel}>
        Cancel
      </Button>
    </Group>
  </>
)
