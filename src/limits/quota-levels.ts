import { eq } from 'drizzle-orm'
import { emit } from '../jobs/outbox'
import { recordOperatorEvent } from '../tenancy/operator-events'
import { registry } from '../tenancy/registry'
import { getTenantAnyStatus } from '../tenancy/tenants'
import { describeQuota } from './quota-description'
import type { QuotaKind } from './shapes'
import { quotaLevels } from './tables'

/** The part of a quota, in percent, that was last reported as used: an event reports 80 and 100. */
export type QuotaLevel = 0 | 80 | 100

/** How far use has to fall below a level, in percent, before an event reports it once more. */
const REARM_DISTANCE = 10

/** Returns the level after use has changed. A quota of 0 has none, because nothing was used up. */
export function toNextLevel(before: QuotaLevel, used: number, limit: number): QuotaLevel {
  if (limit === 0) return 0
  const percent = (used / limit) * 100
  if (percent >= 100) return 100
  if (before === 100 && percent >= 100 - REARM_DISTANCE) return 100
  if (percent >= 80) return 80
  return before > 0 && percent >= 80 - REARM_DISTANCE ? 80 : 0
}

/** What is used of a quota in a period. */
export type QuotaUse = { kind: QuotaKind; period: string; used: number; limit: number }

/**
 * Stores the level of a quota's use, and emits an event for the tenant and the operator when it has risen. All processes
 * together do so once. Returns the level.
 */
export async function recordLevel(id: string, { kind, period, used, limit }: QuotaUse): Promise<QuotaLevel> {
  const tenant = await getTenantAnyStatus(id)
  const ofKind = eq(quotaLevels.kind, kind)
  const decide = (row: typeof quotaLevels.$inferSelect | undefined) => {
    const before = row?.period === period ? (row.level as QuotaLevel) : 0
    return { before, next: toNextLevel(before, used, limit) }
  }
  const known = decide(await tenant.db.select().from(quotaLevels).where(ofKind).get())
  if (known.before === known.next) return known.next
  const about = { quota: kind, limit, used, ...(period && { period }) }
  const { next, eventName } = await tenant.write(async (tx) => {
    const { before, next } = decide(await tx.select().from(quotaLevels).where(ofKind).get())
    const row = { kind, period, level: next }
    await tx.insert(quotaLevels).values(row).onConflictDoUpdate({ target: quotaLevels.kind, set: row })
    if (next <= before) return { next }
    const eventName = next === 100 ? 'quota-reached' : 'quota-warning'
    const part = next === 100 ? 'is used up' : 'is nearly used up'
    const description = `The quota of ${describeQuota(kind, limit)} ${part}.`
    await emit(tenant, tx, { source: 'limits', kind: 'quota', eventName, description, metadata: about })
    return { next, eventName } as const
  })
  if (eventName) await registry.write((tx) => recordOperatorEvent(tx, eventName, id, about))
  return next
}
