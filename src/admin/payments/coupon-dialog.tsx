import { Autocomplete } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../api/client'
import type { Subscription } from '../api/schema'
import { ActionDialog } from './action-dialog'
import { couponsQuery } from './payment-queries'
import { describeBenefit, describeDiscount } from './price-words'
import { findProvider } from './providers'

/** Attaches a coupon to a subscription, or removes the one it has. */
export function CouponDialog({ subscription, onClose }: { subscription: Subscription; onClose: () => void }) {
  const { _id: id, couponCode, status, providerKind, externalSubscriptionId } = subscription
  const [code, setCode] = useState(couponCode ?? '')
  const { data: coupons = [] } = useQuery(couponsQuery)
  const chosen = coupons.find((coupon) => coupon.code.toLowerCase() === code.trim().toLowerCase())
  const provider = externalSubscriptionId ? findProvider(providerKind)?.label : undefined
  const redemption =
    status === 'active'
      ? 'The coupon is redeemed immediately.'
      : 'The coupon is redeemed when the subscription becomes active.'
  const providerNote = provider ? ` ${provider} gets the new price, and charges it from the next payment on.` : ''
  const isRemoval = code.trim() === ''
  return (
    <ActionDialog
      title={couponCode ? 'Change the coupon' : 'Attach a coupon'}
      text={isRemoval && couponCode ? `The full price applies again.${providerNote}` : `${redemption}${providerNote}`}
      action={isRemoval && couponCode ? `Remove ${couponCode}` : 'Attach coupon'}
      notice={isRemoval ? 'The coupon is removed.' : 'The coupon is attached.'}
      isReady={!isRemoval || !!couponCode}
      send={() =>
        api.PUT('/api/subscriptions/{id}/coupon', {
          params: { path: { id } },
          body: { couponCode: isRemoval ? null : code.trim() },
        })
      }
      onClose={onClose}
    >
      {(error) => (
        <Autocomplete
          label="Code"
          data-autofocus
          data={coupons.filter(({ isActive }) => isActive).map((coupon) => coupon.code)}
          value={code}
          description={chosen && `${describeDiscount(chosen)} ${describeBenefit(chosen)}`}
          inputWrapperOrder={['label', 'input', 'description', 'error']}
          error={error}
          onChange={setCode}
          clearable
        />
      )}
    </ActionDialog>
  )
}
