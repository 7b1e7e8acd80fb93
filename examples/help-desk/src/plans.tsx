import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { client, hooks } from './atoll'
import { Field, Notice, onSubmit } from './ui'

type Plan = Awaited<ReturnType<typeof client.payments.plans>>[number]

/** The plans that a company can have. */
export function Plans() {
  const {
    data: plans = [],
    isPending,
    error,
  } = useQuery({ queryKey: ['plans'], queryFn: ({ signal }) => client.payments.plans({}, { signal }) })
  const { data: subscription } = hooks.useSubscription()
  return (
    <>
      <h1>Plan</h1>
      <p>Without a plan, a company has 25 tickets.</p>
      <Notice error={error} isLoading={isPending} />
      {plans.map((plan) => (
        <section key={plan._id} className="plan" aria-labelledby={plan._id}>
          <h2 id={plan._id}>{plan.name}</h2>
          <p>{plan.description}</p>
          <p className="price">{formatPrice(plan)} a month</p>
          <ul>
            {plan.features.map((feature) => (
              <li key={feature}>{feature}</li>
            ))}
          </ul>
          {subscription?.planId === plan._id ? (
            <p role="status">Your company has this plan ({subscription.status}).</p>
          ) : (
            <Checkout plan={plan} />
          )}
        </section>
      ))}
    </>
  )
}

const formatPrice = ({ monthlyPrice, currency }: Plan) =>
  (monthlyPrice ?? 0).toLocaleString(undefined, { style: 'currency', currency })

function Checkout({ plan }: { plan: Plan }) {
  const queryClient = useQueryClient()
  const checkout = useMutation({
    mutationFn: (couponCode: string) =>
      client.payments.checkout({
        planId: plan._id,
        billingCycle: 'monthly',
        ...(couponCode && { couponCode }),
        successUrl: location.href,
        cancelUrl: location.href,
      }),
    // The provider has a page of its own. What costs nothing needs none, and is active at once.
    onSuccess: ({ checkoutUrl }) =>
      checkoutUrl
        ? location.assign(checkoutUrl)
        : queryClient.invalidateQueries({ queryKey: ['atoll', 'subscription'] }),
  })
  return (
    <form onSubmit={onSubmit(({ coupon = '' }) => checkout.mutate(coupon.trim()))}>
      <Field label="Coupon">
        <input name="coupon" autoComplete="off" />
      </Field>
      <Notice error={checkout.error} />
      <button type="submit" disabled={checkout.isPending}>
        Subscribe
      </button>
    </form>
  )
}
