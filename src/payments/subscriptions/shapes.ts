import { type Static, t } from 'elysia'

const money = t.Number({ description: 'amount in the currency, with decimals' })

const count = t.Number()

export const SubscriptionStatistics = t.Object({
  countByStatus: t.Object({
    ...{ pending: count, active: count, trialing: count, past_due: count, canceled: count, expired: count },
  }),
  monthlyRevenue: t.Array(t.Object({ currency: t.String(), amount: money, subscriptions: count }), {
    description: 'what the subscriptions that are billed bring in a month with their discounts of now, by currency',
  }),
})
export type SubscriptionStatistics = Static<typeof SubscriptionStatistics>
