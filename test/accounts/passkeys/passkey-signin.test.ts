import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { config } from '../../../src/config'
import { callApi, createTestTenant, statusAndCode } from '../../test-tenant'
import {
  advanceClock,
  createSignedInClient,
  MINUTE,
  readSetCookie,
  resetClock,
  signInForCookie,
} from '../session-fixtures'
import {
  type AuthenticatorFault,
  createAuthenticator,
  createPasskeyFixture,
  flags,
  registerPasskey,
  signInWithPasskey,
} from './passkey-fixtures'

afterEach(resetClock)

const INVALID_PASSKEY = [401, 'INVALID_PASSKEY']
const INVALID_CHALLENGE = [401, 'INVALID_CHALLENGE']
const { PRESENT, VERIFIED, ELIGIBLE, BACKED_UP } = flags

let home: Awaited<ReturnType<typeof createPasskeyFixture>>
beforeAll(async () => {
  config.ATOLL_RATE_LIMITS = 'off'
  home = await createPasskeyFixture()
})
afterAll(() => {
  config.ATOLL_RATE_LIMITS = 'on'
})

describe('sign-in by passkey', () => {
  test('a sign-in by passkey needs no username and returns a cookie or tokens as a sign-in by password does', async () => {
    const { anonymous, device, users, person } = home
    const options = await anonymous.post('/signin/passkey/options')
    expect([options.status, options.headers.get('cache-control')]).toEqual([200, 'no-store'])
    expect(options.body).toEqual({
      rpId: `${home.id}.test`,
      challenge: expect.stringMatching(/^[\w-]{43}$/),
      timeout: 300_000,
      userVerification: 'required',
    })
    const cookie = await anonymous.post('/signin/passkey', { credential: device.get(options.body) })
    expect([cookie.status, cookie.headers.get('cache-control')]).toEqual([200, 'no-store'])
    expect(cookie.body).toEqual({
      payload: { user: expect.objectContaining({ _id: users.user, username: 'user' }), workspace: null },
    })
    const { attributes, cookie: pair } = readSetCookie(cookie)
    expect(attributes).toEqual(['HttpOnly', 'Max-Age=2592000', 'Path=/', 'SameSite=Lax'])
    expect((await anonymous.get('/me', { cookie: pair })).body._id).toBe(users.user)
    const tokens = await signInWithPasskey(anonymous, device, {}, { authType: 'oauth' })
    expect(tokens.headers.get('set-cookie')).toBeNull()
    expect(Object.keys(tokens.body.payload).sort()).toEqual(['expiresIn', 'refreshToken', 'token', 'user', 'workspace'])
    const [used] = (await person.get('/me/passkeys')).body
    expect(used.lastUsedAt).toMatch(/Z$/)
    expect((await signInWithPasskey(anonymous, device, {}, { authType: 'saml' })).status).toBe(400)
  })

  test('a sign-in by passkey can start in a workspace of the user; another workspace gets 404 WORKSPACE_NOT_FOUND', async () => {
    const { anonymous, device, as } = home
    const { _id } = (await as('user').post('/workspaces', { name: 'Office' })).body
    const inside = await signInWithPasskey(anonymous, device, {}, { workspace: _id })
    expect(inside.body.payload.workspace).toMatchObject({ _id, name: 'Office' })
    const foreign = (await as('other').post('/workspaces', { name: 'Elsewhere' })).body._id
    const outside = await signInWithPasskey(anonymous, device, {}, { workspace: foreign })
    expect(statusAndCode(outside)).toEqual([404, 'WORKSPACE_NOT_FOUND'])
    expect(outside.headers.get('set-cookie')).toBeNull()
  })

  test('a challenge is accepted once, even in simultaneous requests, and for five minutes; otherwise 401 INVALID_CHALLENGE', async () => {
    const { anonymous, device } = home
    const requestOptions = async () => (await anonymous.post('/signin/passkey/options')).body
    const credential = device.get(await requestOptions())
    const answers = await Promise.all([1, 2, 3].map(() => anonymous.post('/signin/passkey', { credential })))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401, 401])
    expect(statusAndCode(await anonymous.post('/signin/passkey', { credential }))).toEqual(INVALID_CHALLENGE)
    const late = device.get(await requestOptions())
    advanceClock(6 * MINUTE)
    expect(statusAndCode(await anonymous.post('/signin/passkey', { credential: late }))).toEqual(INVALID_CHALLENGE)
    // A rejected response uses up its challenge, too.
    const options = await requestOptions()
    const bad = device.get(options, { flags: PRESENT })
    expect(statusAndCode(await anonymous.post('/signin/passkey', { credential: bad }))).toEqual(INVALID_PASSKEY)
    expect(statusAndCode(await anonymous.post('/signin/passkey', { credential: device.get(options) }))).toEqual(
      INVALID_CHALLENGE,
    )
  })

  test.each<[string, AuthenticatorFault]>([
    ['comes from a page of another origin', { origin: 'https://evil.test' }],
    ['comes from another port', { origin: 'http://localhost:1' }],
    ['is for another host', { host: 'evil.test' }],
    ['has the type of a registration', { type: 'webauthn.create' }],
    ['lacks user presence', { flags: VERIFIED }],
    ['lacks user verification', { flags: PRESENT }],
    ['has the handle of another user', { userHandle: Buffer.from('somebody').toString('base64url') }],
    ['comes from a cross-origin frame', { crossOrigin: true }],
  ])('a sign-in by passkey that %s gets 401 INVALID_PASSKEY', async (_, flaw) => {
    const answer = await signInWithPasskey(home.anonymous, home.device, flaw)
    expect([...statusAndCode(answer), answer.headers.get('set-cookie')]).toEqual([...INVALID_PASSKEY, null])
  })

  test('a forged or damaged passkey response gets 401, and malformed client data get 400 INVALID_INPUT', async () => {
    const { anonymous, device, origin } = home
    const requestOptions = async () => (await anonymous.post('/signin/passkey/options')).body
    const changed = (text: string) => {
      const bytes = Buffer.from(text, 'base64url')
      bytes[bytes.length - 1]! ^= 1
      return bytes.toString('base64url')
    }
    for (const part of ['signature', 'authenticatorData'] as const) {
      const credential = device.get(await requestOptions())
      credential.response[part] = changed(credential.response[part])
      expect(statusAndCode(await anonymous.post('/signin/passkey', { credential })), part).toEqual(INVALID_PASSKEY)
    }
    // A signature by another key, and the ID of another credential.
    const [options, thief] = [await requestOptions(), createAuthenticator(origin)]
    const { signature } = thief.get(options).response
    const mine = device.get(options)
    const forged = { ...mine, response: { ...mine.response, signature } }
    expect(statusAndCode(await anonymous.post('/signin/passkey', { credential: forged }))).toEqual(INVALID_PASSKEY)
    const borrowed = { ...thief.get(await requestOptions()), id: device.id, rawId: device.id }
    expect(statusAndCode(await anonymous.post('/signin/passkey', { credential: borrowed }))).toEqual(INVALID_PASSKEY)
    expect(statusAndCode(await signInWithPasskey(anonymous, thief))).toEqual(INVALID_PASSKEY)
    const nonsense = {
      ...device.get(await requestOptions()),
      response: { clientDataJSON: 'bnVsbA', authenticatorData: 'AA', signature: 'AA' },
    }
    expect(statusAndCode(await anonymous.post('/signin/passkey', { credential: nonsense }))).toEqual(INVALID_CHALLENGE)
    for (const clientDataJSON of ['', 'a b', 'x'.repeat(5_000)]) {
      const credential = { ...mine, response: { ...mine.response, clientDataJSON } }
      expect(statusAndCode(await anonymous.post('/signin/passkey', { credential }))).toEqual([400, 'INVALID_INPUT'])
    }
  })

  test('a sign-in by passkey whose counter does not increase gets 401 INVALID_PASSKEY', async () => {
    const { anonymous, origin } = home
    const device = createAuthenticator(origin)
    device.own.counter = 5
    await registerPasskey(await createSignedInClient(home, 'other'), device)
    for (const counter of [0, 4, 5])
      expect(statusAndCode(await signInWithPasskey(anonymous, device, { counter }))).toEqual(INVALID_PASSKEY)
    expect((await signInWithPasskey(anonymous, device, { counter: 9 })).status).toBe(200)
    expect(statusAndCode(await signInWithPasskey(anonymous, device, { counter: 8 }))).toEqual(INVALID_PASSKEY)
    const both = await Promise.all([1, 2].map(() => signInWithPasskey(anonymous, device, { counter: 10 })))
    expect(both.map(({ status }) => status).sort()).toEqual([200, 401])
  })

  test('a sign-in by passkey updates backedUp of the passkey', async () => {
    const { anonymous, device, person } = home
    await signInWithPasskey(anonymous, device, { flags: PRESENT | VERIFIED | ELIGIBLE | BACKED_UP })
    expect((await person.get('/me/passkeys')).body[0].backedUp).toBe(true)
  })

  test('a sign-in by passkey ignores the session cookie of another user', async () => {
    const { anonymous, device, users } = home
    const answer = await signInWithPasskey(anonymous.with(await signInForCookie(home, 'other')), device)
    expect(answer.body.payload.user._id).toBe(users.user)
  })

  test('ten failed sign-ins by passkey emit an event, make the next one get 429 RATE_LIMITED, and options are limited, too', async () => {
    const { anonymous, device, as, users } = await createPasskeyFixture()
    config.ATOLL_RATE_LIMITS = 'on'
    for (let n = 0; n < 10; n++)
      expect(statusAndCode(await signInWithPasskey(anonymous, device, { flags: PRESENT }))).toEqual(INVALID_PASSKEY)
    const limited = await signInWithPasskey(anonymous, device)
    expect([...statusAndCode(limited), Number(limited.headers.get('retry-after')) > 0]).toEqual([
      429,
      'RATE_LIMITED',
      true,
    ])
    const events = (await as('admin').get('/events?eventName=signin-failed')).body
    const failures = events.map(({ metadata }: { metadata: object }) => metadata)
    expect(failures).toContainEqual({ about: 'account', user: users.user, of: 'passkey', address: '', attempts: 10 })
    advanceClock(11 * MINUTE)
    expect((await signInWithPasskey(anonymous, device)).status).toBe(200)
    let answer = await anonymous.post('/signin/passkey/options')
    for (let n = 0; n < 60 && answer.status === 200; n++) answer = await anonymous.post('/signin/passkey/options')
    expect(statusAndCode(answer)).toEqual([429, 'RATE_LIMITED'])
    config.ATOLL_RATE_LIMITS = 'off'
  })
})

describe('completing a passkey registration', () => {
  const BAD = [400, 'INVALID_PASSKEY']
  const GONE = [400, 'INVALID_CHALLENGE']

  test.each<[string, AuthenticatorFault]>([
    ['comes from a page of another origin', { origin: 'https://evil.test' }],
    ['is for another host', { host: 'evil.test' }],
    ['has the type of a sign-in', { type: 'webauthn.get' }],
    ['lacks user presence', { flags: VERIFIED }],
    ['lacks user verification', { flags: PRESENT }],
    ['comes from a cross-origin frame', { crossOrigin: true }],
    ['has an unrequested attestation statement', { statement: new Map([['x', 1]]) }],
    ['has an android-key attestation', { format: 'android-key' }],
    ['has an attestation with certificates', { format: 'packed', statement: new Map([['x5c', [new Uint8Array(9)]]]) }],
  ])('a passkey registration that %s gets 400 INVALID_PASSKEY and uses up its challenge', async (_, flaw) => {
    const { person, origin } = home
    const options = (await person.post('/me/passkeys/options')).body
    const device = createAuthenticator(origin)
    expect(statusAndCode(await person.post('/me/passkeys', { credential: device.create(options, flaw) }))).toEqual(BAD)
    expect(statusAndCode(await person.post('/me/passkeys', { credential: device.create(options) }))).toEqual(GONE)
  })

  test('a registration with a packed self-attestation succeeds only if its signature is valid', async () => {
    const { person, origin } = home
    const register = async (flaw: AuthenticatorFault) => {
      const credential = createAuthenticator(origin).create((await person.post('/me/passkeys/options')).body, flaw)
      return person.post('/me/passkeys', { credential })
    }
    expect((await register({ format: 'packed', vouches: true })).status).toBe(201)
    const wrong = new Map<string, unknown>([
      ['alg', -7],
      ['sig', new Uint8Array(70)],
    ])
    expect(statusAndCode(await register({ format: 'packed', statement: wrong }))).toEqual(BAD)
  })

  test('a passkey registration is completed only by the user who started it, once and within five minutes', async () => {
    const { person, origin, anonymous } = home
    const requestOptions = async () => (await person.post('/me/passkeys/options')).body
    const device = createAuthenticator(origin)
    const credential = device.create(await requestOptions())
    const thief = await createSignedInClient(home, 'other')
    expect(statusAndCode(await thief.post('/me/passkeys', { credential }))).toEqual(GONE)
    const asSignIn = device.get({ rpId: home.id, challenge: (await requestOptions()).challenge })
    expect(statusAndCode(await anonymous.post('/signin/passkey', { credential: asSignIn }))).toEqual(INVALID_CHALLENGE)
    const options = {
      ...(await requestOptions()),
      challenge: (await anonymous.post('/signin/passkey/options')).body.challenge,
    }
    expect(statusAndCode(await person.post('/me/passkeys', { credential: device.create(options) }))).toEqual(GONE)
    expect((await person.post('/me/passkeys', { credential })).status).toBe(201)
    expect(statusAndCode(await person.post('/me/passkeys', { credential }))).toEqual(GONE)
    const late = createAuthenticator(origin).create(await requestOptions())
    advanceClock(6 * MINUTE)
    expect(
      statusAndCode(await (await createSignedInClient(home, 'user')).post('/me/passkeys', { credential: late })),
    ).toEqual(GONE)
  })

  test('a malformed passkey registration gets 400', async () => {
    const { person, origin } = home
    const requestOptions = async () => (await person.post('/me/passkeys/options')).body
    const createCredential = async () => createAuthenticator(origin).create(await requestOptions())
    for (const attestationObject of ['AA', 'oA', 'gw'.repeat(5_000), 'o2NmbXRkbm9uZWdhdHRTdG10oGhhdXRoRGF0YUA']) {
      const credential = await createCredential()
      credential.response.attestationObject = attestationObject
      expect(statusAndCode(await person.post('/me/passkeys', { credential })), attestationObject).toEqual(BAD)
    }
    const credential = await createCredential()
    for (const part of [{ id: 'x' }, { type: 'password' }, { rawId: 'é' }, { response: {} }]) {
      const { status } = await person.post('/me/passkeys', { credential: { ...credential, ...part } })
      expect(status, JSON.stringify(part)).toBe(400)
    }
  })
})

describe('the page that uses passkeys', () => {
  const UNKNOWN = [403, 'UNKNOWN_ORIGIN']
  const from = (origin: string) => ({ origin })

  test('passkey options are returned to pages of the tenant’s host and websites; other pages get 403 UNKNOWN_ORIGIN', async () => {
    const { as, anonymous, origin, id } = await createPasskeyFixture()
    const start = (headers?: Record<string, string>) => anonymous.post('/signin/passkey/options', undefined, headers)
    expect((await start(from(origin))).body.rpId).toBe(`${id}.test`)
    expect((await start(from(origin.replace('http:', 'https:')))).body.rpId).toBe(`${id}.test`)
    const website = `https://app.${id}.test:8443`
    const unknownOrigins = [
      website,
      `${origin}:81`,
      `http://sub.${id}.test`,
      'https://evil.test',
      'http://localhost',
      'null',
      'x',
    ]
    for (const unknownOrigin of unknownOrigins)
      expect(statusAndCode(await start(from(unknownOrigin))), unknownOrigin).toEqual(UNKNOWN)
    await as('admin').put('/configurations/app-configuration', {
      metadata: { websiteUrls: [`${website}/shop`, 'http://127.0.0.1:5173'] },
    })
    expect((await start(from(website))).body.rpId).toBe(`app.${id}.test`)
    for (const unknownOrigin of [
      website.replace('8443', '8444'),
      website.replace('https', 'http'),
      'http://127.0.0.1:5173',
    ])
      expect(statusAndCode(await start(from(unknownOrigin))), unknownOrigin).toEqual(UNKNOWN)
  })

  test('passkey options get 403 UNKNOWN_ORIGIN at unassigned and foreign hosts, and are returned at localhost', async () => {
    const { id, tokens } = home
    const at = (url: string, more: Record<string, string> = {}) =>
      callApi('POST', `${url}/api/signin/passkey/options`, { headers: { tenant: id, ...more } })
    const elsewhere = await createTestTenant()
    for (const url of ['http://evil.test', elsewhere.origin, 'http://127.0.0.1:3000', 'http://[::1]:3000'])
      expect(statusAndCode(await at(url, from(url))), url).toEqual(UNKNOWN)
    expect(statusAndCode(await at('http://evil.test', { 'x-forwarded-host': `${id}.test` }))).toEqual(UNKNOWN)
    expect((await at('http://localhost:3000', from('http://localhost:3000'))).body.rpId).toBe('localhost')
    expect((await at('http://localhost:3000')).status).toBe(200)
    expect(tokens.user).toBeString()
  })

  test('a passkey signs in only at the host where it was registered', async () => {
    const { as, anonymous, device, id, person } = await createPasskeyFixture()
    const website = `https://shop-${id}.test`
    await as('admin').put('/configurations/app-configuration', { metadata: { websiteUrls: [website] } })
    const page = anonymous.with(from(website))
    const options = (await page.post('/signin/passkey/options')).body
    // Browsers offer a passkey only at its own host, and the server rejects it elsewhere.
    const foreign = device.get(options, { host: `${id}.test`, origin: website })
    expect(statusAndCode(await page.post('/signin/passkey', { credential: foreign }))).toEqual(INVALID_PASSKEY)
    const shopDevice = createAuthenticator(website)
    const made = await registerPasskey(person.with(from(website)), shopDevice, 'Shop')
    expect(made.body.host).toBe(`shop-${id}.test`)
    expect((await signInWithPasskey(page, shopDevice)).status).toBe(200)
  })
})
