import { Button, Group, Stack, Title } from '@mantine/core'
import { useMutation, useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import type { OperatorTenant } from '../api/schema'
import { FieldForm, type FormField } from '../fields/field-form'
import { confirmAction } from '../ui/confirmation'
import { Details } from '../ui/details'
import { formatBytes } from '../ui/format-bytes'
import { showNotice } from '../ui/notices'
import { ProblemMessage } from '../ui/problem-message'
import { RelativeTime } from '../ui/relative-time'
import { SaveButton } from '../ui/save-button'
import { SidePanel } from '../ui/side-panel'
import { SecretLink } from './new-tenant-panel'
import { operatorApi, refreshTenants, tenantQuery } from './operator-api'
import { TenantState } from './tenants'

const route = getRouteApi('/operator/tenants/$tenant')

const hostFields: FormField[] = [
  {
    ...{ key: 'hosts', type: 'string', multi: true, required: false, title: 'Hosts that you give it' },
    description: 'A host that another tenant only claimed for a website is taken from it.',
  },
]
const supportFields: FormField[] = [
  {
    ...{ key: 'reason', type: 'string', required: true, title: 'Reason', max: 500 },
    description: 'Admins of the tenant see it in their events.',
  },
]

/** One tenant: its state, its hosts, and what the operator may do with it. */
export function TenantPanel() {
  const { tenant: id } = route.useParams()
  const navigate = useNavigate()
  const close = () => navigate({ to: '/operator/tenants', search: true as never })
  const { data: tenant, error } = useQuery(tenantQuery(id))
  return (
    <SidePanel title={id} onClose={close} footer={tenant && <TenantActions tenant={tenant} onGone={close} />}>
      {error && <ProblemMessage error={error} />}
      {tenant && (
        <Stack gap="lg">
          <Details
            items={[
              ['State', <TenantState key="state" {...tenant} />],
              ['Damage', tenant.damage],
              ['Size', tenant.bytes === null ? undefined : formatBytes(tenant.bytes)],
              ['Place', tenant.home],
              ['Last request', tenant.lastRequest && <RelativeTime key="last" time={tenant.lastRequest} />],
              ['Created', <RelativeTime key="created" time={tenant.created} />],
              ['Answers at', tenant.hosts.join(', ')],
            ]}
          />
          <Hosts id={id} />
          {tenant.status === 'active' && <Support id={id} />}
        </Stack>
      )}
    </SidePanel>
  )
}

function Hosts({ id }: { id: string }) {
  const params = { path: { id } }
  const { data, error } = useQuery({
    queryKey: ['operator', 'hosts', id],
    queryFn: async () => (await operatorApi.GET('/operator/tenants/{id}/hosts', { params })).data,
  })
  const finish = async () => {
    await refreshTenants()
    showNotice('Saved.')
  }
  if (error) return <ProblemMessage error={error} />
  return (
    data && (
      <div>
        <FieldForm
          id="tenant-hosts"
          fields={hostFields}
          before={data}
          draftKey={`operator-hosts-${id}`}
          save={async (_changes, { hosts }) => {
            const body = { hosts: Array.isArray(hosts) ? hosts.map(String) : [] }
            await operatorApi.PUT('/operator/tenants/{id}/hosts', { params, body })
          }}
          onSaved={finish}
        />
        <Group mt="xs">
          <SaveButton form="tenant-hosts" label="Save hosts" />
        </Group>
      </div>
    )
  )
}

function Support({ id }: { id: string }) {
  const open = useMutation({
    mutationFn: async (reason: string) => {
      const answer = await operatorApi.POST('/operator/tenants/{id}/support', {
        params: { path: { id } },
        body: { reason },
      })
      return answer.data?.link ?? ''
    },
    onSuccess: refreshTenants,
  })
  return (
    <section aria-label="Support">
      <Title order={3} mb="xs">
        Open for support
      </Title>
      {open.data ? (
        <SecretLink
          text="This link signs you in once, within an hour, as an administrator of your own. The session ends within two hours."
          label="Support link"
          link={open.data}
        />
      ) : (
        <>
          <FieldForm
            id="tenant-support"
            fields={supportFields}
            before={{}}
            draftKey={`operator-support-${id}`}
            save={(_changes, { reason }) => open.mutateAsync(String(reason ?? ''))}
            onSaved={() => {}}
          />
          <Button mt="xs" type="submit" form="tenant-support" variant="default">
            Make a link
          </Button>
        </>
      )}
    </section>
  )
}

function TenantActions({ tenant: { id, status }, onGone }: { tenant: OperatorTenant; onGone: () => Promise<unknown> }) {
  const params = { path: { id } }
  const isActive = status === 'active'
  const change = useMutation({
    mutationFn: () => operatorApi.POST(`/operator/tenants/{id}/${isActive ? 'suspend' : 'resume'}`, { params }),
    onSuccess: refreshTenants,
  })
  const remove = useMutation({
    mutationFn: () => operatorApi.DELETE('/operator/tenants/{id}', { params: { ...params, query: { confirm: id } } }),
    onSuccess: async ({ data }) => {
      await onGone()
      await refreshTenants()
      showNotice(`${id} was deleted.${data?.trash ? ` Its files are in ${data.trash}.` : ''}`)
    },
  })
  const askAndChange = async () => {
    const text = 'All of its requests get 403, and its jobs wait, until you resume it.'
    if (!isActive || (await confirmAction({ title: `Suspend ${id}?`, text, action: 'Suspend' }))) change.mutate()
  }
  const askAndRemove = async () => {
    const text = 'Its users, data and settings go. The files are moved to the trash of the data folder.'
    const question = { title: `Delete the tenant ${id}?`, text, action: 'Delete the tenant', typedName: id }
    if (await confirmAction(question)) remove.mutate()
  }
  return (
    <>
      <Button variant="default" onClick={askAndChange} loading={change.isPending}>
        {isActive ? 'Suspend' : 'Resume'}
      </Button>
      <Button variant="light" color="red" ml="auto" onClick={askAndRemove} loading={remove.isPending}>
        Delete
      </Button>
    </>
  )
}
