import { expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { listen } from '../../../src/gateway'
import { hasBrowser, launchBrowser } from '../../fakes/browser'
import { createTestTenant } from '../../test-tenant'
import { password } from '../mail/mail-fixtures'

/** Runs a script in the page and returns its JSON result. */
// biome-ignore lint/suspicious/noExplicitAny: an answer can be anything, and expectations say what it is
const evaluateIn = (page: Page, script: string) => page.evaluate(script) as Promise<any>

/** Sends a request from within the page, as its scripts do. */
function fetchIn(page: Page, tenant: string, method: string, path: string, body?: unknown) {
  const json = body === undefined ? {} : { 'content-type': 'application/json' }
  const init = { method, headers: { tenant, ...json }, body: body === undefined ? undefined : JSON.stringify(body) }
  return evaluateIn(
    page,
    `fetch('/api${path}', ${JSON.stringify(init)})
      .then(async (response) => ({ status: response.status, body: await response.json() }))`,
  )
}

/** Creates a credential in the browser; returns it as JSON, or the name of the error. */
const createCredential = (page: Page, options: object) =>
  evaluateIn(
    page,
    `navigator.credentials
      .create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(${JSON.stringify(options)}) })
      .then((made) => made.toJSON(), (error) => error.name)`,
  )
const getCredential = (page: Page, options: object) =>
  evaluateIn(
    page,
    `navigator.credentials
      .get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(${JSON.stringify(options)}) })
      .then((got) => got.toJSON(), (error) => error.name)`,
  )

/** Opens a page of the server in a browser whose virtual authenticator confirms by itself and counts its uses. */
async function openPage(url: string) {
  const chrome = await launchBrowser()
  // The CSP of JSON responses forbids fetch.
  const page = await (await chrome.newContext({ bypassCSP: true })).newPage()
  await page.goto(`${url}/health`)
  const devtools = await page.context().newCDPSession(page)
  await devtools.send('WebAuthn.enable')
  const { authenticatorId } = await devtools.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      ...{ protocol: 'ctap2', transport: 'internal', hasResidentKey: true, hasUserVerification: true },
      ...{ isUserVerified: true, automaticPresenceSimulation: true },
    },
  })
  const credentials = async () => (await devtools.send('WebAuthn.getCredentials', { authenticatorId })).credentials
  return {
    page,
    credentials,
    setUserVerified: (isUserVerified: boolean) =>
      devtools.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified }),
    /** Restores an earlier copy of the passkey. */
    restore: async (credential: Awaited<ReturnType<typeof credentials>>[number]) => {
      await devtools.send('WebAuthn.clearCredentials', { authenticatorId })
      await devtools.send('WebAuthn.addCredential', { authenticatorId, credential })
    },
    [Symbol.asyncDispose]: () => chrome.close(),
  }
}

test.skipIf(!hasBrowser)(
  'a real browser registers a passkey, signs in by it alone and as second factor, and cannot use an outdated copy',
  async () => {
    const { id: tenant, tenant: store } = await createTestTenant()
    const otherTenant = (await createTestTenant()).id
    const server = listen('127.0.0.1', 0)
    try {
      await using own = await openPage(`http://localhost:${server.port}`)
      const { page, credentials, setUserVerified, restore } = own
      const post = (path: string, body?: unknown) => fetchIn(page, tenant, 'POST', path, body)
      const me = () => fetchIn(page, tenant, 'GET', '/me')
      const signIn = async (body: object = {}, at = tenant) => {
        const options = (await fetchIn(page, at, 'POST', '/signin/passkey/options', body)).body
        const credential = await getCredential(page, options)
        return fetchIn(page, at, 'POST', '/signin/passkey', { credential, ...body })
      }

      const { user } = (await post('/signup', { username: 'ada', password })).body.payload
      const options = (await post('/me/passkeys/options')).body
      const registration = await post('/me/passkeys', {
        name: 'Laptop',
        credential: await createCredential(page, options),
      })
      expect([registration.status, registration.body]).toEqual([
        201,
        expect.objectContaining({ name: 'Laptop', host: 'localhost', transports: ['internal'], backedUp: false }),
      ])
      const [storedCredential] = await credentials()
      expect(storedCredential).toMatchObject({ isResidentCredential: true, rpId: 'localhost' })
      expect(Buffer.from(storedCredential!.userHandle!, 'base64').toString()).toBe(user._id)
      // The authenticator creates no second passkey for the same user.
      expect(await createCredential(page, (await post('/me/passkeys/options')).body)).toBe('InvalidStateError')

      await post('/logout')
      expect((await me()).status).toBe(401)
      expect((await signIn()).status).toBe(200)
      expect((await me()).body).toMatchObject({ _id: user._id, username: 'ada' })

      // Another tenant does not know the passkey, even on the same page.
      expect(await signIn({}, otherTenant)).toMatchObject({ status: 401, body: { code: 'INVALID_PASSKEY' } })

      await store.write((tx) => tx.query('insert into totp ("user", confirmed, step) values (?, 1, 0)', [user._id]))
      await post('/logout')
      const passwordStep = await post('/signin', { username: 'ada', password })
      expect(passwordStep).toMatchObject({ status: 401, body: { code: 'SECOND_FACTOR_REQUIRED' } })
      expect((await signIn({ challenge: passwordStep.body.details.challenge })).status).toBe(200)
      expect((await me()).status).toBe(200)

      // The copy has an outdated counter.
      await restore(storedCredential!)
      expect(await signIn()).toMatchObject({ status: 401, body: { code: 'INVALID_PASSKEY' } })

      // The authenticator returns no credential without user verification.
      await setUserVerified(false)
      expect(await getCredential(page, (await post('/signin/passkey/options')).body)).toBe('NotAllowedError')
    } finally {
      await server.stop(true)
    }
  },
)
