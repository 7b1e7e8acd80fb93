import { exponentOf } from '../../core/currencies'

/**
 * Returns an amount in the currency's main unit as the locale writes it, with the decimal places that the server counts in:
 * browsers would round prices of some currencies. Without a currency, as a plain number.
 */
export function formatMoney(amount: number, currency?: string): string {
  if (!currency) return amount.toLocaleString()
  const decimals = exponentOf(currency)
  const places = { minimumFractionDigits: decimals, maximumFractionDigits: decimals }
  try {
    return new Intl.NumberFormat(undefined, { style: 'currency', currency, ...places }).format(amount)
  } catch {
    // Not a currency that the browser knows.
    return `${amount.toLocaleString(undefined, places)} ${currency}`
  }
}
