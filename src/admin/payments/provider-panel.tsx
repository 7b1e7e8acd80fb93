import { Button, Text } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { api, fetchData } from '../api/client'
import { queryClient } from '../api/queries'
import type { IntegrationSource } from '../api/schema'
import { FieldForm, type FormField, type FormValues } from '../fields/field-form'
import { confirmAction } from '../ui/confirmation'
import { showNotice, showProblem } from '../ui/notices'
import { ProblemMessage } from '../ui/problem-message'
import { SaveButton } from '../ui/save-button'
import { SidePanel } from '../ui/side-panel'
import { useListNavigation } from './list-navigation'
import { providerConnectionsQuery, refreshPayments } from './payment-queries'
import classes from './payments.module.css'
import { ConnectionState, connectionCheckQuery } from './provider-connections'
import { findProvider } from './providers'
import type { ProviderDescription } from './providers/provider-kind'
import { WebhookSteps } from './webhook-steps'

const FORM_ID = 'provider-form'

const listFields = ({ label, settings, secrets }: ProviderDescription): FormField[] => [
  { key: 'name', type: 'string', title: 'Name', required: true, default: label },
  ...settings,
  ...secrets,
]

/** Returns a body from the paths that fields have as keys. */
function toBody(values: FormValues) {
  const body: Record<string, unknown> = {}
  for (const [path, value] of Object.entries(values)) {
    const [part = '', key] = path.split('/')
    if (value === undefined) continue
    if (key === undefined) body[part] = value
    else body[part] = { ...(body[part] as object), [key]: value }
  }
  return body
}

/** The server keeps a secret that is not sent. */
const withStoredSecrets = (provider: ProviderDescription): ProviderDescription => ({
  ...provider,
  secrets: provider.secrets.map((field) => ({
    ...field,
    description: `${field.description} Empty keeps the stored one.`,
  })),
})

/** A box that was never checked is not checked. */
const uncheckedBoxes = ({ settings }: ProviderDescription): FormValues =>
  Object.fromEntries(settings.filter(({ type }) => type === 'boolean').map(({ key }) => [key, false]))

const toValues = ({ name, metadata }: IntegrationSource): FormValues => ({
  name,
  ...Object.fromEntries(Object.entries(metadata).map(([key, value]) => [`metadata/${key}`, value])),
})

async function saveConnection(
  kind: string,
  values: FormValues,
  before?: IntegrationSource,
): Promise<IntegrationSource> {
  const body = toBody(values)
  const answer = before
    ? api.PATCH('/api/integration-sources/{id}', { params: { path: { id: before._id } }, body: body as never })
    : api.POST('/api/integration-sources', { body: { kind, ...body } as never })
  const saved = await fetchData(answer as Promise<{ data?: IntegrationSource }>)
  showNotice(before ? 'The provider is saved.' : 'The provider is added.')
  return saved
}

/** A form for a new connection to a provider. */
export function NewProviderPanel() {
  const { close, open } = useListNavigation('/payments/configuration')
  const { kind = '' } = useParams({ strict: false }) as { kind?: string }
  const provider = findProvider(kind)
  return (
    <SidePanel
      title={`New connection to ${provider?.label ?? kind}`}
      onClose={close}
      footer={<SaveButton form={FORM_ID} label="Add provider" />}
    >
      {provider && (
        <>
          <FieldForm
            id={FORM_ID}
            fields={listFields(provider)}
            draftKey={`payment-provider:${kind}`}
            save={(_, values) => saveConnection(kind, values)}
            onSaved={({ _id }) => void refreshPayments().then(() => open(_id, true))}
          />
          <WebhookSteps kind={kind} provider={provider} />
        </>
      )}
    </SidePanel>
  )
}

/** Removes a connection after a confirmation. The server refuses it while subscriptions need it. */
async function removeConnection({ _id: id, name }: IntegrationSource): Promise<boolean> {
  const isConfirmed = await confirmAction({
    title: `Remove the connection “${name}”?`,
    text: 'Its secrets are deleted with it. The provider is no longer asked, and its webhooks are refused.',
    action: 'Remove connection',
  })
  if (!isConfirmed) return false
  await fetchData(api.DELETE('/api/integration-sources/{id}', { params: { path: { id } } }))
  await refreshPayments()
  showNotice(`“${name}” is removed.`)
  return true
}

/** One connection to a provider: its settings, whether it works, and what the provider has to know. */
export function ProviderPanel() {
  const { close } = useListNavigation('/payments/configuration')
  const { connection: id } = useParams({ strict: false }) as { connection?: string }
  const { data: connections, error } = useQuery(providerConnectionsQuery)
  const connection = connections?.find(({ _id }) => _id === id)
  const provider = findProvider(connection?.kind)
  const checking = useMutation({
    mutationFn: async () => connection && queryClient.fetchQuery({ ...connectionCheckQuery(connection), staleTime: 0 }),
    onError: showProblem,
  })
  const remove = async () => {
    if (connection && (await removeConnection(connection))) await close()
  }
  return (
    <SidePanel
      title={connection?.name ?? ''}
      onClose={close}
      footer={
        connection && (
          <>
            <SaveButton form={FORM_ID} />
            <Button ml="auto" variant="default" loading={checking.isPending} onClick={() => checking.mutate()}>
              Check
            </Button>
            <Button variant="subtle" color="red" onClick={() => remove().catch(showProblem)}>
              Remove
            </Button>
          </>
        )
      }
    >
      {error && <ProblemMessage error={error} />}
      {connections && !connection && <Text c="dimmed">This connection no longer exists.</Text>}
      {connection && provider && (
        <>
          <div className={classes.check} role="status">
            <ConnectionState connection={connection} />
          </div>
          <FieldForm
            key={connection.updated}
            id={FORM_ID}
            fields={listFields(withStoredSecrets(provider))}
            before={{ ...uncheckedBoxes(provider), ...toValues(connection) }}
            draftKey={`payment-provider:${connection._id}`}
            save={(changes) => saveConnection(connection.kind, changes, connection)}
            onSaved={() => void refreshPayments()}
          />
          <WebhookSteps kind={connection.kind} provider={provider} />
        </>
      )}
    </SidePanel>
  )
}
