import { Anchor, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { api, fetchData } from '../api/client'
import type { Subscription } from '../api/schema'
import { Details } from '../ui/details'
import { Money } from '../ui/money'
import { ProblemMessage } from '../ui/problem-message'
import { RelativeTime } from '../ui/relative-time'
import { ShortId } from '../ui/short-id'
import { SidePanel } from '../ui/side-panel'
import { useListNavigation } from './list-navigation'
import { PayerLink } from './payer'
import { planQuery, providerConnectionsQuery, subscriptionQuery } from './payment-queries'
import classes from './payments.module.css'
import { formatDay } from './price-words'
import { findProvider } from './providers'
import { SubscriptionActions } from './subscription-actions'
import { SubscriptionHistory } from './subscription-history'
import { describeNext, describeSubscriptionPrice, SubscriptionState } from './subscription-states'

const NEXT_PAYMENTS_SHOWN = 3

/** The subscription at its provider, as a link to the dashboard there. */
function ProviderLink({ providerKind, providerSourceId, externalSubscriptionId }: Subscription) {
  const { data: connections = [] } = useQuery(providerConnectionsQuery)
  const provider = findProvider(providerKind)
  if (!provider) return null
  if (!externalSubscriptionId) return provider.label
  const metadata = connections.find(({ _id }) => _id === providerSourceId)?.metadata ?? {}
  return (
    <>
      <Anchor
        href={provider.subscriptionPage(externalSubscriptionId, metadata)}
        target="_blank"
        rel="noreferrer"
        size="sm"
      >
        Open at {provider.label}
      </Anchor>{' '}
      <ShortId id={externalSubscriptionId} />
    </>
  )
}

/** What comes next: a sentence, and the next payments as the server computes them. */
function NextPayments({ subscription }: { subscription: Subscription }) {
  const { _id: id, updated } = subscription
  const { data } = useQuery({
    queryKey: ['payments', 'subscriptions', 'preview', id, updated],
    queryFn: () => fetchData(api.GET('/api/subscriptions/{id}/price-preview', { params: { path: { id } } })),
  })
  const payments = data && !data.isFree ? data.payments.slice(0, NEXT_PAYMENTS_SHOWN) : []
  return (
    <section className={classes.section}>
      <Title order={3}>What comes next</Title>
      <Text size="sm">{describeNext(subscription)}</Text>
      <ul className={classes.list}>
        {payments
          .map(({ date, amount, reason }) => (
            <li key={date} className={classes.entry}>
              <span className={classes.grow}>
                {subscription.status === 'pending' ? 'Once it is paid' : formatDay(date)}
              </span>
              {reason === 'coupon' && <span className={classes.quiet}>with {subscription.couponCode}</span>}
              <span className={classes.amount}>
                <Money amount={amount} currency={subscription.currency} />
              </span>
            </li>
          ))
          .slice(0, subscription.status === 'pending' ? 1 : NEXT_PAYMENTS_SHOWN)}
      </ul>
    </section>
  )
}

function SubscriptionDetails({ subscription: row }: { subscription: Subscription }) {
  const { data: plan } = useQuery(planQuery(row.planId))
  const period =
    row.currentPeriodStart &&
    row.currentPeriodEnd &&
    `${formatDay(row.currentPeriodStart)} to ${formatDay(row.currentPeriodEnd)}`
  const coupon = row.couponCode
    ? `${row.couponCode}${row.couponBenefitEndsAt ? ` until ${formatDay(row.couponBenefitEndsAt)}` : ''}`
    : undefined
  return (
    <Details
      items={[
        ['State', <SubscriptionState key="state" {...row} />],
        ['Customer', <PayerLink key="payer" payer={row} />],
        [
          'Plan',
          <Anchor key="plan" component={Link} to={`/payments/plans/${row.planId}` as never} size="sm">
            {plan?.name ?? row.planId}
          </Anchor>,
        ],
        ['Pays', describeSubscriptionPrice(row)],
        ['Coupon', coupon],
        ['Period', period],
        ['Provider', row.providerKind && <ProviderLink key="provider" {...row} />],
        ['Created', <RelativeTime key="created" time={row.created} />],
        ['ID', <ShortId key="id" id={row._id} />],
      ]}
    />
  )
}

/** One subscription beside the list: what it is, what comes next, and what happened. */
export function SubscriptionPanel() {
  const { close } = useListNavigation('/payments/subscriptions')
  const { subscription: id = '' } = useParams({ strict: false }) as { subscription?: string }
  const { data: subscription, error } = useQuery(subscriptionQuery(id))
  return (
    <SidePanel
      title="Subscription"
      onClose={close}
      footer={subscription && <SubscriptionActions subscription={subscription} />}
    >
      {error && <ProblemMessage error={error} />}
      {subscription && (
        <>
          <SubscriptionDetails subscription={subscription} />
          <NextPayments subscription={subscription} />
          <SubscriptionHistory subscription={subscription} />
        </>
      )}
    </SidePanel>
  )
}
