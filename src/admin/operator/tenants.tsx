import { Button } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { Outlet, useNavigate, useParams, useSearch } from '@tanstack/react-router'
import type { OperatorTenant } from '../api/schema'
import type { Column } from '../ui/data-table'
import { formatBytes } from '../ui/format-bytes'
import { useListRows } from '../ui/list-rows'
import { ListTable } from '../ui/list-table'
import { RelativeTime } from '../ui/relative-time'
import { Screen } from '../ui/screen'
import { SearchBox } from '../ui/search-box'
import { LastBackup } from './last-backup'
import { operatorApi } from './operator-api'
import { TenantState } from './tenant-state'

const columns: Column<OperatorTenant>[] = [
  { key: 'id', label: 'Tenant', width: 160, render: ({ id }) => id },
  { key: 'status', label: 'State', width: 150, render: (tenant) => <TenantState {...tenant} /> },
  { key: 'hosts', label: 'Hosts', width: 220, render: ({ hosts }) => hosts.join(', ') },
  { key: 'home', label: 'Home', width: 150, render: ({ home }) => home ?? 'File' },
  {
    ...{ key: 'bytes', label: 'Size', width: 100, align: 'right' },
    render: ({ bytes }) => (bytes === null ? '' : formatBytes(bytes)),
  },
  {
    ...{ key: 'lastRequest', label: 'Last request', width: 130 },
    render: ({ lastRequest }) => lastRequest && <RelativeTime time={lastRequest} />,
  },
  { key: 'backup', label: 'Last backup', width: 180, render: (tenant) => <LastBackup {...tenant} /> },
  { key: 'created', label: 'Created', width: 130, render: ({ created }) => <RelativeTime time={created} /> },
]

/** All tenants of the installation. */
export function Tenants() {
  const navigate = useNavigate()
  const { tenant } = useParams({ strict: false })
  const { q } = useSearch({ strict: false }) as { q?: string }
  const openNew = () => navigate({ to: '/operator/tenants/create/new' })
  const list = useListRows(['operator', 'tenants', q], (page) =>
    operatorApi.GET('/operator/tenants', { params: { query: { ...page, ...(q && { q }) } } }),
  )
  return (
    <Screen
      title="Tenants"
      actions={
        <>
          <SearchBox
            label="Search tenants"
            value={q}
            onSearch={(words) => navigate({ to: '.', search: { q: words || undefined } as never, replace: true })}
          />
          <Button leftSection={<IconPlus size={14} />} onClick={openNew}>
            New
          </Button>
        </>
      }
    >
      <ListTable
        label="Tenants"
        columns={columns}
        list={list}
        rowKey={({ id }) => id}
        activeKey={tenant}
        onOpen={({ id }) =>
          navigate({ to: '/operator/tenants/$tenant', params: { tenant: id }, search: true as never })
        }
        empty={
          q
            ? { text: 'No tenant has this in its id or its hosts.' }
            : { text: 'There are no tenants yet.', action: { label: 'Create a tenant', onClick: openNew } }
        }
      />
      <Outlet key={tenant} />
    </Screen>
  )
}
