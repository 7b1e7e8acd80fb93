import type { PublicCtx } from '../../accounts/context'
import type { Model } from '../../blueprints/model'
import type { RowScope } from '../../blueprints/permissions'
import { config } from '../../config'
import { log } from '../../core/log'
import { LogQuota } from '../../core/log-quota'
import { describePlan } from './explain'
import type { Query } from './query-parser'

const slowLines = new LogQuota(30, 10)

/** Logs the plan of a list that took longer than ATOLL_SLOW_QUERY, since `began`. The line has no values. */
export async function reportSlowList(
  { tenant, db }: PublicCtx,
  { model, rowScope, query, began }: { model: Model; rowScope: RowScope; query: Query; began: number },
) {
  const ms = Math.round(performance.now() - began)
  if (!config.ATOLL_SLOW_QUERY || ms <= config.ATOLL_SLOW_QUERY) return
  const omitted = slowLines.take(tenant)
  if (omitted === undefined) return
  // The list was read, so a plan that cannot be found out must not take it away from the caller.
  const plan = await describePlan(db, model, rowScope, query).catch(() => undefined)
  log.warn({ event: 'slow-list', tenant, blueprint: model.key, ms, plan, ...(omitted && { omitted }) })
}
