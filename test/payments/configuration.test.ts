import { expect, test } from 'bun:test'
import { FORBIDDEN, UNAUTHENTICATED } from '../expectations'
import { createTestTenant, statusAndCode } from '../test-tenant'
import { createPaymentsFixture, expectOk } from './fixtures'

const PATH = '/payments/configuration'
const DEFAULTS = { isEnabled: false, defaultCurrency: 'USD', gracePeriodDays: 3 }
const configurationOf = (metadata: object) => ({
  key: 'payments-configuration',
  metadata: { ...DEFAULTS, ...metadata },
})

const at = await createPaymentsFixture()
const { admin } = at

test('GET /payments/configuration returns defaults for missing keys, and PUT changes only the keys it gets', async () => {
  const own = (await createTestTenant()).as('admin')
  expect(await expectOk(own.get(PATH))).toEqual(configurationOf({}))
  expect(await expectOk(own.put(PATH, {}))).toEqual(configurationOf({}))
  const urls = { successUrl: 'https://shop.example.com/thanks', cancelUrl: 'http://localhost:3000/cart' }
  expect(await expectOk(own.put(PATH, { metadata: { ...urls, gracePeriodDays: 7 } }))).toEqual(
    configurationOf({ ...urls, gracePeriodDays: 7 }),
  )
  const changed = { metadata: { isEnabled: true, cancelUrl: null, defaultCurrency: 'eur' } }
  const { cancelUrl: _, ...remaining } = urls
  const after = configurationOf({ ...remaining, gracePeriodDays: 7, isEnabled: true, defaultCurrency: 'EUR' })
  expect(await expectOk(own.put(PATH, changed))).toEqual(after)
  expect(await expectOk(own.get(PATH))).toEqual(after)
  expect((await expectOk(own.get('/configurations/payments-configuration'))).metadata).toEqual({
    ...{ ...remaining, gracePeriodDays: 7, isEnabled: true, defaultCurrency: 'EUR' },
  })
  const plan = await expectOk(own.post('/plans', { name: 'x', monthlyPrice: 1, yearlyPrice: 1 }))
  expect(plan.currency).toBe('EUR')
})

test('PUT /payments/configuration rejects invalid redirect URLs with 400 INVALID_PAYMENTS_CONFIGURATION and stores nothing', async () => {
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
      expect(statusAndCode(sent), `${name} ${url}`).toEqual([400, 'INVALID_PAYMENTS_CONFIGURATION'])
    }
  expect(await expectOk(admin.get(PATH))).toEqual(configurationOf({}))
})

test('PUT /payments/configuration rejects invalid values with 400 INVALID_INPUT and stores nothing', async () => {
  const bad: object[] = [
    ...[{ isEnabled: 'yes' }, { gracePeriodDays: -1 }, { gracePeriodDays: '3' }, { defaultCurrency: 'XYZ' }],
    ...[{ defaultCurrency: 5 }, { paymentSourceId: 5 }, { gracePeriodDays: 1e21 }],
  ]
  for (const metadata of bad)
    expect(statusAndCode(await admin.put(PATH, { metadata })), JSON.stringify(metadata)).toEqual([400, 'INVALID_INPUT'])
  expect(statusAndCode(await admin.put(PATH, { metadata: 'x' }))).toEqual([400, 'INVALID_INPUT'])
  expect(await expectOk(admin.get(PATH))).toEqual(configurationOf({}))
})

test('POST and PUT /configurations reject an unknown currency and unusable redirect URLs of payments with 400', async () => {
  const own = (await createTestTenant()).as('admin')
  const key = 'payments-configuration'
  const send = (metadata: object) => [
    own.post('/configurations', { key, metadata }),
    own.put(`/configurations/${key}`, { metadata }),
  ]
  for (const sent of send({ defaultCurrency: 'XYZ', gracePeriodDays: 9 })) {
    const { status, body } = await sent
    const message = '"XYZ" is not an ISO 4217 currency.'
    expect([status, body]).toEqual([
      400,
      { code: 'INVALID_INPUT', message, details: [{ path: '/metadata/defaultCurrency', message }] },
    ])
  }
  for (const sent of send({ successUrl: 'https://[' })) {
    const answer = await sent
    expect(statusAndCode(answer)).toEqual([400, 'INVALID_PAYMENTS_CONFIGURATION'])
    expect(answer.body.details[0].path).toBe('/metadata/successUrl')
  }
  expect(await expectOk(own.get(PATH))).toEqual(configurationOf({}))
  const plan = await expectOk(own.post('/plans', { name: 'x', monthlyPrice: 1, yearlyPrice: 1 }))
  expect(plan.currency).toBe('USD')

  const valid = { defaultCurrency: 'EUR', successUrl: 'https://shop.example.com/thanks' }
  await expectOk(own.put(`/configurations/${key}`, { metadata: valid }))
  expect(await expectOk(own.get(PATH))).toEqual(configurationOf(valid))
  await expectOk(own.put(`/configurations/${key}`, { metadata: { defaultCurrency: null, successUrl: null } }))
  expect(await expectOk(own.get(PATH))).toEqual(configurationOf({}))
})

test('GET and PUT /payments/configuration get 403 from users and 401 without credentials', async () => {
  for (const client of [at.as('user'), at.as('editor')])
    for (const sent of [client.get(PATH), client.put(PATH, {})]) expect(statusAndCode(await sent)).toEqual(FORBIDDEN)
  for (const sent of [at.anonymous.get(PATH), at.anonymous.put(PATH, {})])
    expect(statusAndCode(await sent)).toEqual(UNAUTHENTICATED)
})

test('PUT of the payments configuration rejects an unknown connection and one of another kind with 400, on both routes', async () => {
  const own = await createPaymentsFixture()
  const http = { name: 'Ours', kind: 'http', metadata: { url: 'https://example.com' } }
  const { _id: httpSource } = await expectOk(own.admin.post('/integration-sources', http), 201)
  for (const path of [PATH, '/configurations/payments-configuration'])
    for (const paymentSourceId of ['none', httpSource, 'a\0b']) {
      const { status, body } = await own.admin.put(path, { metadata: { paymentSourceId, gracePeriodDays: 9 } })
      expect([path, status], JSON.stringify(body)).toEqual([path, 400])
      if (!paymentSourceId.includes('\0')) expect(body.code).toBe('INVALID_PAYMENTS_CONFIGURATION')
      expect((await expectOk(own.admin.get(PATH))).metadata.gracePeriodDays).toBe(3)
    }
  const refused = await own.admin.put(PATH, { metadata: { paymentSourceId: httpSource } })
  expect(refused.body.details[0].path).toBe('/metadata/paymentSourceId')
  expect(refused.body.message).toContain('is of kind http')
  const stripe = {
    name: 'S',
    kind: 'stripe',
    metadata: {},
    authentication: { secretKey: 'sk_1', webhookSecret: 'whsec_1' },
  }
  const { _id } = await expectOk(own.admin.post('/integration-sources', stripe), 201)
  expect((await expectOk(own.admin.put(PATH, { metadata: { paymentSourceId: _id } }))).metadata.paymentSourceId).toBe(
    _id,
  )
  expect(
    (await expectOk(own.admin.put(PATH, { metadata: { paymentSourceId: null } }))).metadata.paymentSourceId,
  ).toBeUndefined()
})
