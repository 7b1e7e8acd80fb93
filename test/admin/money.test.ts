import { expect, test } from 'bun:test'
import { formatMoney } from '../../src/admin/ui/format-money'
import { exponentOf } from '../../src/core/currencies'

test('the admin page writes amounts with the decimals that the server counts in', () => {
  const places = { HUF: 2, COP: 2, PKR: 2, MGA: 2, IQD: 3, JPY: 0, UYW: 4, USD: 2 }
  for (const [currency, decimals] of Object.entries(places)) {
    expect(exponentOf(currency)).toBe(decimals)
    const text = formatMoney(1999.5678, currency)
    expect(text, currency).toMatch(decimals ? new RegExp(`[.,]\\d{${decimals}}(\\D|$)`) : /2.?000/)
  }
})
