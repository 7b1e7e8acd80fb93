import { Anchor, Skeleton, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { api, fetchData } from '../api/client'
import type { Event, Invoice, ProviderEvent, Subscription } from '../api/schema'
import { formatMoney } from '../ui/money'
import { ProblemMessage } from '../ui/problem-message'
import { RelativeTime } from '../ui/relative-time'
import classes from './payments.module.css'
import { labelOfState } from './provider-event-states'
import { findProvider } from './providers'

/** As many events of payments as one request returns; those of this subscription are among them. */
const MAX_EVENTS = 1_000
const MAX_ENTRIES = 100

type Entry = { id: string; time: string; text: string; to?: string }

const SENTENCES: Record<string, string> = {
  'subscription-created': 'The subscription was created.',
  'subscription-activated': 'The subscription became active.',
  'subscription-trialing': 'The trial began.',
  'subscription-past-due': 'A payment failed and is overdue.',
  'subscription-renewed': 'A new period began.',
  'subscription-canceled': 'The subscription was cancelled.',
  'subscription-expired': 'The subscription expired.',
  'checkout-failed': 'A checkout failed at the provider.',
  'webhook-failed': 'The provider reported what is not possible here.',
  'provider-drift': 'A difference from the provider was found.',
}

/** Returns what an event says in a sentence. */
function describeEvent({ eventName, metadata }: Event): string {
  const { couponCode, why } = (metadata ?? {}) as Record<string, string | undefined>
  if (eventName === 'coupon-redeemed') return `The coupon ${couponCode} was redeemed.`
  if (eventName === 'coupon-lost') return `The coupon ${couponCode} was lost: it had no redemptions left.`
  return [SENTENCES[eventName] ?? eventName, why].filter(Boolean).join(' ')
}

const fromEvent = (event: Event): Entry => ({ id: event._id, time: event.created, text: describeEvent(event) })

const fromInvoice = ({ _id, created, paidAt, status, amount, currency }: Invoice): Entry => ({
  ...{ id: _id, time: paidAt ?? created, to: `/payments/invoices/${_id}` },
  text: `Invoice of ${formatMoney(amount, currency)}, ${status}`,
})

const fromProviderEvent = ({ _id, created, type, status, providerKind }: ProviderEvent): Entry => ({
  ...{ id: _id, time: created, to: `/payments/inbox/${_id}` },
  text: `${findProvider(providerKind)?.label ?? providerKind} sent ${type}: ${labelOfState(status).toLowerCase()}`,
})

async function fetchHistory({ _id: subscriptionId, created }: Subscription): Promise<Entry[]> {
  const [events, invoices, received] = await Promise.all([
    fetchData(
      api.GET('/api/events', {
        params: { query: { source: 'payments', kind: 'subscription', from: created, limit: MAX_EVENTS } },
      }),
    ),
    fetchData(api.GET('/api/invoices', { params: { query: { subscriptionId, limit: MAX_ENTRIES } } })),
    fetchData(api.GET('/api/payments/events', { params: { query: { subscriptionId, limit: MAX_ENTRIES } } })),
  ])
  const own = events.filter(({ metadata }) => metadata?.subscriptionId === subscriptionId)
  return [...own.map(fromEvent), ...invoices.map(fromInvoice), ...received.map(fromProviderEvent)]
    .sort((one, other) => other.time.localeCompare(one.time))
    .slice(0, MAX_ENTRIES)
}

/** What happened to a subscription: changes, invoices and what the provider sent, newest first. */
export function SubscriptionHistory({ subscription }: { subscription: Subscription }) {
  const { _id, updated } = subscription
  const { data: entries, error } = useQuery({
    queryKey: ['payments', 'subscriptions', 'history', _id, updated],
    queryFn: () => fetchHistory(subscription),
  })
  return (
    <section className={classes.section}>
      <Title order={3}>History</Title>
      {error && <ProblemMessage error={error} />}
      {!entries && !error && <Skeleton height={60} animate={false} />}
      {entries?.length === 0 && (
        <Text size="sm" c="dimmed">
          Nothing has happened yet.
        </Text>
      )}
      <ul className={classes.list}>
        {entries?.map(({ id, time, text, to }) => (
          <li key={id} className={classes.entry}>
            <span className={classes.grow}>
              {to ? (
                <Anchor component={Link} to={to as never} size="sm">
                  {text}
                </Anchor>
              ) : (
                text
              )}
            </span>
            <span className={classes.quiet}>
              <RelativeTime time={time} />
            </span>
          </li>
        ))}
      </ul>
    </section>
  )
}
