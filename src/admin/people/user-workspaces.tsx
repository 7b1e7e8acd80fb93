import { Anchor } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { User } from '../api/schema'
import { ProblemMessage } from '../ui/problem-message'
import { RowList } from '../ui/row-list'
import { userWorkspacesQuery } from './user-queries'

/** The workspaces of a user, with the user's roles there. */
export function UserWorkspaces({ user }: { user: User }) {
  const { data: workspaces, error } = useQuery(userWorkspacesQuery(user._id))
  if (error) return <ProblemMessage m={0} error={error} />
  return (
    <RowList
      label="Workspaces"
      rows={workspaces}
      rowKey={({ _id }) => _id}
      empty="This user is a member of no workspace."
      render={({ _id, name, members = [] }) => ({
        title: (
          <Anchor component={Link} to={`/people/workspaces/${_id}`} search={{} as never}>
            {name}
          </Anchor>
        ),
        text: members.find((member) => member.user === user._id)?.roles.join(', '),
      })}
    />
  )
}
