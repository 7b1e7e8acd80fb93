import { Group } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { parseSize, toSizeText } from '../../core/byte-size'
import { fetchData } from '../api/client'
import { ApiProblem } from '../api/problem'
import type { QuotaChange, TenantQuotas } from '../api/schema'
import { FieldForm, type FormField, type FormValues } from '../fields/field-form'
import { formatAmount, QUOTA_LABELS, type QuotaKind, quotaKinds } from '../limits/quota-kinds'
import { showNotice } from '../ui/notices'
import { PanelSection } from '../ui/panel-section'
import { ProblemMessage } from '../ui/problem-message'
import { SaveButton } from '../ui/save-button'
import { operatorApi, refetchOperator } from './operator-api'

const FORM_ID = 'tenant-quotas'

function describeUse(kind: QuotaKind, { usage, ...limits }: TenantQuotas): string {
  const [used, limit] = [usage[kind], limits[kind]]
  if (used === null) return 'Usage cannot be measured right now.'
  const part = limit ? ` (${Math.floor((used / limit) * 100)} %)` : ''
  return `Used: ${formatAmount(kind, used)}${part}.${kind === 'storage' ? ' A size is 500M or 2G.' : ''}`
}

const toFields = (quotas: TenantQuotas): FormField[] =>
  quotaKinds.map((kind) => ({
    ...{ key: kind, title: QUOTA_LABELS[kind], description: describeUse(kind, quotas), required: false },
    type: kind === 'storage' ? 'string' : 'integer',
  }))

const toValues = (quotas: TenantQuotas): FormValues =>
  Object.fromEntries(
    quotaKinds.map((kind) => {
      const limit = quotas[kind] ?? undefined
      return [kind, kind === 'storage' && limit !== undefined ? toSizeText(limit) : limit]
    }),
  )

/** @throws ApiProblem for a text that is no size */
function toQuotas({ storage, ...changes }: FormValues): QuotaChange {
  if (typeof storage !== 'string') return { ...changes, ...(storage === null && { storage }) }
  const bytes = parseSize(storage.trim())
  if (bytes !== undefined) return { ...changes, storage: bytes }
  const message = 'Write a size such as 500M or 2G.'
  throw new ApiProblem(400, 'INVALID_INPUT', message, [{ path: '/storage', message }], null)
}

/** A form for how much a tenant may have and use. */
export function TenantQuotasForm({ id }: { id: string }) {
  const params = { path: { id } }
  const { data, error } = useQuery({
    queryKey: ['operator', 'quotas', id],
    queryFn: () => fetchData(operatorApi.GET('/operator/tenants/{id}/quotas', { params })),
  })
  const finish = async () => {
    await refetchOperator()
    showNotice('Saved.')
  }
  return (
    <PanelSection title="Quotas">
      {error && <ProblemMessage error={error} />}
      {data && (
        <>
          <FieldForm
            id={FORM_ID}
            fields={toFields(data)}
            before={toValues(data)}
            draftKey={`operator-quotas-${id}`}
            save={async (changes) =>
              operatorApi.PUT('/operator/tenants/{id}/quotas', { params, body: toQuotas(changes) })
            }
            onSaved={finish}
          />
          <Group mt="xs">
            <SaveButton form={FORM_ID} label="Save quotas" />
          </Group>
        </>
      )}
    </PanelSection>
  )
}
