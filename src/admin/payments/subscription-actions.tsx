import { Button } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api, fetchData } from '../api/client'
import type { Subscription } from '../api/schema'
import { confirmAction } from '../ui/confirmation'
import { showNotice, showProblem } from '../ui/notices'
import { AmountDialog } from './amount-dialog'
import { CheckoutDialog } from './checkout-dialog'
import { CouponDialog } from './coupon-dialog'
import { fetchPayerName } from './payer-queries'
import { planQuery, refreshPayments } from './payment-queries'
import { findProvider } from './providers'
import { hasEnded } from './subscription-states'

/** Cancels a subscription at once after a confirmation, at its provider and here. */
async function cancelSubscription(subscription: Subscription) {
  const { _id: id, providerKind, externalSubscriptionId } = subscription
  const name = await fetchPayerName(subscription)
  const provider = externalSubscriptionId ? findProvider(providerKind)?.label : undefined
  const isConfirmed = await confirmAction({
    title: `Cancel the subscription of ${name} now?`,
    text: `It ends at once, not at the end of the period, and its limits with it.${
      provider ? ` ${provider} charges nothing more, and gives nothing back by itself.` : ''
    } It cannot be resumed; ${name} can subscribe anew.`,
    action: 'Cancel subscription',
  })
  if (!isConfirmed) return
  try {
    await fetchData(api.PUT('/api/subscriptions/{id}/cancel', { params: { path: { id } } }))
    showNotice(`The subscription of ${name} is cancelled.`)
  } finally {
    await refreshPayments()
  }
}

/** What can be done with a subscription. */
export function SubscriptionActions({ subscription }: { subscription: Subscription }) {
  const [dialog, setDialog] = useState<'amount' | 'coupon' | 'checkout'>()
  const { data: plan } = useQuery(planQuery(subscription.planId))
  const close = () => setDialog(undefined)
  if (hasEnded(subscription)) return null
  const isPayable = subscription.status === 'pending' && subscription.basePrice !== null
  return (
    <>
      {isPayable && <Button onClick={() => setDialog('checkout')}>Start checkout</Button>}
      {plan?.dynamic && (
        <Button variant="default" onClick={() => setDialog('amount')}>
          Set price
        </Button>
      )}
      <Button variant="default" onClick={() => setDialog('coupon')}>
        {subscription.couponCode ? 'Change coupon' : 'Attach coupon'}
      </Button>
      <Button
        ml="auto"
        variant="subtle"
        color="red"
        onClick={() => cancelSubscription(subscription).catch(showProblem)}
      >
        Cancel now
      </Button>
      {dialog === 'amount' && <AmountDialog subscription={subscription} onClose={close} />}
      {dialog === 'coupon' && <CouponDialog subscription={subscription} onClose={close} />}
      {dialog === 'checkout' && <CheckoutDialog subscription={subscription} onClose={close} />}
    </>
  )
}
