import { isoOf, type Json, MONTH, type Span, START } from './vendor-scenarios'

/** The shapes of the objects in events of Paddle. */
export type PaddleShapes = {
  shape: string
  subscription(id: string, ours: string, fields?: Json): Json
  transaction(id: string, of: string, ours: string, amount: string, fields?: Json): Json
}

export const periodOf = ({ start, end }: Span) => ({ starts_at: isoOf(start), ends_at: isoOf(end) })
const cycle = { interval: 'month', frequency: 1 }
export const stamps = { created_at: isoOf(START), updated_at: isoOf(START) }
export const price = {
  ...{ id: 'pri_1', product_id: 'pro_1', name: 'Pro', type: 'standard', description: 'Pro', tax_mode: 'external' },
  ...{ billing_cycle: cycle, trial_period: null, unit_price: { amount: '2000', currency_code: 'USD' } },
  ...{ unit_price_overrides: [], quantity: { minimum: 1, maximum: 1 }, status: 'active', custom_data: null, ...stamps },
  import_meta: null,
}
const product = {
  ...{ id: 'pro_1', name: 'Pro', type: 'standard', tax_category: 'saas', description: null, image_url: null },
  ...{ custom_data: null, status: 'active', ...stamps, import_meta: null },
}
export const item = {
  ...{ status: 'active', quantity: 1, recurring: true, ...stamps, previously_billed_at: isoOf(START) },
  ...{ next_billed_at: isoOf(MONTH.end), trial_dates: null, price, product },
}
const NOT_YET = { paused_at: null, canceled_at: null, scheduled_change: null, discount: null, billing_details: null }

/** What Paddle sends today. */
const full = (tenant: string): PaddleShapes => ({
  shape: 'of today',
  subscription: (id, ours, fields) => ({
    ...{ id, status: 'active', customer_id: 'ctm_1', address_id: 'add_1', business_id: null, currency_code: 'USD' },
    ...{ ...stamps, started_at: isoOf(START), first_billed_at: isoOf(START), next_billed_at: isoOf(MONTH.end) },
    ...{ ...NOT_YET, collection_mode: 'automatic', current_billing_period: periodOf(MONTH), billing_cycle: cycle },
    ...{ items: [item], custom_data: { tenant, subscription: ours }, import_meta: null, ...fields },
  }),
  transaction: (id, subscription_id, ours, amount, fields) => {
    const totals = { subtotal: amount, discount: '0', tax: '0', total: amount }
    const all = { ...totals, credit: '0', credit_to_balance: '0', balance: '0', grand_total: amount, fee: null }
    const line = { id: 'txnitm_1', price_id: 'pri_1', quantity: 1, proration: null, tax_rate: '0', product }
    return {
      ...{ id, status: 'completed', customer_id: 'ctm_1', address_id: 'add_1', business_id: null, subscription_id },
      ...{
        custom_data: { tenant, subscription: ours },
        currency_code: 'USD',
        origin: 'subscription_recurring',
        invoice_id: 'inv_1',
      },
      ...{ invoice_number: '1-1', collection_mode: 'automatic', discount_id: null, billing_details: null },
      ...{ billing_period: periodOf(MONTH), items: [{ price_id: 'pri_1', price, quantity: 1, proration: null }] },
      details: {
        ...{ tax_rates_used: [], totals: { ...all, earnings: null, currency_code: 'USD' } },
        ...{ adjusted_totals: null, payout_totals: null, adjusted_payout_totals: null },
        line_items: [{ ...line, unit_totals: totals, totals }],
      },
      ...{ payments: [], checkout: { url: null }, ...stamps, billed_at: isoOf(START), revised_at: null, ...fields },
    }
  },
})

const without = (data: Json, ...names: string[]): Json =>
  Object.fromEntries(Object.entries(data).filter(([name]) => !names.includes(name)))
const LATER_MEMBERS = ['discount', 'billing_details', 'import_meta', 'revised_at', 'origin', 'invoice_number']

/** What the first notifications of this API had, and what a later one may have besides. */
const early = (today: PaddleShapes): PaddleShapes => ({
  shape: 'of its first year',
  subscription: (...all) => without(today.subscription(...all), ...LATER_MEMBERS),
  transaction: (...all) => without(today.transaction(...all), ...LATER_MEMBERS),
})
const later = (today: PaddleShapes): PaddleShapes => ({
  shape: 'with members that are unknown',
  subscription: (...all) => ({ ...today.subscription(...all), tax_identity: { status: 'hibernating' } }),
  transaction: (...all) => ({ ...today.transaction(...all), settlement: [{ amount: 5 }], origin_version: 2 }),
})

/** Returns the shapes of three times; the first are those of today. */
export function paddleShapes(tenant: string): [PaddleShapes, ...PaddleShapes[]] {
  const today = full(tenant)
  return [today, early(today), later(today)]
}
