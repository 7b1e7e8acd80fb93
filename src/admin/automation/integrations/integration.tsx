import { Button, Group, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { api, fetchData } from '../../api/client'
import { queryClient } from '../../api/queries'
import { confirmAction } from '../../ui/confirmation'
import { showNotice, showProblem } from '../../ui/notices'
import { ProblemMessage } from '../../ui/problem-message'
import { SaveButton } from '../../ui/save-button'
import { Screen } from '../../ui/screen'
import { EventWarnings } from '../event-warnings'
import { Workbench, type WorkbenchTab } from '../workbench'
import { ActiveSwitch } from './active-switch'
import { EventTester } from './event-tester'
import { IntegrationForm } from './integration-form'
import { changeIntegration, integrationQuery, type LoadedIntegration } from './integration-queries'
import { IntegrationRuns } from './integration-runs'
import { IntegrationSentence } from './integration-sentence'
import { WebhookTester } from './webhook-tester'

const route = getRouteApi('/frame/automation/integrations/$id')
const FORM_ID = 'integration-form'

/** One integration: what it does, a way to try it, and its runs. */
export function IntegrationScreen() {
  const { id } = route.useParams()
  const { data, error } = useQuery(integrationQuery(id))
  if (error) return <ProblemMessage error={error} />
  return data ? <IntegrationEditor key={id} loaded={data} /> : <Screen title="Integration">{null}</Screen>
}

function IntegrationEditor({ loaded: { integration, etag } }: { loaded: LoadedIntegration }) {
  const navigate = useNavigate()
  const { _id, name, trigger } = integration
  const runs: WorkbenchTab = { key: 'runs', label: 'Runs', render: () => <IntegrationRuns integration={integration} /> }
  const tester: WorkbenchTab = {
    key: 'try',
    label: 'Try it',
    render: () =>
      trigger.kind === 'event' ? <EventTester trigger={trigger} /> : <WebhookTester integration={integration} />,
  }
  const mayBeTried = trigger.kind === 'event' || trigger.kind === 'webhook'
  const remove = async () => {
    const question = {
      title: name ? `Delete the integration “${name}”?` : 'Delete this integration?',
      text: 'Runs that wait are dropped.',
      action: 'Delete integration',
    }
    if (!(await confirmAction(question))) return
    try {
      await fetchData(api.DELETE('/api/integrations/{id}', { params: { path: { id: _id } } }))
      await navigate({ to: '/automation/integrations' })
      queryClient.removeQueries({ queryKey: integrationQuery(_id).queryKey })
      await queryClient.invalidateQueries({ queryKey: ['integrations'] })
    } catch (error) {
      showProblem(error)
    }
  }
  return (
    <Screen
      title={name || 'Integration'}
      request={{ method: 'PATCH', path: `/api/integrations/${_id}`, body: { active: true } }}
      actions={<ActiveSwitch integration={integration} hasLabel />}
      toolbar={
        <Text size="sm" c="dimmed">
          <IntegrationSentence integration={integration} />
        </Text>
      }
    >
      <Workbench isForm tabs={mayBeTried ? [tester, runs] : [runs]}>
        <EventWarnings warnings={integration.warnings} />
        <IntegrationForm
          id={FORM_ID}
          draftKey={`integration:${_id}`}
          integration={integration}
          save={(body) => changeIntegration(_id, body, etag)}
          onSaved={() => showNotice('Saved.')}
        />
        <Group mt="md" gap="xs">
          <SaveButton form={FORM_ID} />
          <Button variant="default" c="var(--mantine-color-error)" ml="auto" onClick={remove}>
            Delete integration
          </Button>
        </Group>
      </Workbench>
    </Screen>
  )
}
