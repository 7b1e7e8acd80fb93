import { afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { createTestTenant, statusAndCode } from '../../test-tenant'
import { advanceClock, MINUTE, resetClock } from '../session-fixtures'
import {
  createAuthenticator,
  createPasskeyFixture,
  createSignedInClient,
  registerPasskey,
  signInWithPasskey,
} from './passkey-fixtures'

afterEach(resetClock)

let home: Awaited<ReturnType<typeof createPasskeyFixture>>
beforeAll(async () => {
  home = await createPasskeyFixture()
})

describe('a passkey', () => {
  test('is shown to its owner by name, and never with what proves it', async () => {
    const { made, person, device, id } = home
    expect(made.status).toBe(201)
    expect(made.body).toEqual({
      _id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      name: 'Phone',
      host: `${id}.test`,
      transports: ['internal', 'hybrid'],
      backedUp: false,
      created: expect.stringMatching(/Z$/),
      lastUsedAt: null,
    })
    const listed = await person.get('/me/passkeys?count=true')
    expect([listed.body, listed.headers.get('x-total-count')]).toEqual([[made.body], '1'])
    expect(JSON.stringify(listed.body)).not.toContain(device.id)
  })

  test('is kept once, and each person has twenty', async () => {
    const { person, device } = home
    expect(statusAndCode(await registerPasskey(person, device))).toEqual([409, 'PASSKEY_EXISTS'])
    const [{ tenant, users }, other] = [home, await createSignedInClient(home, 'other')]
    const another = await registerPasskey(other, device)
    expect(statusAndCode(another)).toEqual([409, 'PASSKEY_EXISTS'])
    const options = (await other.post('/me/passkeys/options')).body
    const insert = `insert into passkeys (_id, "user", credential, public_key, counter, host, name, transports, backed_up, created)
      values (?, ?, ?, '', 0, 'x', 'x', '[]', 0, 0)`
    await tenant.write(async (tx) => {
      for (let n = 0; n < 20; n++) await tx.query(insert, [`p${n}`, users.other, `c${n}`])
    })
    const full = [409, 'TOO_MANY_PASSKEYS']
    expect(statusAndCode(await other.post('/me/passkeys/options'))).toEqual(full)
    const late = await other.post('/me/passkeys', { credential: createAuthenticator(home.origin).create(options) })
    expect(statusAndCode(late)).toEqual(full)
  })

  test('is its owner’s own matter: not an API token’s, nor a stranger’s, nor an admin’s who acts as them', async () => {
    const { as, stranger, users, made } = home
    const path = `/me/passkeys/${made.body._id}`
    const guise = { 'x-impersonate-user': users.user }
    for (const caller of [as('user'), as('admin').with(guise)])
      for (const answer of [
        await caller.get('/me/passkeys'),
        await caller.post('/me/passkeys/options'),
        await caller.put(path, { name: 'x' }),
        await caller.delete(path),
      ])
        expect(statusAndCode(answer)).toEqual([403, 'FORBIDDEN'])
    expect(statusAndCode(await stranger.get('/me/passkeys'))).toEqual([401, 'UNAUTHENTICATED'])
    expect(statusAndCode(await stranger.post('/me/passkeys/options'))).toEqual([401, 'UNAUTHENTICATED'])
    const other = await createSignedInClient(home, 'editor')
    for (const answer of [await other.put(path, { name: 'x' }), await other.delete(path)])
      expect(statusAndCode(answer)).toEqual([404, 'PASSKEY_NOT_FOUND'])
    expect((await other.get('/me/passkeys')).body).toEqual([])
  })

  test('is unknown at another tenant', async () => {
    const abroad = await createTestTenant()
    const same = await createSignedInClient(abroad, 'user')
    expect((await same.get('/me/passkeys')).body).toEqual([])
    expect(statusAndCode(await same.delete(`/me/passkeys/${home.made.body._id}`))).toEqual([404, 'PASSKEY_NOT_FOUND'])
    const options = (await abroad.stranger.post('/signin/passkey/options')).body
    const credential = home.device.get({ ...options, rpId: `${abroad.id}.test` }, { origin: abroad.origin })
    expect(statusAndCode(await abroad.stranger.post('/signin/passkey', { credential }))).toEqual([
      401,
      'INVALID_PASSKEY',
    ])
    // Nor does a challenge of here help there.
    const here = (await home.stranger.post('/signin/passkey/options')).body
    const taken = await abroad.stranger.post('/signin/passkey', { credential: home.device.get(here) })
    expect(statusAndCode(taken)).toEqual([401, 'INVALID_CHALLENGE'])
  })

  test('has a name that can be changed, and is called Passkey without one', async () => {
    const { person, origin, made } = home
    const nameless = (await registerPasskey(person, createAuthenticator(origin))).body
    expect(nameless.name).toBe('Passkey')
    const renamed = await person.put(`/me/passkeys/${nameless._id}`, { name: 'Key ring' })
    expect([renamed.status, renamed.body]).toEqual([200, { ...nameless, name: 'Key ring' }])
    for (const name of ['', 'x'.repeat(101), 'a\nb', 7])
      expect((await person.put(`/me/passkeys/${nameless._id}`, { name })).status).toBe(400)
    const names = (await person.get('/me/passkeys?sort=name')).body.map(({ name }: { name: string }) => name)
    expect(names).toEqual(['Key ring', 'Phone'])
    expect((await person.get('/me/passkeys?sort=name&limit=1&page=2')).body).toEqual([made.body])
    expect(statusAndCode(await person.put('/me/passkeys/nonsense', { name: 'x' }))).toEqual([404, 'PASSKEY_NOT_FOUND'])
  })

  test('that was taken away signs nobody in; the last way to sign in stays', async () => {
    const { origin, tenant, users } = home
    const [person, one, two] = [
      await createSignedInClient(home, 'admin'),
      createAuthenticator(origin),
      createAuthenticator(origin),
    ]
    const [first, second] = [await registerPasskey(person, one), await registerPasskey(person, two)]
    const remove = (made: typeof first) => person.delete(`/me/passkeys/${made.body._id}`)
    const answers = await Promise.all([remove(first), remove(second)])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409])
    const [left, gone, kept] = answers[0]!.status === 200 ? [second, one, two] : [first, two, one]
    expect(statusAndCode(await remove(left))).toEqual([409, 'LAST_SIGN_IN_METHOD'])
    expect(statusAndCode(await signInWithPasskey(home.stranger, gone))).toEqual([401, 'INVALID_PASSKEY'])
    expect((await signInWithPasskey(home.stranger, kept)).status).toBe(200)
    await tenant.write((tx) => tx.query('update users set password = ? where _id = ?', ['x', users.admin]))
    expect((await remove(left)).body).toEqual({ success: true })
    expect(statusAndCode(await remove(left))).toEqual([404, 'PASSKEY_NOT_FOUND'])
    await tenant.write((tx) => tx.query('update users set password = null where _id = ?', [users.admin]))
  })

  test('that was lost an admin takes away, and nobody else', async () => {
    const { as, users, person, device } = await createPasskeyFixture()
    const path = `/users/${users.user}/passkeys`
    expect(statusAndCode(await as('user').delete(path))).toEqual([403, 'FORBIDDEN'])
    const abroad = await home.as('admin').delete(path)
    expect(statusAndCode(abroad)).toEqual([404, 'USER_NOT_FOUND'])
    expect((await as('admin').delete(path)).body).toEqual({ success: true })
    expect((await person.get('/me/passkeys')).body).toEqual([])
    expect(statusAndCode(await signInWithPasskey(person, device))).toEqual([401, 'INVALID_PASSKEY'])
    const events = (await as('admin').get('/events?eventName=user-updated&sort=-created')).body
    const told = events.map(({ metadata, user }: { metadata: object; user: string }) => ({ ...metadata, by: user }))
    const changed = { user: users.user, username: 'user', roles: ['user'], changed: ['passkeys'] }
    expect(told).toEqual([
      { ...changed, by: users.admin },
      { ...changed, by: users.user },
    ])
  })
})

describe('who registers a passkey', () => {
  const ASKED = [403, 'PROOF_REQUIRED']

  test('is told what a browser needs, and nothing that others have', async () => {
    const { person, users, id, device } = home
    const { status, body, headers } = await person.post('/me/passkeys/options')
    expect([status, headers.get('cache-control')]).toEqual([200, 'no-store'])
    expect(body).toMatchObject({
      rp: { id: `${id}.test`, name: `${id}.test` },
      user: { id: Buffer.from(users.user).toString('base64url'), name: 'user', displayName: 'user' },
      challenge: expect.stringMatching(/^[\w-]{43}$/),
      pubKeyCredParams: [-8, -7, -257].map((alg) => ({ alg, type: 'public-key' })),
      attestation: 'none',
      authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
    })
    const known = { id: device.id, type: 'public-key', transports: ['internal', 'hybrid'] }
    expect(body.excludeCredentials).toContainEqual(known)
    const other = (await (await createSignedInClient(home, 'editor')).post('/me/passkeys/options')).body
    expect(other.excludeCredentials).toEqual([])
    expect(other.challenge).not.toBe(body.challenge)
  })

  test('has signed in within ten minutes, or proves by the password that it is them', async () => {
    const { stranger, as } = await createTestTenant()
    const password = 'correct horse'
    const signedUp = await stranger.post('/signup', { username: 'ada', password })
    const ada = stranger.with({ cookie: signedUp.headers.get('set-cookie')!.split(';')[0]! })
    const start = (proof?: object) => ada.post('/me/passkeys/options', proof)
    expect((await start()).status).toBe(200)
    expect(statusAndCode(await start({ currentPassword: 'wrong horse' }))).toEqual([403, 'INVALID_CREDENTIALS'])
    advanceClock(11 * MINUTE)
    for (const proof of [undefined, {}, { code: '123456' }]) {
      const asked = await start(proof)
      expect([...statusAndCode(asked), asked.body.details]).toEqual([...ASKED, { by: 'currentPassword' }])
    }
    expect((await start({ currentPassword: password })).status).toBe(200)
    expect((await as('admin').get('/events?eventName=user-updated')).body).toEqual([])
  })

  test('who has no password signs in again', async () => {
    const old = await createSignedInClient(home, 'user')
    advanceClock(11 * MINUTE)
    const asked = await old.post('/me/passkeys/options', { currentPassword: 'anything' })
    expect([...statusAndCode(asked), asked.body.details]).toEqual([...ASKED, { by: 'signin' }])
    expect((await (await createSignedInClient(home, 'user')).post('/me/passkeys/options')).status).toBe(200)
  })
})
