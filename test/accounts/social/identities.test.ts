import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { config } from '../../../src/config'
import { startOauthProvider } from '../../fakes/oauth-provider'
import { createTestTenant, statusAndCode } from '../../test-tenant'
import { createAuthenticator, createSignedInClient, registerPasskey } from '../passkeys/passkey-fixtures'
import { advanceClock, MINUTE, resetClock } from '../session-fixtures'
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
const TIME = expect.stringMatching(/^\d{4}-.*Z$/)

let userCount = 0
/** Somebody whom nobody knew before, signed in by this provider. */
async function createProviderUser(name: string) {
  const sub = `${5_000 + ++userCount}`
  const person = { sub, email: `p${userCount}@x.test`, email_verified: true, preferred_username: `p${userCount}` }
  at.own.person = person
  const window = home.browser()
  await window.signIn(name)
  const remove = (id: string) => window.visit(`${home.origin}/api/me/identities/${id}`, 'DELETE')
  const identities = async () => (await window.get('/me/identities?sort=provider')).body
  /** To a provider and back, as this person there, being signed in here. */
  const link = async (provider: string, more: Record<string, string> = {}) => {
    const begun = await window.post('/me/identities', { provider, ...more })
    if (begun.status !== 200) return begun
    const there = await fetch(begun.body.url, { redirect: 'manual' })
    return window.visit(there.headers.get('location')!)
  }
  return { window, person, remove, identities, link, _id: (await window.get('/me')).body._id as string }
}

describe('an identity', () => {
  test('is shown to its user, with when it was used, and without what the provider calls them', async () => {
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

  test('is taken away, but for the last way to sign in: a password, a passkey or another identity', async () => {
    const { window, identities, remove, _id } = await createProviderUser('corp')
    await window.signIn('github')
    const [corp, github] = await identities()
    expect([corp.provider, github.provider]).toEqual(['corp', 'github'])
    // Of two at once, one stays.
    const answers = await Promise.all([remove(corp._id), remove(github._id)])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409])
    const [left] = await identities()
    expect(statusAndCode(await remove(left._id))).toEqual(LAST_SIGN_IN_METHOD)
    expect(await identities()).toEqual([left])
    const person = await createSignedInClient({ ...home, users: { ...home.users, user: _id } }, 'user')
    const { _id: passkey } = (await registerPasskey(person, createAuthenticator(home.origin))).body
    expect((await remove(left._id)).body).toEqual({ success: true })
    expect(statusAndCode(await remove(left._id))).toEqual(IDENTITY_NOT_FOUND)
    expect(statusAndCode(await person.delete(`/me/passkeys/${passkey}`))).toEqual(LAST_SIGN_IN_METHOD)
    await home.tenant.write((tx) => tx.query('update users set password = ? where _id = ?', ['x', _id]))
    expect((await person.delete(`/me/passkeys/${passkey}`)).status).toBe(200)
    const events = (await home.as('admin').get(`/events?eventName=user-updated&user=${_id}`)).body
    const told = events.map(({ metadata }: { metadata: { changed: string[] } }) => metadata.changed[0])
    expect(told.sort()).toEqual(['identities', 'identities', 'passkeys', 'passkeys'])
  })

  test('of a provider that is not set up any more signs nobody in, so the other is the last', async () => {
    const { window, identities, remove } = await createProviderUser('corp')
    await window.signIn('github')
    const [corp, github] = await identities()
    const all = (await home.as('admin').get('/configurations/auth-configuration')).body.metadata.providers
    const set = (providers: unknown) =>
      home.as('admin').put('/configurations/auth-configuration', { metadata: { providers } })
    const { corp: only } = all
    await set({ corp: only })
    expect(statusAndCode(await remove(corp._id))).toEqual(LAST_SIGN_IN_METHOD)
    expect((await remove(github._id)).status).toBe(200)
    const known = { clientId: at.client.id, clientSecret: at.client.secret, baseUrl: at.issuer }
    expect((await set({ corp: only, google: known, github: known })).status).toBe(200)
  })

  test('is its user’s own: not an API token’s, another’s, or another tenant’s', async () => {
    const { identities } = await createProviderUser('corp')
    const [{ _id }] = await identities()
    for (const answer of [
      await home.as('user').get('/me/identities'),
      await home.as('user').delete(`/me/identities/${_id}`),
      await home.as('user').post('/me/identities', { provider: 'corp' }),
    ])
      expect(statusAndCode(answer)).toEqual([403, 'FORBIDDEN'])
    expect(statusAndCode(await home.stranger.get('/me/identities'))).toEqual([401, 'UNAUTHENTICATED'])
    const other = await createProviderUser('corp')
    expect(statusAndCode(await other.remove(_id))).toEqual(IDENTITY_NOT_FOUND)
    expect((await other.identities()).map((one: { _id: string }) => one._id)).not.toContain(_id)
    const abroad = await createTestTenant()
    const person = await createSignedInClient(abroad, 'user')
    expect((await person.get('/me/identities')).body).toEqual([])
    expect(statusAndCode(await person.delete(`/me/identities/${_id}`))).toEqual(IDENTITY_NOT_FOUND)
  })
})

describe('who is signed in', () => {
  const taken = [409, 'IDENTITY_EXISTS']

  test('may be known by a further provider, whatever their address is there', async () => {
    const { window, link, identities, _id, person } = await createProviderUser('corp')
    at.own.person = { ...person, sub: 'elsewhere', email: 'private@x.test', email_verified: false }
    const linked = await link('google')
    expect([linked.status, linked.location]).toEqual([302, '/'])
    expect(await identities()).toMatchObject([{ provider: 'corp' }, { provider: 'google', email: 'private@x.test' }])
    expect((await window.get('/me')).body._id).toBe(_id)
    const again = home.browser()
    await again.signIn('google')
    expect((await again.get('/me')).body._id).toBe(_id)
    // Twice is once, and a website is told.
    const website = await link('google', { returnUrl: 'https://app.example.com/me', state: 'x' })
    expect(website.location).toBe('https://app.example.com/me?linked=google&state=x')
    expect(await identities()).toHaveLength(2)
  })

  test('never gets what is another’s', async () => {
    const owner = await createProviderUser('corp')
    const thief = await createProviderUser('github')
    at.own.person = owner.person
    expect(statusAndCode(await thief.link('corp'))).toEqual(taken)
    const told = await thief.link('corp', { returnUrl: 'https://app.example.com/' })
    expect(told.location).toBe('https://app.example.com/?error=IDENTITY_EXISTS')
    expect(await thief.identities()).toHaveLength(1)
    expect(await owner.identities()).toHaveLength(1)
  })

  test('is known twenty times at most; of what was linked long ago less is told', async () => {
    const { link, identities, _id } = await createProviderUser('corp')
    const insert = 'insert into identities (provider, subject, "user", created) values (?, ?, ?, 0)'
    await home.tenant.write(async (tx) => {
      for (let n = 1; n < 20; n++) await tx.query(insert, ['old', `${_id} ${n}`, _id])
    })
    expect((await identities()).at(-1)).toMatchObject({ provider: 'old', email: null, lastUsedAt: null })
    expect(statusAndCode(await link('google'))).toEqual([409, 'TOO_MANY_IDENTITIES'])
    expect(await identities()).toHaveLength(20)
  })

  test('ends it in the browser that began it, while they are signed in', async () => {
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

  test('proves it, and names a provider that there is', async () => {
    const { link, window } = await createProviderUser('corp')
    expect(statusAndCode(await link('nobody'))).toEqual([400, 'PROVIDER_NOT_CONFIGURED'])
    expect(statusAndCode(await link('google', { returnUrl: 'https://evil.test/' }))).toEqual([400, 'INVALID_INPUT'])
    advanceClock(11 * MINUTE)
    const asked = await link('google')
    expect([...statusAndCode(asked), asked.body.details]).toEqual([403, 'PROOF_REQUIRED', { by: 'signin' }])
    expect([...window.jar.keys()].filter((name) => name.endsWith('_auth'))).toEqual([])
  })
})
