import { Button } from '@mantine/core'
import { IconMessage, IconTrash } from '@tabler/icons-react'
import { useMutation, useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { api, fetchData } from '../../api/client'
import { queryClient } from '../../api/queries'
import type { Agent, NewAgent } from '../../api/schema'
import { FieldForm, type FormValues } from '../../fields/field-form'
import { confirmAction } from '../../ui/confirmation'
import { showNotice, showProblem } from '../../ui/notices'
import { ProblemMessage } from '../../ui/problem-message'
import { SaveButton } from '../../ui/save-button'
import { SidePanel } from '../../ui/side-panel'
import { agentQuery, sourcesQuery, toAgentName } from '../ai-queries'
import { agentFields, MORE_KEY } from './agent-fields'

const FORM_ID = 'agent-form'

const withoutEmpty = (values: FormValues) =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined && value !== null))

const refreshAgents = () => queryClient.invalidateQueries({ queryKey: ['agents'] })

async function saveAgent(id: string | undefined, changes: FormValues, values: FormValues): Promise<Agent> {
  const { [MORE_KEY]: _changedToggle, ...changed } = changes
  const { [MORE_KEY]: _toggle, ...all } = values
  const saved = await fetchData(
    id
      ? api.PUT('/api/ai/agents/{id}', { params: { path: { id } }, body: changed })
      : api.POST('/api/ai/agents', { body: withoutEmpty(all) as NewAgent }),
  )
  await refreshAgents()
  return saved
}

/** One agent beside the list. */
export function AgentPanel() {
  const navigate = useNavigate()
  const { id = '' } = useParams({ strict: false })
  const { data: agent, error } = useQuery(agentQuery(id))
  const close = () => navigate({ to: '/ai/agents' })
  const deletion = useMutation({
    mutationFn: () => fetchData(api.DELETE('/api/ai/agents/{id}', { params: { path: { id } } })),
    onSuccess: async () => {
      await close()
      await refreshAgents()
      showNotice('The agent was deleted. Its threads can still be read.')
    },
    onError: showProblem,
  })
  const name = agent ? toAgentName(agent) : ''
  const confirmAndDelete = async () => {
    const question = { title: `Delete the agent “${name}”?`, text: 'Its threads stay.', action: 'Delete agent' }
    if (await confirmAction(question)) deletion.mutate()
  }
  return (
    <SidePanel
      title={name}
      onClose={close}
      footer={
        <>
          <SaveButton form={FORM_ID} />
          <Button
            variant="default"
            component={Link}
            to="/ai/playground"
            search={{ agent: id } as never}
            leftSection={<IconMessage size={14} />}
          >
            Try it
          </Button>
          <Button
            variant="subtle"
            color="red"
            ml="auto"
            leftSection={<IconTrash size={14} />}
            onClick={confirmAndDelete}
          >
            Delete
          </Button>
        </>
      }
    >
      {error && <ProblemMessage error={error} />}
      {agent && (
        <FieldForm
          id={FORM_ID}
          fields={agentFields}
          before={agent}
          draftKey={`agent:${id}`}
          save={(changes, values) => saveAgent(id, changes, values)}
          onSaved={() => showNotice('Saved.')}
        />
      )}
    </SidePanel>
  )
}

/** A form for a new agent beside the list. */
export function NewAgentPanel() {
  const navigate = useNavigate()
  const sources = useQuery(sourcesQuery)
  const firstSource = sources.data?.[0]?._id
  const fields = agentFields.map((field) => (field.key === 'sourceId' ? { ...field, default: firstSource } : field))
  return (
    <SidePanel
      title="New agent"
      onClose={() => navigate({ to: '/ai/agents' })}
      footer={<SaveButton form={FORM_ID} label="Create agent" />}
    >
      {sources.error && <ProblemMessage error={sources.error} />}
      {sources.isSuccess && (
        <FieldForm
          id={FORM_ID}
          fields={fields}
          draftKey="agent:"
          save={(changes, values) => saveAgent(undefined, changes, values)}
          onSaved={({ _id }) => navigate({ to: '/ai/agents/$id', params: { id: _id }, replace: true })}
        />
      )}
    </SidePanel>
  )
}
