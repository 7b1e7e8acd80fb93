import type { CheckoutOrder } from '../../../src/payments/providers/provider'
import type { Subscription } from '../../../src/payments/tables'

let orders = 0

/** An order of a plan for 20.00 a month. */
export const createOrder = (more: Partial<CheckoutOrder> = {}): CheckoutOrder => {
  const subscriptionId = Bun.randomUUIDv7()
  const entity = { type: 'user', id: 'ada' } as const
  return {
    ...{ tenant: 'acme', subscriptionId, entity, planName: 'Pro', externalIds: {}, amount: 2000, basePrice: 2000 },
    ...{ currency: 'USD', billingCycle: 'monthly', dynamic: false, discount: null, embedded: false },
    ...{ successUrl: 'https://shop.example.com/thanks', cancelUrl: 'https://shop.example.com/cart' },
    ...{ customer: { name: 'Ada King Lovelace', email: 'ada@example.com' }, key: `checkout:${orders++}` },
    metadata: { tenant: 'acme', subscription: subscriptionId, entity: 'user:ada' },
    ...more,
  }
}

export const discount = { couponId: 'c', code: 'LESS', benefit: null }

/** What is kept of a subscription, as far as a provider looks at it. */
export const createSubscriptionRow = (more: Partial<Subscription>) =>
  ({ _id: Bun.randomUUIDv7(), currency: 'USD', billingCycle: 'monthly', updated: '1', ...more }) as Subscription

/** A connection with its secrets, as those who ask a provider have it. */
export const createOpenedConnection = <Connection extends object>(connection: Connection) =>
  ({ _id: Bun.randomUUIDv7() as string, ...connection }) as never

/** Nobody is told what is secret: not by an answer, and not by the log. */
export async function captureLeaks(secrets: string[], work: () => Promise<unknown>) {
  const lines: string[] = []
  const before = console.error
  console.error = (...line: unknown[]) => void lines.push(line.join(' '))
  try {
    const problem = (await work().then(
      () => undefined,
      (error) => error,
    )) as { status: number; code: string; message: string; more: { details?: unknown } } | undefined
    const told = JSON.stringify([problem?.message, problem?.more.details, lines])
    return { refused: [problem?.status, problem?.code], leaked: secrets.filter((secret) => told.includes(secret)) }
  } finally {
    console.error = before
  }
}
export const PROVIDER_ERROR_WITHOUT_LEAK = { refused: [502, 'PROVIDER_ERROR'], leaked: [] }
