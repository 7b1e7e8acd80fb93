import { afterEach, describe, expect, test } from 'bun:test'
import { removeExpired } from '../../../src/accounts/one-time-tokens'
import { withLease } from '../../../src/jobs/with-lease'
import { INVALID_TOKEN } from '../../expectations'
import { createTestTenant, statusAndCode } from '../../test-tenant'
import { advanceClock, DAY, MINUTE, resetClock } from '../session-fixtures'
import { createMailFixture } from './mail-fixtures'

afterEach(resetClock)

describe('POST /api/email/verify', () => {
  test('a verification token verifies the address once, even in simultaneous requests', async () => {
    const { ada, anonymous, codeOf } = await createMailFixture()
    expect((await ada.get('/me')).body.emailVerified).toBeFalse()
    const token = await codeOf('verification')
    const answer = await anonymous.post('/email/verify', { token })
    expect([answer.status, answer.body]).toEqual([200, { success: true }])
    expect((await ada.get('/me')).body.emailVerified).toBeTrue()
    expect(statusAndCode(await anonymous.post('/email/verify', { token }))).toEqual(INVALID_TOKEN)
    await ada.post('/me', { email: 'countess@lovelace.test' })
    const nextToken = await codeOf('verification')
    const both = await Promise.all([1, 2].map(() => anonymous.post('/email/verify', { token: nextToken })))
    expect(both.map(({ status }) => status).sort()).toEqual([200, 400])
  })

  test('a verification token is rejected when altered, after three days and at another tenant', async () => {
    const { anonymous, codeOf } = await createMailFixture()
    const token = await codeOf('verification')
    const otherTenant = await createTestTenant()
    expect(statusAndCode(await otherTenant.anonymous.post('/email/verify', { token }))).toEqual(INVALID_TOKEN)
    expect(statusAndCode(await anonymous.post('/email/verify', { token: `${token}x` }))).toEqual(INVALID_TOKEN)
    expect(statusAndCode(await anonymous.post('/email/verify', {}))).toEqual([400, 'INVALID_INPUT'])
    advanceClock(3 * DAY + MINUTE)
    expect(statusAndCode(await anonymous.post('/email/verify', { token }))).toEqual(INVALID_TOKEN)
  })

  test('a changed address must be verified again, and the token of the old address gets 400 INVALID_TOKEN', async () => {
    const { ada, anonymous, codeOf, outbox } = await createMailFixture()
    const old = await codeOf('verification')
    await ada.post('/me', { email: 'countess@lovelace.test' })
    expect(statusAndCode(await anonymous.post('/email/verify', { token: old }))).toEqual(INVALID_TOKEN)
    const token = await codeOf('verification')
    expect((await outbox()).at(-1).to).toBe('countess@lovelace.test')
    expect((await anonymous.post('/email/verify', { token })).status).toBe(200)
    const changed = await ada.post('/me', { email: 'augusta@lovelace.test' })
    expect(changed.body.emailVerified).toBeFalse()
    // A change of case keeps the address verified.
    await anonymous.post('/email/verify', { token: await codeOf('verification') })
    expect((await ada.post('/me', { email: 'Augusta@lovelace.test' })).body.emailVerified).toBeTrue()
  })

  test('the eleventh request for a verification mail gets 429 RATE_LIMITED, and a verified address gets no further mail', async () => {
    const { ada, anonymous, codeOf, outbox } = await createMailFixture()
    expect((await ada.post('/email/verification')).body).toEqual({ success: true })
    expect(await outbox()).toHaveLength(2)
    for (let n = 0; n < 9; n++) expect((await ada.post('/email/verification')).status).toBe(200)
    expect(statusAndCode(await ada.post('/email/verification'))).toEqual([429, 'RATE_LIMITED'])
    await anonymous.post('/email/verify', { token: await codeOf('verification') })
    expect((await ada.post('/email/verification')).status).toBe(200)
    expect(await outbox()).toHaveLength(11)
  })

  test('a request for a verification mail gets 409 NO_EMAIL without an address and 401 without a session', async () => {
    const { ada, anonymous } = await createMailFixture()
    await ada.post('/me', { email: '' })
    expect(statusAndCode(await ada.post('/email/verification'))).toEqual([409, 'NO_EMAIL'])
    expect(statusAndCode(await anonymous.post('/email/verification'))).toEqual([401, 'UNAUTHENTICATED'])
  })

  test('an expired verification token is deleted', async () => {
    const { tenant, outbox } = await createMailFixture()
    await outbox()
    const tokens = async () => (await tenant.db.query('select count(*) from one_time_tokens'))[0]![0]
    await withLease(tenant, 'test', removeExpired)
    expect(await tokens()).toBe(1)
    advanceClock(3 * DAY + MINUTE)
    await withLease(tenant, 'test', removeExpired)
    expect(await tokens()).toBe(0)
  })
})
