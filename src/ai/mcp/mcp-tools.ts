import { and, asc, eq } from 'drizzle-orm'
import type { Ctx } from '../../accounts/context'
import { blueprints } from '../../blueprints/tables'
import { integrations } from '../../integrations/tables'
import { loadTools, type Tools } from '../tools/tools'

/** Returns all tools that a caller may use: those of all blueprints, and the integrations with the trigger `tool`. */
export async function loadAllTools(ctx: Ctx): Promise<Tools> {
  const { _id, triggerKind, active } = integrations
  const [keys, ids] = await Promise.all([
    ctx.db.select({ key: blueprints.key }).from(blueprints).orderBy(asc(blueprints.key)),
    ctx.db
      .select({ _id })
      .from(integrations)
      .where(and(eq(triggerKind, 'tool'), eq(active, true)))
      .orderBy(asc(_id)),
  ])
  return loadTools(ctx, { blueprints: keys.map(({ key }) => key), tools: ids.map(({ _id }) => _id) })
}
