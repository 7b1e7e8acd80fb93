import { afterEach, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { findNextSendTime } from '../../src/accounts/mail/mails'
import { DAY_MS, HOUR_MS, moveClock, now } from '../../src/core/clock'
import { bearer, resetClock, signInForTokens } from '../accounts/session-fixtures'
import { createTestTenant } from '../test-tenant'

setDefaultTimeout(30_000)

let h: Awaited<ReturnType<typeof createTestTenant>>
beforeAll(async () => {
  h = await createTestTenant()
})
afterEach(resetClock)

const FORWARD_MS = 365 * DAY_MS
const JUMPS: [string, number][] = [
  ['back by an hour', -HOUR_MS],
  ['forward by a year', FORWARD_MS],
]

for (const [name, jump] of JUMPS)
  test(`a session goes on or can be renewed, and writes work, after the clock is set ${name} and right again`, async () => {
    const before = await signInForTokens(h, 'admin')
    moveClock(now() + jump)
    const meanwhile = await signInForTokens(h, 'admin')
    const client = h.anonymous.with(bearer(meanwhile.token))
    expect((await client.get('/me')).body.username).toBe('admin')
    resetClock()
    // What was issued by a clock that was ahead is not valid yet, but can be renewed.
    for (const { refreshToken } of [before, meanwhile]) {
      const renewed = await h.anonymous.post('/token/refresh', { refreshToken })
      expect(renewed.status).toBe(200)
      expect((await h.anonymous.with(bearer(renewed.body.payload.token)).get('/me')).status).toBe(200)
    }
  })

test('an address gets mails again after the clock was ahead by a year', async () => {
  const { db, write } = h.tenant
  const send = (time: number) =>
    write(async (tx) => {
      for (let n = 0; n < 20; n++)
        await tx.query(
          `insert into mails (_id, recipient, recipient_key, template, data, state, created, sent)
            values (?, 'a@b.test', 'a@b.test', 'password-reset', '{}', 'sent', ?, ?)`,
          [crypto.randomUUID(), time, time],
        )
    })
  await send(now() + FORWARD_MS)
  expect(await findNextSendTime(db, { recipientKey: 'a@b.test' })).toBeLessThanOrEqual(now())
  await send(now())
  expect(await findNextSendTime(db, { recipientKey: 'a@b.test' })).toBeGreaterThan(now())
})
