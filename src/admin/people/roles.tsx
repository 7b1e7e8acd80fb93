import { Anchor, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { blueprintsQuery } from '../api/queries'
import type { Blueprint } from '../api/schema'
import { ProblemMessage } from '../ui/problem-message'
import { RowList } from '../ui/row-list'
import { Screen } from '../ui/screen'
import { StateTag } from '../ui/state-tag'
import classes from './people.module.css'
import { describeRights, findBuiltInRight, GUEST, listNamedRoles, SIGNED_IN } from './role-rights'
import { rolesQuery, userStatsQuery } from './user-queries'

const GROUP_LABELS: Record<string, string> = { [SIGNED_IN]: 'Everybody who is signed in', [GUEST]: 'Guests' }

/** All roles: who has them, and what they may do. */
export function Roles() {
  const { data: roles, error } = useQuery(rolesQuery)
  const { data: blueprints = [] } = useQuery(blueprintsQuery)
  const { data: stats } = useQuery(userStatsQuery)
  const named = listNamedRoles(blueprints).filter((role) => role !== SIGNED_IN)
  const all = roles && [...[...new Set([...roles, ...named])].sort(), SIGNED_IN, GUEST]
  return (
    <Screen title="Roles" request={{ method: 'GET', path: '/api/roles' }}>
      <div className={classes.page}>
        {error && <ProblemMessage m={0} error={error} />}
        <Text size="sm" c="dimmed" mb="sm">
          A role exists as soon as a user has it. To make one, mark{' '}
          <Anchor component={Link} to="/people/users" size="sm" underline="always">
            users
          </Anchor>{' '}
          and choose “Change roles”. What a role may do is defined by the rules of the blueprints.
        </Text>
        <RowList
          label="Roles"
          rows={all}
          rowKey={(role) => role}
          empty=""
          render={(role) => ({
            title: <RoleTitle role={role} />,
            text: <RoleRights role={role} blueprints={blueprints} />,
            actions: !GROUP_LABELS[role] && <RoleUsers role={role} count={stats?.roles[role] ?? 0} />,
          })}
        />
      </div>
    </Screen>
  )
}

const RoleTitle = ({ role }: { role: string }) => (
  <>
    <Text fw={600} size="sm">
      {GROUP_LABELS[role] ?? role}
    </Text>
    {findBuiltInRight(role) && <StateTag label="built in" />}
  </>
)

function RoleRights({ role, blueprints }: { role: string; blueprints: readonly Blueprint[] }) {
  const rights = [findBuiltInRight(role), ...blueprints.map((blueprint) => describeRights(blueprint, role))]
  const sentences = rights.filter((each) => each !== undefined)
  if (!sentences.length)
    return GROUP_LABELS[role]
      ? 'No rule names them.'
      : 'No rule names it, so it may do what everybody who is signed in may do.'
  return sentences.map((sentence) => <div key={sentence}>{sentence}</div>)
}

const RoleUsers = ({ role, count }: { role: string; count: number }) =>
  count ? (
    <Anchor component={Link} to="/people/users" search={{ roles: role } as never} size="sm">
      {count.toLocaleString()} {count === 1 ? 'user' : 'users'}
    </Anchor>
  ) : (
    <Text size="sm" c="dimmed">
      nobody
    </Text>
  )
