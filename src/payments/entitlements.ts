import { and, eq, inArray } from 'drizzle-orm'
import type { Tx } from '../storage/port'
import { subscriptionsOfEntity } from './billable-entity'
import { plans, subscriptions } from './tables'

/**
 * Returns the limit with a name in the plan of an owner, which is the workspace, or else the user. Returns `otherwise`
 * without a subscription, and undefined (no limit) if the plan does not name it. An owner whose payment is overdue keeps
 * the limits until the grace period ends.
 */
export async function findPlanLimit(
  tx: Tx,
  { user, workspace }: { user: string | null; workspace: string | null },
  { planLimit: name, otherwise = 0 }: { planLimit: string; otherwise?: number },
): Promise<number | undefined> {
  const id = workspace ?? user
  if (id === null) return otherwise
  const owner = { billableEntityType: workspace === null ? 'user' : 'workspace', billableEntityId: id } as const
  const candidates = await tx
    .select({ status: subscriptions.status, limits: plans.limits })
    .from(subscriptions)
    .innerJoin(plans, eq(plans._id, subscriptions.planId))
    .where(and(subscriptionsOfEntity(owner), inArray(subscriptions.status, ['active', 'trialing', 'past_due'])))
    .orderBy(subscriptions._id)
  const current = candidates.find(({ status }) => status !== 'past_due') ?? candidates.at(-1)
  if (!current) return otherwise
  const limit = Object.hasOwn(current.limits, name) ? current.limits[name] : undefined
  // Entities are counted in whole numbers, so a limit of 1.5 allows one.
  return typeof limit === 'number' ? Math.min(Math.floor(limit), Number.MAX_SAFE_INTEGER) : undefined
}
