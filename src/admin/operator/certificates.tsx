import { useNavigate, useSearch } from '@tanstack/react-router'
import type { Certificate } from '../api/schema'
import type { Column } from '../ui/data-table'
import { useListRows } from '../ui/list-rows'
import { ListTable } from '../ui/list-table'
import { RelativeTime } from '../ui/relative-time'
import { Screen } from '../ui/screen'
import { CertificatePanel, CertificateState } from './certificate-panel'
import { operatorApi } from './operator-api'

const columns: Column<Certificate>[] = [
  { key: 'host', label: 'Host', width: 220, render: ({ host }) => host },
  { key: 'state', label: 'State', width: 120, render: ({ state }) => <CertificateState state={state} /> },
  {
    ...{ key: 'expires', label: 'Expires', width: 120 },
    render: ({ expires }) => expires && <RelativeTime time={expires} />,
  },
  { key: 'issuer', label: 'Issuer', width: 150, render: ({ issuer }) => issuer },
  { key: 'tenant', label: 'Tenant', width: 140, render: ({ tenant }) => tenant },
  { key: 'problem', label: 'Problem', width: 310, render: ({ problem }) => problem },
]

const keyOf = ({ source, host }: Certificate) => `${source} ${host}`

/** The certificates of HTTPS: what each host has, until when, and why one has none. */
export function Certificates() {
  const navigate = useNavigate()
  const { open } = useSearch({ strict: false }) as { open?: string }
  const list = useListRows(['operator', 'certificates'], () => operatorApi.GET('/operator/certificates'))
  const opened = list.rows.find((row) => keyOf(row) === open)
  const openRow = (row?: Certificate) =>
    navigate({ to: '/operator/certificates', search: { open: row && keyOf(row) } as never, replace: !row })
  return (
    <Screen title="Certificates">
      <ListTable
        label="Certificates"
        columns={columns}
        list={list}
        rowKey={keyOf}
        activeKey={open}
        onOpen={openRow}
        empty={{
          text: 'This server has no certificates. A proxy may serve HTTPS, or set ATOLL_ACME=on or ATOLL_TLS_CERT.',
        }}
      />
      {opened && <CertificatePanel key={open} certificate={opened} onClose={() => openRow()} />}
    </Screen>
  )
}
