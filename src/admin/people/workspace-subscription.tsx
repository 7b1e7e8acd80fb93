import { Anchor, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { SubscriptionState } from '../payments/subscription-states'
import { Money } from '../ui/money'
import { ProblemMessage } from '../ui/problem-message'
import { RelativeTime } from '../ui/relative-time'
import { RowList } from '../ui/row-list'
import { workspaceSubscriptionsQuery } from './workspace-queries'

/** The subscriptions of a workspace. */
export function WorkspaceSubscription({ id }: { id: string }) {
  const { data, error } = useQuery(workspaceSubscriptionsQuery(id))
  if (error) return <ProblemMessage m={0} error={error} />
  return (
    <RowList
      label="Subscriptions"
      rows={data}
      rowKey={({ _id }) => _id}
      empty="This workspace has no subscription."
      render={({ _id, billingCycle, finalPrice, currency, currentPeriodEnd, ...state }) => ({
        title: (
          <>
            <Anchor component={Link} to={`/payments/subscriptions/${_id}`}>
              {billingCycle}
            </Anchor>
            <SubscriptionState {...state} />
          </>
        ),
        text: currentPeriodEnd && (
          <>
            The period ends <RelativeTime time={currentPeriodEnd} />
          </>
        ),
        actions: finalPrice !== null && (
          <Text size="sm">
            <Money amount={finalPrice} currency={currency} />
          </Text>
        ),
      })}
    />
  )
}
