import { expect, test } from 'bun:test'
import { upgradeAddressKeys } from '../../src/accounts/address-upgrade'
import { toAddressKey } from '../../src/core/text-normalization'
import { withLease } from '../../src/jobs/with-lease'
import { createTestTenant, statusAndCode } from '../test-tenant'
import { createMailFixture, password } from './mail/mail-fixtures'

const LETTERS = 'Ada@bücher.example'
const PUNYCODE = 'ada@xn--bcher-kva.EXAMPLE'

test('an address belongs to one account in letters and in Punycode, and signs in, verifies and resets by either', async () => {
  const { anonymous, codeOf } = await createMailFixture(LETTERS)
  const other = { username: 'countess', email: PUNYCODE, password }
  expect(statusAndCode(await anonymous.post('/signup', other))).toEqual([409, 'EMAIL_EXISTS'])
  for (const username of [LETTERS, PUNYCODE])
    expect((await anonymous.post('/signin', { username, password })).status).toBe(200)
  const code = await codeOf('verification')
  expect((await anonymous.post('/email/verify', { email: PUNYCODE, code })).status).toBe(200)
  await anonymous.post('/password/forgot', { email: PUNYCODE })
  const reset = { email: LETTERS, code: await codeOf('passwordReset'), password: 'battery staple' }
  expect((await anonymous.post('/password/reset', reset)).status).toBe(200)
})

test('an address in Punycode that an earlier release stored is found in letters after the housekeeping, unless it is taken', async () => {
  const { as, anonymous, tenant } = await createTestTenant()
  for (const [username, email] of [
    ['ada', 'ada@first.example'],
    ['eve', 'eve@second.example'],
    ['eve2', 'eve@bücher.example'],
  ])
    expect((await as('admin').post('/users', { username, email, password })).status).toBe(201)
  await tenant.write(async (tx) => {
    await tx.query("update users set email_key = 'ada@xn--bcher-kva.example' where username = 'ada'")
    await tx.query("update users set email_key = 'eve@xn--bcher-kva.example' where username = 'eve'")
  })
  for (let n = 0; n < 2; n++) await withLease(tenant, 'test', upgradeAddressKeys)
  const signIn = async (username: string) => (await anonymous.post('/signin', { username, password })).body.payload
  expect((await signIn('ada@bücher.example')).user.username).toBe('ada')
  expect((await signIn('eve@bücher.example')).user.username).toBe('eve2')
  expect((await signIn('eve')).user.username).toBe('eve')
})

test.each([
  ['A@X.org', 'a@x.org'],
  ['a@xn--bcher-kva.example', 'a@bücher.example'],
  ['a@BÜCHER.example', 'a@bücher.example'],
  ['a@mail.xn--bcher-kva.example', 'a@mail.bücher.example'],
  ['xn--a@x.org', 'xn--a@x.org'],
  ['a@1.2', 'a@1.2'],
  ['a@xn--a.example', 'a@xn--a.example'],
  ['a@b@bücher.example', 'a@b@bücher.example'],
  ['bücher.example', 'bücher.example'],
  ['', ''],
])('the key of the address %j is %j', (address, key) => {
  expect(toAddressKey(address)).toBe(key)
  expect(toAddressKey(key)).toBe(key)
})
