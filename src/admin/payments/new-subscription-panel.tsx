import { Button } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api, fetchData } from '../api/client'
import type { Checkout, Plan } from '../api/schema'
import { FieldForm, type FormField, type FormValues } from '../fields/field-form'
import type { InputProps } from '../fields/field-kind'
import { showNotice } from '../ui/notices'
import { ProblemMessage } from '../ui/problem-message'
import { SaveButton } from '../ui/save-button'
import { SidePanel } from '../ui/side-panel'
import { CheckoutResult } from './checkout-dialog'
import { rethrowAtField } from './field-refusal'
import { labelledChoice } from './labelled-choice'
import { useListNavigation } from './list-navigation'
import { PayerSelect } from './payer'
import type { Payer } from './payer-queries'
import { plansQuery, refreshPayments } from './payment-queries'
import { CYCLES, describePlanPrice } from './price-words'

const FORM_ID = 'new-subscription-form'

const PayerInput = ({ label = '', error, required, value, onChange }: InputProps) => (
  <PayerSelect label={label} error={error} required={required} value={value as Payer | undefined} onChange={onChange} />
)
const CycleInput = labelledChoice(CYCLES)
const StartInput = labelledChoice([
  { value: 'checkout', label: 'Start the checkout, and get its address' },
  { value: 'prepare', label: 'Only prepare it: the customer pays later' },
])

const listFields = (plans: readonly Plan[]): FormField[] => {
  const onSale = plans.filter(({ isActive }) => isActive)
  const isFixed = ({ planId }: FormValues) => !onSale.some(({ _id, dynamic }) => dynamic && _id === planId)
  return [
    { key: 'billableEntityId', type: 'string', title: 'Customer', required: true, Input: PayerInput },
    {
      key: 'planId',
      type: 'string',
      title: 'Plan',
      required: true,
      Input: labelledChoice(
        onSale.map((plan) => ({ value: plan._id, label: `${plan.name}: ${describePlanPrice(plan)}` })),
      ),
    },
    { key: 'billingCycle', type: 'string', title: 'Paid', default: 'monthly', required: true, Input: CycleInput },
    {
      key: 'amount',
      type: 'number',
      title: 'Price',
      min: 0,
      description: 'Amount per billing period. You can set it later.',
      isHidden: isFixed,
    },
    { key: 'couponCode', type: 'string', title: 'Coupon', description: 'A code. One of 100 % needs no provider.' },
    {
      key: 'start',
      type: 'string',
      title: 'What happens now',
      default: 'checkout',
      required: true,
      description: 'A free plan becomes active without a payment.',
      Input: StartInput,
    },
  ]
}

const FIELD_BY_CODE: Record<string, string> = { INVALID_AMOUNT: 'amount', DYNAMIC_PLAN_REQUIRES_SUBSCRIPTION: 'amount' }

const findRefusedField = (code: string) => (code.startsWith('COUPON') ? 'couponCode' : FIELD_BY_CODE[code])

/** Creates a subscription, or starts its checkout. Returns what the panel shows next. */
async function createSubscription(values: FormValues): Promise<{ id: string; checkout?: Checkout }> {
  const { billableEntityId: payer, start, amount, couponCode, planId, billingCycle } = values
  const common = { ...(payer as Payer | undefined), planId, billingCycle, ...(couponCode ? { couponCode } : {}) }
  try {
    if (start === 'prepare') {
      const body = { ...common, ...(amount === undefined ? {} : { dynamicAmount: amount }) } as never
      const { _id } = await fetchData(api.POST('/api/subscriptions', { body }))
      return { id: _id }
    }
    const body = { ...common, ...(amount === undefined ? {} : { amount }) } as never
    const checkout = await fetchData(api.POST('/api/checkout', { body }))
    return { id: checkout.subscriptionId, checkout }
  } catch (error) {
    return rethrowAtField(error, findRefusedField)
  } finally {
    await refreshPayments()
  }
}

/** Subscribes a user or a workspace to a plan. */
export function NewSubscriptionPanel() {
  const { close, open } = useListNavigation('/payments/subscriptions')
  const { data: plans, error } = useQuery(plansQuery)
  const [started, setStarted] = useState<{ id: string; checkout: Checkout }>()
  const footer = started ? (
    <Button onClick={() => void refreshPayments().then(() => open(started.id, true))}>Show the subscription</Button>
  ) : (
    <SaveButton form={FORM_ID} label="Create subscription" />
  )
  return (
    <SidePanel title="New subscription" onClose={close} footer={footer}>
      {error && <ProblemMessage error={error} />}
      {started && <CheckoutResult checkout={started.checkout} />}
      {plans && !started && (
        <FieldForm
          id={FORM_ID}
          fields={listFields(plans)}
          draftKey="subscription:"
          save={(_, values) => createSubscription(values)}
          onSaved={({ id, checkout }) => {
            showNotice('The subscription is created.')
            if (checkout?.checkoutUrl || checkout?.clientToken) setStarted({ id, checkout })
            else open(id, true)
          }}
        />
      )}
    </SidePanel>
  )
}
