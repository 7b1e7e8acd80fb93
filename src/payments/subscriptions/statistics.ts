import { and, count, gte, inArray, isNotNull, isNull, lt, or, type SQL } from 'drizzle-orm'
import type { Ctx } from '../../accounts/context'
import { now, toIsoString } from '../../core/clock'
import { fromMinorUnits } from '../money'
import type { SubscriptionStatistics } from '../shapes'
import { subscriptions } from '../tables'
import { priceOf } from './serializer'
import { type Status, TRANSITIONS } from './transitions'

const { status, currency, billingCycle, basePrice, discount, couponBenefitEndsAt, externalSubscriptionId } =
  subscriptions
const MONTHS_PER_YEAR = 12

/** Subscriptions that are billed for a price. Those without a provider are free. */
const isBilled = and(inArray(status, ['active', 'past_due']), isNotNull(externalSubscriptionId), isNotNull(basePrice))

/** Returns how many subscriptions have each status, and what those that are billed bring in a month, by currency. */
export async function summarize({ db }: Ctx): Promise<SubscriptionStatistics> {
  const counted = await db.select({ status, count: count() }).from(subscriptions).groupBy(status)
  const countByStatus = Object.fromEntries(Object.keys(TRANSITIONS).map((name) => [name, 0])) as Record<Status, number>
  for (const row of counted) countByStatus[row.status] = Number(row.count)
  const time = toIsoString(now())
  const withDiscount = or(isNull(couponBenefitEndsAt), gte(couponBenefitEndsAt, time))
  const groups = [
    ...(await listPriceGroups(db, withDiscount)),
    ...(await listPriceGroups(db, lt(couponBenefitEndsAt, time))).map((group) => ({ ...group, discount: null })),
  ]
  return { countByStatus, monthlyRevenue: sumByCurrency(groups) }
}

/** Few prices are shared by many subscriptions, so the database counts them and `priceOf` is asked once for each. */
const listPriceGroups = (db: Ctx['db'], condition: SQL | undefined) =>
  db
    .select({ currency, billingCycle, basePrice, discount, count: count() })
    .from(subscriptions)
    .where(and(isBilled, condition))
    .groupBy(currency, billingCycle, basePrice, discount)

type PriceGroup = Awaited<ReturnType<typeof listPriceGroups>>[number]

function sumByCurrency(groups: PriceGroup[]): SubscriptionStatistics['monthlyRevenue'] {
  const byCurrency = new Map<string, { yearly: number; subscriptions: number }>()
  for (const { currency, billingCycle, count, ...price } of groups) {
    const { yearly, subscriptions } = byCurrency.get(currency) ?? { yearly: 0, subscriptions: 0 }
    const perYear =
      (priceOf({ ...price, couponBenefitEndsAt: null }) ?? 0) * (billingCycle === 'yearly' ? 1 : MONTHS_PER_YEAR)
    byCurrency.set(currency, { yearly: yearly + perYear * Number(count), subscriptions: subscriptions + Number(count) })
  }
  return [...byCurrency]
    .sort(([, one], [, other]) => other.yearly - one.yearly)
    .map(([currency, { yearly, subscriptions }]) => ({
      ...{ currency, subscriptions },
      amount: fromMinorUnits(Math.round(yearly / MONTHS_PER_YEAR), currency),
    }))
}
