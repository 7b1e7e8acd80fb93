import { lt } from 'drizzle-orm'
import type { OpenCtx } from '../../accounts/guard'
import { config } from '../../config'
import { DAY, iso, now } from '../../core/clock'
import type { Lease } from '../../jobs/holding'
import { emit } from '../../jobs/outbox'
import { removeInSlices } from '../../jobs/removal'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import { spent, usage } from '../tables'
import type { Usage } from '../turn/model'
import { costOf } from './prices'

export type Status = 'completed' | 'failed' | 'aborted'
export type UsageRow = typeof usage.$inferSelect

/** What a model was asked for, and took. */
export type Taken = Pick<UsageRow, 'kind'> & {
  /** None, where a source was asked directly. */
  integration: string | null
  source: string
  model: string
  thread: string | null
  usage: Usage
  status: Status
  durationMs: number
}

/** What is kept of it, with what it cost. Prices are looked up, so this is no part of a write. */
export async function usageRow({ actor, ...tenant }: OpenCtx, { usage, ...taken }: Taken): Promise<UsageRow> {
  const { prompt: promptTokens, completion: completionTokens, estimated } = usage
  const whose = { user: actor?.user ?? null, workspace: actor?.workspace?._id ?? null }
  const cost = await costOf(tenant, taken.model, usage)
  const time = { _id: Bun.randomUUIDv7(), created: iso(now()) }
  return { ...time, ...taken, ...whose, promptTokens, completionTokens, cost, estimated }
}

/** Keeps what a model took, and adds it to what budgets are about. Whatever asks one ends here, so this is where to count. */
export async function keepUsage(tx: Tx, row: UsageRow): Promise<void> {
  await tx.insert(usage).values(row)
  await add(tx, row)
}

/**
 * Keeps what a completion took, in the transaction that keeps what became of it, and tells that it happened, without a word
 * of what was said.
 */
export async function spend(tenant: Tenant, tx: Tx, row: UsageRow, code?: string): Promise<void> {
  await keepUsage(tx, row)
  const { _id, source, integration, thread, model, user, workspace, status, cost, estimated } = row
  const { promptTokens, completionTokens, durationMs } = row
  const about = { usage: _id, integration, aiSource: source, thread, model, status, ...(code && { code }) }
  await emit(tenant, tx, {
    ...{ source: 'ai', kind: 'completion', user, workspace },
    ...(status === 'completed'
      ? { eventName: 'completion', description: 'A model has answered.' }
      : { eventName: 'failure', description: `A completion has ${status}.` }),
    metadata: { ...about, promptTokens, completionTokens, cost, estimated, durationMs },
  })
}

async function add(tx: Tx, { created, user, workspace, promptTokens, completionTokens, cost }: UsageRow) {
  const tokens = promptTokens + completionTokens
  if (!tokens && !cost) return
  const subjects = [['tenant', ''] as const, ['user', user] as const, ['workspace', workspace] as const]
  const rows = subjects.flatMap(([scope, whose]) =>
    whose === null ? [] : periods.map((period) => [spentId(scope, whose, period, created), tokens, cost]),
  )
  await tx.ask(
    `insert into ai_spent (_id, tokens, cost) values ${rows.map(() => '(?, ?, ?)').join(', ')}
     on conflict ("_id") do update set tokens = ai_spent.tokens + excluded.tokens, cost = ai_spent.cost + excluded.cost`,
    rows.flat(),
  )
}

export type Scope = 'tenant' | 'user' | 'workspace'
export type Period = 'day' | 'month'
const periods: Period[] = ['day', 'month']

/** Under which name it is kept what somebody took in the day or month, of UTC, in which a moment lies. */
export const spentId = (scope: Scope, whose: string, period: Period, time: string) =>
  `${time.slice(0, period === 'day' ? 10 : 7)} ${scope} ${whose}`

/** Removes what models took when that is older than it is kept, and sums of months that no budget is about any more. */
export async function removeOld(tenant: Tenant & Lease) {
  const kept = iso(now() - config.ATOLL_AI_USAGE_RETENTION * DAY)
  await removeInSlices(tenant, usage, usage._id, lt(usage.created, kept))
  await removeInSlices(tenant, spent, spent._id, lt(spent._id, iso(now() - 32 * DAY).slice(0, 7)))
}
