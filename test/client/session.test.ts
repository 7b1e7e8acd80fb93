// engine: sqlite
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { AtollError, createClient, type Options, type SignedIn, type TokenStorage } from '../../client/src/index'
import { codeAt, decodeBase32, stepAt } from '../../src/accounts/totp/codes'
import { hasBrowser } from '../fakes/browser'
import { PASSWORD } from '../fakes/cli'
import { startOauthProvider } from '../fakes/oauth-provider'
import { errorOf } from '../rejections'
import { bundleForBrowser, openProgram } from './client-page'
import { type ClientServer, startClientServer, TENANT } from './client-server'

setDefaultTimeout(120_000)

let server: ClientServer
beforeAll(async () => {
  server = await startClientServer({ env: { ATOLL_ALLOW_PRIVATE_NETWORK: 'on' } })
})
afterAll(async () => void (await server?.[Symbol.asyncDispose]()))

const GRACE = { username: 'grace', password: PASSWORD }

/** A storage that answers later, as that of React Native does. */
function createAsyncStorage() {
  const items = new Map<string, string>()
  const storage: TokenStorage = {
    getItem: async (key) => Bun.sleep(1).then(() => items.get(key) ?? null),
    setItem: async (key, value) => Bun.sleep(1).then(() => void items.set(key, value)),
    removeItem: async (key) => Bun.sleep(1).then(() => void items.delete(key)),
  }
  /** Changes what is stored of the session. */
  const edit = (change: object) => {
    for (const [key, text] of items) items.set(key, JSON.stringify({ ...JSON.parse(text), ...change }))
  }
  return { storage, items, edit }
}

/** Creates a client that notes its requests. */
function createRecorder(options: Partial<Options> = {}) {
  const requests: string[] = []
  const kept = createAsyncStorage()
  const record = async (input: string, init: RequestInit) => {
    requests.push(`${init.method} ${new URL(input).pathname}`)
    return fetch(input, init)
  }
  const client = createClient({ url: server.url, tenant: TENANT, storage: kept.storage, fetch: record, ...options })
  const count = (request: string) => requests.filter((one) => one === request).length
  return { client, requests, count, ...kept }
}

const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'none',
    (error) => (error instanceof AtollError ? `${error.status} ${error.code}` : String(error)),
  )
const REFRESH = 'POST /api/token/refresh'

describe('a session of tokens', () => {
  test('a user signs in, is who they are in another client with the same storage, and signs out of both', async () => {
    const { client, storage, items } = createRecorder()
    const notified: (string | undefined)[] = []
    const stop = client.onSession((session) => notified.push(session?.user.username))
    const { user, workspace } = await client.signIn(GRACE)
    expect([user.username, workspace]).toEqual(['grace', null])
    const other = createClient({ url: server.url, tenant: TENANT, storage })
    expect((await other.me()).username).toBe('grace')
    await client.signOut()
    expect([items.size, notified]).toEqual([0, ['grace', undefined]])
    expect(await codeOf(other.me())).toBe('401 UNAUTHENTICATED')
    stop()
    await client.signIn(GRACE)
    expect(notified).toHaveLength(2)
  })

  test('twenty requests at once with an expired token refresh it once, and all succeed', async () => {
    const { client, edit, count } = createRecorder()
    await client.signIn(GRACE)
    edit({ expires: 0 })
    const answers = await Promise.all(Array.from({ length: 20 }, () => client.me()))
    expect(answers.map(({ username }) => username)).toEqual(Array(20).fill('grace'))
    expect(count(REFRESH)).toBe(1)
  })

  test('a token that the server refuses before its time is refreshed, and the request is repeated once', async () => {
    const { client, edit, count } = createRecorder()
    await client.signIn(GRACE)
    edit({ token: 'x.y.z' })
    expect(await Promise.all([client.me(), client.me()])).toHaveLength(2)
    expect(count(REFRESH)).toBe(1)
  })

  test('a session that has ended on the server ends in the client, and its listeners hear it', async () => {
    const { client, edit, items, count } = createRecorder()
    const notified: (SignedIn | null)[] = []
    await client.signIn(GRACE)
    client.onSession((session) => notified.push(session))
    edit({ token: 'x.y.z', refreshToken: 'nothing' })
    expect(await codeOf(client.me())).toBe('401 UNAUTHENTICATED')
    expect([items.size, notified, count(REFRESH)]).toEqual([0, [null], 1])
    expect(await codeOf(client.me())).toBe('401 UNAUTHENTICATED')
    expect([notified.length, count(REFRESH)]).toEqual([1, 1])
  })

  test('a session outlives a server that cannot be reached while it is refreshed', async () => {
    let isDown = false
    const unreliable = (input: string, init: RequestInit) =>
      isDown ? Promise.reject(new TypeError('down')) : fetch(input, init)
    const { client, edit, items } = createRecorder({ fetch: unreliable })
    await client.signIn(GRACE)
    edit({ expires: 0 })
    isDown = true
    expect((await errorOf(client.me())).message).toContain('down')
    isDown = false
    expect([items.size, (await client.me()).username]).toEqual([1, 'grace'])
  })

  test('a wrong code does not refresh the session, and nothing is sent twice', async () => {
    const { client, count } = createRecorder()
    await client.signIn(GRACE)
    expect(await codeOf(client.totp.confirm('000000'))).not.toBe('none')
    expect([count(REFRESH), count('POST /api/me/totp/confirm')]).toEqual([0, 1])
  })

  test('refresh() returns who is signed in with a new token, or undefined', async () => {
    const { client, items } = createRecorder()
    expect(await client.refresh()).toBeUndefined()
    await client.signIn(GRACE)
    const [before] = [...items.values()]
    expect((await client.refresh())?.user.username).toBe('grace')
    expect([...items.values()][0]).not.toBe(before)
    expect((await client.me()).username).toBe('grace')
  })

  test('an aborted request does not abort the refresh that others wait for', async () => {
    const { client, edit } = createRecorder()
    await client.signIn(GRACE)
    edit({ expires: 0 })
    const aborted = client.me({ signal: AbortSignal.abort() })
    const [other, error] = await Promise.all([client.me(), errorOf(aborted)])
    expect(other.username).toBe('grace')
    expect(error.message).toContain('abort')
  })

  test('signOut() forgets the session although the server cannot be reached', async () => {
    const { client, items } = createRecorder({
      fetch: (input, init) => (input.endsWith('/logout') ? Promise.reject(new TypeError('down')) : fetch(input, init)),
    })
    await client.signIn(GRACE)
    expect((await errorOf(client.signOut())).message).toContain('down')
    expect(items.size).toBe(0)
  })

  test('a user with a second factor signs in by a code that secondFactor returns, or by the challenge of the error', async () => {
    const { client } = createRecorder()
    const account = { username: 'careful', password: PASSWORD }
    await client.signUp(account)
    const { secret } = await client.totp.start()
    const codeOfStep = (step: number) => codeAt(decodeBase32(secret), stepAt(Date.now()) + step)
    // Each code counts once, and those of the neighbouring steps count as well.
    const { recoveryCodes } = await client.totp.confirm(codeOfStep(-1))
    await client.signOut()
    const { user } = await client.signIn(account, { secondFactor: async () => codeOfStep(0) })
    expect(user.username).toBe('careful')
    await client.signOut()
    const error = await client.signIn(account).catch((error) => error)
    expect(error.code).toBe('SECOND_FACTOR_REQUIRED')
    await client.signIn({ challenge: error.details.challenge, code: recoveryCodes[0]! })
    expect((await client.totp.status()).recoveryCodes).toBe(recoveryCodes.length - 1)
  })

  test('a storage with something else in it counts as no session', async () => {
    const { client, items } = createRecorder()
    await client.signIn(GRACE)
    for (const key of items.keys()) items.set(key, '{')
    expect(await codeOf(client.me())).toBe('401 UNAUTHENTICATED')
  })

  test('clients of two tenants do not share a session in one storage', async () => {
    const { client, storage } = createRecorder()
    await client.signIn(GRACE)
    const foreign = createClient({ url: server.url, storage })
    // The only tenant answers where none is named.
    expect(await codeOf(foreign.me())).toBe('401 UNAUTHENTICATED')
  })
})

const PROGRAM = `
import { createClient } from './atoll'
const options = { url: location.origin, tenant: '${TENANT}' }
const token = createClient({ ...options })
const cookie = createClient({ ...options, mode: 'cookie' })
const notified: (string | undefined)[] = []
token.onSession((session) => notified.push(session?.user.username))
cookie.onSession((session) => notified.push(session?.user.username ?? 'nobody'))
Object.assign(globalThis, { token, cookie, notified, createClient, options })
`

describe.skipIf(!hasBrowser)('a session in a browser', () => {
  const openPage = async () =>
    openProgram(server.url, await bundleForBrowser({ 'atoll.ts': server.atoll, 'program.ts': PROGRAM }))
  const grace = JSON.stringify(GRACE)
  const expire = `for (const key of Object.keys(localStorage)) localStorage.setItem(key, JSON.stringify({ ...JSON.parse(localStorage.getItem(key)), expires: 0 }))`

  test('two tabs with an expired token refresh it once together, and both stay signed in', async () => {
    await using opened = await openPage()
    const { page, open, context } = opened
    await page.evaluate(`token.signIn(${grace}).then(() => {})`)
    const other = await open()
    let refreshes = 0
    context.on('request', (request) => {
      if (request.url().endsWith('/api/token/refresh')) refreshes++
    })
    await page.evaluate(expire)
    const me = 'Promise.all([token.me(), token.me()]).then(([me]) => me.username)'
    expect(await Promise.all([page.evaluate<string>(me), other.evaluate<string>(me)])).toEqual(['grace', 'grace'])
    expect(refreshes).toBe(1)
  })

  test('a tab that holds the lock and sleeps does not keep another one from refreshing', async () => {
    await using opened = await openPage()
    const { page, open } = opened
    await page.evaluate(`token.signIn(${grace}).then(() => {})`)
    const name = await page.evaluate<string>('Object.keys(localStorage)[0]')
    const sleeping = await open()
    await sleeping.evaluate(
      `new Promise((held) => navigator.locks.request(${JSON.stringify(name)}, () => { held(); return new Promise(() => {}) }))`,
    )
    await page.evaluate(expire)
    expect(await page.evaluate<string>('token.me().then((me) => me.username)')).toBe('grace')
  })

  test('a sign-out in one tab reaches the other one, and a refreshed token does not', async () => {
    await using opened = await openPage()
    const { page, open } = opened
    const other = await open()
    await page.evaluate(`token.signIn(${grace}).then(() => {})`)
    await page.evaluate('token.refresh().then(() => {})')
    await page.evaluate('token.signOut()')
    await other.waitForFunction('notified.length > 1')
    expect(await other.evaluate<string>('JSON.stringify(notified)')).toBe('["grace",null]')
  })

  test.each(['token', 'cookie'])(
    'a user signs in by a provider in %s mode, and the page completes it',
    async (mode) => {
      const person = { sub: mode, email: `${mode}@example.com`, email_verified: true, name: 'Ada Lovelace' }
      const provider = await startOauthProvider(person)
      using _ = { [Symbol.dispose]: () => provider.stop() }
      await using opened = await openPage()
      const { page, origin } = opened
      const { id: clientId, secret: clientSecret } = provider.client
      const corp = { clientId, clientSecret, kind: 'oidc', issuer: provider.issuer }
      const metadata = { providers: { corp }, allowedReturnHosts: [new URL(origin).host] }
      expect((await server.call('PUT', '/api/configurations/auth-configuration', { metadata })).status).toBe(200)
      expect(await page.evaluate<string[]>('token.providers.list()')).toEqual(['corp'])
      await page.evaluate(`token.providers.open('corp', { returnUrl: location.origin + '/program/' })`)
      await page.waitForURL(/\/program\/\?rt=/)
      // The page of the test is not served after a redirect, only when it is opened.
      await page.goto(page.url())
      const complete = `${mode}.providers.complete(new URL(location.href).searchParams.get('rt')).then(({ user }) => user.email)`
      expect(await page.evaluate<string>(complete)).toBe(person.email)
      expect(await page.evaluate<string>(`${mode}.me().then((me) => me.fullName)`)).toBe('Ada Lovelace')
      expect(await page.evaluate<number>(`${mode}.providers.linked().then((all) => all.length)`)).toBe(1)
    },
  )

  test('scripts see no token in cookie mode, where a user signs in, renews the session and signs out', async () => {
    await using opened = await openPage()
    const { page } = opened
    await page.evaluate(`cookie.signIn(${grace}).then(() => {})`)
    const visible = 'document.cookie + JSON.stringify(localStorage)'
    expect(await page.evaluate<string>(visible)).toBe('{}')
    expect(await page.evaluate<string>('cookie.me().then((me) => me.username)')).toBe('grace')
    expect(await page.evaluate<string>('cookie.refresh().then(({ user }) => user.username)')).toBe('grace')
    await page.evaluate('cookie.signOut()')
    const refused = 'cookie.me().then(() => "none", (error) => error.code)'
    expect(await page.evaluate<string>(refused)).toBe('UNAUTHENTICATED')
    expect(await page.evaluate<string>('JSON.stringify(notified)')).toBe('["grace","grace","nobody"]')
  })
})
