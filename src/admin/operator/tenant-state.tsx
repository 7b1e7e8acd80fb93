import { Group } from '@mantine/core'
import type { OperatorTenant } from '../api/schema'
import { StateTag } from '../ui/state-tag'

type TenantStateProps = Pick<OperatorTenant, 'status' | 'damage' | 'outgoingHeld'>

/** The state of a tenant as a tag, with another one for a copy that does nothing outside. */
export const TenantState = ({ outgoingHeld, ...state }: TenantStateProps) => (
  <Group gap={4} wrap="nowrap" component="span">
    <StatusTag {...state} />
    {outgoingHeld && <StateTag label="Held copy" tone="warning" />}
  </Group>
)

function StatusTag({ status, damage }: Omit<TenantStateProps, 'outgoingHeld'>) {
  if (damage) return <StateTag label="Damaged" tone="bad" />
  return status === 'active' ? <StateTag label="Active" tone="good" /> : <StateTag label="Suspended" tone="warning" />
}
