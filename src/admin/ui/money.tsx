/** Returns an amount in the currency's main unit as the locale writes it; without a currency, as a plain number. */
export function formatMoney(amount: number, currency?: string): string {
  if (!currency) return amount.toLocaleString()
  try {
    return new Intl.NumberFormat(undefined, { style: 'currency', currency }).format(amount)
  } catch {
    // Not a currency that the browser knows.
    return `${amount.toLocaleString()} ${currency}`
  }
}

/** An amount of money with its currency. */
export const Money = ({ amount, currency }: { amount: number; currency?: string }) => (
  <span>{formatMoney(amount, currency)}</span>
)
