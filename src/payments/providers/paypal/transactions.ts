import { DAY_MS, now } from '../../../core/clock'
import { nonEmptyText, parseTime } from '../event-parser'
import type { ProviderInvoice } from '../provider'
import { fromPaypalAmount, type Money } from './amounts'
import { type PaypalConnection, requestPaypal } from './api'
import type { PaypalSubscription } from './events'

type Transaction = { id?: string; status?: string; time?: string; amount_with_breakdown?: { gross_amount?: Money } }
type Page = { transactions?: Transaction[]; links?: { rel: string; href: string }[] }

const TRANSACTION_WINDOW_MS = 366 * DAY_MS
const MAX_TRANSACTION_PAGES = 100

/** A payment that was given back was made all the same, and its invoice stays paid. */
const PAID_STATUSES = ['COMPLETED', 'PARTIALLY_REFUNDED', 'REFUNDED']

/** Returns the paid invoices of a subscription within the last year. */
export async function listPaidTransactions(
  connection: PaypalConnection,
  path: string,
  { start_time, billing_info }: PaypalSubscription,
): Promise<(ProviderInvoice & { status: 'paid' })[]> {
  if (!billing_info?.last_payment) return []
  const from = Math.max(parseTime(start_time) ?? 0, now() - TRANSACTION_WINDOW_MS) - DAY_MS
  const [start, end] = [from, now() + DAY_MS].map((time) => new Date(time).toISOString())
  const collected: Transaction[] = []
  let query: string | undefined = `${new URLSearchParams({ start_time: start!, end_time: end! })}`
  for (let page = 0; query && page < MAX_TRANSACTION_PAGES; page++) {
    const { transactions = [], links }: Page = await requestPaypal(connection, `${path}/transactions?${query}`)
    collected.push(...transactions)
    query = nonEmptyText(links?.find(({ rel }) => rel === 'next')?.href)?.split('?')[1]
  }
  return collected.flatMap(({ id, status, time, amount_with_breakdown }) => {
    const gross = amount_with_breakdown?.gross_amount
    if (!id || !PAID_STATUSES.includes(status ?? '') || !gross) return []
    const currency = gross.currency_code.toUpperCase()
    const amount = fromPaypalAmount(gross.value, currency)
    return [{ externalInvoiceId: id, amount, currency, paidAt: parseTime(time), status: 'paid' as const }]
  })
}
