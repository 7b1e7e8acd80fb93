import { Autocomplete, PasswordInput } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { api, fetchData } from '../api/client'
import { queryClient } from '../api/queries'
import { toConnectionBody } from '../automation/connections/connection-values'
import { FieldForm, type FormField, type FormValues } from '../fields/field-form'
import type { InputProps } from '../fields/field-kind'
import { showNotice } from '../ui/notices'
import { SaveButton } from '../ui/save-button'
import { Screen } from '../ui/screen'
import classes from './source-form.module.css'

const FORM_ID = 'source-form'
const KNOWN_ADDRESSES = [
  'https://api.openai.com/v1',
  'https://openrouter.ai/api/v1',
  'https://api.mistral.ai/v1',
  'http://localhost:11434/v1',
]

const AddressInput = ({ field: _, value, onChange, ...rest }: InputProps) => (
  <Autocomplete
    {...rest}
    data={KNOWN_ADDRESSES}
    placeholder={KNOWN_ADDRESSES[0]}
    value={typeof value === 'string' ? value : ''}
    onChange={(typed) => onChange(typed || undefined)}
  />
)

const SecretInput = ({ field: _, value, onChange, ...rest }: InputProps) => (
  <PasswordInput
    {...rest}
    autoComplete="off"
    value={typeof value === 'string' ? value : ''}
    onChange={(event) => onChange(event.currentTarget.value || undefined)}
  />
)

/** The keys are the paths of the values in the request, so that the server's refusals stand at their fields. */
const fields: FormField[] = [
  { key: 'name', title: 'Name', type: 'string', required: true, default: 'OpenAI' },
  {
    ...{ key: 'metadata/apiUrl', title: 'Address', type: 'string', Input: AddressInput },
    description: 'Any server that speaks the API of OpenAI. The last of the list is Ollama on this machine.',
  },
  {
    ...{ key: 'authentication/token', title: 'Key', type: 'string', Input: SecretInput, isSecret: true },
    description: 'Stored encrypted, and never shown again. A server of your own may need none.',
  },
  {
    ...{ key: 'metadata/model', title: 'Default model', type: 'string' },
    description: 'For agents that name none, such as gpt-4o-mini.',
  },
  {
    ...{ key: 'metadata/embeddingModel', title: 'Model for embeddings', type: 'string' },
    description: 'With one, such as text-embedding-3-small, files are also found by meaning.',
  },
]

async function createSource(values: FormValues) {
  const source = await fetchData(
    api.POST('/api/integration-sources', {
      body: { name: String(values.name ?? ''), kind: 'openai', ...toConnectionBody(values) },
    }),
  )
  await queryClient.invalidateQueries({ queryKey: ['connections'] })
  const check = api.POST('/api/integration-sources/{id}/status', { params: { path: { id: source._id } } })
  return { source, check: await fetchData(check) }
}

/** A form that connects a server with models. */
export function NewSource() {
  const navigate = useNavigate()
  return (
    <Screen title="Connect an AI source" request={{ method: 'POST', path: '/api/integration-sources' }}>
      <div className={classes.form}>
        <FieldForm
          id={FORM_ID}
          fields={fields}
          draftKey="ai-source:"
          save={(_, values) => createSource(values)}
          onSaved={({ source, check }) => {
            showNotice(
              check.status === 'connected'
                ? `${source.name} is connected.`
                : `${source.name} is stored, but does not answer yet: ${check.message}`,
            )
            void navigate({ to: '/ai/agents/new' })
          }}
        />
        <footer className={classes.foot}>
          <SaveButton form={FORM_ID} label="Connect" />
        </footer>
      </div>
    </Screen>
  )
}
