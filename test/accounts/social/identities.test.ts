import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { config } from '../../../src/config'
import { TIME } from '../../expectations'
import { startOauthProvider } from '../../fakes/oauth-provider'
import { createTestTenant, statusAndCode } from '../../test-tenant'
import { createAuthenticator, registerPasskey } from '../passkeys/passkey-fixtures'
import { advanceClock, createSignedInClient, MINUTE, resetClock } from '../session-fixtures'
import { createSocialFixture } from './social-fixtures'

const ada = { sub: '4711', email: 'ada@lovelace.test', email_verified: true, preferred_username: 'ada' }
let at: Awaited<ReturnType<typeof startOauthProvider>>
let home: Awaited<ReturnType<typeof createSocialFixture>>
beforeAll(async () => {
  config.ATOLL_ALLOW_PRIVATE_NETWORK = 'on'
  at = await startOauthProvider(ada)
  home = await createSocialFixture(at)
})
beforeEach(() => Object.assign(at.own, { person: ada, flaw: {} }))
afterEach(resetClock)
afterAll(async () => {
  config.ATOLL_ALLOW_PRIVATE_NETWORK = 'off'
  await at.stop()
})

const IDENTITY_NOT_FOUND = [404, 'IDENTITY_NOT_FOUND']
const LAST_SIGN_IN_METHOD = [409, 'LAST_SIGN_IN_METHOD']

let userCount = 0
/** Signs a new user in by this provider. */
async function createProviderUser(name: string) {
  const sub = `${5_000 + ++userCount}`
  const person = { sub, email: `p${userCount}@x.test`, email_verified: true, preferred_username: `p${userCount}` }
  at.own.person = person
  const window = home.browser()
  await window.signIn(name)
  const remove = (id: string) => window.visit(`${home.origin}/api/me/identities/${id}`, 'DELETE')
  const identities = async () => (await window.get('/me/identities?sort=provider')).body
  /** Links the current account at a provider to this user. */
  const link = async (provider: string, more: Record<string, string> = {}) => {
    const begun = await window.post('/me/identities', { provider, ...more })
    if (begun.status !== 200) return begun
    const there = await fetch(begun.body.url, { redirect: 'manual' })
    return window.visit(there.headers.get('location')!)
  }
  return { window, person, remove, identities, link, _id: (await window.get('/me')).body._id as string }
}

describe('identities of a user at providers', () => {
  test('GET /api/me/identities returns provider, address and times of use, but not the subject ID of the provider', async () => {
    const { window, person, identities } = await createProviderUser('corp')
    const [first] = await identities()
    expect(first).toEqual({
      ...{ _id: expect.stringMatching(/^[0-9a-f]{32}$/), provider: 'corp', email: person.email },
      ...{ created: TIME, lastUsedAt: first.created },
    })
    advanceClock(5 * MINUTE)
    at.own.person = { ...person, email: 'new@x.test' }
    await home.browser().signIn('corp')
    const { body, headers } = await window.get('/me/identities?count=true')
    expect(body).toEqual([{ ...first, email: 'new@x.test', lastUsedAt: TIME }])
    expect(body[0].lastUsedAt > first.lastUsedAt).toBeTrue()
    expect(headers.get('x-total-count')).toBe('1')
  })

  test('DELETE /api/me/identities/:id removes an identity unless it is the last way to sign in (409 LAST_SIGN_IN_METHOD)', async () => {
    const { window, identities, remove, _id } = await createProviderUser('corp')
    await window.signIn('github')
    const [corp, github] = await identities()
    expect([corp.provider, github.provider]).toEqual(['corp', 'github'])
    // One of two simultaneous deletions is rejected.
    const answers = await Promise.all([remove(corp._id), remove(github._id)])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409])
    const [remaining] = await identities()
    expect(statusAndCode(await remove(remaining._id))).toEqual(LAST_SIGN_IN_METHOD)
    expect(await identities()).toEqual([remaining])
    const person = await createSignedInClient({ ...home, users: { ...home.users, user: _id } }, 'user')
    const { _id: passkey } = (await registerPasskey(person, createAuthenticator(home.origin))).body
    expect((await remove(remaining._id)).body).toEqual({ success: true })
    expect(statusAndCode(await remove(remaining._id))).toEqual(IDENTITY_NOT_FOUND)
    expect(statusAndCode(await person.delete(`/me/passkeys/${passkey}`))).toEqual(LAST_SIGN_IN_METHOD)
    await home.tenant.write((tx) => tx.query('update users set password = ? where _id = ?', ['x', _id]))
    expect((await person.delete(`/me/passkeys/${passkey}`)).status).toBe(200)
    const events = (await home.as('admin').get(`/events?eventName=user-updated&user=${_id}`)).body
    const changedFields = events.map(({ metadata }: { metadata: { changed: string[] } }) => metadata.changed[0])
    // One identity was linked by its address, and two were removed.
    expect(changedFields.sort()).toEqual(['identities', 'identities', 'identities', 'passkeys', 'passkeys'])
  })

  test('an identity of a provider that is no longer configured does not count as a way to sign in', async () => {
    const { window, identities, remove } = await createProviderUser('corp')
    await window.signIn('github')
    const [corp, github] = await identities()
    const all = (await home.as('admin').get('/configurations/auth-configuration')).body.metadata.providers
    const set = (providers: unknown) =>
      home.as('admin').put('/configurations/auth-configuration', { metadata: { providers } })
    const { corp: corpOnly } = all
    await set({ corp: corpOnly })
    expect(statusAndCode(await remove(corp._id))).toEqual(LAST_SIGN_IN_METHOD)
    expect((await remove(github._id)).status).toBe(200)
    const credentials = { clientId: at.client.id, clientSecret: at.client.secret, baseUrl: at.issuer }
    expect((await set({ corp: corpOnly, google: credentials, github: credentials })).status).toBe(200)
  })

  test('identities are accessible to their user only; API tokens get 403, and other users and tenants 404', async () => {
    const { identities } = await createProviderUser('corp')
    const [{ _id }] = await identities()
    for (const answer of [
      await home.as('user').get('/me/identities'),
      await home.as('user').delete(`/me/identities/${_id}`),
      await home.as('user').post('/me/identities', { provider: 'corp' }),
    ])
      expect(statusAndCode(answer)).toEqual([403, 'FORBIDDEN'])
    expect(statusAndCode(await home.anonymous.get('/me/identities'))).toEqual([401, 'UNAUTHENTICATED'])
    const otherUser = await createProviderUser('corp')
    expect(statusAndCode(await otherUser.remove(_id))).toEqual(IDENTITY_NOT_FOUND)
    expect((await otherUser.identities()).map((one: { _id: string }) => one._id)).not.toContain(_id)
    const otherTenant = await createTestTenant()
    const person = await createSignedInClient(otherTenant, 'user')
    expect((await person.get('/me/identities')).body).toEqual([])
    expect(statusAndCode(await person.delete(`/me/identities/${_id}`))).toEqual(IDENTITY_NOT_FOUND)
  })
})

describe('linking a further identity', () => {
  const IDENTITY_EXISTS = [409, 'IDENTITY_EXISTS']

  test('a signed-in user can link a further provider under any address and sign in by it', async () => {
    const { window, link, identities, _id, person } = await createProviderUser('corp')
    at.own.person = { ...person, sub: 'elsewhere', email: 'private@x.test', email_verified: false }
    const linked = await link('google')
    expect([linked.status, linked.location]).toEqual([302, '/'])
    expect(await identities()).toMatchObject([{ provider: 'corp' }, { provider: 'google', email: 'private@x.test' }])
    expect((await window.get('/me')).body._id).toBe(_id)
    const again = home.browser()
    await again.signIn('google')
    expect((await again.get('/me')).body._id).toBe(_id)
    // Linking again changes nothing, and the website learns the provider.
    const website = await link('google', { returnUrl: 'https://app.example.com/me', state: 'x' })
    expect(website.location).toBe('https://app.example.com/me?linked=google&state=x')
    expect(await identities()).toHaveLength(2)
  })

  test('linking an identity of another user gets 409 IDENTITY_EXISTS', async () => {
    const owner = await createProviderUser('corp')
    const thief = await createProviderUser('github')
    at.own.person = owner.person
    expect(statusAndCode(await thief.link('corp'))).toEqual(IDENTITY_EXISTS)
    const response = await thief.link('corp', { returnUrl: 'https://app.example.com/' })
    expect(response.location).toBe('https://app.example.com/?error=IDENTITY_EXISTS')
    expect(await thief.identities()).toHaveLength(1)
    expect(await owner.identities()).toHaveLength(1)
  })

  test('a user has at most twenty identities; linking another one gets 409 TOO_MANY_IDENTITIES', async () => {
    const { link, identities, _id } = await createProviderUser('corp')
    const insert = 'insert into identities (provider, subject, "user", created) values (?, ?, ?, 0)'
    await home.tenant.write(async (tx) => {
      for (let n = 1; n < 20; n++) await tx.query(insert, ['old', `${_id} ${n}`, _id])
    })
    expect((await identities()).at(-1)).toMatchObject({ provider: 'old', email: null, lastUsedAt: null })
    expect(statusAndCode(await link('google'))).toEqual([409, 'TOO_MANY_IDENTITIES'])
    expect(await identities()).toHaveLength(20)
  })

  test('the callback of a link gets 400 INVALID_STATE in another browser and after logout', async () => {
    const { window, identities, person } = await createProviderUser('corp')
    at.own.person = { ...person, sub: 'another' }
    const begin = async () => {
      const begun = await window.post('/me/identities', { provider: 'google' })
      expect([begun.status, begun.headers.get('cache-control')]).toEqual([200, 'no-store'])
      return (await fetch(begun.body.url, { redirect: 'manual' })).headers.get('location')!
    }
    const STALE = [400, 'INVALID_STATE']
    expect(statusAndCode(await home.browser().visit(await begin()))).toEqual(STALE)
    const back = await begin()
    await window.post('/logout')
    expect(statusAndCode(await window.visit(back))).toEqual(STALE)
    at.own.person = person
    await window.signIn('corp')
    expect(await identities()).toHaveLength(1)
  })

  test('linking requires a recent sign-in, a configured provider and an allowed returnUrl', async () => {
    const { link, window } = await createProviderUser('corp')
    expect(statusAndCode(await link('nobody'))).toEqual([400, 'PROVIDER_NOT_CONFIGURED'])
    expect(statusAndCode(await link('google', { returnUrl: 'https://evil.test/' }))).toEqual([400, 'INVALID_INPUT'])
    advanceClock(11 * MINUTE)
    const response = await link('google')
    expect([...statusAndCode(response), response.body.details]).toEqual([403, 'PROOF_REQUIRED', { by: 'signin' }])
    expect([...window.jar.keys()].filter((name) => name.endsWith('_auth'))).toEqual([])
  })
})
