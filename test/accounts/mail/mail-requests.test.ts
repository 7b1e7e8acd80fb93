import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { runDueJobs } from '../../../src/jobs/runner'
import { setServer } from '../../../src/tenancy/client-connection'
import { createTestTenant, statusAndCode } from '../../test-tenant'
import { resetClock } from '../session-fixtures'
import { createMailReader, password } from './mail-fixtures'

const RATE_LIMITED = [429, 'RATE_LIMITED']
const OK = [200, undefined]
const EMAIL = 'ada@lovelace.test'

beforeEach(() =>
  setServer({ requestIP: ({ headers }) => ({ address: headers.get('x-from') ?? '', port: 1, family: 'IPv4' }) }),
)
afterEach(() => {
  setServer(undefined)
  resetClock()
})

/** A tenant with the verified user ada, and functions that request mails from an address. */
async function createFixture() {
  const home = await createTestTenant()
  const admin = home.as('admin')
  await admin.put('/configurations/auth-configuration', { metadata: { allowEmailSignIn: true } })
  expect((await admin.post('/users', { username: 'ada', email: EMAIL, password })).status).toBe(201)
  const request =
    (path: string) =>
    async (from: string, email = EMAIL, cookie = '') =>
      statusAndCode(await home.anonymous.post(path, { email }, { 'x-from': from, ...(cookie && { cookie }) }))
  const signIn = async () => {
    const answer = await home.anonymous.post('/signin', { username: 'ada', password })
    return answer.headers
      .getSetCookie()
      .find((each) => each.includes('_device='))!
      .split(';')[0]!
  }
  return { ...home, ...createMailReader(home), admin, request, signIn }
}

describe.each(['/password/forgot', '/signin/email'])('POST /api%s', (path) => {
  test('a device on which the user has signed in has ten requests of its own after strangers used up those of the address', async () => {
    const { request, signIn, tenant, outbox } = await createFixture()
    const [send, device] = [request(path), await signIn()]
    for (let n = 0; n < 10; n++) expect(await send('192.0.2.1')).toEqual(OK)
    expect(await send('192.0.2.1')).toEqual(RATE_LIMITED)
    for (let n = 0; n < 20; n++) expect(await send(`198.51.100.${n}`, `${n}@navy.test`)).toEqual(OK)
    const begun = performance.now()
    for (let n = 0; n < 10; n++) expect(await send('192.0.2.1', EMAIL, device)).toEqual(OK)
    expect(performance.now() - begun).toBeLessThan(2_900)
    expect(await send('192.0.2.1', EMAIL, device)).toEqual(RATE_LIMITED)
    await runDueJobs(tenant)
    const kinds = ['passwordReset', 'emailSignIn']
    const sent = (await outbox()).filter(
      ({ template, to }: Record<string, string>) => kinds.includes(template!) && to === EMAIL,
    )
    expect(sent).toHaveLength(20)
  })

  test('strangers who use up the requests for an address slow others down, who are answered alike for every address', async () => {
    const { request } = await createFixture()
    const send = request(path)
    for (const email of [EMAIL, 'nobody@lovelace.test']) {
      for (let n = 0; n < 10; n++) expect(await send(email === EMAIL ? '192.0.2.1' : '192.0.2.2', email)).toEqual(OK)
      const begun = performance.now()
      expect(await send(email === EMAIL ? '198.51.100.1' : '198.51.100.2', email)).toEqual(OK)
      expect(performance.now() - begun).toBeWithin(2_900, 10_000)
    }
  })

  test('the 41st request from one IPv6 /56 gets 429 RATE_LIMITED', async () => {
    const { request } = await createFixture()
    const send = request(path)
    for (let n = 0; n < 40; n++) expect(await send(`2001:db8:1:${n % 4}::1`, `${n}@navy.test`)).toEqual(OK)
    expect(await send('2001:db8:1:ff::1', 'joan@navy.test')).toEqual(RATE_LIMITED)
    expect(await send('2001:db8:1:100::1', 'joan@navy.test')).toEqual(OK)
  })
})

test('after 2,000 requests for mails of strangers a stranger waits, a known device does not, and admins see one event', async () => {
  const { request, signIn, admin } = await createFixture()
  const [send, device] = [request('/signin/email'), await signIn()]
  for (let batch = 0; batch < 20; batch++)
    await Promise.all(Array.from({ length: 100 }, (_, n) => send(`10.${batch}.${n}.1`, `${batch}-${n}@navy.test`)))
  const timed = async (work: Promise<unknown>) => {
    const begun = performance.now()
    expect(await work).toEqual(OK)
    return performance.now() - begun
  }
  expect(await timed(send('192.0.2.1', EMAIL, device))).toBeLessThan(2_900)
  expect(await timed(send('192.0.2.2'))).toBeWithin(2_900, 10_000)
  expect(await timed(send('192.0.2.3', 'new@navy.test'))).toBeWithin(2_900, 10_000)
  const events = (await admin.get('/events?eventName=strangers-slowed')).body
  expect(events.map(({ metadata }: { metadata: object }) => metadata)).toEqual([
    { action: 'e-mail sign-in', requests: 2_000 },
  ])
}, 180_000)
