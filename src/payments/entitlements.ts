import { and, eq, inArray } from 'drizzle-orm'
import type { Tx } from '../storage/port'
import { plans, subscriptions } from './tables'

/**
 * How much an owner's plan allows of something: that of the workspace, else that of the user. Without a subscription it is
 * `otherwise`, or nothing; where the plan does not say, there is no limit (undefined). Who is late to pay keeps what they
 * have until the grace is over.
 */
export async function findPlanLimit(
  tx: Tx,
  { user, workspace }: { user: string | null; workspace: string | null },
  { planLimit: name, otherwise = 0 }: { planLimit: string; otherwise?: number },
): Promise<number | undefined> {
  const [type, id] = workspace === null ? (['user', user] as const) : (['workspace', workspace] as const)
  if (id === null) return otherwise
  const of = and(eq(subscriptions.billableEntityType, type), eq(subscriptions.billableEntityId, id))
  const candidates = await tx
    .select({ status: subscriptions.status, limits: plans.limits })
    .from(subscriptions)
    .innerJoin(plans, eq(plans._id, subscriptions.planId))
    .where(and(of, inArray(subscriptions.status, ['active', 'trialing', 'past_due'])))
    .orderBy(subscriptions._id)
  const current = candidates.find(({ status }) => status !== 'past_due') ?? candidates.at(-1)
  if (!current) return otherwise
  const limit = Object.hasOwn(current.limits, name) ? current.limits[name] : undefined
  // Entities are counted: of one and a half there may be one.
  return typeof limit === 'number' ? Math.min(Math.floor(limit), Number.MAX_SAFE_INTEGER) : undefined
}
