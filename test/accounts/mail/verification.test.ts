import { afterEach, describe, expect, test } from 'bun:test'
import { removeExpired } from '../../../src/accounts/one-time-tokens'
import { withLease } from '../../../src/jobs/with-lease'
import { INVALID_TOKEN } from '../../expectations'
import { createTestTenant, statusAndCode } from '../../test-tenant'
import { advanceClock, DAY, MINUTE, resetClock } from '../session-fixtures'
import { createMailFixture } from './mail-fixtures'

afterEach(resetClock)

const INVALID_CODE = [400, 'INVALID_CODE']

describe('POST /api/email/verify', () => {
  test('a verification token verifies the address once, even in simultaneous requests', async () => {
    const { ada, anonymous, tokenOf } = await createMailFixture()
    expect((await ada.get('/me')).body.emailVerified).toBeFalse()
    const token = await tokenOf('verification')
    const answer = await anonymous.post('/email/verify', { token })
    expect([answer.status, answer.body]).toEqual([200, { success: true }])
    expect((await ada.get('/me')).body.emailVerified).toBeTrue()
    expect(statusAndCode(await anonymous.post('/email/verify', { token }))).toEqual(INVALID_TOKEN)
    await ada.post('/me', { email: 'countess@lovelace.test' })
    const nextToken = await tokenOf('verification')
    const both = await Promise.all([1, 2].map(() => anonymous.post('/email/verify', { token: nextToken })))
    expect(both.map(({ status }) => status).sort()).toEqual([200, 400])
  })

  test('a verification token is rejected when altered, after three days and at another tenant', async () => {
    const { anonymous, tokenOf } = await createMailFixture()
    const token = await tokenOf('verification')
    const otherTenant = await createTestTenant()
    expect(statusAndCode(await otherTenant.anonymous.post('/email/verify', { token }))).toEqual(INVALID_TOKEN)
    expect(statusAndCode(await anonymous.post('/email/verify', { token: `${token}x` }))).toEqual(INVALID_TOKEN)
    expect(statusAndCode(await anonymous.post('/email/verify', {}))).toEqual([400, 'INVALID_INPUT'])
    advanceClock(3 * DAY + MINUTE)
    expect(statusAndCode(await anonymous.post('/email/verify', { token }))).toEqual(INVALID_TOKEN)
  })

  test('a changed address must be verified again, and the token of the old address gets 400 INVALID_TOKEN', async () => {
    const { ada, anonymous, tokenOf, outbox } = await createMailFixture()
    const old = await tokenOf('verification')
    await ada.post('/me', { email: 'countess@lovelace.test' })
    expect(statusAndCode(await anonymous.post('/email/verify', { token: old }))).toEqual(INVALID_TOKEN)
    const token = await tokenOf('verification')
    expect((await outbox()).at(-1).to).toBe('countess@lovelace.test')
    expect((await anonymous.post('/email/verify', { token })).status).toBe(200)
    const changed = await ada.post('/me', { email: 'augusta@lovelace.test' })
    expect(changed.body.emailVerified).toBeFalse()
    // A change of case keeps the address verified.
    await anonymous.post('/email/verify', { token: await tokenOf('verification') })
    expect((await ada.post('/me', { email: 'Augusta@lovelace.test' })).body.emailVerified).toBeTrue()
  })

  test('the eleventh request for a verification mail gets 429 RATE_LIMITED, and a verified address gets no further mail', async () => {
    const { ada, anonymous, tokenOf, outbox } = await createMailFixture()
    expect((await ada.post('/email/verification')).body).toEqual({ success: true })
    expect(await outbox()).toHaveLength(2)
    for (let n = 0; n < 9; n++) expect((await ada.post('/email/verification')).status).toBe(200)
    expect(statusAndCode(await ada.post('/email/verification'))).toEqual([429, 'RATE_LIMITED'])
    await anonymous.post('/email/verify', { token: await tokenOf('verification') })
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

describe('the code of a mail', () => {
  test('a mail of verification has a sentence for people, a code, and a link to a page of the server', async () => {
    const { id, latest } = await createMailFixture()
    const { text } = await latest('verification')
    expect(text).toMatch(/\n\n\d{8}\n\n/)
    expect(text).toMatch(new RegExp(`\n\nhttps://${id}\\.test/admin/verify-email#[\\w-]{43}\n\n`))
    expect(text).not.toMatch(/POST|GET|\/api/)
  })

  test('a code verifies its address once, however it is typed, and then neither code nor link works again', async () => {
    const { ada, anonymous, codeOf, tokenOf } = await createMailFixture()
    const [code, token] = [await codeOf('verification'), await tokenOf('verification')]
    const email = 'ADA@Lovelace.test'
    const answer = await anonymous.post('/email/verify', { email, code: ` ${code.slice(0, 4)} ${code.slice(4)}\n` })
    expect([answer.status, answer.body]).toEqual([200, { success: true }])
    expect((await ada.get('/me')).body.emailVerified).toBeTrue()
    expect(statusAndCode(await anonymous.post('/email/verify', { email, code }))).toEqual(INVALID_CODE)
    expect(statusAndCode(await anonymous.post('/email/verify', { token }))).toEqual(INVALID_TOKEN)
  })

  test('simultaneous right codes verify once, and only the code of the latest mail is accepted', async () => {
    const { ada, anonymous, codeOf, email } = await createMailFixture()
    const first = await codeOf('verification')
    await ada.post('/email/verification')
    const code = await codeOf('verification')
    expect(statusAndCode(await anonymous.post('/email/verify', { email, code: first }))).toEqual(INVALID_CODE)
    const both = await Promise.all([1, 2].map(() => anonymous.post('/email/verify', { email, code })))
    expect(both.map(({ status }) => status).sort()).toEqual([200, 400])
  })

  test('after five wrong codes, also simultaneous ones, the right one is refused; the link and another mail work', async () => {
    const { ada, anonymous, codeOf, tokenOf, email } = await createMailFixture()
    const code = await codeOf('verification')
    const wrong = code === '00000000' ? '11111111' : '00000000'
    const guess = (guessed: string) => anonymous.post('/email/verify', { email, code: guessed })
    const answers = await Promise.all(Array.from({ length: 5 }, () => guess(wrong)))
    expect(answers.map(statusAndCode)).toEqual(answers.map(() => INVALID_CODE))
    expect(statusAndCode(await guess(code))).toEqual(INVALID_CODE)
    await ada.post('/email/verification')
    expect((await guess(await codeOf('verification'))).status).toBe(200)
    await ada.post('/me', { email: 'countess@lovelace.test' })
    await Promise.all(Array.from({ length: 6 }, () => guess(wrong)))
    expect((await anonymous.post('/email/verify', { token: await tokenOf('verification') })).status).toBe(200)
  })

  test('a code is refused after ten minutes, at another tenant, for another address and for another purpose', async () => {
    const { anonymous, codeOf, email } = await createMailFixture()
    const code = await codeOf('verification')
    const otherTenant = await createTestTenant()
    const refusals = [
      await otherTenant.anonymous.post('/email/verify', { email, code }),
      await anonymous.post('/email/verify', { email: 'grace@navy.test', code }),
      await anonymous.post('/password/reset', { email, code, password: 'battery staple' }),
    ]
    expect(refusals.map(statusAndCode)).toEqual(refusals.map(() => INVALID_CODE))
    advanceClock(10 * MINUTE + 1)
    expect(statusAndCode(await anonymous.post('/email/verify', { email, code }))).toEqual(INVALID_CODE)
  })

  test('codes are stored as hashes, and tries are counted alike for an address that nobody has', async () => {
    const { anonymous, codeOf, email, tenant } = await createMailFixture()
    const code = await codeOf('verification')
    const answers = [email, 'nobody@lovelace.test'].map((each) =>
      anonymous.post('/email/verify', { email: each, code: '1' }),
    )
    const bodies = (await Promise.all(answers)).map(({ body }) => body)
    expect(bodies[0].code).toBe(bodies[1].code)
    expect(bodies[0].message).toBe(bodies[1].message)
    const counts = await tenant.db.query("select count from signin_failures where subject like 'code %'")
    expect(counts).toEqual([[1], [1]])
    expect(JSON.stringify(await tenant.db.query('select * from one_time_tokens'))).not.toContain(code)
  })

  test('a request with neither a token nor an address and a code gets 400 INVALID_INPUT', async () => {
    const { anonymous } = await createMailFixture()
    for (const body of [{}, { email: 'ada@lovelace.test' }, { code: '12345678' }])
      expect(statusAndCode(await anonymous.post('/email/verify', body))).toEqual([400, 'INVALID_INPUT'])
  })
})
