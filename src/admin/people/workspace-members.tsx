import { Button, CloseButton, Group, Select, Stack } from '@mantine/core'
import { useDebouncedValue, useDisclosure } from '@mantine/hooks'
import { keepPreviousData, useMutation, useQuery } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { api, fetchData } from '../api/client'
import type { Me, Member, WorkspaceDetails } from '../api/schema'
import { confirmAction } from '../ui/confirmation'
import { showNotice, showProblem } from '../ui/notices'
import { PanelSection } from '../ui/panel-section'
import { ProblemMessage } from '../ui/problem-message'
import { RowList } from '../ui/row-list'
import { RoleTagsInput } from './role-input'
import { toUserLabel, userSearchQuery } from './user-queries'
import { refetchWorkspaces } from './workspace-queries'

const TYPING_PAUSE_MS = 200

/** The roles that every workspace has. Any other name is a role of its own. */
export const WORKSPACE_ROLES = ['admin', 'member']

/** Takes a user out of a workspace. */
export async function removeMember(id: string, userId: string) {
  await fetchData(api.DELETE('/api/workspaces/{id}/members/{userId}', { params: { path: { id, userId } } }))
  await refetchWorkspaces()
}

async function confirmAndRemoveMember({ _id, name }: WorkspaceDetails, { user, fullName, email }: Member) {
  const memberName = fullName || email || 'this member'
  const title = `Remove ${memberName} from ${name}?`
  if (!(await confirmAction({ title, text: 'Content that they created there stays.', action: 'Remove member' }))) return
  await removeMember(_id, user)
  showNotice(`${memberName} is no longer a member.`)
}

type WorkspaceMembersProps = { workspace: WorkspaceDetails; me: Me; mayAdminister: boolean }

/** The members of a workspace with their roles there. */
export function WorkspaceMembers({ workspace, me, mayAdminister }: WorkspaceMembersProps) {
  const [isAdding, { open, close }] = useDisclosure()
  const [editedUser, setEditedUser] = useState<string>()
  return (
    <PanelSection
      title={`${workspace.members.length.toLocaleString()} ${workspace.members.length === 1 ? 'member' : 'members'}`}
      action={
        me.isPrivileged &&
        !isAdding && (
          <Button variant="default" onClick={open}>
            Add a member
          </Button>
        )
      }
    >
      {isAdding && <NewMemberForm workspace={workspace} onClose={close} />}
      <RowList
        label="Members"
        rows={workspace.members}
        rowKey={({ user }) => user}
        empty="This workspace has no members."
        render={(member) => ({
          title: member.fullName || member.email || member.user,
          text:
            editedUser === member.user ? (
              <MemberRolesForm workspace={workspace} member={member} onClose={() => setEditedUser(undefined)} />
            ) : (
              [member.fullName && member.email, member.roles.join(', ')].filter(Boolean).join(' · ')
            ),
          actions: mayAdminister && editedUser !== member.user && (
            <>
              <Button variant="subtle" color="gray" onClick={() => setEditedUser(member.user)}>
                Change roles
              </Button>
              <CloseButton
                aria-label={`Remove ${member.fullName || member.email || 'member'}`}
                onClick={() => confirmAndRemoveMember(workspace, member).catch(showProblem)}
              />
            </>
          ),
        })}
      />
    </PanelSection>
  )
}

type MemberRolesFormProps = { workspace: WorkspaceDetails; member: Member; onClose: () => void }

function MemberRolesForm({ workspace, member, onClose }: MemberRolesFormProps) {
  const [roles, setRoles] = useState(member.roles)
  const path = { id: workspace._id, userId: member.user }
  const save = useMutation({
    mutationFn: () =>
      fetchData(api.PUT('/api/workspaces/{id}/members/{userId}', { params: { path }, body: { roles } })),
    onSuccess: async () => {
      await refetchWorkspaces()
      onClose()
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    save.mutate()
  }
  return (
    <form onSubmit={submit}>
      <Stack gap="xs" py="xs">
        <RoleTagsInput
          aria-label={`Roles of ${member.fullName || member.email}`}
          data={WORKSPACE_ROLES}
          value={roles}
          onChange={setRoles}
          autoFocus
        />
        {save.error && <ProblemMessage m={0} error={save.error} />}
        <Group gap="xs">
          <Button type="submit" loading={save.isPending}>
            Save roles
          </Button>
          <Button variant="subtle" color="gray" onClick={onClose}>
            Cancel
          </Button>
        </Group>
      </Stack>
    </form>
  )
}

function NewMemberForm({ workspace, onClose }: { workspace: WorkspaceDetails; onClose: () => void }) {
  const [user, setUser] = useState<string | null>(null)
  const [words, setWords] = useState('')
  const [roles, setRoles] = useState(['member'])
  const [searched] = useDebouncedValue(words, TYPING_PAUSE_MS)
  const { data: users = [] } = useQuery({ ...userSearchQuery(user ? '' : searched), placeholderData: keepPreviousData })
  const add = useMutation({
    mutationFn: () =>
      fetchData(
        api.POST('/api/workspaces/{id}/members', {
          params: { path: { id: workspace._id } },
          body: { userId: user!, roles },
        }),
      ),
    onSuccess: async () => {
      await refetchWorkspaces()
      onClose()
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    add.mutate()
  }
  const memberIds = new Set(workspace.members.map((member) => member.user))
  return (
    <form onSubmit={submit}>
      <Stack gap="xs" mb="md">
        <Select
          label="User"
          placeholder="Search by name or e-mail address"
          searchable
          autoFocus
          data={users
            .filter(({ _id }) => !memberIds.has(_id))
            .map((each) => ({ value: each._id, label: `${toUserLabel(each)} (${each.username})` }))}
          // The server searches more than the label.
          filter={({ options }) => options}
          onSearchChange={setWords}
          value={user}
          onChange={setUser}
          nothingFoundMessage="No user matches."
        />
        <RoleTagsInput label="Roles in the workspace" data={WORKSPACE_ROLES} value={roles} onChange={setRoles} />
        {add.error && <ProblemMessage m={0} error={add.error} />}
        <Group gap="xs">
          <Button type="submit" loading={add.isPending} disabled={!user}>
            Add member
          </Button>
          <Button variant="subtle" color="gray" onClick={onClose}>
            Cancel
          </Button>
        </Group>
      </Stack>
    </form>
  )
}
