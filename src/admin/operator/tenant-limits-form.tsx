import { Group } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { fetchData } from '../api/client'
import { LimitForm } from '../limits/limit-form'
import { showNotice } from '../ui/notices'
import { PanelSection } from '../ui/panel-section'
import { ProblemMessage } from '../ui/problem-message'
import { SaveButton } from '../ui/save-button'
import { operatorApi, refetchOperator } from './operator-api'

const FORM_ID = 'tenant-limits'

/** A form for how many requests the operator allows each caller of a tenant. */
export function TenantLimitsForm({ id }: { id: string }) {
  const params = { path: { id } }
  const { data, error } = useQuery({
    queryKey: ['operator', 'limits', id],
    queryFn: () => fetchData(operatorApi.GET('/operator/tenants/{id}/limits', { params })),
  })
  const finish = async () => {
    await refetchOperator()
    showNotice('Saved.')
  }
  return (
    <PanelSection title="Requests per minute">
      {error && <ProblemMessage error={error} />}
      {data && (
        <>
          <LimitForm
            id={FORM_ID}
            chosen={data}
            allowed={data.defaults}
            describe={(limit) => `Default: ${limit}.`}
            draftKey={`operator-limits-${id}`}
            save={(body) => operatorApi.PUT('/operator/tenants/{id}/limits', { params, body })}
            onSaved={finish}
          />
          <Group mt="xs">
            <SaveButton form={FORM_ID} label="Save limits" />
          </Group>
        </>
      )}
    </PanelSection>
  )
}
