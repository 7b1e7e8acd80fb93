import type { OperatorTenant } from '../api/schema'
import { StateTag } from '../ui/state-tag'

/** The state of a tenant as a tag. */
export function TenantState({ status, damage }: Pick<OperatorTenant, 'status' | 'damage'>) {
  if (damage) return <StateTag label="Damaged" tone="bad" />
  return status === 'active' ? <StateTag label="Active" tone="good" /> : <StateTag label="Suspended" tone="warning" />
}
