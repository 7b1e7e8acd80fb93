import { Autocomplete, NumberInput, Select, Stack, Text, TextInput } from '@mantine/core'
import { useDebouncedCallback } from '@mantine/hooks'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api, fetchData } from '../api/client'
import { ApiProblem, findFieldError } from '../api/problem'
import type { Plan } from '../api/schema'
import { EmptyState } from '../ui/empty-state'
import { ProblemMessage } from '../ui/problem-message'
import { Screen } from '../ui/screen'
import { type AddressFilters, useListNavigation } from './list-navigation'
import { couponsQuery, plansQuery } from './payment-queries'
import classes from './payments.module.css'
import { CYCLES, type Cycle, describePlanPrice } from './price-words'
import { SimulatedPayments } from './simulated-payments'

const COUNTS = ['12', '24', '36']
const TYPING_PAUSE_MS = 300

/** Returns the request of a preview that an address describes. */
function toPreviewRequest({ cycle, coupon, amount, start, payments }: AddressFilters) {
  return {
    billingCycle: (cycle === 'yearly' ? 'yearly' : 'monthly') as Cycle,
    ...(coupon && { couponCode: coupon }),
    ...(amount && { amount: Number(amount) }),
    ...(start && { start }),
    payments: Number(payments) || 12,
  }
}

type SimulatorInput = 'coupon' | 'amount' | 'start'

/** Returns the input that a refusal is about, or undefined. */
function findRefusedInput(error: unknown): SimulatorInput | undefined {
  if (!(error instanceof ApiProblem)) return
  if (error.code.startsWith('COUPON')) return 'coupon'
  if (error.code === 'INVALID_AMOUNT') return 'amount'
  return findFieldError(error, 'start') ? 'start' : undefined
}

/** What a customer would pay, payment by payment, as the server computes it. */
export function PriceSimulator() {
  const { search, changeFilters } = useListNavigation('/payments/simulator')
  const plans = useQuery(plansQuery)
  const coupons = useQuery(couponsQuery)
  const onSale = plans.data?.filter(({ isActive }) => isActive) ?? []
  const plan = onSale.find(({ _id }) => _id === search.plan) ?? onSale[0]
  const body = toPreviewRequest({ ...search, amount: plan?.dynamic ? (search.amount ?? '') : '' })
  const isComplete = !!plan && (!plan.dynamic || body.amount !== undefined)
  const preview = useQuery({
    queryKey: ['payments', 'price-preview', plan?._id, body],
    queryFn: () =>
      fetchData(api.POST('/api/plans/{id}/price-preview', { params: { path: { id: plan?._id ?? '' } }, body })),
    enabled: isComplete,
    placeholderData: keepPreviousData,
    retry: false,
  })
  const refused = findRefusedInput(preview.error)
  const errorAt = (input: SimulatorInput) => (refused === input ? preview.error?.message : undefined)
  const codes = coupons.data?.map(({ code }) => code) ?? []
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
        <SimulatorInputs {...{ search, plans: onSale, plan, codes, errorAt }} onChange={changeFilters} />
        <div className={classes.result}>
          {!isComplete && plan && <Text c="dimmed">Type a price: this plan has one for each customer.</Text>}
          {preview.error && !refused && <ProblemMessage error={preview.error} />}
          {preview.error && refused && <Text c="dimmed">Nothing can be computed: {preview.error.message}</Text>}
          {isComplete && preview.data && !preview.error && (
            <SimulatedPayments preview={preview.data} code={search.coupon} />
          )}
        </div>
      </div>
    </Screen>
  )
}

type SimulatorInputsProps = {
  search: AddressFilters
  plans: readonly Plan[]
  plan: Plan | undefined
  codes: string[]
  errorAt: (input: SimulatorInput) => string | undefined
  onChange: (change: Record<string, string | undefined>) => void
}

/** What a preview depends on. The address keeps it. */
function SimulatorInputs({ search, plans, plan, codes, errorAt, onChange }: SimulatorInputsProps) {
  const { billingCycle, payments } = toPreviewRequest(search)
  return (
    <Stack className={classes.inputs} gap="sm">
      <Select
        label="Plan"
        data={plans.map(({ _id, name }) => ({ value: _id, label: name }))}
        value={plan?._id ?? null}
        allowDeselect={false}
        description={plan && describePlanPrice(plan)}
        inputWrapperOrder={['label', 'input', 'description', 'error']}
        onChange={(next) => onChange({ plan: next ?? undefined })}
      />
      <Select
        label="Paid"
        data={[...CYCLES]}
        value={billingCycle}
        allowDeselect={false}
        onChange={(next) => onChange({ cycle: next ?? undefined })}
      />
      {plan?.dynamic && (
        <NumberInput
          label={`Price (${plan.currency})`}
          description="An administrator sets it for each subscription."
          hideControls
          min={0}
          value={search.amount ?? ''}
          error={errorAt('amount')}
          onChange={(next) => onChange({ amount: next === '' ? undefined : String(next) })}
        />
      )}
      <CouponInput
        codes={codes}
        code={search.coupon ?? ''}
        error={errorAt('coupon')}
        onChange={(coupon) => onChange({ coupon })}
      />
      <TextInput
        label="It begins"
        type="date"
        value={search.start ?? ''}
        description="Default: now."
        error={errorAt('start')}
        onChange={(event) => onChange({ start: event.currentTarget.value })}
      />
      <Select
        label="Payments"
        data={COUNTS}
        value={String(payments)}
        allowDeselect={false}
        onChange={(next) => onChange({ payments: next ?? undefined })}
      />
      <Text size="xs" c="dimmed">
        The server computes this by the rules that it bills by.
      </Text>
    </Stack>
  )
}

type CouponInputProps = { codes: string[]; code: string; error?: string; onChange(code: string | undefined): void }

/** Any code can be typed; those that exist are offered. */
function CouponInput({ codes, code, error, onChange }: CouponInputProps) {
  const [typed, setTyped] = useState(code)
  const changeLater = useDebouncedCallback((next: string) => onChange(next || undefined), TYPING_PAUSE_MS)
  const change = (next: string) => {
    setTyped(next)
    changeLater(next)
  }
  return <Autocomplete label="Coupon" data={codes} value={typed} error={error} onChange={change} clearable />
}
