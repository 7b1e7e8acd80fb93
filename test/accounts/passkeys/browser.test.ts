import { expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { listen } from '../../../src/gateway'
import { house } from '../../house'
import { browser, hasBrowser } from '../../outside/browser'
import { password } from '../mail/kit'

/** Runs a script in the page; what it gives is JSON. */
// biome-ignore lint/suspicious/noExplicitAny: an answer can be anything, and expectations say what it is
const inside = (page: Page, script: string) => page.evaluate(script) as Promise<any>

/** Asks from within the page, as its scripts do. */
function ask(page: Page, tenant: string, method: string, path: string, body?: unknown) {
  const json = body === undefined ? {} : { 'content-type': 'application/json' }
  const init = { method, headers: { tenant, ...json }, body: body === undefined ? undefined : JSON.stringify(body) }
  return inside(
    page,
    `fetch('/api${path}', ${JSON.stringify(init)})
      .then(async (response) => ({ status: response.status, body: await response.json() }))`,
  )
}

/** What the browser makes of options, as JSON; the name of its error where it refuses. */
const create = (page: Page, options: object) =>
  inside(
    page,
    `navigator.credentials
      .create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(${JSON.stringify(options)}) })
      .then((made) => made.toJSON(), (error) => error.name)`,
  )
const get = (page: Page, options: object) =>
  inside(
    page,
    `navigator.credentials
      .get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(${JSON.stringify(options)}) })
      .then((got) => got.toJSON(), (error) => error.name)`,
  )

/** A page of our own server in a browser with an authenticator, which asks nobody and counts its uses. */
async function opened(url: string) {
  const chrome = await browser()
  const page = await (await chrome.newContext()).newPage()
  // A page of ours that may fetch: JSON that is opened as a page may not.
  await page.goto(`${url}/openapi/start.js`)
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
    recognises: (isUserVerified: boolean) =>
      devtools.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified }),
    /** Puts back a copy of the passkey that was made before. */
    restore: async (credential: Awaited<ReturnType<typeof credentials>>[number]) => {
      await devtools.send('WebAuthn.clearCredentials', { authenticatorId })
      await devtools.send('WebAuthn.addCredential', { authenticatorId, credential })
    },
    [Symbol.asyncDispose]: () => chrome.close(),
  }
}

test.skipIf(!hasBrowser)('in a real browser somebody makes a passkey, and signs in by it', async () => {
  const { id: tenant, tenant: store } = await house()
  const abroad = (await house()).id
  const server = listen('127.0.0.1', 0)
  try {
    await using own = await opened(`http://localhost:${server.port}`)
    const { page, credentials, recognises, restore } = own
    const post = (path: string, body?: unknown) => ask(page, tenant, 'POST', path, body)
    const me = () => ask(page, tenant, 'GET', '/me')
    const signIn = async (body: object = {}, at = tenant) => {
      const options = (await ask(page, at, 'POST', '/signin/passkey/options', body)).body
      const credential = await get(page, options)
      return ask(page, at, 'POST', '/signin/passkey', { credential, ...body })
    }

    const { user } = (await post('/signup', { username: 'ada', password })).body.payload
    const options = (await post('/me/passkeys/options')).body
    const made = await post('/me/passkeys', { name: 'Laptop', credential: await create(page, options) })
    expect([made.status, made.body]).toEqual([
      201,
      expect.objectContaining({ name: 'Laptop', host: 'localhost', transports: ['internal'], backedUp: false }),
    ])
    const [kept] = await credentials()
    expect(kept).toMatchObject({ isResidentCredential: true, rpId: 'localhost' })
    expect(Buffer.from(kept!.userHandle!, 'base64').toString()).toBe(user._id)
    // The authenticator makes no second one for the same person.
    expect(await create(page, (await post('/me/passkeys/options')).body)).toBe('InvalidStateError')

    await post('/logout')
    expect((await me()).status).toBe(401)
    expect((await signIn()).status).toBe(200)
    expect((await me()).body).toMatchObject({ _id: user._id, username: 'ada' })

    // The page is the same one, but another tenant does not know the passkey.
    expect(await signIn({}, abroad)).toMatchObject({ status: 401, body: { code: 'INVALID_PASSKEY' } })

    await store.write((tx) => tx.ask('insert into totp ("user", confirmed, step) values (?, 1, 0)', [user._id]))
    await post('/logout')
    const asked = await post('/signin', { username: 'ada', password })
    expect(asked).toMatchObject({ status: 401, body: { code: 'SECOND_FACTOR_REQUIRED' } })
    expect((await signIn({ challenge: asked.body.details.challenge })).status).toBe(200)
    expect((await me()).status).toBe(200)

    // A copy that does not know how often the passkey was used meanwhile.
    await restore(kept!)
    expect(await signIn()).toMatchObject({ status: 401, body: { code: 'INVALID_PASSKEY' } })

    // Who is not recognised by the authenticator gets nothing to send.
    await recognises(false)
    expect(await get(page, (await post('/signin/passkey/options')).body)).toBe('NotAllowedError')
  } finally {
    await server.stop(true)
  }
})
