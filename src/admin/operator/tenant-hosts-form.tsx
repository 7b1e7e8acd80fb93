import { Group } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { fetchData } from '../api/client'
import { FieldForm, type FormField } from '../fields/field-form'
import { showNotice } from '../ui/notices'
import { ProblemMessage } from '../ui/problem-message'
import { SaveButton } from '../ui/save-button'
import { operatorApi, refetchOperator } from './operator-api'

const FORM_ID = 'tenant-hosts'

const hostFields: FormField[] = [
  {
    ...{ key: 'hosts', type: 'string', multi: true, required: false, title: 'Hosts that you give it' },
    description: 'A host that another tenant only claimed for a website is taken from it.',
  },
]
/** A form for the hosts that the operator gives a tenant. */
export function TenantHostsForm({ id }: { id: string }) {
  const params = { path: { id } }
  const { data, error } = useQuery({
    queryKey: ['operator', 'hosts', id],
    queryFn: () => fetchData(operatorApi.GET('/operator/tenants/{id}/hosts', { params })),
  })
  const finish = async () => {
    await refetchOperator()
    showNotice('Saved.')
  }
  if (error) return <ProblemMessage error={error} />
  return (
    data && (
      <div>
        <FieldForm
          id={FORM_ID}
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
          <SaveButton form={FORM_ID} label="Save hosts" />
        </Group>
      </div>
    )
  )
}
