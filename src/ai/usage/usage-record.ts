import { eq, lt } from 'drizzle-orm'
import type { PublicCtx } from '../../accounts/context'
import { config } from '../../config'
import { DAY_MS, now, toIsoString } from '../../core/clock'
import { deleteInBatches } from '../../jobs/batch-delete'
import { emit } from '../../jobs/outbox'
import type { Lease } from '../../jobs/with-lease'
import { addUse } from '../../limits/quota-use'
import type { Tx } from '../../storage/port'
import type { Tenant } from '../../tenancy/tenants'
import { spent, usage } from '../tables'
import type { TokenUsage } from '../turn/reply'
import { calculateCost } from './prices'

export type UsageStatus = 'completed' | 'failed' | 'aborted'
export type UsageRow = typeof usage.$inferSelect

/** A completion or an embedding, with its usage. */
export type UsageInput = Pick<UsageRow, 'kind'> & {
  /** Null if a source was called directly. */
  integration: string | null
  source: string
  model: string
  thread: string | null
  usage: TokenUsage
  status: UsageStatus
  durationMs: number
}

/** Returns the usage row with its cost. It reads the prices, so call it outside of a write. */
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

/** How many tokens models read and wrote for this process, in all tenants. */
export const tokenCounts = { prompt: 0, completion: 0 }

/** Inserts a usage row and adds it to the totals of budgets. Every call of a model is recorded here. */
export async function recordUsage(tenant: Pick<Tenant, 'tenant'>, tx: Tx, row: UsageRow): Promise<void> {
  await tx.insert(usage).values(row)
  await addToTotals(tx, row)
  tx.afterCommit(() => {
    addUse(tenant, 'aiTokens', row.promptTokens + row.completionTokens)
    tokenCounts.prompt += row.promptTokens
    tokenCounts.completion += row.completionTokens
  })
}

/** Records the usage of a completion, and emits an event without any of its content, in the transaction of its result. */
export async function recordCompletion(tenant: Tenant, tx: Tx, row: UsageRow, code?: string): Promise<void> {
  await recordUsage(tenant, tx, row)
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

/** Returns the id of the total of a subject for the day or month (UTC) of `time`, an ISO string. */
export const toTotalId = (scope: BudgetScope, subject: string, period: BudgetPeriod, time: string) =>
  `${time.slice(0, period === 'day' ? 10 : 7)} ${scope} ${subject}`

/** Returns how many tokens a tenant has used in this month (UTC). */
export async function countTokensOfMonth({ db }: Tenant): Promise<number> {
  const _id = toTotalId('tenant', '', 'month', toIsoString(now()))
  return (await db.select().from(spent).where(eq(spent._id, _id)).get())?.tokens ?? 0
}

/** Removes usage older than ATOLL_AI_USAGE_RETENTION (days), and totals of past months, which no budget needs. */
export async function removeOld(tenant: Tenant & Lease) {
  const cutoff = toIsoString(now() - config.ATOLL_AI_USAGE_RETENTION * DAY_MS)
  await deleteInBatches(tenant, usage, usage._id, lt(usage.created, cutoff))
  await deleteInBatches(tenant, spent, spent._id, lt(spent._id, toIsoString(now() - 32 * DAY_MS).slice(0, 7)))
}
