import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { config } from '../../../src/config'
import { setHosts } from '../../../src/tenancy/tenants'
import { startOauthProvider } from '../../fakes/oauth-provider'
import { callApi, createTestTenant, statusAndCode } from '../../test-tenant'
import { password } from '../mail/mail-fixtures'
import { advanceClock, resetClock, SECOND } from '../session-fixtures'
import { createBrowser, createSocialFixture } from './social-fixtures'

const ada = {
  sub: '4711',
  email: 'ada@lovelace.test',
  email_verified: true,
  preferred_username: 'ada',
  name: 'Ada Lovelace',
}
let at: Awaited<ReturnType<typeof startOauthProvider>>
beforeAll(async () => {
  config.ATOLL_ALLOW_PRIVATE_NETWORK = 'on'
  at = await startOauthProvider(ada)
})
beforeEach(() => Object.assign(at.own, { person: ada, flaw: {} }))
afterEach(resetClock)
afterAll(async () => {
  config.ATOLL_ALLOW_PRIVATE_NETWORK = 'off'
  await at.stop()
})

const NAMES = ['apple', 'corp', 'discord', 'facebook', 'github', 'gitlab', 'google', 'linkedin', 'microsoft', 'x']

describe('sign-in by a provider', () => {
  test.each(NAMES)(
    'a first sign-in by the provider %s creates a user and a session, and a later one finds the same user',
    async (name) => {
      const { browser, id } = await createSocialFixture(at)
      const visitor = browser()
      const { status, location, headers } = await visitor.signIn(name)
      expect([status, location]).toEqual([302, '/'])
      expect(headers.get('cache-control')).toBe('no-store')
      expect([...visitor.jar.keys()].sort()).toEqual([`atoll_${id}`, `atoll_${id}_device`])
      const { body } = await visitor.get('/me')
      expect(body).toMatchObject({ email: 'ada@lovelace.test', fullName: 'Ada Lovelace', roles: ['user'] })
      expect(body.emailVerified).toBe(name !== 'facebook' && name !== 'microsoft')
      // A returning person is the same user, even with another name and address.
      at.own.person = { ...ada, email: 'countess@lovelace.test', preferred_username: 'countess' }
      const again = browser()
      await again.signIn(name)
      expect((await again.get('/me')).body).toMatchObject({ _id: body._id, email: 'ada@lovelace.test' })
    },
  )

  test('GET /api/auth/:provider sends a fresh PKCE challenge, state and nonce, and sets an HttpOnly cookie', async () => {
    const { browser, id, origin } = await createSocialFixture(at)
    const visitor = browser()
    const { sent } = await visitor.begin('corp')
    const url = new URL(sent.location)
    expect(`${url.origin}${url.pathname}`).toBe(`${at.issuer}/authorize`)
    const parameters = Object.fromEntries(url.searchParams)
    expect(parameters).toEqual({
      response_type: 'code',
      client_id: at.client.id,
      redirect_uri: `${origin}/api/auth/corp/callback`,
      scope: 'openid email profile',
      state: expect.stringMatching(/^[\w-]{43}$/),
      nonce: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge_method: 'S256',
    })
    const [line] = sent.headers.getSetCookie()
    expect(line).toMatch(new RegExp(`^atoll_${id}_auth=[\\w-]+; Path=/; Max-Age=600; HttpOnly; SameSite=Lax$`))
    const next = new URL((await visitor.begin('corp')).sent.location).searchParams
    for (const name of ['state', 'nonce', 'code_challenge']) expect(next.get(name)).not.toBe(parameters[name])
  })

  test('redirect_uri has the origin of the request, with https over TLS', async () => {
    const { origin } = await createSocialFixture(at)
    const answer = await callApi('GET', `${origin.replace('http:', 'https:')}/api/auth/github`)
    const { searchParams } = new URL(answer.headers.get('location')!)
    expect(searchParams.get('redirect_uri')).toBe(`${origin.replace('http:', 'https:')}/api/auth/github/callback`)
    expect(answer.headers.get('set-cookie')).toEndWith('; Secure')
  })

  test('GET /api/auth/providers lists the configured providers to everyone, and their secrets are never exposed', async () => {
    const { anonymous, as, tenant } = await createSocialFixture(at)
    expect((await anonymous.get('/auth/providers')).body).toEqual(NAMES)
    const shown = await as('admin').get('/configurations/auth-configuration')
    expect(JSON.stringify(shown.body)).not.toContain('cret: ')
    expect(JSON.stringify(await tenant.db.query('select * from configurations'))).not.toContain('cret: ')
    const unconfigured = await createTestTenant()
    expect((await unconfigured.anonymous.get('/auth/providers')).body).toEqual([])
    for (const name of ['google', 'corp', 'constructor', 'nobody'])
      expect(statusAndCode(await unconfigured.anonymous.get(`/auth/${name}`))).toEqual([400, 'PROVIDER_NOT_CONFIGURED'])
  })

  test('the callback accepts only the browser, provider, state and tenant of the sign-in, and only once (400 INVALID_STATE)', async () => {
    const { browser } = await createSocialFixture(at)
    const REFUSED = [400, 'INVALID_STATE']
    const [visitor, victim] = [browser(), browser()]
    const { back } = await visitor.begin('corp')
    expect(statusAndCode(await victim.visit(back))).toEqual(REFUSED)
    await victim.begin('corp')
    expect(statusAndCode(await victim.visit(back))).toEqual(REFUSED)
    expect(statusAndCode(await visitor.visit(back.replace('/corp/', '/google/')))).toEqual(REFUSED)
    expect(statusAndCode(await visitor.visit(back.replace(/state=[^&]+/, 'state=x')))).toEqual(REFUSED)
    expect(statusAndCode(await visitor.visit(back.replace(/&state=[^&]+/, '')))).toEqual(REFUSED)
    const elsewhere = await createSocialFixture(at)
    expect(statusAndCode(await visitor.visit(back.replace(/^http:\/\/[^/]+/, elsewhere.origin)))).toEqual(REFUSED)
    expect((await visitor.visit(back)).status).toBe(302)
    expect(statusAndCode(await visitor.visit(back))).toEqual(REFUSED)
  })

  test('a sign-in that the provider or its user rejects gets 400 PROVIDER_REFUSED', async () => {
    const { browser } = await createSocialFixture(at)
    const visitor = browser()
    const { back } = await visitor.begin('corp')
    const denied = await visitor.visit(back.replace(/code=[^&]+/, 'error=access_denied'))
    expect([...statusAndCode(denied), denied.body.details]).toEqual([
      400,
      'PROVIDER_REFUSED',
      { error: 'access_denied' },
    ])
    const secondVisitor = await browser()
    const begun = await secondVisitor.begin('corp')
    expect(statusAndCode(await secondVisitor.visit(begun.back.replace(/code=[^&]+/, 'code=x')))).toEqual([
      400,
      'PROVIDER_REFUSED',
    ])
    expect((await secondVisitor.get('/me')).status).toBe(401)
  })

  test('a sign-in by a provider requires the second factor of the user', async () => {
    const { browser, tenant } = await createSocialFixture(at)
    const visitor = browser()
    await visitor.signIn('corp')
    const { _id } = (await visitor.get('/me')).body
    await tenant.write((tx) => tx.query('insert into totp ("user", confirmed, step) values (?, 1, 0)', [_id]))
    const again = browser()
    const { location } = await again.signIn('corp')
    expect(location).toMatch(/^\/\?challenge=[\w-]{43}$/)
    expect((await again.get('/me')).status).toBe(401)
    const { location: website } = await again.signIn('corp', '?returnUrl=https://app.example.com/')
    const rt = new URL(website).searchParams.get('rt')
    expect(statusAndCode(await again.post('/auth/callback', { rt }))).toEqual([401, 'SECOND_FACTOR_REQUIRED'])
  })
})

describe('sign-in by a provider from a website', () => {
  const back = 'https://app.example.com/in?x=1#top'
  const query = `?returnUrl=${encodeURIComponent(back)}&state=mine%20%26`

  test('a website exchanges its redirect token for a session or tokens, once and within a minute', async () => {
    const { browser, anonymous } = await createSocialFixture(at)
    const visitor = browser()
    const { status, location } = await visitor.signIn('corp', query)
    expect(status).toBe(302)
    expect(location).toMatch(/^https:\/\/app\.example\.com\/in\?x=1&rt=[\w-]{43}&state=mine\+%26#top$/)
    expect([...visitor.jar.keys()]).toEqual([])
    const rt = new URL(location).searchParams.get('rt')!
    const cookie = await visitor.post('/auth/callback', { rt })
    expect([cookie.status, cookie.body.payload.user.email]).toEqual([200, 'ada@lovelace.test'])
    expect((await visitor.get('/me')).body.email).toBe('ada@lovelace.test')
    const INVALID_REDIRECT_TOKEN = [401, 'INVALID_REDIRECT_TOKEN']
    expect(statusAndCode(await anonymous.post('/auth/callback', { rt }))).toEqual(INVALID_REDIRECT_TOKEN)

    const second = new URL((await visitor.signIn('corp', query)).location).searchParams.get('rt')!
    const otherTenant = await createTestTenant()
    expect(statusAndCode(await otherTenant.anonymous.post('/auth/callback', { rt: second }))).toEqual(
      INVALID_REDIRECT_TOKEN,
    )
    const tokens = await anonymous.post(`/auth/callback?rt=${second}&authType=oauth`)
    expect(tokens.body.payload).toMatchObject({ token: expect.any(String), refreshToken: expect.any(String) })
    const third = new URL((await visitor.signIn('corp', query)).location).searchParams.get('rt')!
    advanceClock(61 * SECOND)
    expect(statusAndCode(await anonymous.post('/auth/callback', { rt: third }))).toEqual(INVALID_REDIRECT_TOKEN)
    for (const body of [{}, undefined])
      expect(statusAndCode(await anonymous.post('/auth/callback', body))).toEqual(INVALID_REDIRECT_TOKEN)
  })

  test.each([
    'https://evil.example.com/',
    'https://app.example.com.evil.test/',
    'https://app.example.com@evil.test/',
    'https://user:x@app.example.com/',
    'https://app.example.com:8443/',
    'javascript://app.example.com/%0aalert(1)',
    '//app.example.com/',
    '/in',
    '/admin/../in',
    '/admin//evil.test',
    '/administrator',
    '/admin/link?x=https://evil.test',
    'http://localhost/',
    '\\\\evil.test',
    '/\\evil.test',
    'https:\\\\evil.test',
    'https:////evil.test',
    'https://evil.test\\@app.example.com/',
    'https://app.example.com:443@evil.test/',
    'https://app.example.com%2eevil.test/',
    'https://app.example.com%00.evil.test/',
    'https://\u0430pp.example.com/',
    'https://app.example.com\u3002evil.test/',
    'ftp://app.example.com/',
    'data:text/html,x',
    'blob:https://app.example.com/x',
    'jAvAsCrIpT:alert(1)',
    ' javascript:alert(1)//app.example.com',
  ])('GET /api/auth/:provider rejects the returnUrl %j with 400 INVALID_INPUT', async (url) => {
    const { browser } = await createSocialFixture(at)
    const answer = await browser().get(`/auth/corp?returnUrl=${encodeURIComponent(url)}`)
    expect(statusAndCode(answer)).toEqual([400, 'INVALID_INPUT'])
  })

  test.each([
    ['https:app.example.com/in', '/in'],
    ['https:/app.example.com/in', '/in'],
    ['https:\\\\app.example.com\\in', '/in'],
    [' HTTPS://APP.EXAMPLE.COM:443/in', '/in'],
    ['https://app.example.com\\@evil.test/', '/@evil.test/'],
    ['https://app.example.com/\r\nset-cookie: x=1', '/set-cookie:%20x=1'],
    ['https://app.example.com/\ud83c\udfdd', '/%F0%9F%8F%9D'],
  ])('the returnUrl %j is understood as browsers understand it and receives the redirect token', async (url, path) => {
    const { browser } = await createSocialFixture(at)
    const { status, location, headers } = await browser().signIn('corp', `?returnUrl=${encodeURIComponent(url)}`)
    expect(status).toBe(302)
    expect(location.replace(/rt=[\w-]{43}$/, 'rt=…')).toBe(`https://app.example.com${path}?rt=…`)
    expect(headers.getSetCookie()).toHaveLength(1)
  })

  test('a redirect token is exchanged only from its own website or the host of the tenant; other pages get 403 CROSS_SITE', async () => {
    const { browser, origin, anonymous } = await createSocialFixture(at)
    const rt = new URL((await browser().signIn('corp', query)).location).searchParams.get('rt')
    const exchange = (headers: Record<string, string>) => anonymous.post(`/auth/callback?rt=${rt}`, undefined, headers)
    const foreign: Record<string, string>[] = [
      { origin: 'https://evil.test' },
      { origin: 'null' },
      { origin: 'https://app.example.com:8443' },
      { 'sec-fetch-site': 'cross-site' },
    ]
    for (const headers of foreign) expect(statusAndCode(await exchange(headers))).toEqual([403, 'CROSS_SITE'])
    const headers = { origin: 'https://app.example.com', 'sec-fetch-site': 'cross-site' }
    expect((await exchange(headers)).headers.get('set-cookie')).toContain('HttpOnly')
    const own = new URL((await browser().signIn('corp', query)).location).searchParams.get('rt')
    expect((await anonymous.post('/auth/callback', { rt: own }, { origin })).status).toBe(200)
  })

  test('three simultaneous exchanges of one redirect token create one session', async () => {
    const { browser, anonymous } = await createSocialFixture(at)
    const rt = new URL((await browser().signIn('corp', query)).location).searchParams.get('rt')
    const answers = await Promise.all([1, 2, 3].map(() => anonymous.post('/auth/callback', { rt })))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401, 401])
  })

  test('the admin page of the tenant’s own host exchanges its redirect token for a session', async () => {
    const { browser, origin } = await createSocialFixture(at, { allowedReturnHosts: [] })
    const visitor = browser()
    const { location } = await visitor.signIn('corp', '?returnUrl=/admin/link')
    expect(location).toMatch(/^\/admin\/link\?rt=[\w-]{43}$/)
    const rt = new URL(location, origin).searchParams.get('rt')
    expect((await visitor.post('/auth/callback', { rt })).status).toBe(200)
    expect((await visitor.get('/me')).body.email).toBe('ada@lovelace.test')
  })

  test('allowedReturnHosts can contain a host with its port', async () => {
    const { browser } = await createSocialFixture(at)
    const { location } = await browser().signIn('corp', '?returnUrl=http://localhost:5173/')
    expect(location).toStartWith('http://localhost:5173/?rt=')
  })

  test('a website receives the error code and its own state when the sign-in fails', async () => {
    const { browser } = await createSocialFixture(at)
    const visitor = browser()
    const { back } = await visitor.begin('corp', query)
    const { location } = await visitor.visit(back.replace(/code=[^&]+/, 'error=access_denied'))
    expect(location).toBe('https://app.example.com/in?x=1&error=PROVIDER_REFUSED&state=mine+%26#top')
  })

  test('a returnUrl whose host is no longer allowed at the callback is replaced by /', async () => {
    const { browser, as } = await createSocialFixture(at)
    const visitor = browser()
    const { back } = await visitor.begin('corp', query)
    await as('admin').put('/configurations/auth-configuration', { metadata: { allowedReturnHosts: [] } })
    expect((await visitor.visit(back)).location).toBe('/')
  })
})

describe('accounts of users of a provider', () => {
  const REFUSED = [409, 'EMAIL_EXISTS']

  test('an identity is linked to the user with the same address if both sides have verified it', async () => {
    const { browser, anonymous, tenant } = await createSocialFixture(at)
    const own = await anonymous.post('/signup', { username: 'lady', email: 'Ada@Lovelace.test', password })
    await tenant.write((tx) => tx.query('update users set email_verified = 1 where username = ?', ['lady']))
    const visitor = browser()
    await visitor.signIn('github')
    expect((await visitor.get('/me')).body._id).toBe(own.body.payload.user._id)
    expect((await anonymous.post('/signin', { username: 'lady', password })).status).toBe(200)
  })

  test('an identity with an unverified address is not linked to an existing user and gets 409 EMAIL_EXISTS', async () => {
    const { browser, anonymous } = await createSocialFixture(at)
    await anonymous.post('/signup', { username: 'lady', email: 'ada@lovelace.test', password })
    at.own.person = { ...ada, email_verified: false }
    // X reports no address that it has not confirmed.
    for (const name of NAMES.filter((each) => each !== 'x'))
      expect(statusAndCode(await browser().signIn(name))).toEqual(REFUSED)
    at.own.person = ada
    expect(statusAndCode(await browser().signIn('facebook'))).toEqual(REFUSED)
  })

  test('a verified identity takes over the account with its unverified address and revokes all other access', async () => {
    const { browser, anonymous, tenant, as } = await createSocialFixture(at)
    const body = { username: 'thief', email: 'ada@lovelace.test', password, authType: 'oauth' }
    const { token, refreshToken, user } = (await anonymous.post('/signup', body)).body.payload
    const thief = anonymous.with({ authorization: `Bearer ${token}` })
    const key = (await thief.post('/me/api-tokens', { nickname: 'x' })).body.token
    const link = "insert into identities (provider, subject, \"user\", created) values ('github', '666', ?, 0)"
    await tenant.write((tx) => tx.query(link, [user._id]))
    const visitor = browser()
    await visitor.signIn('google')
    expect((await visitor.get('/me')).body).toMatchObject({ _id: user._id, emailVerified: true })
    expect((await thief.get('/me')).status).toBe(401)
    const mails = (await as('admin').get('/mails?to=ada@lovelace.test')).body
    expect(mails.map(({ template }: { template: string }) => template)).toContain('passwordRemoved')
    expect((await anonymous.get('/me', { 'x-api-key': key })).status).toBe(401)
    expect((await anonymous.post('/token/refresh', { refreshToken })).status).toBe(401)
    expect((await anonymous.post('/signin', { username: 'thief', password })).status).toBe(401)
    at.own.person = { ...ada, sub: '666', email: 'thief@x.test' }
    const thiefBrowser = browser()
    await thiefBrowser.signIn('github')
    expect((await thiefBrowser.get('/me')).body._id).not.toBe(user._id)
  })

  test('a new user gets a free username, and equal subject IDs at two providers are different users', async () => {
    const { browser, anonymous } = await createSocialFixture(at)
    await anonymous.post('/signup', { username: 'ADA', password })
    at.own.person = { ...ada, email: 'other@x.test' }
    const [one, two] = [browser(), browser()]
    await one.signIn('corp')
    expect((await one.get('/me')).body.username).toMatch(/^ada-[0-9a-f]{8}$/)
    at.own.person = { ...ada, email: 'third@x.test' }
    await two.signIn('github')
    expect((await two.get('/me')).body._id).not.toBe((await one.get('/me')).body._id)
  })

  test('three simultaneous first sign-ins of one person create one account', async () => {
    const { browser } = await createSocialFixture(at)
    const windows = [browser(), browser(), browser()]
    const begun = await Promise.all(windows.map((window) => window.begin('corp')))
    await Promise.all(windows.map((window, n) => window.visit(begun[n]!.back)))
    const ids = await Promise.all(windows.map(async (window) => (await window.get('/me')).body._id))
    expect(new Set(ids).size).toBe(1)
    expect(ids[0]).toBeString()
  })

  test('a new person gets 403 SIGNUP_CLOSED where sign-up is closed, and existing users can sign in', async () => {
    const { browser, as } = await createSocialFixture(at)
    await browser().signIn('corp')
    await as('admin').put('/configurations/auth-configuration', { metadata: { allowSignup: false } })
    expect((await browser().signIn('corp')).location).toBe('/')
    at.own.person = { ...ada, sub: '4712', email: 'bob@x.test' }
    expect(statusAndCode(await browser().signIn('corp'))).toEqual([403, 'SIGNUP_CLOSED'])
  })

  test('invalid profile data of a provider are ignored', async () => {
    const { browser } = await createSocialFixture(at)
    at.own.person = {
      sub: 'x',
      name: 'a\u0000b',
      email: 'no address',
      email_verified: true,
      picture: 'javascript:alert(1)',
    }
    const visitor = browser()
    await visitor.signIn('corp')
    expect((await visitor.get('/me')).body).toMatchObject({
      ...{ username: 'corp', email: '', fullName: '', profileImage: null, emailVerified: false },
    })
  })
})

describe('an untrustworthy provider', () => {
  const FAILED = [502, 'PROVIDER_ERROR']
  const claim = (name: string, value: unknown) => ({ claims: (all: object) => ({ ...all, [name]: value }) })

  test.each([
    ['signs with an unknown key', { key: 'other' as const }],
    ['names another issuer', claim('iss', 'https://evil.test')],
    ['names another audience', claim('aud', 'another')],
    ['returns a foreign nonce', claim('nonce', 'x'.repeat(43))],
    ['omits the nonce', claim('nonce', undefined)],
    ['returns an expired ID token', claim('exp', 1)],
    ['returns an empty subject', claim('sub', '')],
  ])('a sign-in gets 502 PROVIDER_ERROR where the provider %s', async (_, flaw) => {
    const { browser } = await createSocialFixture(at)
    at.own.flaw = flaw
    for (const name of ['corp', 'google']) {
      const visitor = browser()
      expect(statusAndCode(await visitor.signIn(name))).toEqual(FAILED)
      expect((await visitor.get('/me')).status).toBe(401)
    }
  })

  test('userinfo of another subject than the ID token is ignored', async () => {
    const { browser } = await createSocialFixture(at)
    const otherPerson = { sub: 'somebody', email: 'victim@x.test', email_verified: true }
    at.own.flaw = {
      ...claim('email', undefined),
      answer: (path) => (path === '/userinfo' ? Response.json(otherPerson) : undefined),
    }
    const visitor = browser()
    await visitor.signIn('corp')
    expect((await visitor.get('/me')).body.email).toBe('')
  })

  test.each([
    ['announces another issuer', { discovery: { issuer: 'https://evil.test' } }],
    ['announces no authorization endpoint', { discovery: { authorization_endpoint: undefined } }],
    ['announces a javascript: endpoint', { discovery: { authorization_endpoint: 'javascript:alert(1)' } }],
    ['returns HTML', { answer: () => new Response('<html>') }],
    ['returns a response of 1 MiB', { answer: () => new Response(new Uint8Array(1 << 20)) }],
    ['redirects to another address', { answer: () => Response.redirect('http://127.0.0.1:1/', 302) }],
    ['returns status 500', { answer: () => new Response(null, { status: 500 }) }],
  ])('GET /api/auth/:provider returns 502 PROVIDER_ERROR where the provider %s', async (_, flaw) => {
    const { browser } = await createSocialFixture(at)
    at.own.flaw = flaw
    const answer = await browser().get('/auth/corp')
    expect(statusAndCode(answer)).toEqual(FAILED)
    expect(JSON.stringify(answer.body)).not.toContain('127.0.0.1')
  })

  test('a provider in the private network gets no request unless ATOLL_ALLOW_PRIVATE_NETWORK is on', async () => {
    const { browser } = await createSocialFixture(at)
    config.ATOLL_ALLOW_PRIVATE_NETWORK = 'off'
    const before = at.asked.length
    expect(statusAndCode(await browser().get('/auth/corp'))).toEqual(FAILED)
    expect(at.asked.length).toBe(before)
    config.ATOLL_ALLOW_PRIVATE_NETWORK = 'on'
  })
})

test('a caller gets 429 RATE_LIMITED after starting sixty sign-ins within a minute, and other tenants are not affected', async () => {
  const { anonymous } = await createSocialFixture(at)
  for (let n = 0; n < 60; n++) expect((await anonymous.get('/auth/github')).status).toBe(302)
  expect(statusAndCode(await anonymous.get('/auth/corp'))).toEqual([429, 'RATE_LIMITED'])
  const otherTenant = await createSocialFixture(at)
  expect((await otherTenant.anonymous.get('/auth/corp')).status).toBe(302)
  advanceClock(61 * SECOND)
  expect((await anonymous.get('/auth/corp')).status).toBe(302)
})

test('a callback without the cookie of the sign-in gets 400 INVALID_STATE', async () => {
  const { origin } = await createSocialFixture(at)
  const visitor = createBrowser(origin)
  const { back } = await visitor.begin('corp')
  visitor.jar.clear()
  expect(statusAndCode(await visitor.visit(back))).toEqual([400, 'INVALID_STATE'])
})

test('the cookie of a sign-in is encrypted, and a forged, damaged, empty or duplicate one gets 400 INVALID_STATE', async () => {
  const { id, browser } = await createSocialFixture(at)
  const name = `atoll_${id}_auth`
  const visitor = browser()
  const { sent, back } = await visitor.begin('corp')
  const sealed = visitor.jar.get(name)!
  const state = new URL(sent.location).searchParams.get('state')!
  const readable = Buffer.from(sealed, 'base64url').toString('latin1')
  for (const secret of ['verifier', 'nonce', state]) expect(readable).not.toContain(secret)
  const forged = Buffer.from(JSON.stringify({ provider: 'corp', state, nonce: 'n', verifier: 'v' })).toString(
    'base64url',
  )
  const STATE = [400, 'INVALID_STATE']
  for (const value of [forged, `${sealed.slice(0, -2)}AA`, sealed.slice(0, 40), '']) {
    visitor.jar.set(name, value)
    expect(statusAndCode(await visitor.visit(back)), value).toEqual(STATE)
  }
  // One of two cookies may have been set by a sibling domain.
  visitor.jar.set(name, `${sealed}; ${name}=${sealed}`)
  expect(statusAndCode(await visitor.visit(back))).toEqual(STATE)
  visitor.jar.set(name, sealed)
  expect((await visitor.visit(back)).status).toBe(302)
})

test('a sign-in ends only at the host and tenant that started it and within ten minutes; otherwise it gets 400 INVALID_STATE', async () => {
  const [here, there] = [await createSocialFixture(at), await createSocialFixture(at)]
  await setHosts(here.id, [`${here.id}.test`, `${here.id}.example`])
  const visitor = here.browser()
  const { back } = await visitor.begin('corp')
  const sealed = visitor.jar.get(`atoll_${here.id}_auth`)!
  for (const [host, tenant] of [
    [`${here.id}.example`, here.id],
    [`${there.id}.test`, there.id],
  ] as const) {
    const url = back.replace(`${here.id}.test`, host)
    const cookie = `atoll_${tenant}_auth=${sealed}`
    expect(statusAndCode(await callApi('GET', url, { headers: { cookie } })), host).toEqual([400, 'INVALID_STATE'])
  }
  advanceClock(11 * 60 * SECOND)
  expect(statusAndCode(await visitor.visit(back))).toEqual([400, 'INVALID_STATE'])
})

test('the cookie of a sign-in over TLS has the prefix __Host- and the attribute Secure', async () => {
  const { origin, id } = await createSocialFixture(at)
  const visitor = createBrowser(origin.replace('http:', 'https:'))
  const { sent } = await visitor.begin('corp')
  const [line] = sent.headers.getSetCookie()
  expect(line).toStartWith(`__Host-atoll_${id}_auth=`)
  expect(line).toEndWith('; Path=/; Max-Age=600; HttpOnly; SameSite=Lax; Secure')
})
