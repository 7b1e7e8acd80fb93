import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { config } from '../../../src/config'
import { house, refusal } from '../../house'
import { provider } from '../../outside/provider'
import { authenticator, registered, signedIn } from '../passkeys/kit'
import { backToNow, later, MINUTE } from '../people'
import { hotel } from './kit'

const ada = { sub: '4711', email: 'ada@lovelace.test', email_verified: true, preferred_username: 'ada' }
let at: Awaited<ReturnType<typeof provider>>
let home: Awaited<ReturnType<typeof hotel>>
beforeAll(async () => {
  config.ATOLL_ALLOW_PRIVATE_NETWORK = 'on'
  at = await provider(ada)
  home = await hotel(at)
})
beforeEach(() => Object.assign(at.own, { person: ada, flaw: {} }))
afterEach(backToNow)
afterAll(async () => {
  config.ATOLL_ALLOW_PRIVATE_NETWORK = 'off'
  await at.stop()
})

const GONE = [404, 'IDENTITY_NOT_FOUND']
const LAST = [409, 'LAST_SIGN_IN_METHOD']
const TIME = expect.stringMatching(/^\d{4}-.*Z$/)

let people = 0
/** Somebody whom nobody knew before, signed in by this provider. */
async function somebody(name: string) {
  const sub = `${5_000 + ++people}`
  const person = { sub, email: `p${people}@x.test`, email_verified: true, preferred_username: `p${people}` }
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
    const { window, person, identities } = await somebody('corp')
    const [first] = await identities()
    expect(first).toEqual({
      ...{ _id: expect.stringMatching(/^[0-9a-f]{32}$/), provider: 'corp', email: person.email },
      ...{ created: TIME, lastUsedAt: first.created },
    })
    later(5 * MINUTE)
    at.own.person = { ...person, email: 'new@x.test' }
    await home.browser().signIn('corp')
    const { body, headers } = await window.get('/me/identities?count=true')
    expect(body).toEqual([{ ...first, email: 'new@x.test', lastUsedAt: TIME }])
    expect(body[0].lastUsedAt > first.lastUsedAt).toBeTrue()
    expect(headers.get('x-total-count')).toBe('1')
  })

  test('is taken away, but for the last way to sign in: a password, a passkey or another identity', async () => {
    const { window, identities, remove, _id } = await somebody('corp')
    await window.signIn('github')
    const [corp, github] = await identities()
    expect([corp.provider, github.provider]).toEqual(['corp', 'github'])
    // Of two at once, one stays.
    const answers = await Promise.all([remove(corp._id), remove(github._id)])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409])
    const [left] = await identities()
    expect(refusal(await remove(left._id))).toEqual(LAST)
    expect(await identities()).toEqual([left])
    const person = await signedIn({ ...home, users: { ...home.users, user: _id } }, 'user')
    const { _id: passkey } = (await registered(person, authenticator(home.origin))).body
    expect((await remove(left._id)).body).toEqual({ success: true })
    expect(refusal(await remove(left._id))).toEqual(GONE)
    expect(refusal(await person.delete(`/me/passkeys/${passkey}`))).toEqual(LAST)
    await home.tenant.write((tx) => tx.ask('update users set password = ? where _id = ?', ['x', _id]))
    expect((await person.delete(`/me/passkeys/${passkey}`)).status).toBe(200)
    const events = (await home.as('admin').get(`/events?eventName=user-updated&user=${_id}`)).body
    const told = events.map(({ metadata }: { metadata: { changed: string[] } }) => metadata.changed[0])
    expect(told.sort()).toEqual(['identities', 'identities', 'passkeys', 'passkeys'])
  })

  test('of a provider that is not set up any more signs nobody in, so the other is the last', async () => {
    const { window, identities, remove } = await somebody('corp')
    await window.signIn('github')
    const [corp, github] = await identities()
    const all = (await home.as('admin').get('/configurations/auth-configuration')).body.metadata.providers
    const set = (providers: unknown) =>
      home.as('admin').put('/configurations/auth-configuration', { metadata: { providers } })
    const { corp: only } = all
    await set({ corp: only })
    expect(refusal(await remove(corp._id))).toEqual(LAST)
    expect((await remove(github._id)).status).toBe(200)
    const known = { clientId: at.client.id, clientSecret: at.client.secret, baseUrl: at.issuer }
    expect((await set({ corp: only, google: known, github: known })).status).toBe(200)
  })

  test('is its user’s own: not an API token’s, another’s, or another tenant’s', async () => {
    const { identities } = await somebody('corp')
    const [{ _id }] = await identities()
    for (const answer of [
      await home.as('user').get('/me/identities'),
      await home.as('user').delete(`/me/identities/${_id}`),
      await home.as('user').post('/me/identities', { provider: 'corp' }),
    ])
      expect(refusal(answer)).toEqual([403, 'FORBIDDEN'])
    expect(refusal(await home.stranger.get('/me/identities'))).toEqual([401, 'UNAUTHENTICATED'])
    const other = await somebody('corp')
    expect(refusal(await other.remove(_id))).toEqual(GONE)
    expect((await other.identities()).map((one: { _id: string }) => one._id)).not.toContain(_id)
    const abroad = await house()
    const person = await signedIn(abroad, 'user')
    expect((await person.get('/me/identities')).body).toEqual([])
    expect(refusal(await person.delete(`/me/identities/${_id}`))).toEqual(GONE)
  })
})

describe('who is signed in', () => {
  const taken = [409, 'IDENTITY_EXISTS']

  test('may be known by a further provider, whatever their address is there', async () => {
    const { window, link, identities, _id, person } = await somebody('corp')
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
    const owner = await somebody('corp')
    const thief = await somebody('github')
    at.own.person = owner.person
    expect(refusal(await thief.link('corp'))).toEqual(taken)
    const told = await thief.link('corp', { returnUrl: 'https://app.example.com/' })
    expect(told.location).toBe('https://app.example.com/?error=IDENTITY_EXISTS')
    expect(await thief.identities()).toHaveLength(1)
    expect(await owner.identities()).toHaveLength(1)
  })

  test('is known twenty times at most; of what was linked long ago less is told', async () => {
    const { link, identities, _id } = await somebody('corp')
    const insert = 'insert into identities (provider, subject, "user", created) values (?, ?, ?, 0)'
    await home.tenant.write(async (tx) => {
      for (let n = 1; n < 20; n++) await tx.ask(insert, ['old', `${_id} ${n}`, _id])
    })
    expect((await identities()).at(-1)).toMatchObject({ provider: 'old', email: null, lastUsedAt: null })
    expect(refusal(await link('google'))).toEqual([409, 'TOO_MANY_IDENTITIES'])
    expect(await identities()).toHaveLength(20)
  })

  test('ends it in the browser that began it, while they are signed in', async () => {
    const { window, identities, person } = await somebody('corp')
    at.own.person = { ...person, sub: 'another' }
    const begin = async () => {
      const begun = await window.post('/me/identities', { provider: 'google' })
      expect([begun.status, begun.headers.get('cache-control')]).toEqual([200, 'no-store'])
      return (await fetch(begun.body.url, { redirect: 'manual' })).headers.get('location')!
    }
    const STALE = [400, 'INVALID_STATE']
    expect(refusal(await home.browser().visit(await begin()))).toEqual(STALE)
    const back = await begin()
    await window.post('/logout')
    expect(refusal(await window.visit(back))).toEqual(STALE)
    at.own.person = person
    await window.signIn('corp')
    expect(await identities()).toHaveLength(1)
  })

  test('proves it, and names a provider that there is', async () => {
    const { link, window } = await somebody('corp')
    expect(refusal(await link('nobody'))).toEqual([400, 'PROVIDER_NOT_CONFIGURED'])
    expect(refusal(await link('google', { returnUrl: 'https://evil.test/' }))).toEqual([400, 'INVALID_INPUT'])
    later(11 * MINUTE)
    const asked = await link('google')
    expect([...refusal(asked), asked.body.details]).toEqual([403, 'PROOF_REQUIRED', { by: 'signin' }])
    expect([...window.jar.keys()].filter((name) => name.endsWith('_auth'))).toEqual([])
  })
})
