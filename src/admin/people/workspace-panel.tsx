import { Button, Menu } from '@mantine/core'
import { IconDots, IconLogout, IconTrash } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { api, fetchData } from '../api/client'
import { meQuery, queryClient } from '../api/queries'
import type { Me, WorkspaceDetails } from '../api/schema'
import { confirmAction } from '../ui/confirmation'
import { showNotice, showProblem } from '../ui/notices'
import { PanelTabs } from '../ui/panel-tabs'
import { ProblemMessage } from '../ui/problem-message'
import { SaveButton } from '../ui/save-button'
import { SidePanel } from '../ui/side-panel'
import { EncryptedData } from './encrypted-data'
import classes from './people.module.css'
import { WorkspaceForm } from './workspace-form'
import { WorkspaceInvites } from './workspace-invites'
import { useWorkspaceListNavigation } from './workspace-list-navigation'
import { removeMember, WorkspaceMembers } from './workspace-members'
import { refetchWorkspaces, workspaceQuery } from './workspace-queries'
import { WorkspaceSubscription } from './workspace-subscription'

const route = getRouteApi('/frame/people/workspaces/$workspace')
const FORM_ID = 'workspace-form'

async function deleteWorkspace({ _id: id, name }: WorkspaceDetails) {
  const isConfirmed = await confirmAction({
    title: `Delete ${name}?`,
    text: 'This also deletes its memberships, invitations, API tokens and encrypted data. Its entities stay.',
    action: 'Delete workspace',
    typedName: name,
  })
  if (!isConfirmed) return false
  const { entities } = await fetchData(api.DELETE('/api/workspaces/{id}', { params: { path: { id } } }))
  queryClient.removeQueries({ queryKey: workspaceQuery(id).queryKey })
  await refetchWorkspaces()
  showNotice(`${name} was deleted.${entities ? ` ${entities.toLocaleString()} of its entities are kept.` : ''}`)
  return true
}

async function leaveWorkspace(workspace: WorkspaceDetails, me: Me) {
  const title = `Leave ${workspace.name}?`
  const text = 'An admin of the workspace can add or invite you again.'
  if (!(await confirmAction({ title, text, action: 'Leave workspace' }))) return false
  await removeMember(workspace._id, me._id)
  return true
}

/** One workspace beside the list: members, invitations, what it is called, its subscription and encrypted data. */
export function WorkspacePanel() {
  const { workspace: id } = route.useParams()
  const { close } = useWorkspaceListNavigation()
  const { data: me } = useQuery(meQuery)
  const { data: workspace, error } = useQuery(workspaceQuery(id))
  if (!workspace || !me)
    return (
      <SidePanel title="" onClose={close}>
        {error && <ProblemMessage m={0} error={error} />}
      </SidePanel>
    )
  const mayAdminister = workspace.isPrivilegedUser || me.isPrivileged
  const tabs = [
    { key: 'members', label: 'Members', content: <WorkspaceMembers {...{ workspace, me, mayAdminister }} /> },
    ...(mayAdminister
      ? [
          { key: 'invitations', label: 'Invitations', content: <WorkspaceInvites workspace={workspace} /> },
          { key: 'details', label: 'Details', content: <WorkspaceForm id={FORM_ID} workspace={workspace} /> },
        ]
      : []),
    ...(me.isPrivileged
      ? [
          { key: 'subscription', label: 'Subscription', content: <WorkspaceSubscription id={id} /> },
          { key: 'encrypted', label: 'Encrypted', content: <EncryptedData owner="workspaces" id={id} /> },
        ]
      : []),
  ]
  return (
    <SidePanel
      title={workspace.name}
      onClose={close}
      footer={<WorkspaceActions {...{ workspace, me, mayAdminister }} onClose={close} />}
    >
      <PanelTabs label={`Parts of ${workspace.name}`} tabs={tabs} />
    </SidePanel>
  )
}

type WorkspaceActionsProps = { workspace: WorkspaceDetails; me: Me; mayAdminister: boolean; onClose: () => void }

function WorkspaceActions({ workspace, me, mayAdminister, onClose }: WorkspaceActionsProps) {
  const { show } = route.useSearch() as { show?: string }
  const isMember = workspace.members.some(({ user }) => user === me._id)
  const closeAfter = (work: Promise<boolean>) => work.then((isDone) => isDone && onClose()).catch(showProblem)
  if (!isMember && !mayAdminister) return null
  return (
    <>
      {show === 'details' && <SaveButton form={FORM_ID} />}
      <span className={classes.fill} />
      <Menu position="top-end">
        <Menu.Target>
          <Button variant="default" px={8} aria-label={`More about ${workspace.name}`}>
            <IconDots size={16} />
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {isMember && (
            <Menu.Item leftSection={<IconLogout size={16} />} onClick={() => closeAfter(leaveWorkspace(workspace, me))}>
              Leave workspace
            </Menu.Item>
          )}
          {mayAdminister && (
            <Menu.Item
              color="red"
              leftSection={<IconTrash size={16} />}
              onClick={() => closeAfter(deleteWorkspace(workspace))}
            >
              Delete workspace
            </Menu.Item>
          )}
        </Menu.Dropdown>
      </Menu>
    </>
  )
}
