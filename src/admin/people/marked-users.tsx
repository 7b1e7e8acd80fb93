import { Button, Group, Modal, Radio, Stack, Text } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useMutation, useQuery } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { api, fetchData } from '../api/client'
import type { UserSummary } from '../api/schema'
import { confirmAction } from '../ui/confirmation'
import { showNotice, showProblem, showUndo } from '../ui/notices'
import { ProblemMessage } from '../ui/problem-message'
import { RoleTagsInput } from './role-input'
import { refetchUsers, rolesQuery, toUserLabel, USER_DELETION_TEXT } from './user-queries'

const MAX_NAMES_SHOWN = 10

type MarkedUsersProps = { users: UserSummary[]; onDone: () => void }

const countUsers = (count: number) => `${count} ${count === 1 ? 'user' : 'users'}`

/** Sends a request for each user. @throws Error with the name of the first user whose request is refused, and the reason */
async function forEachUser(users: UserSummary[], send: (user: UserSummary) => Promise<unknown>) {
  for (const user of users)
    await send(user).catch((error: Error) => {
      throw new Error(`${toUserLabel(user)}: ${error.message}`)
    })
}

const saveRoles = (id: string, roles: string[]) =>
  fetchData(api.PUT('/api/users/{id}', { params: { path: { id } }, body: { roles } }))

async function deleteUsers(users: UserSummary[]) {
  const label = countUsers(users.length)
  const isConfirmed = await confirmAction({
    title: `Delete ${label}?`,
    text: `${USER_DELETION_TEXT} ${users.map(toUserLabel).slice(0, MAX_NAMES_SHOWN).join(', ')}${users.length > MAX_NAMES_SHOWN ? ' …' : ''}`,
    action: `Delete ${label}`,
    typedName: label,
  })
  if (!isConfirmed) return false
  try {
    await forEachUser(users, ({ _id: id }) => fetchData(api.DELETE('/api/users/{id}', { params: { path: { id } } })))
    showNotice(`${label} deleted.`)
  } finally {
    await refetchUsers()
  }
  return true
}

/** The actions on all marked users. */
export function MarkedUsers({ users, onDone }: MarkedUsersProps) {
  const [isOpen, { open, close }] = useDisclosure()
  const remove = () =>
    deleteUsers(users)
      .then((isDone) => isDone && onDone())
      .catch(showProblem)
  return (
    <>
      <Text size="sm" fw={500}>
        {users.length} marked
      </Text>
      <Button variant="default" onClick={open}>
        Change roles
      </Button>
      <Button variant="light" color="red" onClick={remove}>
        Delete
      </Button>
      <Button variant="subtle" color="gray" onClick={onDone}>
        Unmark
      </Button>
      {isOpen && <RoleChange users={users} onClose={close} onDone={onDone} />}
    </>
  )
}

function RoleChange({ users, onClose, onDone }: MarkedUsersProps & { onClose: () => void }) {
  const { data: known = [] } = useQuery(rolesQuery)
  const [isAdded, setIsAdded] = useState(true)
  const [roles, setRoles] = useState<string[]>([])
  const toNext = (before: string[] = []) =>
    isAdded ? [...new Set([...before, ...roles])] : before.filter((role) => !roles.includes(role))
  const change = useMutation({
    mutationFn: () => forEachUser(users, (user) => saveRoles(user._id, toNext(user.roles))),
    onSuccess: () => {
      showUndo(`The roles of ${countUsers(users.length)} were changed.`, async () => {
        await forEachUser(users, (user) => saveRoles(user._id, user.roles ?? []))
        await refetchUsers()
      })
      onDone()
    },
    onSettled: refetchUsers,
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    change.mutate()
  }
  return (
    <Modal opened title={`Change roles of ${countUsers(users.length)}`} onClose={onClose}>
      <form onSubmit={submit}>
        <Stack gap="sm">
          <Radio.Group
            aria-label="Change"
            value={isAdded ? 'add' : 'remove'}
            onChange={(kind) => setIsAdded(kind === 'add')}
          >
            <Group>
              <Radio value="add" label="Add" />
              <Radio value="remove" label="Remove" />
            </Group>
          </Radio.Group>
          <RoleTagsInput label="Roles" data={known} value={roles} onChange={setRoles} data-autofocus />
          {change.error && <ProblemMessage m={0} error={change.error} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={change.isPending} disabled={!roles.length}>
              {isAdded ? 'Add roles' : 'Remove roles'}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  )
}
