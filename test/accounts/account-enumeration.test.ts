import { afterAll, expect, spyOn, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { users } from '../../src/accounts/tables'
import { totp } from '../../src/accounts/totp/tables'
import { setServer } from '../../src/tenancy/client-connection'
import { createTestTenant, statusAndCode, type TestResponse } from '../test-tenant'

const home = await createTestTenant()
const { tenant, stranger } = home
const password = 'correct horse'
const { hash } = Bun.password

afterAll(() => setServer(undefined))

/** The password of a user is hashed in this way, if they have one. */
async function setPasswordHash(name: 'user' | 'other' | 'editor', hashed: string) {
  await tenant.write((tx) => tx.update(users).set({ password: hashed }).where(eq(users._id, home.users[name])).run())
}
await setPasswordHash('user', await hash(password, 'argon2id'))
await setPasswordHash('other', await hash(password, { algorithm: 'argon2id', memoryCost: 64, timeCost: 1 }))
await setPasswordHash('editor', await hash(password, 'argon2id'))
await tenant.write((tx) => tx.insert(totp).values({ user: home.users.editor, confirmed: true, step: 0 }))

/** Nobody, then people who are there: known by name, by address, without a password, of another cost, with a second factor. */
const unknownLogin = 'nobody'
const existingLogins = ['user', `user@${home.id}.test`, 'admin', 'other', 'editor']

/** All that an answer tells, but for what is another each time. */
function toComparable({ status, headers, body }: TestResponse) {
  const told = Object.fromEntries(headers)
  delete told['x-request-id']
  return { status, told, body }
}

const signIn = (username: string) => stranger.post('/signin', { username, password: 'wrong horse' })

test('a refused sign-in tells nothing of whom there is: not by a word, a header, or a letter more', async () => {
  const nobody = toComparable(await signIn(unknownLogin))
  expect([nobody.status, nobody.body.code]).toEqual([401, 'INVALID_CREDENTIALS'])
  for (const name of [...existingLogins, 'nobody@example.test', 'n'.repeat(254)])
    expect(toComparable(await signIn(name)), name).toEqual(nobody)
})

test('nor does one that is held back', async () => {
  let address = ''
  setServer({ requestIP: () => ({ address, family: 'IPv4', port: 1 }) })
  const held: Record<string, ReturnType<typeof toComparable>> = {}
  // The passwords need not be tried again for that.
  const verify = spyOn(Bun.password, 'verify').mockImplementation(async () => false)
  for (const [n, name] of ['someone', 'admin'].entries())
    for (let time = 0; time <= 10; time++) {
      address = `192.0.2.${n}`
      const answer = toComparable(await signIn(name))
      // The seconds to wait may have gone on.
      answer.told['retry-after'] = ''
      held[name] = { ...answer, body: { ...answer.body, message: answer.body.message.replace(/\d+/, '') } }
    }
  verify.mockRestore()
  expect(held.someone!.status).toBe(429)
  expect(held.admin).toEqual(held.someone!)
})

test('nor does asking for a new password, or coming back with a guess', async () => {
  const forgot = async (email: string) => toComparable(await stranger.post('/password/forgot', { email }))
  expect(await forgot(`user@${home.id}.test`)).toEqual(await forgot('nobody@example.test'))
  const guess = async (path: string, body: object) => toComparable(await stranger.post(path, body))
  const token = 'x'.repeat(43)
  expect((await guess('/password/reset', { token, password })).body.code).toBe('INVALID_TOKEN')
  expect((await guess('/signin', { challenge: token, code: '000000' })).body.code).toBe('INVALID_CHALLENGE')
})

test('a password that was hashed for less costs as much to try, and is hashed anew when it is right', async () => {
  const tried: string[] = []
  const [{ verify }, more] = [Bun.password, [] as unknown[]]
  const added = spyOn(Bun.password, 'hash').mockImplementation((text, ...cost) => {
    more.push(...cost)
    return hash(text, ...cost)
  })
  const watched = spyOn(Bun.password, 'verify').mockImplementation((text, hashed, ...more) => {
    tried.push(`${hashed}`)
    return verify(text, hashed, ...more)
  })
  const cost = (hashed: string) => /^\$argon2id\$v=19\$m=\d+,t=\d+,p=1\$/.exec(hashed)?.[0]
  const kept = async () =>
    (await tenant.db.select().from(users).where(eq(users._id, home.users.other)).get())!.password ?? ''
  setServer({ requestIP: () => ({ address: '198.51.100.1', family: 'IPv4', port: 1 }) })
  await signIn('nobody')
  const usual = cost(tried[0]!)
  tried.length = 0
  await signIn('other')
  expect([usual, ...tried.map(cost)]).toEqual(['$argon2id$v=19$m=19456,t=2,p=1$', '$argon2id$v=19$m=64,t=1,p=1$'])
  expect(more).toEqual([{ algorithm: 'argon2id', memoryCost: 19_456 - 32, timeCost: 2 }])
  expect(statusAndCode(await stranger.post('/signin', { username: 'other', password: '' }))).toEqual([
    401,
    'INVALID_CREDENTIALS',
  ])
  expect((await stranger.post('/signin', { username: 'other', password })).status).toBe(200)
  expect(cost(await kept())).toBe(usual!)
  tried.length = 0
  const hashed = await kept()
  expect((await stranger.post('/signin', { username: 'other', password })).status).toBe(200)
  expect([tried, await kept()]).toEqual([[hashed], hashed])
  for (const spy of [watched, added]) spy.mockRestore()
})
