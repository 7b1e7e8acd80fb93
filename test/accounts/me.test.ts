import { expect, test } from 'bun:test'
import { issueApiToken } from '../../src/accounts/api-tokens'
import { registerUser } from '../../src/accounts/users/users'
import { TIME } from '../expectations'
import { createTestTenant, statusAndCode } from '../test-tenant'
import { bearer, createSignedInClient, readSetCookie, signInForCookie, signInForTokens } from './session-fixtures'

const home = await createTestTenant()
const { anonymous, as } = home

test('GET /api/me returns the profile of the caller without secrets', async () => {
  const { status, body } = await as('user').get('/me')
  expect(status).toBe(200)
  expect(body).toEqual({
    _id: home.users.user,
    username: 'user',
    email: `user@${home.id}.test`,
    name: '',
    firstName: '',
    lastName: '',
    fullName: '',
    profileImage: null,
    birthDate: null,
    phone: null,
    roles: ['user'],
    metadata: {},
    workspace: null,
    created: TIME,
    isPrivileged: false,
    emailVerified: false,
    pendingEmail: null,
  })
})

test('GET /api/me returns isPrivileged true and internalMetadata to an admin', async () => {
  const { body } = await as('admin').get('/me')
  expect(body).toMatchObject({ username: 'admin', isPrivileged: true, internalMetadata: {} })
  expect((await as('editor').get('/me')).body.isPrivileged).toBe(false)
})

test('POST /api/me changes the given fields and nothing else', async () => {
  const me = as('other')
  const before = (await me.get('/me')).body
  const change = {
    firstName: 'Grace',
    lastName: 'Hopper',
    name: 'Amazing Grace',
    birthDate: '1906-12-09',
    phone: '+1 555 0100',
    profileImage: 'https://example.test/grace.png',
  }
  const answer = await me.post('/me', change)
  expect(answer.status).toBe(200)
  expect(answer.body).toEqual({ ...before, ...change, fullName: 'Grace Hopper' })
  expect((await me.get('/me')).body).toEqual(answer.body)

  const cleared = await me.post('/me', { name: null, birthDate: null, phone: null, profileImage: null })
  expect(cleared.body).toEqual({ ...answer.body, name: '', birthDate: null, phone: null, profileImage: null })
  expect((await me.post('/me', { fullName: 'Rear Admiral Hopper' })).body.fullName).toBe('Rear Admiral Hopper')
})

test('fullName follows firstName and lastName until it is set, even in a whole profile that is sent back', async () => {
  const { anonymous } = await createTestTenant()
  const { body } = await anonymous.post('/signup', { username: 'mary', password: 'correct horse', authType: 'oauth' })
  const me = (more: object) => anonymous.post('/me', more, { authorization: `Bearer ${body.payload.token}` })
  const first = await me({ ...body.payload.user, firstName: 'Mary' })
  expect([first.status, first.body.fullName]).toEqual([200, 'Mary'])
  expect((await me({ ...first.body, lastName: 'Shelley' })).body.fullName).toBe('Mary Shelley')
  expect((await me({ fullName: 'Mary W. Shelley', lastName: 'S.' })).body.fullName).toBe('Mary W. Shelley')
  expect((await me({ lastName: 'Shelley' })).body.fullName).toBe('Mary W. Shelley')
  expect((await me({ fullName: '' })).body.fullName).toBe('Mary Shelley')
})

test('POST /api/me merges metadata', async () => {
  await as('user').post('/me', { metadata: { colour: 'teal', size: 1 } })
  const { body } = await as('user').post('/me', { metadata: { size: 2, nested: { deep: [1, null, 'x'] } } })
  expect(body.metadata).toEqual({ colour: 'teal', size: 2, nested: { deep: [1, null, 'x'] } })
})

test('POST /api/me ignores fields that users may not change', async () => {
  const before = (await as('user').get('/me')).body
  const answer = await as('user').post('/me', {
    _id: home.users.admin,
    roles: ['admin'],
    isPrivileged: true,
    internalMetadata: { vip: true },
    emailVerified: true,
    usernameKey: 'somebody',
    emailKey: 'somebody',
    version: 7,
    workspace: { _id: 'x', name: 'x', roles: ['admin'], labels: [] },
    created: '2000-01-01T00:00:00.000Z',
  })
  expect(answer.status).toBe(200)
  expect((await as('user').get('/me')).body).toEqual(before)
  expect((await as('admin').get('/me')).body.internalMetadata).toEqual({})
})

test('POST /api/me accepts a whole profile as it was read', async () => {
  const { _id } = await registerUser(home.tenant, { username: 'plain' }) // without e-mail
  const plain = anonymous.with({ 'x-api-key': (await issueApiToken(home.tenant, _id, { nickname: 'test' })).token })
  for (const me of [as('editor'), plain]) {
    const { body } = await me.get('/me')
    const answer = await me.post('/me', body)
    expect([answer.status, answer.body]).toEqual([200, body])
  }
})

test('POST /api/me rejects the username or address of another user in any case with 409', async () => {
  const me = await createSignedInClient(home, 'user')
  for (const username of ['admin', 'ADMIN', 'ａｄｍｉｎ', `admin@${home.id}.test`])
    expect(statusAndCode(await me.post('/me', { username }))).toEqual([409, 'USERNAME_EXISTS'])
  for (const email of [`admin@${home.id}.test`, `ADMIN@${home.id}.TEST`])
    expect(statusAndCode(await me.post('/me', { email }))).toEqual([409, 'EMAIL_EXISTS'])
  expect((await me.get('/me')).body).toMatchObject({ username: 'user', email: `user@${home.id}.test` })
})

test('a user can change the case of their own username, and a username given up is available again', async () => {
  const [editor, otherUser] = [await createSignedInClient(home, 'editor'), await createSignedInClient(home, 'other')]
  expect((await editor.post('/me', { username: 'EDITOR' })).body.username).toBe('EDITOR')
  expect((await editor.post('/me', { username: 'chief' })).body.username).toBe('chief')
  expect((await otherUser.post('/me', { username: 'Editor' })).body.username).toBe('Editor')
  await otherUser.post('/me', { username: 'other' })
})

test.each([
  ['an empty username', { username: '' }],
  ['a null username', { username: null }],
  ['an address without @', { email: 'nobody' }],
  ['an image that is a script', { profileImage: 'javascript:alert(1)' }],
  ['a date in another format', { birthDate: '9 Dec 1906' }],
  ['a date that does not exist', { birthDate: '1906-02-30' }],
  ['metadata that are a list', { metadata: [1] }],
  ['metadata that are text', { metadata: 'abc' }],
  ['a first name of two lines', { firstName: 'a\nb' }],
])('POST /api/me rejects %s with 400 INVALID_INPUT', async (_, change) => {
  const before = (await as('user').get('/me')).body
  expect(statusAndCode(await as('user').post('/me', change))).toEqual([400, 'INVALID_INPUT'])
  expect((await as('user').get('/me')).body).toEqual(before)
})

test('POST /api/me rejects a body that is not an object with 400 INVALID_INPUT', async () => {
  const before = (await as('user').get('/me')).body
  for (const body of [[], [{ name: 'x' }], 'text', 5, true, null])
    expect(statusAndCode(await as('user').post('/me', body)), JSON.stringify(body)).toEqual([400, 'INVALID_INPUT'])
  expect((await as('user').get('/me')).body).toEqual(before)
})

test('anonymous requests to /api/me get 401, and an API token with a read scope gets 403 for a change', async () => {
  expect(statusAndCode(await anonymous.get('/me'))).toEqual([401, 'UNAUTHENTICATED'])
  expect(statusAndCode(await anonymous.post('/me', { name: 'x' }))).toEqual([401, 'UNAUTHENTICATED'])
  const { token } = await issueApiToken(home.tenant, home.users.user, { nickname: 'reader', scopes: ['accounts:read'] })
  const reader = anonymous.with({ 'x-api-key': token })
  expect(statusAndCode(await reader.post('/me', { name: 'x' }))).toEqual([403, 'FORBIDDEN'])
})

test('a change of a profile does not affect the user of the same name in another tenant', async () => {
  const otherTenant = await createTestTenant()
  await as('user').post('/me', { lastName: 'Homely' })
  expect((await otherTenant.as('user').get('/me')).body.lastName).toBe('')
})

test('a new password needs the current one and ends all other sessions', async () => {
  const [old, next] = ['correct horse', 'battery staple']
  const signedUp = await anonymous.post('/signup', { username: 'ada', password: old })
  const mine = { cookie: readSetCookie(signedUp).cookie }
  const ada = anonymous.with(mine)
  const here = { ...home, users: { ...home.users, user: signedUp.body.payload.user._id } }
  const [phone, tablet] = [await signInForTokens(here, 'user'), await signInForCookie(here, 'user')]
  expect((await anonymous.get('/me', bearer(phone.token))).body.username).toBe('ada')
  expect((await anonymous.get('/me', tablet)).body.username).toBe('ada')

  const weak = await ada.post('/me', { password: 'short', currentPassword: old })
  expect(statusAndCode(weak)).toEqual([400, 'INVALID_INPUT'])
  expect(statusAndCode(await ada.post('/me', { password: next }))).toEqual([400, 'INVALID_INPUT'])
  const wrong = await ada.post('/me', { password: next, currentPassword: 'wrong horse', name: 'Changed' })
  expect(statusAndCode(wrong)).toEqual([403, 'INVALID_CREDENTIALS'])
  expect((await ada.get('/me')).body.name).toBe('')
  expect((await anonymous.get('/me', tablet)).status).toBe(200)

  const answer = await ada.post('/me', { password: next, currentPassword: old })
  expect(answer.status).toBe(200)
  expect(JSON.stringify(answer.body)).not.toMatch(/password|argon2|battery staple/i)
  expect((await ada.get('/me')).status).toBe(200)
  expect((await anonymous.get('/me', tablet)).status).toBe(401)
  expect((await anonymous.get('/me', bearer(phone.token))).status).toBe(401)
  expect((await anonymous.post('/token/refresh', { refreshToken: phone.refreshToken })).status).toBe(401)
  expect((await ada.get('/me/sessions')).body).toHaveLength(1)

  const signIn = (password: string) => anonymous.post('/signin', { username: 'ada', password })
  expect(statusAndCode(await signIn(old))).toEqual([401, 'INVALID_CREDENTIALS'])
  expect((await signIn(next)).status).toBe(200)
})

test('a user who changes their password by bearer token keeps their own session and tokens', async () => {
  const [old, next] = ['correct horse', 'battery staple']
  const signedUp = await anonymous.post('/signup', { username: 'bob', password: old, authType: 'oauth' })
  const { token, refreshToken } = signedUp.body.payload
  const answer = await anonymous.post('/me', { password: next, currentPassword: old }, bearer(token))
  expect(answer.status).toBe(200)
  expect((await anonymous.get('/me', bearer(token))).status).toBe(200)
  expect((await anonymous.post('/token/refresh', { refreshToken })).status).toBe(200)
})
