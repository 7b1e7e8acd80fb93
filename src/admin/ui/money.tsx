import { formatMoney } from './format-money'

export { formatMoney }

/** An amount of money with its currency. */
export const Money = ({ amount, currency }: { amount: number; currency?: string }) => (
  <span>{formatMoney(amount, currency)}</span>
)
