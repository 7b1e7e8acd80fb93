import { queryOptions } from '@tanstack/react-query'
import { api, fetchData } from '../api/client'
import { queryClient } from '../api/queries'
import { providerKinds } from './providers'

const MAX_ROWS = 1_000
/** Customers pay elsewhere, so the sums are asked for again. */
const STATISTICS_INTERVAL_MS = 30_000
const inPath = (id: string) => ({ params: { path: { id } } })

/** All plans in their order, archived ones too. */
export const plansQuery = queryOptions({
  queryKey: ['payments', 'plans', 'all'],
  queryFn: () => fetchData(api.GET('/api/plans', { params: { query: { limit: MAX_ROWS } } })),
})

/** One plan. */
export const planQuery = (id: string) =>
  queryOptions({
    queryKey: ['payments', 'plans', 'one', id],
    queryFn: () => fetchData(api.GET('/api/plans/{id}', inPath(id))),
  })

/** All coupons, newest first. */
export const couponsQuery = queryOptions({
  queryKey: ['payments', 'coupons', 'all'],
  queryFn: () => fetchData(api.GET('/api/coupons', { params: { query: { limit: MAX_ROWS } } })),
})

/** One coupon. */
export const couponQuery = (id: string) =>
  queryOptions({
    queryKey: ['payments', 'coupons', 'one', id],
    queryFn: () => fetchData(api.GET('/api/coupons/{id}', inPath(id))),
  })

/** One subscription. */
export const subscriptionQuery = (id: string) =>
  queryOptions({
    queryKey: ['payments', 'subscriptions', 'one', id],
    queryFn: () => fetchData(api.GET('/api/subscriptions/{id}', inPath(id))),
  })

/** How many subscriptions there are in each state, and what they bring in a month. */
export const statisticsQuery = queryOptions({
  queryKey: ['payments', 'subscriptions', 'statistics'],
  queryFn: () => fetchData(api.GET('/api/subscriptions/statistics')),
  refetchInterval: STATISTICS_INTERVAL_MS,
})

/** The settings of payments. */
export const configurationQuery = queryOptions({
  queryKey: ['payments', 'configuration'],
  queryFn: () => fetchData(api.GET('/api/payments/configuration')),
})

/** The connections to payment providers. */
export const providerConnectionsQuery = queryOptions({
  queryKey: ['connections', 'payment-providers'],
  queryFn: () =>
    fetchData(
      api.GET('/api/integration-sources', {
        params: { query: { kind: providerKinds.join(','), limit: MAX_ROWS, sort: 'name' } },
      }),
    ),
})

/** Fetches everything about payments and their providers anew after a change. */
export const refreshPayments = () =>
  Promise.all([['payments'], ['connections']].map((queryKey) => queryClient.invalidateQueries({ queryKey })))
