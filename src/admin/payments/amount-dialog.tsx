import { NumberInput } from '@mantine/core'
import { useState } from 'react'
import { api } from '../api/client'
import type { Subscription } from '../api/schema'
import { ActionDialog } from './action-dialog'
import { describeAmount } from './price-words'

/** Sets the price of a subscription to a plan where each customer has their own. */
export function AmountDialog({ subscription, onClose }: { subscription: Subscription; onClose: () => void }) {
  const { _id: id, currency, billingCycle, dynamicAmount, status } = subscription
  const [amount, setAmount] = useState<number | ''>(dynamicAmount ?? '')
  const effect = status === 'pending' ? 'The customer can pay once it is set.' : 'It counts from the next payment on.'
  return (
    <ActionDialog
      title="Set the price"
      text={`The price is what this customer pays for each ${billingCycle === 'yearly' ? 'year' : 'month'}, before a coupon. ${effect}`}
      action={amount === '' ? 'Set price' : `Set ${describeAmount(amount, currency, billingCycle)}`}
      notice="The price is set."
      isReady={amount !== ''}
      send={() =>
        api.PUT('/api/subscriptions/{id}/dynamic-amount', {
          params: { path: { id } },
          body: { amount: Number(amount) },
        })
      }
      onClose={onClose}
    >
      {(error) => (
        <NumberInput
          label={`Price (${currency})`}
          data-autofocus
          hideControls
          min={0}
          value={amount}
          error={error}
          onChange={(next) => setAmount(typeof next === 'number' ? next : '')}
        />
      )}
    </ActionDialog>
  )
}
