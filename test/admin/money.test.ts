// engine: sqlite
import { expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import { formatMoney } from '../../src/admin/ui/format-money'
import { exponentOf } from '../../src/core/currencies'
import { hasBrowser, launchBrowser } from '../fakes/browser'

setDefaultTimeout(120_000)

const PLACES = { HUF: 2, COP: 2, PKR: 2, MGA: 2, IQD: 3, JPY: 0, UYW: 4, USD: 2 }
const AMOUNT = 1999.5678

function expectPlaces(texts: Record<string, string>) {
  for (const [currency, decimals] of Object.entries(PLACES)) {
    const pattern = decimals ? new RegExp(`[.,]\\d{${decimals}}(\\D|$)`) : /2.?000/
    expect(texts[currency], currency).toMatch(pattern)
  }
}

test('amounts of money have the decimals that the server counts in', () => {
  expect(Object.fromEntries(Object.keys(PLACES).map((currency) => [currency, exponentOf(currency)]))).toEqual(PLACES)
  expectPlaces(Object.fromEntries(Object.keys(PLACES).map((currency) => [currency, formatMoney(AMOUNT, currency)])))
})

test.skipIf(!hasBrowser)(
  'a browser writes the decimals that the server counts in, not those of its own table',
  async () => {
    const path = join(import.meta.dir, '../../src/admin/ui/format-money.ts')
    const built = await Bun.build({ entrypoints: [path], target: 'browser', format: 'esm' })
    const url = `data:text/javascript;base64,${Buffer.from(await built.outputs[0]!.text()).toString('base64')}`
    await using browser = await launchBrowser()
    const page = await browser.newPage()
    const [ownPlaces, written] = await page.evaluate(
      async ([url, amount, currencies]) => {
        const { formatMoney } = await import(url)
        const readPlaces = (currency: string) =>
          new Intl.NumberFormat('en', { style: 'currency', currency }).resolvedOptions().maximumFractionDigits
        const entries = currencies.map((currency) => [currency, readPlaces(currency), formatMoney(amount, currency)])
        return [
          Object.fromEntries(entries.map(([currency, places]) => [currency, places])),
          Object.fromEntries(entries.map(([currency, , text]) => [currency, text])),
        ] as const
      },
      [url, AMOUNT, Object.keys(PLACES)] as const,
    )
    expectPlaces(written)
    // Otherwise this browser proves nothing that Bun does not.
    expect(ownPlaces).not.toEqual(PLACES)
  },
)
