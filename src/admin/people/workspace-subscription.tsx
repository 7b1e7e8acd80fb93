import { Anchor, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import type { Subscription } from '../api/schema'
import { Money } from '../ui/money'
import { ProblemMessage } from '../ui/problem-message'
import { RelativeTime } from '../ui/relative-time'
import { RowList } from '../ui/row-list'
import { StateTag } from '../ui/state-tag'
import { workspaceSubscriptionsQuery } from './workspace-queries'

const tones: Record<Subscription['status'], 'good' | 'warning' | 'bad' | 'neutral'> = {
  active: 'good',
  trialing: 'good',
  pending: 'warning',
  past_due: 'bad',
  canceled: 'neutral',
  expired: 'neutral',
}

/** What a workspace pays for. */
export function WorkspaceSubscription({ id }: { id: string }) {
  const { data, error } = useQuery(workspaceSubscriptionsQuery(id))
  if (error) return <ProblemMessage m={0} error={error} />
  return (
    <RowList
      label="Subscriptions"
      rows={data}
      rowKey={({ _id }) => _id}
      empty="This workspace has no subscription."
      render={({ _id, status, billingCycle, finalPrice, currency, currentPeriodEnd }) => ({
        title: (
          <>
            <Anchor href={`/admin/payments/subscriptions/${_id}`}>{billingCycle}</Anchor>
            <StateTag label={status.replace('_', ' ')} tone={tones[status]} />
          </>
        ),
        text: currentPeriodEnd && (
          <>
            Period ends <RelativeTime time={currentPeriodEnd} />
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
