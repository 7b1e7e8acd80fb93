import { expect, test } from 'bun:test'
import { toAddressKey } from '../../src/core/text-normalization'
import { statusAndCode } from '../test-tenant'
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
