import { Autocomplete, NumberInput, Select, Stack, Text, TextInput } from '@mantine/core'
import { useDebouncedCallback } from '@mantine/hooks'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api, fetchData } from '../api/client'
import { ApiProblem, findFieldError } from '../api/problem'
import { EmptyState } from '../ui/empty-state'
import { ProblemMessage } from '../ui/problem-message'
import { Screen } from '../ui/screen'
import { type AddressFilters, useListPlace } from './list-place'
import { couponsQuery, plansQuery } from './payment-queries'
import classes from './payments.module.css'
import { CYCLES, type Cycle, describePlanPrice } from './price-words'
import { SimulatedPayments } from './simulated-payments'

const COUNTS = ['12', '24', '36']
const TYPING_PAUSE_MS = 300

/** Returns the question to the server from the address, and undefined while it is incomplete. */
function toQuestion({ cycle, coupon, amount, start, payments }: AddressFilters) {
  return {
    billingCycle: (cycle === 'yearly' ? 'yearly' : 'monthly') as Cycle,
    ...(coupon && { couponCode: coupon }),
    ...(amount && { amount: Number(amount) }),
    ...(start && { start }),
    payments: Number(payments) || 12,
  }
}

const inputOf = (error: unknown): 'coupon' | 'amount' | 'start' | undefined => {
  if (!(error instanceof ApiProblem)) return
  if (error.code.startsWith('COUPON')) return 'coupon'
  if (error.code === 'INVALID_AMOUNT') return 'amount'
  return findFieldError(error, 'start') ? 'start' : undefined
}

/** What a customer would pay, payment by payment, as the server computes it. */
export function PriceSimulator() {
  const { search, filter } = useListPlace('/payments/simulator')
  const plans = useQuery(plansQuery)
  const coupons = useQuery(couponsQuery)
  const onSale = plans.data?.filter(({ isActive }) => isActive) ?? []
  const plan = onSale.find(({ _id }) => _id === search.plan) ?? onSale[0]
  const body = toQuestion({ ...search, amount: plan?.dynamic ? (search.amount ?? '') : '' })
  const isAsked = !!plan && (!plan.dynamic || body.amount !== undefined)
  const preview = useQuery({
    queryKey: ['payments', 'price-preview', plan?._id, body],
    queryFn: () =>
      fetchData(api.POST('/api/plans/{id}/price-preview', { params: { path: { id: plan?._id ?? '' } }, body })),
    enabled: isAsked,
    placeholderData: keepPreviousData,
    retry: false,
  })
  const refused = inputOf(preview.error)
  const errorAt = (input: typeof refused) => (refused === input ? preview.error?.message : undefined)
  if (plans.data && !plan)
    return (
      <Screen title="What would a customer pay?">
        <EmptyState
          text="There is no plan on sale yet."
          action={{ label: 'Create a plan', to: '/payments/plans/all/new' }}
        />
      </Screen>
    )
  return (
    <Screen
      title="What would a customer pay?"
      request={plan && { method: 'POST', path: `/api/plans/${plan._id}/price-preview`, body }}
    >
      <div className={classes.simulator}>
        <Stack className={classes.inputs} gap="sm">
          <Select
            label="Plan"
            data={onSale.map(({ _id, name }) => ({ value: _id, label: name }))}
            value={plan?._id ?? null}
            allowDeselect={false}
            description={plan && describePlanPrice(plan)}
            inputWrapperOrder={['label', 'input', 'description', 'error']}
            onChange={(next) => filter({ plan: next ?? undefined })}
          />
          <Select
            label="Paid"
            data={[...CYCLES]}
            value={body.billingCycle}
            allowDeselect={false}
            onChange={(next) => filter({ cycle: next ?? undefined })}
          />
          {plan?.dynamic && (
            <NumberInput
              label={`Price (${plan.currency})`}
              description="An administrator sets it for each subscription."
              hideControls
              min={0}
              value={search.amount ?? ''}
              error={errorAt('amount')}
              onChange={(next) => filter({ amount: next === '' ? undefined : String(next) })}
            />
          )}
          <CouponInput
            codes={coupons.data?.map(({ code }) => code) ?? []}
            code={search.coupon ?? ''}
            error={errorAt('coupon')}
            onChange={(coupon) => filter({ coupon })}
          />
          <TextInput
            label="It begins"
            type="date"
            value={search.start ?? ''}
            description="Default: now."
            error={errorAt('start')}
            onChange={(event) => filter({ start: event.currentTarget.value })}
          />
          <Select
            label="Payments"
            data={COUNTS}
            value={String(body.payments)}
            allowDeselect={false}
            onChange={(next) => filter({ payments: next ?? undefined })}
          />
          <Text size="xs" c="dimmed">
            The server computes this by the rules that it bills by.
          </Text>
        </Stack>
        <div className={classes.result}>
          {!isAsked && plan && <Text c="dimmed">Type a price: this plan has one for each customer.</Text>}
          {preview.error && !refused && <ProblemMessage error={preview.error} />}
          {preview.error && refused && <Text c="dimmed">Nothing can be computed: {preview.error.message}</Text>}
          {isAsked && preview.data && !preview.error && (
            <SimulatedPayments preview={preview.data} code={search.coupon} />
          )}
        </div>
      </div>
    </Screen>
  )
}

type CouponInputProps = { codes: string[]; code: string; error?: string; onChange(code: string | undefined): void }

/** Any code can be typed; those that exist are offered. */
function CouponInput({ codes, code, error, onChange }: CouponInputProps) {
  const [typed, setTyped] = useState(code)
  const ask = useDebouncedCallback((next: string) => onChange(next || undefined), TYPING_PAUSE_MS)
  const change = (next: string) => {
    setTyped(next)
    ask(next)
  }
  return <Autocomplete label="Coupon" data={codes} value={typed} error={error} onChange={change} clearable />
}
