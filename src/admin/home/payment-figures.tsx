import { useQuery } from '@tanstack/react-query'
import { api, fetchData } from '../api/client'
import type { Invoice, Subscription } from '../api/schema'
import { formatMoney } from '../ui/money'
import { addUp, fillDays, firstDayShown } from './daily-values'
import { EmptyHint, FigureGroup, FigureRow } from './figure-row'

const MAX_INVOICES = 1_000

async function countSubscriptions(status: Subscription['status']) {
  const query = { status, limit: 1, $count: true }
  const { response } = await api.GET('/api/subscriptions', { params: { query } })
  return Number(response.headers.get('x-total-count') ?? 0)
}

/** How many subscriptions are paid beside another one of their customer, so that an admin has to cancel one of the two. */
const useConflictCount = () =>
  useQuery({
    queryKey: ['subscriptions', 'count', 'conflicts'],
    queryFn: async () => {
      const { response } = await api.GET('/api/subscriptions', {
        params: { query: { hasConflict: true, limit: 1, $count: true } },
      })
      return Number(response.headers.get('x-total-count') ?? 0)
    },
  }).data

const useSubscriptionCount = (status: Subscription['status']) =>
  useQuery({ queryKey: ['subscriptions', 'count', status], queryFn: () => countSubscriptions(status) }).data

const usePaidInvoices = () =>
  useQuery({
    queryKey: ['invoices', 'paid', 'latest'],
    queryFn: () =>
      fetchData(
        api.GET('/api/invoices', { params: { query: { status: 'paid', sort: '-created', limit: MAX_INVOICES } } }),
      ),
  }).data

const toDaily = (invoices: Invoice[]) =>
  fillDays(invoices.map(({ paidAt, created, amount }) => [(paidAt ?? created).slice(0, 10), amount] as const))

/** What came in lately in each currency, and how many subscriptions run or wait for their payment. */
export function PaymentFigures() {
  const [active, trialing, pastDue] = [
    useSubscriptionCount('active'),
    useSubscriptionCount('trialing'),
    useSubscriptionCount('past_due'),
  ]
  const conflicts = useConflictCount()
  const since = firstDayShown()
  const fetched = usePaidInvoices()
  const invoices = fetched?.filter(({ paidAt, created }) => (paidAt ?? created) >= since)
  // Older invoices of the same days were not fetched.
  const more = fetched?.length === MAX_INVOICES && invoices?.length === MAX_INVOICES ? '+' : ''
  const currencies = Object.entries(Object.groupBy(invoices ?? [], ({ currency }) => currency))
  const isEmpty = invoices?.length === 0 && active === 0 && trialing === 0 && pastDue === 0
  return (
    <FigureGroup title="Payments">
      {isEmpty && <EmptyHint text="No subscriptions yet." action="Create a plan" to="/payments/plans" />}
      {currencies.map(([currency, paid = []]) => {
        const daily = toDaily(paid)
        return (
          <FigureRow
            key={currency}
            to="/payments/invoices"
            value={`${formatMoney(addUp(daily), currency)}${more}`}
            label="paid in 30 days"
            note={`${paid.length.toLocaleString()}${more} ${paid.length === 1 ? 'invoice' : 'invoices'}`}
            trend={daily}
          />
        )
      })}
      {!isEmpty && (
        <FigureRow
          to="/payments/subscriptions"
          value={active?.toLocaleString()}
          label={active === 1 ? 'active subscription' : 'active subscriptions'}
          note={trialing ? `${trialing.toLocaleString()} on trial` : ''}
        />
      )}
      {!!pastDue && (
        <FigureRow
          to="/payments/subscriptions"
          search={{ status: 'past_due' }}
          value={pastDue.toLocaleString()}
          label="past due"
          isBad
        />
      )}
      {!!conflicts && (
        <FigureRow
          to="/payments/subscriptions"
          search={{ hasConflict: 'true' }}
          value={conflicts.toLocaleString()}
          label={conflicts === 1 ? 'customer pays twice: cancel one subscription' : 'pay twice: cancel one of each'}
          isBad
        />
      )}
    </FigureGroup>
  )
}
