import { expect, test } from 'bun:test'
import { house, refusal } from '../house'
import { done, FORBIDDEN, STRANGER, shop } from './kit'

const PATH = '/payments/configuration'
const DEFAULTS = { isEnabled: false, defaultCurrency: 'USD', gracePeriodDays: 3 }
const answer = (metadata: object) => ({ key: 'payments-configuration', metadata: { ...DEFAULTS, ...metadata } })

const at = await shop()
const { admin } = at

test('the configuration has values where nothing is set, and changes key by key', async () => {
  const own = (await house()).as('admin')
  expect(await done(own.get(PATH))).toEqual(answer({}))
  expect(await done(own.put(PATH, {}))).toEqual(answer({}))
  const urls = { successUrl: 'https://shop.example.com/thanks', cancelUrl: 'http://localhost:3000/cart' }
  expect(await done(own.put(PATH, { metadata: { ...urls, gracePeriodDays: 7 } }))).toEqual(
    answer({ ...urls, gracePeriodDays: 7 }),
  )
  const changed = { metadata: { isEnabled: true, cancelUrl: null, defaultCurrency: 'eur', mine: { a: 1 } } }
  const { cancelUrl: _, ...kept } = urls
  const after = answer({ ...kept, gracePeriodDays: 7, isEnabled: true, defaultCurrency: 'EUR', mine: { a: 1 } })
  expect(await done(own.put(PATH, changed))).toEqual(after)
  expect(await done(own.get(PATH))).toEqual(after)
  expect((await done(own.get('/configurations/payments-configuration'))).metadata).toEqual({
    ...{ ...kept, gracePeriodDays: 7, isEnabled: true, defaultCurrency: 'EUR', mine: { a: 1 } },
  })
  const plan = await done(own.post('/plans', { name: 'x', monthlyPrice: 1, yearlyPrice: 1 }))
  expect(plan.currency).toBe('EUR')
})

test('addresses must be such that a browser can be led there', async () => {
  const bad = [
    '/thanks',
    'thanks',
    'ftp://x.test/',
    'javascript:alert(1)',
    'https://',
    'http:///x',
    '',
    5,
    {},
    '//x.test',
  ]
  for (const name of ['successUrl', 'cancelUrl'])
    for (const url of bad) {
      const sent = await admin.put(PATH, { metadata: { [name]: url, gracePeriodDays: 9 } })
      expect(refusal(sent), `${name} ${url}`).toEqual([400, 'INVALID_PAYMENTS_CONFIGURATION'])
    }
  expect(await done(admin.get(PATH))).toEqual(answer({}))
})

test('what does not fit is refused, and nothing of it is kept', async () => {
  const bad: object[] = [
    ...[{ isEnabled: 'yes' }, { gracePeriodDays: -1 }, { gracePeriodDays: '3' }, { defaultCurrency: 'XYZ' }],
    ...[{ defaultCurrency: 5 }, { paymentSourceId: 5 }, { gracePeriodDays: 1e21 }],
  ]
  for (const metadata of bad)
    expect(refusal(await admin.put(PATH, { metadata })), JSON.stringify(metadata)).toEqual([400, 'INVALID_INPUT'])
  expect(refusal(await admin.put(PATH, { metadata: 'x' }))).toEqual([400, 'INVALID_INPUT'])
  expect(await done(admin.get(PATH))).toEqual(answer({}))
})

test('it is for admins only', async () => {
  for (const who of [at.as('user'), at.as('editor')])
    for (const sent of [who.get(PATH), who.put(PATH, {})]) expect(refusal(await sent)).toEqual(FORBIDDEN)
  for (const sent of [at.stranger.get(PATH), at.stranger.put(PATH, {})]) expect(refusal(await sent)).toEqual(STRANGER)
})
