import { api, fetchData } from '../api/client'
import type { NewWorkspace } from '../api/schema'
import { FieldForm, type FormValues } from '../fields/field-form'
import { showNotice } from '../ui/notices'
import { SaveButton } from '../ui/save-button'
import { SidePanel } from '../ui/side-panel'
import { workspaceFields } from './workspace-fields'
import { useWorkspaceListNavigation } from './workspace-list-navigation'
import { refetchWorkspaces } from './workspace-queries'

const FORM_ID = 'new-workspace'

async function createWorkspace(values: FormValues) {
  const workspace = await fetchData(api.POST('/api/workspaces', { body: values as NewWorkspace }))
  await refetchWorkspaces()
  showNotice(`${workspace.name} was created. You are its admin.`)
  return workspace
}

/** A form for a new workspace beside the list. */
export function NewWorkspacePanel() {
  const { close, openWorkspace } = useWorkspaceListNavigation()
  return (
    <SidePanel title="New workspace" onClose={close} footer={<SaveButton form={FORM_ID} label="Create workspace" />}>
      <FieldForm
        id={FORM_ID}
        fields={workspaceFields}
        draftKey="workspace:new"
        save={(_, values) => createWorkspace(values)}
        onSaved={({ _id }) => openWorkspace(_id)}
      />
    </SidePanel>
  )
}
