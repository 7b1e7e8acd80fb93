import { DAY, now } from '../../../core/clock'
import type { ProviderInvoice } from '../provider'
import { moment, named } from '../signed'
import { fromPaypal, type Money } from './amounts'
import { type Connected, paypalAnswers } from './api'
import type { PaypalSubscription } from './events'

type Transaction = { id?: string; status?: string; time?: string; amount_with_breakdown?: { gross_amount?: Money } }
type Page = { transactions?: Transaction[]; links?: { rel: string; href: string }[] }

const LATE = 366 * DAY
const PAGES = 100

/** What was paid for a subscription within a year. */
export async function transactionsOf(
  opened: Connected,
  path: string,
  { start_time, billing_info }: PaypalSubscription,
): Promise<(ProviderInvoice & { status: 'paid' })[]> {
  if (!billing_info?.last_payment) return []
  const from = Math.max(moment(start_time) ?? 0, now() - LATE) - DAY
  const [start, end] = [from, now() + DAY].map((time) => new Date(time).toISOString())
  const found: Transaction[] = []
  let query: string | undefined = `${new URLSearchParams({ start_time: start!, end_time: end! })}`
  for (let page = 0; query && page < PAGES; page++) {
    const { transactions = [], links }: Page = await paypalAnswers(opened, `${path}/transactions?${query}`)
    found.push(...transactions)
    query = named(links?.find(({ rel }) => rel === 'next')?.href)?.split('?')[1]
  }
  return found.flatMap(({ id, status, time, amount_with_breakdown }) => {
    const gross = amount_with_breakdown?.gross_amount
    if (!id || status !== 'COMPLETED' || !gross) return []
    const currency = gross.currency_code.toUpperCase()
    const amount = fromPaypal(gross.value, currency)
    return [{ externalInvoiceId: id, amount, currency, paidAt: moment(time), status: 'paid' as const }]
  })
}
