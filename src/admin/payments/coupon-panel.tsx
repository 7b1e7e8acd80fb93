import { Button, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { api, fetchData } from '../api/client'
import type { Coupon } from '../api/schema'
import { FieldForm, type FormValues } from '../fields/field-form'
import { showNotice, showProblem, showUndo } from '../ui/notices'
import { ProblemMessage } from '../ui/problem-message'
import { SaveButton } from '../ui/save-button'
import { SidePanel } from '../ui/side-panel'
import { StateTag } from '../ui/state-tag'
import { fromCouponValues, listCouponFields } from './coupon-fields'
import { rethrowAtField } from './field-refusal'
import { useListNavigation } from './list-navigation'
import { configurationQuery, couponQuery, plansQuery, refreshPayments } from './payment-queries'
import { describeBenefit, describeDiscount } from './price-words'

const FORM_ID = 'coupon-form'

const withoutUndefined = (values: FormValues) =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined))

const findRefusedField = (code: string) => (code === 'COUPON_CODE_EXISTS' ? 'code' : undefined)

/** Saves a coupon, new or changed. */
async function saveCoupon(changes: FormValues, values: FormValues, before?: Coupon): Promise<Coupon> {
  const body = fromCouponValues(before ? changes : withoutUndefined(values), values) as never
  const answer = before
    ? api.PUT('/api/coupons/{id}', { params: { path: { id: before._id } }, body })
    : api.POST('/api/coupons', { body })
  const saved = await fetchData(answer as Promise<{ data?: Coupon }>).catch((error) =>
    rethrowAtField(error, findRefusedField),
  )
  showNotice(before ? 'The coupon is saved.' : 'The coupon is created.')
  return saved
}

function CouponForm({ coupon, onSaved }: { coupon?: Coupon; onSaved: (coupon: Coupon) => void }) {
  const plans = useQuery(plansQuery)
  const configuration = useQuery(configurationQuery)
  if (plans.error ?? configuration.error) return <ProblemMessage error={plans.error ?? configuration.error} />
  if (!plans.data || !configuration.data) return null
  return (
    <FieldForm
      id={FORM_ID}
      fields={listCouponFields(plans.data, configuration.data.metadata.defaultCurrency as string | undefined)}
      before={coupon}
      draftKey={`coupon:${coupon?._id ?? ''}`}
      save={(changes, values) => saveCoupon(changes, values, coupon)}
      onSaved={onSaved}
    />
  )
}

/** A form for a new coupon. */
export function NewCouponPanel() {
  const { close, open } = useListNavigation('/payments/coupons')
  return (
    <SidePanel title="New coupon" onClose={close} footer={<SaveButton form={FORM_ID} label="Create coupon" />}>
      <CouponForm onSaved={({ _id }) => void refreshPayments().then(() => open(_id, true))} />
    </SidePanel>
  )
}

/** Activates or deactivates a coupon. Customers who have redeemed it keep the discount. */
async function setCouponActive({ _id: id, code }: Coupon, isActive: boolean) {
  const send = async (next: boolean) => {
    await api.PUT('/api/coupons/{id}', { params: { path: { id } }, body: { isActive: next } })
    await refreshPayments()
  }
  await send(isActive)
  showUndo(isActive ? `${code} can be redeemed again.` : `${code} can no longer be redeemed.`, () => send(!isActive))
}

/** Whether the server takes a code now, and what it says about it. */
function CodeCheck({ coupon }: { coupon: Coupon }) {
  const check = useQuery({
    queryKey: ['payments', 'coupons', 'check', coupon._id, coupon.updated],
    queryFn: () => fetchData(api.POST('/api/coupons/validate', { body: { code: coupon.code } })),
    retry: false,
  })
  if (check.isPending) return null
  return (
    <Text size="sm" mb="md" role="status">
      <StateTag label={check.error ? 'Refused now' : 'Redeemable now'} tone={check.error ? 'warning' : 'good'} />{' '}
      {check.error ? check.error.message : `${describeDiscount(coupon)} ${describeBenefit(coupon)}.`}
    </Text>
  )
}

/** One coupon beside the list. */
export function CouponPanel() {
  const { close } = useListNavigation('/payments/coupons')
  const { coupon: id = '' } = useParams({ strict: false }) as { coupon?: string }
  const { data: coupon, error } = useQuery(couponQuery(id))
  const toggle = () => coupon && setCouponActive(coupon, !coupon.isActive).catch(showProblem)
  return (
    <SidePanel
      title={coupon?.code ?? ''}
      onClose={close}
      footer={
        coupon && (
          <>
            <SaveButton form={FORM_ID} />
            <Button
              ml="auto"
              variant="subtle"
              component={Link}
              to="/payments/simulator"
              search={toSimulation(coupon) as never}
            >
              Simulate
            </Button>
            <Button variant="subtle" color={coupon.isActive ? 'red' : undefined} onClick={toggle}>
              {coupon.isActive ? 'Deactivate' : 'Activate'}
            </Button>
          </>
        )
      }
    >
      {error && <ProblemMessage error={error} />}
      {coupon && (
        <>
          <CodeCheck coupon={coupon} />
          <CouponForm key={coupon.updated} coupon={coupon} onSaved={() => void refreshPayments()} />
        </>
      )}
    </SidePanel>
  )
}

const toSimulation = ({ code, applicablePlanIds: [plan] }: Coupon) => ({ coupon: code, ...(plan && { plan }) })
