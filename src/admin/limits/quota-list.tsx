import { Group, Progress, Stack, Text } from '@mantine/core'
import type { TenantQuotas } from '../api/schema'
import { formatAmount, QUOTA_LABELS, type QuotaKind, quotaKinds } from './quota-kinds'

const WARNING_PART = 0.8

/** How much a tenant uses of each quota. */
export const QuotaList = ({ quotas }: { quotas: TenantQuotas }) => (
  <Stack gap="xs">
    {quotaKinds.map((kind) => (
      <QuotaUse key={kind} kind={kind} limit={quotas[kind]} used={quotas.usage[kind]} />
    ))}
  </Stack>
)

function QuotaUse({ kind, limit, used }: { kind: QuotaKind; limit: number | null; used: number | null }) {
  const label = QUOTA_LABELS[kind]
  const part = limit === null || used === null ? undefined : limit ? used / limit : 1
  const amount = used === null ? 'unknown' : formatAmount(kind, used)
  const color = part === undefined || part < WARNING_PART ? undefined : part < 1 ? 'orange' : 'red'
  return (
    <div>
      <Group justify="space-between" gap="xs">
        <Text size="sm">{label}</Text>
        <Text size="sm" c="dimmed">
          {limit === null ? amount : `${amount} of ${formatAmount(kind, limit)}`}
        </Text>
      </Group>
      {part !== undefined && (
        <Progress value={Math.min(100, part * 100)} color={color} aria-label={label} size="sm" mt={2} />
      )}
    </div>
  )
}
