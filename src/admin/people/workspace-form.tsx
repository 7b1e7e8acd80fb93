import { Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { api, fetchData } from '../api/client'
import { blueprintsQuery } from '../api/queries'
import type { Limitation, WorkspaceDetails } from '../api/schema'
import { FieldForm, type FormValues } from '../fields/field-form'
import { showNotice } from '../ui/notices'
import { PanelSection } from '../ui/panel-section'
import { RowList } from '../ui/row-list'
import { workspaceFields } from './workspace-fields'
import { refetchWorkspaces } from './workspace-queries'

async function saveWorkspace(id: string, { labels, ...changes }: FormValues) {
  const body = { ...changes, ...(labels !== undefined && { labels: (labels ?? []) as string[] }) }
  await fetchData(api.PUT('/api/workspaces/{id}', { params: { path: { id } }, body }))
  // The form takes what was saved before it sees the new state.
  void refetchWorkspaces()
  showNotice('Saved.')
}

/** What a workspace is called, its labels, and the limits that blueprints set it. */
export const WorkspaceForm = ({ id, workspace }: { id: string; workspace: WorkspaceDetails }) => (
  <>
    <FieldForm
      id={id}
      fields={workspaceFields}
      before={workspace}
      draftKey={`workspace:${workspace._id}`}
      save={(changes) => saveWorkspace(workspace._id, changes)}
      onSaved={() => {}}
    />
    <WorkspaceLimits labels={workspace.labels} />
  </>
)

const describeLimit = ({ value, properties, roles }: Limitation) => {
  const amount =
    typeof value === 'number'
      ? `at most ${value.toLocaleString()}`
      : `as many as ${value.planLimit} of the plan says${value.otherwise === undefined ? '' : `, else ${value.otherwise.toLocaleString()}`}`
  const equal = properties?.length ? ` with the same ${properties.join(', ')}` : ''
  return `${amount}${equal}${roles?.length ? `, for ${roles.join(', ')}` : ''}`
}

function WorkspaceLimits({ labels }: { labels: string[] }) {
  const { data: blueprints = [] } = useQuery(blueprintsQuery)
  const limits = blueprints.flatMap(({ key, name, limitations = [] }) =>
    limitations
      .filter(
        ({ scope, workspaceLabels }) =>
          scope === 'workspace' &&
          (!workspaceLabels?.length || workspaceLabels.some((label) => labels.includes(label))),
      )
      .map((limit, n) => ({ key: `${key} ${n}`, name, limit })),
  )
  if (!limits.length) return null
  return (
    <PanelSection title="Limits">
      <RowList
        label="Limits"
        rows={limits}
        rowKey={({ key }) => key}
        empty=""
        render={({ name, limit }) => ({ title: name, actions: <Text size="sm">{describeLimit(limit)}</Text> })}
      />
    </PanelSection>
  )
}
