import { hooks } from './atoll'
import { Field, Notice, onSubmit } from './ui'

type Plan = NonNullable<ReturnType<typeof hooks.usePlans>['data']>[number]

/** The plans that a company can have. */
export function Plans() {
  const { data: plans = [], isPending, error } = hooks.usePlans()
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
  // It goes to the page of the provider. What costs nothing is active at once.
  const checkout = hooks.useCheckout()
  const subscribe = (couponCode: string) =>
    checkout.mutate({ planId: plan._id, billingCycle: 'monthly', ...(couponCode && { couponCode }) })
  return (
    <form onSubmit={onSubmit(({ coupon = '' }) => subscribe(coupon.trim()))}>
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
