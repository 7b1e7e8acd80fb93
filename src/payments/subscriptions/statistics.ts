import { asc, gt } from 'drizzle-orm'
import type { Ctx } from '../../accounts/context'
import { readFairly } from '../../entities/query/fair-reads'
import type { Db } from '../../storage/port'
import { fromMinorUnits } from '../money'
import { subscriptions } from '../tables'
import { priceOf } from './serializer'
import type { SubscriptionStatistics } from './shapes'
import { SHOWN_STATUSES, type ShownStatus, shownStatus } from './transitions'

const { _id, status, currency, billingCycle, basePrice, discount, couponBenefitEndsAt, ...more } = subscriptions
const { externalSubscriptionId, pause, providerKind } = more
const MONTHS_PER_YEAR = 12
const ROWS_PER_BATCH = 500 // rows read before other work gets a turn

/**
 * Returns how many subscriptions have each status, and what those that are billed bring in a month, by currency.
 * @throws 503 BUSY
 */
export const summarize = (ctx: Ctx, request: Request): Promise<SubscriptionStatistics> =>
  readFairly(ctx, request, async (db) => {
    const countByStatus = Object.fromEntries(SHOWN_STATUSES.map((name) => [name, 0])) as Record<ShownStatus, number>
    const byCurrency = new Map<string, { yearly: number; subscriptions: number }>()
    for await (const row of readAll(db)) {
      countByStatus[shownStatus(row)]++
      if (!isBilled(row)) continue
      const { yearly, subscriptions } = byCurrency.get(row.currency) ?? { yearly: 0, subscriptions: 0 }
      const perYear = (priceOf(row) ?? 0) * (row.billingCycle === 'yearly' ? 1 : MONTHS_PER_YEAR)
      byCurrency.set(row.currency, { yearly: yearly + perYear, subscriptions: subscriptions + 1 })
    }
    return { countByStatus, monthlyRevenue: toMonthlyRevenue([...byCurrency]) }
  })

type Row = Awaited<ReturnType<typeof readBatch>>[number]

async function* readAll(db: Db): AsyncGenerator<Row> {
  for (let last = ''; ; ) {
    const rows = await readBatch(db, last)
    yield* rows
    if (rows.length < ROWS_PER_BATCH) return
    last = rows.at(-1)!._id
  }
}

const readBatch = (db: Db, last: string) =>
  db
    .select({
      ...{ _id, status, currency, billingCycle, basePrice, discount, couponBenefitEndsAt },
      ...{ externalSubscriptionId, pause, providerKind },
    })
    .from(subscriptions)
    .where(gt(_id, last))
    .orderBy(asc(_id))
    .limit(ROWS_PER_BATCH)

/** Whether a subscription is billed for a price. Those without a provider are free, and nothing is collected in a pause. */
const isBilled = ({ status, externalSubscriptionId, basePrice, pause }: Row) =>
  pause === null &&
  (status === 'active' || status === 'past_due') &&
  externalSubscriptionId !== null &&
  basePrice !== null

const toMonthlyRevenue = (byCurrency: [currency: string, { yearly: number; subscriptions: number }][]) =>
  byCurrency
    .sort(([, one], [, other]) => other.yearly - one.yearly)
    .map(([currency, { yearly, subscriptions }]) => ({
      ...{ currency, subscriptions },
      amount: fromMinorUnits(Math.round(yearly / MONTHS_PER_YEAR), currency),
    }))
