import { expect, spyOn } from 'bun:test'
import { logOutput } from '../../../src/core/log'
import type { CheckoutOrder } from '../../../src/payments/providers/provider'
import type { Subscription } from '../../../src/payments/tables'

let orders = 0

/** Returns an order of a plan for 20.00 a month. */
export const createOrder = (more: Partial<CheckoutOrder> = {}): CheckoutOrder => {
  const subscriptionId = Bun.randomUUIDv7()
  return {
    ...{ subscriptionId, planName: 'Pro', externalIds: {}, amount: 2000 },
    ...{ currency: 'USD', billingCycle: 'monthly', dynamic: false, isPlanPrice: true },
    ...{ successUrl: 'https://shop.example.com/thanks', cancelUrl: 'https://shop.example.com/cart' },
    ...{ customer: { name: 'Ada King Lovelace', email: 'ada@example.com' }, key: `checkout:${orders++}` },
    metadata: { tenant: 'acme', subscription: subscriptionId, entity: 'user:ada' },
    ...more,
  }
}

/** Returns a stored subscription with the columns that providers read. */
export const createSubscriptionRow = (more: Partial<Subscription>) =>
  ({ _id: Bun.randomUUIDv7(), currency: 'USD', billingCycle: 'monthly', updated: '1', ...more }) as Subscription

/** Returns a connection with decrypted secrets, as providers get it. */
export const createResolvedConnection = <Connection extends object>(connection: Connection) =>
  ({ _id: Bun.randomUUIDv7() as string, ...connection }) as never

/** Runs the work, which must log its failure, and returns its error and the secrets that appear in the error or the log. */
export async function captureLeaks(secrets: string[], work: () => Promise<unknown>) {
  const lines: string[] = []
  const logSpy = spyOn(logOutput, 'write').mockImplementation((line) => void lines.push(line))
  try {
    const problem = (await work().then(
      () => undefined,
      (error) => error,
    )) as { status: number; code: string; message: string; more: { details?: unknown } } | undefined
    expect(lines).not.toBeEmpty()
    const output = [problem?.message, JSON.stringify(problem?.more.details), ...lines].join('\n')
    return { refused: [problem?.status, problem?.code], leaked: secrets.filter((secret) => output.includes(secret)) }
  } finally {
    logSpy.mockRestore()
  }
}
export const PROVIDER_ERROR_WITHOUT_LEAK = { refused: [502, 'PROVIDER_ERROR'], leaked: [] }
