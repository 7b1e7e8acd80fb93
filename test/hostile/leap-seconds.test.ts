import { afterAll, beforeAll, expect, test } from 'bun:test'
import { config } from '../../src/config'
import { createBlueprintsFixture } from '../entities/fixtures'
import { callApi } from '../test-tenant'

const LEAP_SECOND = '2030-06-30T23:59:60Z'
const OPERATOR_TOKEN = 'the-operator-token-of-the-leap-second'

beforeAll(() => {
  config.ATOLL_OPERATOR_TOKEN = OPERATOR_TOKEN
})
afterAll(() => {
  config.ATOLL_OPERATOR_TOKEN = ''
})

test('a leap second is a 400 with a sentence wherever a time is sent', async () => {
  const own = await createBlueprintsFixture({ key: 'things', fields: [{ key: 'when', type: 'datetime' }] })
  const { admin } = own
  const path = own.at('things')
  const coupon = { code: 'LEAP', discountType: 'percentage', discountValue: 10, validUntil: LEAP_SECOND }
  const answers = [
    await admin.post(path, { when: LEAP_SECOND }),
    ...(await Promise.all(
      [
        `${path}?when=${LEAP_SECOND}`,
        `${path}?when[$gt]=${LEAP_SECOND}`,
        `${path}?created[$lt]=${LEAP_SECOND}`,
        `/events?from=${LEAP_SECOND}`,
        `/events?to=${LEAP_SECOND}`,
        `/ai/usage?from=${LEAP_SECOND}`,
        `/ai/usage?to=${LEAP_SECOND}`,
      ].map((address) => admin.get(address)),
    )),
    await admin.post('/me/api-tokens', { nickname: 'leap', expiresAt: LEAP_SECOND }),
    await admin.post('/coupons', coupon),
    await callApi('POST', 'http://localhost/operator/tokens', {
      headers: { authorization: `Bearer ${OPERATOR_TOKEN}` },
      body: { name: `leap ${own.id}`, scopes: ['read'], expires: LEAP_SECOND },
    }),
  ]
  for (const { status, body } of answers)
    expect([status, body]).toEqual([400, expect.objectContaining({ message: expect.any(String) })])
})

test('an operator token expires at the moment that was sent, in whatever zone, and is refused without a valid one', async () => {
  const create = (expires: string) =>
    callApi('POST', 'http://localhost/operator/tokens', {
      headers: { authorization: `Bearer ${OPERATOR_TOKEN}` },
      body: { name: `token ${crypto.randomUUID()}`, scopes: ['read'], expires },
    })
  expect((await create('2999-01-01T10:00:00+05:30')).body.expires).toBe('2999-01-01T04:30:00.000Z')
  for (const expires of ['tomorrow', '', '2999-02-30T10:00:00Z']) expect((await create(expires)).status).toBe(400)
})
