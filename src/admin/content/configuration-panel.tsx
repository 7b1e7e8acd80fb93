import { Button, Text } from '@mantine/core'
import { IconTrash } from '@tabler/icons-react'
import { queryOptions, useQuery } from '@tanstack/react-query'
import { useNavigate, useParams } from '@tanstack/react-router'
import { api, fetchData } from '../api/client'
import { ApiProblem } from '../api/problem'
import { queryClient } from '../api/queries'
import type { NewConfiguration } from '../api/schema'
import { FieldForm, type FormField, type FormValues } from '../fields/field-form'
import { JsonInput } from '../fields/json-input'
import { confirmAction } from '../ui/confirmation'
import { showNotice, showProblem } from '../ui/notices'
import { ProblemMessage } from '../ui/problem-message'
import { SaveButton } from '../ui/save-button'
import { SidePanel } from '../ui/side-panel'
import classes from './configurations.module.css'
import { HostStates } from './host-states'
import { requireJsonObject } from './json-object'
import { knownConfigurations, mayBePublic } from './known-configurations'

const FORM_ID = 'configuration-form'
const APP_KEY = 'app-configuration'

/** A configuration as its form shows it. One of the server that is not set yet is empty. */
const configurationQuery = (key: string) =>
  queryOptions({
    queryKey: ['configurations', 'one', key],
    queryFn: async (): Promise<FormValues> => {
      const path = { key }
      if (key === APP_KEY) return fetchData(api.GET('/api/configurations/app-configuration'))
      return fetchData(api.GET('/api/configurations/{key}', { params: { path } })).catch((error) => {
        if (error instanceof ApiProblem && error.status === 404 && key in knownConfigurations) return { metadata: {} }
        throw error
      })
    },
  })

const metadataField: FormField = {
  ...{ key: 'metadata', title: 'Values', type: 'object', required: true, default: {}, Input: JsonInput },
}
const publicField: FormField = {
  ...{ key: 'public', title: 'Everybody may read it', type: 'boolean', required: true, default: false },
}
const descriptionField: FormField = { key: 'description', title: 'Description', type: 'string' }
const kindField: FormField = {
  key: 'kind',
  title: 'Kind',
  type: 'string',
  description: 'A word of your own to sort them by.',
}
const keyField: FormField = {
  ...{ key: 'key', title: 'Key', type: 'string', required: true },
  description: 'The name in addresses: lower-case letters, digits and hyphens.',
}
const ownFields = [publicField, descriptionField, kindField, metadataField]

const fieldsOf = (key: string): FormField[] =>
  key === APP_KEY ? [metadataField] : mayBePublic(key) ? ownFields : [descriptionField, metadataField]

/** A change only names what differs: keys that were removed are null. */
function toMetadataChange(before: unknown, after: Record<string, unknown>) {
  const removed = Object.keys((before as object | undefined) ?? {}).filter((key) => !(key in after))
  return { ...after, ...Object.fromEntries(removed.map((key) => [key, null])) }
}

async function saveConfiguration(key: string, before: FormValues, { metadata, ...values }: FormValues) {
  const change = toMetadataChange(before.metadata, requireJsonObject(metadata, 'metadata'))
  const rest = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value ?? '']))
  await fetchData<unknown>(
    key === APP_KEY
      ? api.PUT('/api/configurations/app-configuration', { body: { metadata: change } })
      : api.PUT('/api/configurations/{key}', { params: { path: { key } }, body: { ...rest, metadata: change } }),
  )
  await queryClient.invalidateQueries({ queryKey: ['configurations'] })
}

async function createConfiguration({ metadata, ...values }: FormValues) {
  const sent = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined))
  const body = { ...sent, metadata: requireJsonObject(metadata, 'metadata') } as NewConfiguration
  const created = await fetchData(api.POST('/api/configurations', { body }))
  await queryClient.invalidateQueries({ queryKey: ['configurations'] })
  return created
}

/** One configuration beside the list. */
export function ConfigurationPanel() {
  const navigate = useNavigate()
  const { key = '' } = useParams({ strict: false })
  const { data: configuration, error } = useQuery(configurationQuery(key))
  const close = () => navigate({ to: '/content/configurations' })
  const remove = async () => {
    const text = 'Its values cannot be brought back. Where the server reads them, the defaults apply again.'
    const question = { title: `Delete the configuration “${key}”?`, text, action: 'Delete configuration' }
    if (!(await confirmAction(question))) return
    await fetchData(api.DELETE('/api/configurations/{key}', { params: { path: { key } } }))
      .then(close)
      .then(() => queryClient.invalidateQueries({ queryKey: ['configurations'] }))
      .catch(showProblem)
  }
  return (
    <SidePanel
      title={key}
      onClose={close}
      footer={
        <>
          <SaveButton form={FORM_ID} />
          {key !== APP_KEY && configuration?._id !== undefined && (
            <Button variant="subtle" color="red" ml="auto" leftSection={<IconTrash size={14} />} onClick={remove}>
              Delete
            </Button>
          )}
        </>
      }
    >
      {error && <ProblemMessage error={error} />}
      {configuration && (
        <FieldForm
          id={FORM_ID}
          fields={fieldsOf(key)}
          before={configuration}
          draftKey={`configuration:${key}`}
          save={(_, values) => saveConfiguration(key, configuration, values)}
          onSaved={() => showNotice('Saved.')}
        />
      )}
      {key === APP_KEY && <HostStates />}
      <KeyHelp configuration={key} />
    </SidePanel>
  )
}

/** What the keys mean that the server reads. */
function KeyHelp({ configuration }: { configuration: string }) {
  const known = knownConfigurations[configuration]
  if (!known) return null
  return (
    <>
      <Text size="sm" mt="md">
        {known.description} The server reads these keys:
      </Text>
      <dl className={classes.help}>
        {Object.entries(known.keys).map(([key, meaning]) => (
          <div key={key}>
            <dt>{key}</dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
    </>
  )
}

/** A form for a new configuration beside the list. */
export function NewConfigurationPanel() {
  const navigate = useNavigate()
  return (
    <SidePanel
      title="New configuration"
      onClose={() => navigate({ to: '/content/configurations' })}
      footer={<SaveButton form={FORM_ID} label="Create configuration" />}
    >
      <FieldForm
        id={FORM_ID}
        fields={[keyField, ...ownFields]}
        draftKey="configuration:"
        save={(_, values) => createConfiguration(values)}
        onSaved={({ key }) => navigate({ to: '/content/configurations/$key', params: { key }, replace: true })}
      />
    </SidePanel>
  )
}
