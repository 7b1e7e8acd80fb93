import { Button } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { fetchData } from '../api/client'
import type { Certificate } from '../api/schema'
import { Details } from '../ui/details'
import { showNotice, showProblem } from '../ui/notices'
import { RelativeTime } from '../ui/relative-time'
import { SidePanel } from '../ui/side-panel'
import { StateTag } from '../ui/state-tag'
import { operatorApi, refetchOperator } from './operator-api'

const STATES = {
  pending: { label: 'To be ordered', tone: 'neutral' },
  issued: { label: 'Issued', tone: 'good' },
  failing: { label: 'Problem', tone: 'bad' },
} as const

export const CertificateState = ({ state }: Pick<Certificate, 'state'>) => <StateTag {...STATES[state]} />

type CertificatePanelProps = { certificate: Certificate; onClose: () => void }

/** One certificate: until when it is valid, why there is none, and a button that orders it now. */
export function CertificatePanel({ certificate, onClose }: CertificatePanelProps) {
  const { host, tenant, source, state, issuer, issued, expires, attempted, next, failures, problem } = certificate
  const toTime = (time: string | null) => time && <RelativeTime time={time} />
  return (
    <SidePanel title={host} onClose={onClose} footer={source === 'acme' && <OrderButton host={host} />}>
      <Details
        items={[
          ['State', <CertificateState key="state" state={state} />],
          ['Problem', problem],
          ['Failed orders', failures || undefined],
          ['Tenant', tenant],
          ['From', source === 'file' ? 'A file of ATOLL_TLS_CERT' : 'The authority of ATOLL_ACME_DIRECTORY'],
          ['Issuer', issuer],
          ['Issued', toTime(issued)],
          ['Expires', toTime(expires)],
          ['Last order', toTime(attempted)],
          ['Next order', toTime(next)],
        ]}
      />
    </SidePanel>
  )
}

function OrderButton({ host }: { host: string }) {
  const renew = useMutation({
    mutationFn: () =>
      fetchData(operatorApi.POST('/operator/certificates/{host}/renew', { params: { path: { host } } })),
    onSuccess: async () => {
      showNotice(`The certificate of ${host} is ordered within half a minute.`)
      await refetchOperator()
    },
    onError: showProblem,
  })
  return (
    <Button variant="default" loading={renew.isPending} onClick={() => renew.mutate()}>
      Order now
    </Button>
  )
}
