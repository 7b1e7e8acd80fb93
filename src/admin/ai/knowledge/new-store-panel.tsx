import { Select } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { api, fetchData } from '../../api/client'
import { meQuery, queryClient } from '../../api/queries'
import type { Agent, NewVectorStore } from '../../api/schema'
import { FieldForm, type FormField, type FormValues } from '../../fields/field-form'
import type { InputProps } from '../../fields/field-kind'
import { SaveButton } from '../../ui/save-button'
import { SidePanel } from '../../ui/side-panel'
import { agentsQuery, ECHO_SOURCE_ID, toAgentName } from '../ai-queries'
import { refreshKnowledge } from './knowledge-queries'

const FORM_ID = 'store-form'

function AgentInput({ field: _, value, onChange, ...rest }: InputProps) {
  const { data: agents = [] } = useQuery(agentsQuery)
  return (
    <Select
      {...rest}
      searchable
      data={agents.map((agent) => ({ value: agent._id, label: toAgentName(agent) }))}
      value={typeof value === 'string' ? value : null}
      onChange={(chosen) => onChange(chosen ?? undefined)}
      nothingFoundMessage="There is no agent yet."
    />
  )
}

const ScopeInput = ({ field: _, value, onChange, ...rest }: InputProps) => (
  <Select
    {...rest}
    allowDeselect={false}
    data={[
      { value: 'tenant', label: 'Everybody who may use the agent' },
      { value: 'workspace', label: 'My active workspace' },
      { value: 'user', label: 'Only me' },
    ]}
    value={String(value)}
    onChange={(chosen) => onChange(chosen ?? undefined)}
  />
)

const fields: FormField[] = [
  { key: 'integrationId', title: 'Agent', type: 'string', required: true, Input: AgentInput },
  { key: 'scope', title: 'Who can search it', type: 'string', required: true, default: 'tenant', Input: ScopeInput },
  {
    ...{ key: 'expirationAfterDays', title: 'Days until the files are removed', type: 'number' },
    description: 'Leave empty to keep them.',
  },
]

/** An agent answers only from the stores that it names. */
async function addScopeToAgent(agent: Agent, scope: string) {
  const vectorStores = agent.vectorStores ?? []
  if (vectorStores.includes(scope)) return
  const params = { path: { id: agent._id } }
  await fetchData(api.PUT('/api/ai/agents/{id}', { params, body: { vectorStores: [...vectorStores, scope] } }))
  await queryClient.invalidateQueries({ queryKey: ['agents'] })
}

async function createStore(values: FormValues, subjects: Record<string, string | undefined>) {
  const scope = String(values.scope)
  const agents = await queryClient.ensureQueryData(agentsQuery)
  const agent = agents.find(({ _id }) => _id === values.integrationId)
  const sourceId = agent?.sourceId ?? ECHO_SOURCE_ID
  const body = { ...values, ...(scope !== 'tenant' && { subjectId: subjects[scope] }) } as NewVectorStore
  const params = { path: { sourceId } }
  const { vectorStore } = await fetchData(api.POST('/api/ai/sources/{sourceId}/storage', { params, body }))
  if (agent) await addScopeToAgent(agent, scope)
  await refreshKnowledge()
  return { source: sourceId, store: vectorStore._id }
}

/** A form that creates a store for files of an agent. */
export function NewStorePanel() {
  const navigate = useNavigate()
  const { data: me } = useQuery(meQuery)
  const subjects = { user: me?._id, workspace: me?.workspace?._id }
  return (
    <SidePanel
      title="Add knowledge"
      onClose={() => navigate({ to: '/ai/knowledge' })}
      footer={<SaveButton form={FORM_ID} label="Continue" />}
    >
      <FieldForm
        id={FORM_ID}
        fields={fields}
        draftKey="knowledge:"
        save={(_, values) => createStore(values, subjects)}
        onSaved={(params) => navigate({ to: '/ai/knowledge/$source/$store', params, replace: true })}
      />
    </SidePanel>
  )
}
