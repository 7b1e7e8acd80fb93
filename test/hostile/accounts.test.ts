import { afterEach, beforeEach, describe, expect, spyOn, test } from 'bun:test'
import { issueApiToken } from '../../src/accounts/api-tokens'
import { issueOneTimeToken } from '../../src/accounts/one-time-tokens'
import { createSession } from '../../src/accounts/sessions'
import { codeAt, decodeBase32, stepAt } from '../../src/accounts/totp/codes'
import { config } from '../../src/config'
import { now } from '../../src/core/clock'
import { logOutput, setLogLevel } from '../../src/core/log'
import { runDueJobs } from '../../src/jobs/runner'
import {
  bearer,
  createSignedInClient,
  readSetCookie,
  signInForCookie,
  signInForTokens,
} from '../accounts/session-fixtures'
import { FORBIDDEN, INVALID_INPUT, RATE_LIMITED, UNAUTHENTICATED } from '../expectations'
import { apiClient, createTestTenant, statusAndCode, type TestResponse } from '../test-tenant'
import { createWorkspace } from '../workspaces/workspace-fixtures'

const password = 'correct horse'

const testTenant = await createTestTenant()
const { anonymous, tenant, users, as, id } = testTenant
const signedUp = await anonymous.post('/signup', { username: 'ada', email: `ada@${id}.test`, password })
expect(signedUp.status).toBe(201)

describe('a session', () => {
  test('POST /api/signin with a session cookie creates a new session and never adopts the cookie', async () => {
    const otherCookie = (await signInForCookie(testTenant, 'other')).cookie
    for (const cookie of [`atoll_${id}=chosen-by-somebody-else`, otherCookie]) {
      const answer = await anonymous.post('/signin', { username: 'ada', password }, { cookie })
      const own = readSetCookie(answer).cookie
      expect(own).toStartWith(`atoll_${id}=`)
      expect(own).not.toBe(cookie)
      expect((await anonymous.get('/me', { cookie: own })).body.username).toBe('ada')
    }
    expect((await anonymous.get('/me', { cookie: otherCookie })).body.username).toBe('other')
    expect(statusAndCode(await anonymous.get('/me', { cookie: `atoll_${id}=chosen-by-somebody-else` }))).toEqual(
      UNAUTHENTICATED,
    )
  })

  test('a session cookie with a wrong name or value answers 401 UNAUTHENTICATED', async () => {
    const { cookie } = await signInForCookie(testTenant, 'user')
    const [name = '', value = ''] = cookie.split('=')
    const swapped = value.replace(/[a-zA-Z]/g, (sign) =>
      sign === sign.toLowerCase() ? sign.toUpperCase() : sign.toLowerCase(),
    )
    expect((await anonymous.get('/me', { cookie })).body.username).toBe('user')
    const { refreshToken, token } = await signInForTokens(testTenant, 'user')
    for (const wrong of [
      ...[
        value.slice(0, -1),
        `${value}A`,
        swapped,
        `"${value}"`,
        `${value}%00`,
        `${value}=`,
        ` ${value}.x`,
        'undefined',
      ],
      ...[
        users.user,
        'x'.repeat(8_000),
        '../../etc/passwd',
        "' or 1=1 --",
        refreshToken,
        token,
        testTenant.tokens.user,
      ],
    ])
      expect(statusAndCode(await anonymous.get('/me', { cookie: `${name}=${wrong}` })), wrong).toEqual(UNAUTHENTICATED)
    // A cookie with another name is ignored, and its sender is anonymous.
    for (const other of [`x${name}`, `${name}_auth`, name.toUpperCase(), 'atoll_'])
      expect(statusAndCode(await anonymous.get('/me', { cookie: `${other}=${value}` })), other).toEqual(UNAUTHENTICATED)
    expect((await anonymous.get('/me', { cookie: `theme=dark; ${cookie}; atoll_x=1` })).status).toBe(200)
  })
})

/** All routes that store a name or an e-mail address. */
const submitters: Record<string, (name: string) => Promise<TestResponse>> = {
  username: (username) => anonymous.post('/signup', { username, password }),
  'first name': (firstName) => as('user').post('/me', { firstName }),
  'last name': (lastName) => as('user').post('/me', { lastName }),
  'full name': (fullName) => as('user').post('/me', { fullName }),
  name: (name) => as('user').post('/me', { name }),
  phone: (phone) => as('user').post('/me', { phone }),
  address: (email) => as('user').post('/me', { email }),
  picture: (profileImage) => as('user').post('/me', { profileImage }),
  'username by an admin': (username) => as('admin').post('/users', { username }),
  'role by an admin': (role) => as('admin').put(`/users/${users.other}`, { roles: [role] }),
  workspace: (name) => as('user').post('/workspaces', { name }),
  label: (label) => as('user').post('/workspaces', { name: 'x', labels: [label] }),
  logo: (logo) => as('user').post('/workspaces', { name: 'x', logo }),
  'API token': (nickname) => as('user').with({ 'x-api-key': '' }).with(cookie).post('/me/api-tokens', { nickname }),
  'role of a member': (role) =>
    as('user').post(`/workspaces/${ownWorkspace._id}/members`, { userId: users.other, roles: [role] }),
  'address of an invite': (email) => as('user').post(`/workspaces/${ownWorkspace._id}/invites`, { email }),
  'name of an invite': (name) =>
    as('user').post(`/workspaces/${ownWorkspace._id}/invites`, { email: 'a@x.test', name }),
}
const ownWorkspace = await createWorkspace(as('user'))
const cookie = await signInForCookie(testTenant, 'user')
const BAD_NAMES = {
  'a second header': 'Ada\r\nBcc: evil@x.test',
  'a line break': 'Ada\nLovelace',
  'a bell character': 'Ada\u0007',
  'terminal commands': '\u001b[2JAda',
  'a delete character': 'Ada\u007f',
  'ten kilobytes': 'a'.repeat(10 << 10),
  'ten kilobytes of combining marks': `a${'\u0301'.repeat(10 << 10)}`,
}

test.each(Object.keys(submitters))(
  'a %s with control characters or ten kilobytes is refused with 400 INVALID_INPUT',
  async (what) => {
    for (const [how, text] of Object.entries(BAD_NAMES))
      expect(statusAndCode(await submitters[what]!(text)), how).toEqual(INVALID_INPUT)
  },
)

test.each([
  'a\u0001da@x.test',
  'ada\u0008@x.test',
  'ada@x\u007f.test',
  'ada@x.te\u009fst',
  'a\u200bda@x.test',
  'ada@x.test\u202e',
  '\ufeffada@x.test',
  'ada@x.test\r\nRCPT TO:<evil@x.test>',
  'ada@x.test,evil@x.test',
  'ada@x.test evil@x.test',
  '<ada@x.test>',
  'Ada <ada@x.test>',
  '"ada"@x.test',
  'ada@x@x.test',
  'ada@localhost',
])('the invalid e-mail address %j is refused with 400 INVALID_INPUT', async (email) => {
  const all = [
    anonymous.post('/signup', { username: 'x', password, email }),
    anonymous.post('/password/forgot', { email }),
    as('admin').post('/users', { username: 'x', email }),
    ...['address', 'address of an invite'].map((what) => submitters[what]!(email)),
  ]
  for (const answer of await Promise.all(all)) expect(statusAndCode(answer)).toEqual(INVALID_INPUT)
})

test.each([
  ['a username', '/signin', { username: 'a'.repeat(10 << 10), password }, INVALID_INPUT],
  ['a password', '/signin', { username: 'ada', password: 'a'.repeat(10 << 10) }, INVALID_INPUT],
  ['a new password', '/signup', { username: 'x', password: 'a'.repeat(10 << 10) }, INVALID_INPUT],
  ['a challenge', '/signin', { challenge: 'a'.repeat(10 << 10), code: '000000' }, INVALID_INPUT],
  ['a code', '/signin', { challenge: 'a', code: '0'.repeat(10 << 10) }, INVALID_INPUT],
  ['a refresh token', '/token/refresh', { refreshToken: 'a'.repeat(10 << 10) }, UNAUTHENTICATED],
  ['a verification token', '/email/verify', { token: 'a'.repeat(10 << 10) }, INVALID_INPUT],
])('%s of ten kilobytes is refused', async (_, path, body, refused) => {
  expect(statusAndCode(await anonymous.post(path, body))).toEqual(refused)
})

test('a credential header of eight kilobytes answers 401, and an impersonation header 404 USER_NOT_FOUND', async () => {
  const long = 'a'.repeat(8 << 10)
  for (const headers of [{ 'x-api-key': long }, bearer(long), { authorization: long }])
    expect(statusAndCode(await anonymous.get('/me', headers as Record<string, string>))).toEqual(UNAUTHENTICATED)
  const impersonation = { 'x-impersonate-user': long, 'x-impersonate-workspace': long }
  expect(statusAndCode(await as('admin').get('/me', impersonation))).toEqual([404, 'USER_NOT_FOUND'])
})

test('an e-mail address that resembles the invited one cannot see or accept the invite', async () => {
  const email = `grace@${id}.test`
  expect((await as('user').post(`/workspaces/${ownWorkspace._id}/invites`, { email })).status).toBe(201)
  for (const similar of [
    `gr\u0430ce@${id}.test`,
    `grace@${id}.test.evil.test`,
    `grace+x@${id}.test`,
    `g.race@${id}.test`,
  ]) {
    await as('other').post('/me', { email: similar })
    expect((await as('other').get('/invites')).body).toEqual([])
    const answer = await as('other').post('/invites', { workspace: ownWorkspace._id, kind: 'accept' })
    expect(statusAndCode(answer)).toEqual([404, 'INVITE_NOT_FOUND'])
  }
})

describe('privilege escalation', () => {
  test('roles, rights and verification flags in a sign-up or a profile are ignored', async () => {
    const more = {
      ...{ roles: ['admin'], isPrivileged: true, privileged: true, emailVerified: true, version: 9, _id: users.admin },
      ...{
        internalMetadata: { x: 1 },
        workspace: ownWorkspace._id,
        impersonator: users.admin,
        scopes: [],
        tenant: 'other',
      },
    }
    const { body } = await anonymous.post('/signup', { username: 'eve', password, authType: 'oauth', ...more })
    const eve = apiClient(testTenant.origin, bearer(body.payload.token))
    await eve.post('/me', { ...more, metadata: { roles: ['admin'] } })
    const me = (await eve.get('/me')).body
    expect(me).toMatchObject({ roles: ['user'], isPrivileged: false, emailVerified: false, workspace: null })
    expect(me._id).not.toBe(users.admin)
    expect(me.internalMetadata).toBeUndefined()
    expect(statusAndCode(await eve.get('/users'))).toEqual(FORBIDDEN)
  })

  test('a role whose name resembles admin grants no admin rights', async () => {
    for (const role of ['Admin', 'ADMIN', 'admin ', ' admin', '\u0430dmin', 'ａdmin', 'admin\u200b', '["admin"]'])
      await as('admin')
        .put(`/users/${users.other}`, { roles: [role] })
        .then(async ({ status }) => {
          expect(status).toBeOneOf([200, 400])
          expect(statusAndCode(await as('other').get('/users')), role).toEqual(FORBIDDEN)
        })
    await as('admin').put(`/users/${users.other}`, { roles: ['user'] })
  })

  test('workspace roles named admin, plugin or editor grant no rights in the tenant', async () => {
    const { _id } = await createWorkspace(as('other'))
    await as('other').put(`/workspaces/${_id}/members/${users.other}`, { roles: ['admin', 'plugin', 'editor'] })
    const workspaceAdmin = as('other')
    expect((await workspaceAdmin.post(`/workspaces/${_id}/activate`)).status).toBe(200)
    for (const path of ['/users', '/roles', '/mails', '/events', '/configurations', '/workspaces/all'])
      expect(statusAndCode(await workspaceAdmin.get(path)), path).toEqual(FORBIDDEN)
    expect(
      statusAndCode(await workspaceAdmin.put('/configurations/workspace-configuration', { metadata: {} })),
    ).toEqual(FORBIDDEN)
    expect(statusAndCode(await workspaceAdmin.post('/blueprints', { key: 'mine', name: 'x', fields: [] }))).toEqual(
      FORBIDDEN,
    )
    expect((await workspaceAdmin.get('/me')).body.isPrivileged).toBe(false)
  })

  test('an API token of one workspace cannot change sign-in credentials and gets 403 FORBIDDEN', async () => {
    const { token } = await issueApiToken(tenant, users.user, { nickname: 'x', workspace: ownWorkspace._id })
    const bound = apiClient(testTenant.origin, { 'x-api-key': token })
    for (const change of [{ email: 'mine@x.test' }, { username: 'mine' }, { password, currentPassword: 'x' }])
      expect(statusAndCode(await bound.post('/me', change))).toEqual(FORBIDDEN)
    const profile = (await bound.get('/me')).body
    expect((await bound.post('/me', { ...profile, firstName: 'Jane' })).body.firstName).toBe('Jane')
  })

  test('an API token with read scope gets mails without text and html, which contain sign-in links', async () => {
    const verified = 'update users set email_verified = 1 where username = ?'
    await tenant.write((tx) => tx.query(verified, ['ada']))
    await anonymous.post('/password/forgot', { email: `ada@${id}.test` })
    await runDueJobs(tenant)
    const { token } = await issueApiToken(tenant, users.admin, { nickname: 'x', scopes: ['accounts:read'] })
    const reader = apiClient(testTenant.origin, { 'x-api-key': token })
    const mails = (await reader.get('/mails?limit=1000')).body as { template: string; text: unknown; html: unknown }[]
    expect(mails.map(({ template }) => template)).toContain('passwordReset')
    for (const { text, html } of mails) expect([text, html]).toEqual([null, null])
    expect((await as('admin').get('/mails?limit=1000')).body).toHaveLength(mails.length)
  })
})

describe('limits of outgoing mail', () => {
  beforeEach(() => {
    config.ATOLL_SMTP_URL = 'smtp://mail.invalid'
  })
  afterEach(() => {
    config.ATOLL_SMTP_URL = ''
  })

  test('the 11th change of the own e-mail address is refused with 429 RATE_LIMITED', async () => {
    const own = await createTestTenant()
    const [{ tenant }, user] = [own, await createSignedInClient(own, 'user')]
    const change = (n: number) => user.post('/me', { email: `victim${n}@x.test` })
    for (let n = 0; n < 10; n++) expect((await change(n)).status).toBe(200)
    expect(statusAndCode(await change(10))).toEqual(RATE_LIMITED)
    expect((await user.get('/me')).body.pendingEmail).toBe('victim9@x.test')
    const countVerificationMails = "select count(*) from mails where template = 'verification'"
    expect(await tenant.db.query(countVerificationMails)).toEqual([[10]])
    // A change that sends no mail is not limited.
    expect((await user.post('/me', { email: '' })).status).toBe(200)
  })

  test('a user who has sent 1,000 invites in any workspaces gets 429 RATE_LIMITED for further ones', async () => {
    const { as } = await createTestTenant()
    const [one, other] = [await createWorkspace(as('user')), await createWorkspace(as('user'))]
    const list = (from: number) => Array.from({ length: 500 }, (_, n) => ({ email: `v${from + n}@x.test` }))
    const invite = ({ _id }: { _id: string }, from: number) =>
      as('user').put(`/workspaces/${_id}`, { invites: list(from) })
    expect((await invite(one, 0)).status).toBe(200)
    expect((await invite(other, 500)).status).toBe(200)
    expect(statusAndCode(await invite(one, 1_000))).toEqual(RATE_LIMITED)
    expect(statusAndCode(await as('user').post(`/workspaces/${one._id}/invites`, { email: 'one@x.test' }))).toEqual(
      RATE_LIMITED,
    )
    // Addresses that are already invited get no further mail.
    expect((await invite(other, 500)).status).toBe(200)
    expect((await as('admin').post(`/workspaces/${one._id}/invites`, { email: 'one@x.test' })).status).toBe(201)
  })
})

test('secrets appear in no log, event, mail or answer except the one that issues them', async () => {
  const { id, tenant, anonymous, as, users } = await createTestTenant()
  const lines: string[] = []
  const spies = (['log', 'error', 'warn', 'info'] as const).map((name) =>
    spyOn(console, name).mockImplementation((...all) => void lines.push(all.join(' '))),
  )
  const logSpy = spyOn(logOutput, 'write').mockImplementation((line) => void lines.push(line))
  setLogLevel('debug')
  const answers: string[] = []
  const recordAnswers = (who: ReturnType<typeof apiClient>) => ({
    get: async (path: string) => {
      const answer = await who.get(path)
      answers.push(JSON.stringify(answer.body) + JSON.stringify([...answer.headers]))
      return answer
    },
  })
  const email = `ada@${id}.test`
  const up = await anonymous.post('/signup', { username: 'ada', email, password, authType: 'oauth' })
  const { token, refreshToken, user } = up.body.payload
  const ada = anonymous.with(bearer(token))
  const { secret } = (await ada.post('/me/totp')).body
  const code = codeAt(decodeBase32(secret), stepAt(now()))
  const recovery = (await ada.post('/me/totp/confirm', { code })).body.recoveryCodes as string[]
  const apiToken = (await ada.post('/me/api-tokens', { nickname: 'x' })).body.token as string
  const challenge = (await anonymous.post('/signin', { username: 'ada', password })).body.details.challenge as string
  const sessionKey = readSetCookie(await anonymous.post('/signin', { challenge, code: recovery[0] })).cookie.split(
    '=',
  )[1]!
  const reset = await tenant.write((tx) => issueOneTimeToken(tx, 'passwordReset', user._id, { emailKey: email }))
  const wrong = 'wrong horse of ada'
  for (const [path, body] of [
    ...[['/signin', { username: wrong, password: wrong }] as const, ['/signin', { challenge, code: wrong }] as const],
    ...[
      ['/password/reset', { token: reset, password: 'x' }] as const,
      ['/token/refresh', { refreshToken: wrong }] as const,
    ],
    ...[['/auth/callback', { rt: reset }] as const, ['/me', { password: wrong, currentPassword: wrong }] as const],
  ])
    answers.push(JSON.stringify((await ada.post(path, body)).body))
  await as('admin').put('/configurations/auth-configuration', {
    metadata: { providers: { google: { clientId: 'x', clientSecret: 'secret of the client' } } },
  })
  const { key } = await createSession(tenant, users.user, 'oauth', { userAgent: 'x', address: '192.0.2.1' })
  await anonymous.post('/token/refresh', { refreshToken: key })
  await runDueJobs(tenant)
  for (const path of ['/me', '/me/sessions', '/me/api-tokens', '/me/totp', '/invites'])
    await recordAnswers(ada).get(path)
  for (const path of ['/users', `/users/${user._id}`, '/events?limit=1000', '/mails?limit=1000', '/configurations'])
    await recordAnswers(as('admin')).get(path)
  setLogLevel(config.ATOLL_LOG_LEVEL)
  for (const spy of [...spies, logSpy]) spy.mockRestore()
  expect(lines.some((line) => line.includes('signin-failed'))).toBeTrue()
  const all = [...answers, ...lines].join('\n')
  expect(all).toContain('user-registered')
  const secrets = [
    password,
    wrong,
    token,
    refreshToken,
    secret,
    ...recovery,
    apiToken,
    challenge,
    sessionKey,
    reset,
    key,
  ]
  for (const text of [...secrets, 'secret of the client', 'argon2id']) expect(all.includes(text), text).toBe(false)
})
