import { lt } from 'drizzle-orm'
import type { PublicCtx } from '../../accounts/context'
import { config } from '../../config'
import { DAY_MS, now, toIsoString } from '../../core/clock'
import { deleteInBatches } from '../../jobs/batch-delete'
import { emit } from '../../jobs/outbox'
import type { Lease } from '../../jobs/with-lease'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import { spent, usage } from '../tables'
import type { TokenUsage } from '../turn/model-call'
import { calculateCost } from './prices'

export type UsageStatus = 'completed' | 'failed' | 'aborted'
export type UsageRow = typeof usage.$inferSelect

/** What a model was asked for, and took. */
export type UsageInput = Pick<UsageRow, 'kind'> & {
  /** None, where a source was asked directly. */
  integration: string | null
  source: string
  model: string
  thread: string | null
  usage: TokenUsage
  status: UsageStatus
  durationMs: number
}

/** What is kept of it, with what it cost. Prices are looked up, so this is no part of a write. */
export async function buildUsageRow(
  { actor, ...tenant }: PublicCtx,
  { usage, ...input }: UsageInput,
): Promise<UsageRow> {
  const { prompt: promptTokens, completion: completionTokens, estimated } = usage
  const owner = { user: actor?.user ?? null, workspace: actor?.workspace?._id ?? null }
  const cost = await calculateCost(tenant, input.model, usage)
  const identity = { _id: Bun.randomUUIDv7(), created: toIsoString(now()) }
  return { ...identity, ...input, ...owner, promptTokens, completionTokens, cost, estimated }
}

/** Keeps what a model took, and adds it to what budgets are about. Whatever asks one ends here, so this is where to count. */
export async function recordUsage(tx: Tx, row: UsageRow): Promise<void> {
  await tx.insert(usage).values(row)
  await addToTotals(tx, row)
}

/**
 * Keeps what a completion took, in the transaction that keeps what became of it, and tells that it happened, without a word
 * of what was said.
 */
export async function recordCompletion(tenant: Tenant, tx: Tx, row: UsageRow, code?: string): Promise<void> {
  await recordUsage(tx, row)
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

async function addToTotals(tx: Tx, { created, user, workspace, promptTokens, completionTokens, cost }: UsageRow) {
  const tokens = promptTokens + completionTokens
  if (!tokens && !cost) return
  const subjects = [['tenant', ''] as const, ['user', user] as const, ['workspace', workspace] as const]
  const rows = subjects.flatMap(([scope, subject]) =>
    subject === null ? [] : BUDGET_PERIODS.map((period) => [toTotalId(scope, subject, period, created), tokens, cost]),
  )
  await tx.query(
    `insert into ai_spent (_id, tokens, cost) values ${rows.map(() => '(?, ?, ?)').join(', ')}
     on conflict ("_id") do update set tokens = ai_spent.tokens + excluded.tokens, cost = ai_spent.cost + excluded.cost`,
    rows.flat(),
  )
}

export type BudgetScope = 'tenant' | 'user' | 'workspace'
export type BudgetPeriod = 'day' | 'month'
const BUDGET_PERIODS: BudgetPeriod[] = ['day', 'month']

/** Under which name it is kept what somebody took in the day or month, of UTC, in which a moment lies. */
export const toTotalId = (scope: BudgetScope, subject: string, period: BudgetPeriod, time: string) =>
  `${time.slice(0, period === 'day' ? 10 : 7)} ${scope} ${subject}`

/** Removes what models took when that is older than it is kept, and sums of months that no budget is about any more. */
export async function removeOld(tenant: Tenant & Lease) {
  const cutoff = toIsoString(now() - config.ATOLL_AI_USAGE_RETENTION * DAY_MS)
  await deleteInBatches(tenant, usage, usage._id, lt(usage.created, cutoff))
  await deleteInBatches(tenant, spent, spent._id, lt(spent._id, toIsoString(now() - 32 * DAY_MS).slice(0, 7)))
}
