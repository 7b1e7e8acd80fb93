import { afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { createTestTenant, statusAndCode } from '../../test-tenant'
import { advanceClock, createSignedInClient, MINUTE, resetClock } from '../session-fixtures'
import { createAuthenticator, createPasskeyFixture, registerPasskey, signInWithPasskey } from './passkey-fixtures'

afterEach(resetClock)

let home: Awaited<ReturnType<typeof createPasskeyFixture>>
beforeAll(async () => {
  home = await createPasskeyFixture()
})

describe('passkeys of a user', () => {
  test('POST /api/me/passkeys returns the passkey and GET lists it, without its credential ID', async () => {
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

  test('a credential can be registered only once (409 PASSKEY_EXISTS), and a user has at most twenty passkeys', async () => {
    const { person, device } = home
    expect(statusAndCode(await registerPasskey(person, device))).toEqual([409, 'PASSKEY_EXISTS'])
    const [{ tenant, users }, otherUser] = [home, await createSignedInClient(home, 'other')]
    const duplicate = await registerPasskey(otherUser, device)
    expect(statusAndCode(duplicate)).toEqual([409, 'PASSKEY_EXISTS'])
    const options = (await otherUser.post('/me/passkeys/options')).body
    const insert = `insert into passkeys (_id, "user", credential, public_key, counter, host, name, transports, backed_up, created)
      values (?, ?, ?, '', 0, 'x', 'x', '[]', 0, 0)`
    await tenant.write(async (tx) => {
      for (let n = 0; n < 20; n++) await tx.query(insert, [`p${n}`, users.other, `c${n}`])
    })
    const full = [409, 'TOO_MANY_PASSKEYS']
    expect(statusAndCode(await otherUser.post('/me/passkeys/options'))).toEqual(full)
    const late = await otherUser.post('/me/passkeys', { credential: createAuthenticator(home.origin).create(options) })
    expect(statusAndCode(late)).toEqual(full)
  })

  test('passkeys are accessible to their owner only; API tokens and impersonating admins get 403, and other users 404', async () => {
    const { as, anonymous, users, made } = home
    const path = `/me/passkeys/${made.body._id}`
    const impersonation = { 'x-impersonate-user': users.user }
    for (const caller of [as('user'), as('admin').with(impersonation)])
      for (const answer of [
        await caller.get('/me/passkeys'),
        await caller.post('/me/passkeys/options'),
        await caller.put(path, { name: 'x' }),
        await caller.delete(path),
      ])
        expect(statusAndCode(answer)).toEqual([403, 'FORBIDDEN'])
    expect(statusAndCode(await anonymous.get('/me/passkeys'))).toEqual([401, 'UNAUTHENTICATED'])
    expect(statusAndCode(await anonymous.post('/me/passkeys/options'))).toEqual([401, 'UNAUTHENTICATED'])
    const otherUser = await createSignedInClient(home, 'editor')
    for (const answer of [await otherUser.put(path, { name: 'x' }), await otherUser.delete(path)])
      expect(statusAndCode(answer)).toEqual([404, 'PASSKEY_NOT_FOUND'])
    expect((await otherUser.get('/me/passkeys')).body).toEqual([])
  })

  test('a passkey is unknown at another tenant, and a challenge of one tenant is invalid at another', async () => {
    const otherTenant = await createTestTenant()
    const same = await createSignedInClient(otherTenant, 'user')
    expect((await same.get('/me/passkeys')).body).toEqual([])
    expect(statusAndCode(await same.delete(`/me/passkeys/${home.made.body._id}`))).toEqual([404, 'PASSKEY_NOT_FOUND'])
    const options = (await otherTenant.anonymous.post('/signin/passkey/options')).body
    const credential = home.device.get({ ...options, rpId: `${otherTenant.id}.test` }, { origin: otherTenant.origin })
    expect(statusAndCode(await otherTenant.anonymous.post('/signin/passkey', { credential }))).toEqual([
      401,
      'INVALID_PASSKEY',
    ])
    // A challenge of one tenant is invalid at the other.
    const homeOptions = (await home.anonymous.post('/signin/passkey/options')).body
    const replayed = await otherTenant.anonymous.post('/signin/passkey', { credential: home.device.get(homeOptions) })
    expect(statusAndCode(replayed)).toEqual([401, 'INVALID_CHALLENGE'])
  })

  test('a passkey is named Passkey by default and can be renamed to a valid name of at most 100 characters', async () => {
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

  test('a deleted passkey cannot sign in, and deleting the last way to sign in gets 409 LAST_SIGN_IN_METHOD', async () => {
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
    const [remaining, deletedDevice, remainingDevice] =
      answers[0]!.status === 200 ? [second, one, two] : [first, two, one]
    expect(statusAndCode(await remove(remaining))).toEqual([409, 'LAST_SIGN_IN_METHOD'])
    expect(statusAndCode(await signInWithPasskey(home.anonymous, deletedDevice))).toEqual([401, 'INVALID_PASSKEY'])
    expect((await signInWithPasskey(home.anonymous, remainingDevice)).status).toBe(200)
    await tenant.write((tx) => tx.query('update users set password = ? where _id = ?', ['x', users.admin]))
    expect((await remove(remaining)).body).toEqual({ success: true })
    expect(statusAndCode(await remove(remaining))).toEqual([404, 'PASSKEY_NOT_FOUND'])
    await tenant.write((tx) => tx.query('update users set password = null where _id = ?', [users.admin]))
  })

  test('DELETE /api/users/:id/passkeys lets admins delete all passkeys of a user; others get 403 or 404', async () => {
    const { as, users, person, device } = await createPasskeyFixture()
    const path = `/users/${users.user}/passkeys`
    expect(statusAndCode(await as('user').delete(path))).toEqual([403, 'FORBIDDEN'])
    const fromOtherTenant = await home.as('admin').delete(path)
    expect(statusAndCode(fromOtherTenant)).toEqual([404, 'USER_NOT_FOUND'])
    expect((await as('admin').delete(path)).body).toEqual({ success: true })
    expect((await person.get('/me/passkeys')).body).toEqual([])
    expect(statusAndCode(await signInWithPasskey(person, device))).toEqual([401, 'INVALID_PASSKEY'])
    const events = (await as('admin').get('/events?eventName=user-updated&sort=-created')).body
    const changes = events.map(({ metadata, user }: { metadata: object; user: string }) => ({ ...metadata, by: user }))
    const changed = { user: users.user, username: 'user', roles: ['user'], changed: ['passkeys'] }
    expect(changes).toEqual([
      { ...changed, by: users.admin },
      { ...changed, by: users.user },
    ])
  })
})

describe('registration of a passkey', () => {
  const PROOF_REQUIRED = [403, 'PROOF_REQUIRED']

  test('POST /api/me/passkeys/options returns the WebAuthn options and excludes only the passkeys of the caller', async () => {
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
    const registered = { id: device.id, type: 'public-key', transports: ['internal', 'hybrid'] }
    expect(body.excludeCredentials).toContainEqual(registered)
    const otherOptions = (await (await createSignedInClient(home, 'editor')).post('/me/passkeys/options')).body
    expect(otherOptions.excludeCredentials).toEqual([])
    expect(otherOptions.challenge).not.toBe(body.challenge)
  })

  test('starting a passkey registration needs a sign-in within ten minutes or the current password', async () => {
    const { anonymous, as } = await createTestTenant()
    const password = 'correct horse'
    const signedUp = await anonymous.post('/signup', { username: 'ada', password })
    const ada = anonymous.with({ cookie: signedUp.headers.get('set-cookie')!.split(';')[0]! })
    const start = (proof?: object) => ada.post('/me/passkeys/options', proof)
    expect((await start()).status).toBe(200)
    expect(statusAndCode(await start({ currentPassword: 'wrong horse' }))).toEqual([403, 'INVALID_CREDENTIALS'])
    advanceClock(11 * MINUTE)
    for (const proof of [undefined, {}, { code: '123456' }]) {
      const refused = await start(proof)
      expect([...statusAndCode(refused), refused.body.details]).toEqual([...PROOF_REQUIRED, { by: 'currentPassword' }])
    }
    expect((await start({ currentPassword: password })).status).toBe(200)
    expect((await as('admin').get('/events?eventName=user-updated')).body).toEqual([])
  })

  test('a user without a password must sign in again before a passkey registration', async () => {
    const old = await createSignedInClient(home, 'user')
    advanceClock(11 * MINUTE)
    const refused = await old.post('/me/passkeys/options', { currentPassword: 'anything' })
    expect([...statusAndCode(refused), refused.body.details]).toEqual([...PROOF_REQUIRED, { by: 'signin' }])
    expect((await (await createSignedInClient(home, 'user')).post('/me/passkeys/options')).status).toBe(200)
  })
})
