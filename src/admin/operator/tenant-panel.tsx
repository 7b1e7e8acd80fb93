import { Button, Stack } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import type { OperatorTenant } from '../api/schema'
import { confirmAction } from '../ui/confirmation'
import { Details } from '../ui/details'
import { formatBytes } from '../ui/format-bytes'
import { showNotice, showProblem } from '../ui/notices'
import { ProblemMessage } from '../ui/problem-message'
import { RelativeTime } from '../ui/relative-time'
import { SidePanel } from '../ui/side-panel'
import { LastBackup } from './last-backup'
import { operatorApi, refetchOperator, tenantQuery } from './operator-api'
import { OutgoingHold } from './outgoing-hold'
import { TenantBackups } from './tenant-backups'
import { TenantHome } from './tenant-home'
import { TenantHostsForm } from './tenant-hosts-form'
import { TenantLimitsForm } from './tenant-limits-form'
import { TenantQuotasForm } from './tenant-quotas-form'
import { TenantState } from './tenant-state'
import { TenantSupport } from './tenant-support'

const route = getRouteApi('/operator/tenants/$tenant')

/** One tenant: its state, its hosts, and what the operator may do with it. */
export function TenantPanel() {
  const { tenant: id } = route.useParams()
  const navigate = useNavigate()
  const close = () => navigate({ to: '/operator/tenants', search: true as never })
  const { data: tenant, error } = useQuery(tenantQuery(id))
  const isBackupKnown = !!tenant?.backup || tenant?.backupOverdue
  return (
    <SidePanel title={id} onClose={close} footer={tenant && <TenantActions tenant={tenant} onClose={close} />}>
      {error && <ProblemMessage error={error} />}
      {tenant && (
        <Stack gap="lg">
          <Details
            items={[
              ['State', <TenantState key="state" {...tenant} />],
              ['Damage', tenant.damage],
              ['Size', tenant.bytes === null ? undefined : formatBytes(tenant.bytes)],
              ['Last request', tenant.lastRequest && <RelativeTime key="last" time={tenant.lastRequest} />],
              ['Last backup', isBackupKnown ? <LastBackup key="backup" {...tenant} /> : null],
              ['Created', <RelativeTime key="created" time={tenant.created} />],
              ['Answers at', tenant.hosts.join(', ')],
            ]}
          />
          {tenant.outgoingHeld && <OutgoingHold tenant={tenant} heldSince={tenant.outgoingHeld} />}
          <TenantHome tenant={tenant} />
          <TenantBackups tenant={tenant} />
          <TenantHostsForm id={id} />
          <TenantLimitsForm id={id} />
          <TenantQuotasForm id={id} />
          {tenant.status === 'active' && <TenantSupport id={id} />}
        </Stack>
      )}
    </SidePanel>
  )
}

function TenantActions({
  tenant: { id, status },
  onClose,
}: {
  tenant: OperatorTenant
  onClose: () => Promise<unknown>
}) {
  const params = { path: { id } }
  const isActive = status === 'active'
  const change = useMutation({
    mutationFn: () => operatorApi.POST(`/operator/tenants/{id}/${isActive ? 'suspend' : 'resume'}`, { params }),
    onSuccess: refetchOperator,
    onError: showProblem,
  })
  const remove = useMutation({
    mutationFn: () => operatorApi.DELETE('/operator/tenants/{id}', { params: { ...params, query: { confirm: id } } }),
    onSuccess: async ({ data }) => {
      await onClose()
      await refetchOperator()
      showNotice(`The tenant ${id} was deleted.${data?.trash ? ` Its files are in ${data.trash}.` : ''}`)
    },
    onError: showProblem,
  })
  const confirmAndChange = async () => {
    const text = 'All of its requests are refused, and its jobs wait, until you resume it.'
    if (!isActive || (await confirmAction({ title: `Suspend the tenant ${id}?`, text, action: 'Suspend tenant' })))
      change.mutate()
  }
  const confirmAndRemove = async () => {
    const text = 'Its users, data and settings are deleted. The files are moved to the trash of the data folder.'
    const question = { title: `Delete the tenant ${id}?`, text, action: 'Delete tenant', typedName: id }
    if (await confirmAction(question)) remove.mutate()
  }
  return (
    <>
      <Button variant="default" onClick={confirmAndChange} loading={change.isPending}>
        {isActive ? 'Suspend' : 'Resume'}
      </Button>
      <Button variant="light" color="red" ml="auto" onClick={confirmAndRemove} loading={remove.isPending}>
        Delete
      </Button>
    </>
  )
}
