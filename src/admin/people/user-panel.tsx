import { Button, Menu } from '@mantine/core'
import { IconDots, IconTrash, IconUserShare } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useState } from 'react'
import { api, fetchData } from '../api/client'
import { sendWithProof } from '../api/proof'
import { meQuery, queryClient } from '../api/queries'
import type { User } from '../api/schema'
import { FieldForm, type FormValues } from '../fields/field-form'
import { confirmAction } from '../ui/confirmation'
import { showNotice, showProblem } from '../ui/notices'
import { PanelTabs } from '../ui/panel-tabs'
import { ProblemMessage } from '../ui/problem-message'
import { SaveButton } from '../ui/save-button'
import { SidePanel } from '../ui/side-panel'
import { EncryptedData } from './encrypted-data'
import { ImpersonationDialog } from './impersonation-dialog'
import classes from './people.module.css'
import { userFields } from './user-fields'
import { useUserListNavigation } from './user-list-navigation'
import { refetchUsers, signInStateQuery, toUserLabel, USER_DELETION_TEXT, userQuery } from './user-queries'
import { UserSignIn } from './user-sign-in'
import { UserWorkspaces } from './user-workspaces'

const route = getRouteApi('/frame/people/users/$user')
const FORM_ID = 'user-form'

/** Sends what was changed. Admins who change their own credentials have to prove who they are. */
async function saveUser(id: string, changes: FormValues): Promise<User> {
  const user = await sendWithProof((proof) =>
    fetchData(api.PUT('/api/users/{id}', { params: { path: { id } }, body: { ...changes, ...proof } })),
  )
  // The form takes what was saved before it sees the new state.
  void refetchUsers()
  showNotice('Saved.')
  return user
}

async function deleteUser(user: User) {
  const isConfirmed = await confirmAction({
    title: `Delete ${toUserLabel(user)}?`,
    text: USER_DELETION_TEXT,
    action: 'Delete user',
    typedName: user.username,
  })
  if (!isConfirmed) return false
  await fetchData(api.DELETE('/api/users/{id}', { params: { path: { id: user._id } } }))
  for (const { queryKey } of [userQuery(user._id), signInStateQuery(user._id)]) queryClient.removeQueries({ queryKey })
  await refetchUsers()
  showNotice(`${toUserLabel(user)} was deleted.`)
  return true
}

/** One user beside the list: profile and roles, how they sign in, their workspaces and encrypted data. */
export function UserPanel() {
  const { user: id } = route.useParams()
  const { close } = useUserListNavigation()
  const { data: user, error } = useQuery(userQuery(id))
  return (
    <SidePanel
      title={user ? toUserLabel(user) : ''}
      onClose={close}
      footer={user && <UserActions user={user} onDeleted={close} />}
    >
      {error && <ProblemMessage m={0} error={error} />}
      {user && (
        <PanelTabs
          label={`Parts of ${toUserLabel(user)}`}
          tabs={[
            { key: 'profile', label: 'Profile', content: <ProfileForm user={user} /> },
            { key: 'sign-in', label: 'Sign-in', content: <UserSignIn user={user} /> },
            { key: 'workspaces', label: 'Workspaces', content: <UserWorkspaces user={user} /> },
            { key: 'encrypted', label: 'Encrypted', content: <EncryptedData owner="users" id={id} /> },
          ]}
        />
      )}
    </SidePanel>
  )
}

const ProfileForm = ({ user }: { user: User }) => (
  <FieldForm
    id={FORM_ID}
    fields={userFields}
    before={user}
    draftKey={`user:${user._id}`}
    save={(changes) => saveUser(user._id, changes)}
    onSaved={() => {}}
  />
)

function UserActions({ user, onDeleted }: { user: User; onDeleted: () => void }) {
  const { data: me } = useQuery(meQuery)
  const { show } = route.useSearch() as { show?: string }
  const [isImpersonating, setIsImpersonating] = useState(false)
  const remove = () =>
    deleteUser(user)
      .then((isDone) => isDone && onDeleted())
      .catch(showProblem)
  return (
    <>
      {show === undefined && <SaveButton form={FORM_ID} />}
      <span className={classes.fill} />
      {me?._id !== user._id && (
        <Button variant="default" leftSection={<IconUserShare size={14} />} onClick={() => setIsImpersonating(true)}>
          Act as {user.firstName || user.username}
        </Button>
      )}
      <Menu position="top-end">
        <Menu.Target>
          <Button variant="default" px={8} aria-label={`More about ${toUserLabel(user)}`}>
            <IconDots size={16} />
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item color="red" leftSection={<IconTrash size={16} />} onClick={remove}>
            Delete user
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {isImpersonating && <ImpersonationDialog user={user} onClose={() => setIsImpersonating(false)} />}
    </>
  )
}
