import { Button } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { Outlet, useNavigate, useParams } from '@tanstack/react-router'
import type { OperatorToken } from '../api/schema'
import type { Column } from '../ui/data-table'
import { useListRows } from '../ui/list-rows'
import { ListTable } from '../ui/list-table'
import { RelativeTime } from '../ui/relative-time'
import { Screen } from '../ui/screen'
import { operatorApi } from './operator-api'
import { TokenExpiry } from './token-expiry'
import { listScopes } from './token-scopes'

const columns: Column<OperatorToken>[] = [
  { key: 'name', label: 'Name', width: 180, render: ({ name }) => name },
  { key: 'scopes', label: 'Scopes', width: 260, render: ({ scopes }) => listScopes(scopes) },
  { key: 'created', label: 'Created', width: 140, render: ({ created }) => <RelativeTime time={created} /> },
  {
    ...{ key: 'used', label: 'Last used', width: 140 },
    render: ({ used }) => (used ? <RelativeTime time={used} /> : 'Never'),
  },
  { key: 'expires', label: 'Expires', width: 140, render: (token) => <TokenExpiry {...token} /> },
]

/** The tokens of the operator, which allow programs and colleagues a part of what that of the settings does. */
export function Tokens() {
  const navigate = useNavigate()
  const { token } = useParams({ strict: false })
  const openNew = () => navigate({ to: '/operator/tokens/create/new' })
  const list = useListRows(['operator', 'tokens'], () => operatorApi.GET('/operator/tokens'))
  return (
    <Screen
      title="Tokens"
      actions={
        <Button leftSection={<IconPlus size={14} />} onClick={openNew}>
          New
        </Button>
      }
    >
      <ListTable
        label="Tokens"
        columns={columns}
        list={list}
        rowKey={({ _id }) => _id}
        activeKey={token}
        onOpen={({ _id }) => navigate({ to: '/operator/tokens/$token', params: { token: _id } })}
        empty={{
          text: 'A token lets a program or a colleague do a part of what you may do. There are none yet.',
          action: { label: 'Create a token', onClick: openNew },
        }}
      />
      <Outlet key={token} />
    </Screen>
  )
}
