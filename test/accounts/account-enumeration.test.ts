import { afterAll, expect, spyOn, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { users } from '../../src/accounts/tables'
import { totp } from '../../src/accounts/totp/tables'
import { setServer } from '../../src/tenancy/client-connection'
import { useStandardPasswordCost } from '../password-cost'
import { createTestTenant, statusAndCode, type TestResponse } from '../test-tenant'

useStandardPasswordCost()
const home = await createTestTenant()
const { tenant, anonymous } = home
const password = 'correct horse'
const { hash } = Bun.password

afterAll(() => setServer(undefined))

/** Replaces the stored password hash of a user. */
async function setPasswordHash(name: 'user' | 'other' | 'editor', hashed: string) {
  await tenant.write((tx) => tx.update(users).set({ password: hashed }).where(eq(users._id, home.users[name])).run())
}
await setPasswordHash('user', await hash(password, 'argon2id'))
await setPasswordHash('other', await hash(password, { algorithm: 'argon2id', memoryCost: 64, timeCost: 1 }))
await setPasswordHash('editor', await hash(password, 'argon2id'))
await tenant.write((tx) => tx.insert(totp).values({ user: home.users.editor, confirmed: true, step: 0 }))

/** An unknown user, then existing ones: by name, by address, without a password, with a cheaper hash, with TOTP. */
const unknownLogin = 'nobody'
const existingLogins = ['user', `user@${home.id}.test`, 'admin', 'other', 'editor']

/** Everything in a response except what differs on every request. */
function toComparable({ status, headers, body }: TestResponse) {
  const comparableHeaders = Object.fromEntries(headers)
  for (const name of ['x-request-id', 'ratelimit-remaining']) delete comparableHeaders[name]
  return { status, headers: comparableHeaders, body }
}

const signIn = (username: string) => anonymous.post('/signin', { username, password: 'wrong horse' })

test('a failed sign-in gets the same response for unknown and existing users', async () => {
  const nobody = toComparable(await signIn(unknownLogin))
  expect([nobody.status, nobody.body.code]).toEqual([401, 'INVALID_CREDENTIALS'])
  for (const name of [...existingLogins, 'nobody@example.test', 'n'.repeat(254)])
    expect(toComparable(await signIn(name)), name).toEqual(nobody)
})

test('a rate-limited sign-in gets the same response for unknown and existing users', async () => {
  let address = ''
  setServer({ requestIP: () => ({ address, family: 'IPv4', port: 1 }) })
  const limited: Record<string, ReturnType<typeof toComparable>> = {}
  // Verifying passwords is slow and irrelevant here.
  const verify = spyOn(Bun.password, 'verify').mockImplementation(async () => false)
  for (const [n, name] of ['someone', 'admin'].entries())
    for (let time = 0; time <= 10; time++) {
      address = `192.0.2.${n}`
      const answer = toComparable(await signIn(name))
      // The remaining seconds may differ.
      answer.headers['retry-after'] = ''
      limited[name] = { ...answer, body: { ...answer.body, message: answer.body.message.replace(/\d+/, '') } }
    }
  verify.mockRestore()
  expect(limited.someone!.status).toBe(429)
  expect(limited.admin).toEqual(limited.someone!)
})

test('POST /api/password/forgot responds alike for unknown and existing addresses, and guessed tokens are rejected', async () => {
  const forgot = async (email: string) => toComparable(await anonymous.post('/password/forgot', { email }))
  expect(await forgot(`user@${home.id}.test`)).toEqual(await forgot('nobody@example.test'))
  const guess = async (path: string, body: object) => toComparable(await anonymous.post(path, body))
  const token = 'x'.repeat(43)
  expect((await guess('/password/reset', { token, password })).body.code).toBe('INVALID_TOKEN')
  expect((await guess('/signin', { challenge: token, code: '000000' })).body.code).toBe('INVALID_CHALLENGE')
})

test('a password hash of lower cost takes as much work to verify and is replaced at a successful sign-in', async () => {
  const verifiedHashes: string[] = []
  const [{ verify }, options] = [Bun.password, [] as unknown[]]
  const hashSpy = spyOn(Bun.password, 'hash').mockImplementation((text, ...cost) => {
    options.push(...cost)
    return hash(text, ...cost)
  })
  const verifySpy = spyOn(Bun.password, 'verify').mockImplementation((text, hashed, ...options) => {
    verifiedHashes.push(`${hashed}`)
    return verify(text, hashed, ...options)
  })
  const cost = (hashed: string) => /^\$argon2id\$v=19\$m=\d+,t=\d+,p=1\$/.exec(hashed)?.[0]
  const storedHash = async () =>
    (await tenant.db.select().from(users).where(eq(users._id, home.users.other)).get())!.password ?? ''
  setServer({ requestIP: () => ({ address: '198.51.100.1', family: 'IPv4', port: 1 }) })
  await signIn('nobody')
  const usualCost = cost(verifiedHashes[0]!)
  verifiedHashes.length = 0
  await signIn('other')
  expect([usualCost, ...verifiedHashes.map(cost)]).toEqual([
    '$argon2id$v=19$m=19456,t=2,p=1$',
    '$argon2id$v=19$m=64,t=1,p=1$',
  ])
  expect(options).toEqual([{ algorithm: 'argon2id', memoryCost: 19_456 - 32, timeCost: 2 }])
  expect(statusAndCode(await anonymous.post('/signin', { username: 'other', password: '' }))).toEqual([
    401,
    'INVALID_CREDENTIALS',
  ])
  expect((await anonymous.post('/signin', { username: 'other', password })).status).toBe(200)
  expect(cost(await storedHash())).toBe(usualCost!)
  verifiedHashes.length = 0
  const hashed = await storedHash()
  expect((await anonymous.post('/signin', { username: 'other', password })).status).toBe(200)
  expect([verifiedHashes, await storedHash()]).toEqual([[hashed], hashed])
  for (const spy of [verifySpy, hashSpy]) spy.mockRestore()
})
