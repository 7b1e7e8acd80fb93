import { Button, Group, Switch, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { api, fetchData } from '../../api/client'
import { queryClient } from '../../api/queries'
import type { Plugin } from '../../api/schema'
import { FieldForm } from '../../fields/field-form'
import { confirmAction } from '../../ui/confirmation'
import { showNotice, showProblem, showUndo } from '../../ui/notices'
import { ProblemMessage } from '../../ui/problem-message'
import { RelativeTime } from '../../ui/relative-time'
import { SaveButton } from '../../ui/save-button'
import { Screen } from '../../ui/screen'
import { EventWarnings } from '../event-warnings'
import { Workbench } from '../workbench'
import { PluginAccess } from './plugin-access'
import { PluginDeliveries } from './plugin-deliveries'
import { pluginFields, toPluginChange, toPluginValues } from './plugin-fields'
import { PluginHealth } from './plugin-health'
import { changePlugin, pluginQuery } from './plugin-queries'

const route = getRouteApi('/frame/automation/plugins/$id')
const FORM_ID = 'plugin-form'

/** One plugin: what it receives and answers, its deliveries, and its credentials. */
export function PluginScreen() {
  const { id } = route.useParams()
  const { data: plugin, error } = useQuery(pluginQuery(id))
  if (error) return <ProblemMessage error={error} />
  return plugin ? <PluginEditor key={id} plugin={plugin} /> : <Screen title="Plugin">{null}</Screen>
}

async function switchPlugin({ _id, name, active }: Plugin) {
  try {
    // What is being fetched would show the former state again.
    await queryClient.cancelQueries({ queryKey: pluginQuery(_id).queryKey })
    queryClient.setQueryData(pluginQuery(_id).queryKey, (before) => before && { ...before, active: !active })
    await changePlugin(_id, { active: !active })
    showUndo(`${name} is ${active ? 'off' : 'on'}.`, () => changePlugin(_id, { active }))
  } catch (error) {
    await queryClient.invalidateQueries({ queryKey: pluginQuery(_id).queryKey })
    showProblem(error)
  }
}

function PluginEditor({ plugin }: { plugin: Plugin }) {
  const navigate = useNavigate()
  const { _id, name, active } = plugin
  const remove = async () => {
    const text = 'Its secret, its user and its token are deleted with it.'
    const question = { title: `Delete the plugin “${name}”?`, text, action: 'Delete plugin', typedName: name }
    if (!(await confirmAction(question))) return
    try {
      await fetchData(api.DELETE('/api/plugins/{id}', { params: { path: { id: _id } } }))
      await navigate({ to: '/automation/plugins' })
      queryClient.removeQueries({ queryKey: pluginQuery(_id).queryKey })
      await queryClient.invalidateQueries({ queryKey: ['plugins'] })
    } catch (error) {
      showProblem(error)
    }
  }
  return (
    <Screen
      title={name}
      request={{ method: 'GET', path: `/api/plugins/${_id}/deliveries`, query: { state: 'dead' } }}
      actions={
        <Switch
          size="xs"
          aria-label={`${name} is on`}
          label={active ? 'On' : 'Off'}
          checked={active}
          onChange={() => void switchPlugin(plugin)}
        />
      }
      toolbar={<HealthLine plugin={plugin} />}
    >
      <Workbench
        isForm
        tabs={[
          { key: 'deliveries', label: 'Deliveries', render: () => <PluginDeliveries id={_id} /> },
          { key: 'access', label: 'Secret and token', render: () => <PluginAccess plugin={plugin} /> },
        ]}
      >
        <EventWarnings warnings={plugin.warnings} />
        <FieldForm
          id={FORM_ID}
          fields={pluginFields}
          before={toPluginValues(plugin)}
          draftKey={`plugin:${_id}`}
          save={(changes) => changePlugin(_id, toPluginChange(changes))}
          onSaved={() => showNotice('Saved.')}
        />
        <Group mt="md" gap="xs">
          <SaveButton form={FORM_ID} />
          <Button variant="default" c="var(--mantine-color-error)" ml="auto" onClick={remove}>
            Delete plugin
          </Button>
        </Group>
      </Workbench>
    </Screen>
  )
}

/** Whether a plugin works, and since when. */
function HealthLine({ plugin }: { plugin: Plugin }) {
  const { status, lastError, lastErrorAt, lastSuccessAt } = plugin.health
  return (
    <Group gap="xs">
      <PluginHealth plugin={plugin} />
      {status === 'failing' && lastErrorAt && (
        <Text size="sm">
          {lastError} <RelativeTime time={lastErrorAt} />
        </Text>
      )}
      {lastSuccessAt && (
        <Text size="sm" c="dimmed">
          Last success <RelativeTime time={lastSuccessAt} />
        </Text>
      )}
    </Group>
  )
}
