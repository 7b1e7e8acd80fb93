import { Anchor, Button, Divider, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate, useSearch } from '@tanstack/react-router'
import { api, fetchData } from '../../api/client'
import { queryClient } from '../../api/queries'
import { confirmAction } from '../../ui/confirmation'
import { showNotice, showProblem } from '../../ui/notices'
import { ProblemMessage } from '../../ui/problem-message'
import { SaveButton } from '../../ui/save-button'
import { SidePanel } from '../../ui/side-panel'
import { connectionIntegrationsQuery } from '../integrations/integration-queries'
import { IntegrationSentence } from '../integrations/integration-sentence'
import { ConnectionCheck } from './connection-check'
import { ConnectionForm, NewConnectionForm } from './connection-form'
import { connectionQuery } from './connection-queries'
import { connectionKinds } from './kinds'

const route = getRouteApi('/frame/automation/connections/$id')
const FORM_ID = 'connection-form'

const refreshConnections = () => queryClient.invalidateQueries({ queryKey: ['connections'] })

/** Returns functions that lead back to the list and on to a connection; the filters of the list stay. */
function useConnectionNavigation() {
  const search = useSearch({ strict: false }) as Record<string, string>
  const navigate = useNavigate()
  return {
    close: () => navigate({ to: '/automation/connections', search: search as never }),
    open: (id: string) =>
      navigate({ to: '/automation/connections/$id', params: { id }, search: search as never, replace: true }),
  }
}

/** A form for a new connection beside the list. */
export function NewConnectionPanel() {
  const { close, open } = useConnectionNavigation()
  return (
    <SidePanel title="New connection" onClose={close} footer={<SaveButton form={FORM_ID} label="Create connection" />}>
      <NewConnectionForm
        id={FORM_ID}
        save={(body) => fetchData(api.POST('/api/integration-sources', { body }))}
        onSaved={async ({ _id }) => {
          showNotice('Created.')
          await refreshConnections()
          await open(_id)
        }}
      />
    </SidePanel>
  )
}

/** One connection beside the list: its settings, whether it works, and the integrations that use it. */
export function ConnectionPanel() {
  const { id } = route.useParams()
  const { close } = useConnectionNavigation()
  const { data, error } = useQuery(connectionQuery(id))
  const connection = data?.connection
  const remove = async () => {
    const title = `Delete the connection “${connection?.name}”?`
    if (!(await confirmAction({ title, text: 'Its secrets are deleted with it.', action: 'Delete connection' }))) return
    try {
      await fetchData(api.DELETE('/api/integration-sources/{id}', { params: { path: { id } } }))
      await close()
      queryClient.removeQueries({ queryKey: connectionQuery(id).queryKey })
      await refreshConnections()
    } catch (cause) {
      showProblem(cause)
    }
  }
  return (
    <SidePanel title={connection?.name ?? 'Connection'} onClose={close} footer={<SaveButton form={FORM_ID} />}>
      {error && <ProblemMessage error={error} />}
      {data && connection && (
        <>
          <Text size="xs" c="dimmed" mb="xs">
            {connectionKinds[connection.kind].label}
          </Text>
          <ConnectionCheck id={id} />
          <Divider my="md" />
          <ConnectionForm
            key={connection.updated}
            id={FORM_ID}
            connection={connection}
            save={(body) => {
              const headers = { 'if-match': data.etag }
              return fetchData(api.PATCH('/api/integration-sources/{id}', { params: { path: { id } }, body, headers }))
            }}
            onSaved={async () => {
              showNotice('Saved.')
              await refreshConnections()
            }}
          />
          <Divider my="md" />
          <ConnectionIntegrations id={id} />
          <Button variant="default" c="var(--mantine-color-error)" mt="md" onClick={remove}>
            Delete connection
          </Button>
        </>
      )}
    </SidePanel>
  )
}

/** The integrations that use a connection. */
function ConnectionIntegrations({ id }: { id: string }) {
  const { data: integrations } = useQuery(connectionIntegrationsQuery(id))
  return (
    <section aria-label="Integrations that use it">
      <Text size="sm" fw={500}>
        Integrations that use it
      </Text>
      {integrations?.length === 0 && (
        <Text size="sm" c="dimmed">
          No integration uses it.
        </Text>
      )}
      {integrations?.map((integration) => (
        <Anchor
          key={integration._id}
          component={Link}
          to={`/automation/integrations/${integration._id}`}
          size="sm"
          display="block"
          mt={4}
        >
          {integration.name ? `${integration.name}: ` : ''}
          <IntegrationSentence integration={integration} />
        </Anchor>
      ))}
    </section>
  )
}
