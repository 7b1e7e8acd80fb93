import { afterEach, describe, expect, test } from 'bun:test'
import { removeExpired } from '../../../src/accounts/one-time-tokens'
import { withLease } from '../../../src/jobs/with-lease'
import { createTestTenant, statusAndCode } from '../../test-tenant'
import { advanceClock, DAY, MINUTE, resetClock } from '../session-fixtures'
import { createMailFixture, INVALID_TOKEN } from './mail-fixtures'

afterEach(resetClock)

describe('an e-mail address', () => {
  test('is proven by what was sent to it, once', async () => {
    const { ada, stranger, codeOf } = await createMailFixture()
    expect((await ada.get('/me')).body.emailVerified).toBeFalse()
    const token = await codeOf('verification')
    const answer = await stranger.post('/email/verify', { token })
    expect([answer.status, answer.body]).toEqual([200, { success: true }])
    expect((await ada.get('/me')).body.emailVerified).toBeTrue()
    expect(statusAndCode(await stranger.post('/email/verify', { token }))).toEqual(INVALID_TOKEN)
    await ada.post('/me', { email: 'countess@lovelace.test' })
    const other = await codeOf('verification')
    const both = await Promise.all([1, 2].map(() => stranger.post('/email/verify', { token: other })))
    expect(both.map(({ status }) => status).sort()).toEqual([200, 400])
  })

  test('is not proven by a guess, by what is old, or at another tenant', async () => {
    const { stranger, codeOf } = await createMailFixture()
    const token = await codeOf('verification')
    const abroad = await createTestTenant()
    expect(statusAndCode(await abroad.stranger.post('/email/verify', { token }))).toEqual(INVALID_TOKEN)
    expect(statusAndCode(await stranger.post('/email/verify', { token: `${token}x` }))).toEqual(INVALID_TOKEN)
    expect(statusAndCode(await stranger.post('/email/verify', {}))).toEqual([400, 'INVALID_INPUT'])
    advanceClock(3 * DAY + MINUTE)
    expect(statusAndCode(await stranger.post('/email/verify', { token }))).toEqual(INVALID_TOKEN)
  })

  test('that was changed has to be proven anew, and what was sent to the old one is worth nothing', async () => {
    const { ada, stranger, codeOf, outbox } = await createMailFixture()
    const old = await codeOf('verification')
    await ada.post('/me', { email: 'countess@lovelace.test' })
    expect(statusAndCode(await stranger.post('/email/verify', { token: old }))).toEqual(INVALID_TOKEN)
    const token = await codeOf('verification')
    expect((await outbox()).at(-1).to).toBe('countess@lovelace.test')
    expect((await stranger.post('/email/verify', { token })).status).toBe(200)
    const changed = await ada.post('/me', { email: 'augusta@lovelace.test' })
    expect(changed.body.emailVerified).toBeFalse()
    // Another case is the same address.
    await stranger.post('/email/verify', { token: await codeOf('verification') })
    expect((await ada.post('/me', { email: 'Augusta@lovelace.test' })).body.emailVerified).toBeTrue()
  })

  test('can be asked for again, until it is proven, and not without end', async () => {
    const { ada, stranger, codeOf, outbox } = await createMailFixture()
    expect((await ada.post('/email/verification')).body).toEqual({ success: true })
    expect(await outbox()).toHaveLength(2)
    for (let n = 0; n < 9; n++) expect((await ada.post('/email/verification')).status).toBe(200)
    expect(statusAndCode(await ada.post('/email/verification'))).toEqual([429, 'RATE_LIMITED'])
    await stranger.post('/email/verify', { token: await codeOf('verification') })
    expect((await ada.post('/email/verification')).status).toBe(200)
    expect(await outbox()).toHaveLength(11)
  })

  test('that is not there cannot be proven, nor by who is not signed in', async () => {
    const { ada, stranger } = await createMailFixture()
    await ada.post('/me', { email: '' })
    expect(statusAndCode(await ada.post('/email/verification'))).toEqual([409, 'NO_EMAIL'])
    expect(statusAndCode(await stranger.post('/email/verification'))).toEqual([401, 'UNAUTHENTICATED'])
  })

  test('leaves nothing behind when nobody comes', async () => {
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
