import { Button, Text } from '@mantine/core'
import { IconTrash } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useParams } from '@tanstack/react-router'
import { api, fetchData } from '../api/client'
import { FieldForm } from '../fields/field-form'
import { confirmAction } from '../ui/confirmation'
import { showNotice, showProblem } from '../ui/notices'
import { ProblemMessage } from '../ui/problem-message'
import { SaveButton } from '../ui/save-button'
import { SidePanel } from '../ui/side-panel'
import { APP_KEY, toConfigurationFields } from './configuration-fields'
import { configurationQuery, refetchConfigurations, saveConfiguration } from './configuration-queries'
import classes from './configurations.module.css'
import { HostStates } from './host-states'
import { knownConfigurations } from './known-configurations'

const FORM_ID = 'configuration-form'

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
      .then(refetchConfigurations)
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
          fields={toConfigurationFields(key)}
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

/** The keys of a configuration that the server reads, with their meaning. */
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
