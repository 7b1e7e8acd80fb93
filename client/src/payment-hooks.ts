import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import type { CheckoutRequest, Client, Kinds } from './index'
import type { QuerySettings } from './query-settings'

/** Not every platform has pages. */
const browser = globalThis as { location?: { href: string; assign(url: string): void } }

/** Hooks for plans and subscriptions. */
export function createPaymentHooks<B extends Kinds<B>>({ payments }: Client<B>, scope: string) {
  const subscriptionKey = [scope, 'subscription']
  return {
    /**
     * The plans that can be subscribed to.
     * @example
     * const { data: plans = [] } = usePlans()
     */
    usePlans: (settings: QuerySettings = {}) =>
      useQuery({ queryKey: [scope, 'plans'], queryFn: ({ signal }) => payments.plans({}, { signal }), ...settings }),

    /**
     * The active subscription of the user or their workspace, or null.
     * @example
     * const { data: subscription } = useSubscription()
     */
    useSubscription: (settings: QuerySettings = {}) =>
      useQuery({ queryKey: subscriptionKey, queryFn: ({ signal }) => payments.subscription({ signal }), ...settings }),

    /**
     * Starts a checkout and opens the page of the provider. A plan that costs nothing is active at once.
     * @example
     * const checkout = useCheckout()
     * const subscribe = (planId: string) => checkout.mutate({ planId, billingCycle: 'monthly' })
     */
    useCheckout() {
      const queryClient = useQueryClient()
      return useMutation({
        mutationFn: (checkout: CheckoutRequest) => {
          // By default, people return to the page that they came from.
          const page = browser.location?.href
          return payments.checkout({ ...(page && { successUrl: page, cancelUrl: page }), ...checkout })
        },
        onSuccess: ({ checkoutUrl }) =>
          checkoutUrl && browser.location
            ? browser.location.assign(checkoutUrl)
            : queryClient.invalidateQueries({ queryKey: subscriptionKey }),
      })
    },
  }
}
