// engine: sqlite
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { hasBrowser } from '../fakes/browser'
import { apiCaller, createTempFolder, PASSWORD, startAtoll } from '../fakes/cli'
import { startOauthProvider } from '../fakes/oauth-provider'
import { waitUntil } from '../wait-until'
import { inspectScreen, openPage, setUpAdmin } from './admin-browser'

setDefaultTimeout(240_000)

const withoutRefusals = (errors: string[]) => errors.filter((each) => !/status of 4\d\d/.test(each))

/** Starts an empty server, signed in as its first administrator. */
async function openServer(env: Record<string, string> = {}) {
  const server = await startAtoll({ at: createTempFolder(), env: { ATOLL_RATE_LIMITS: 'on', ...env } })
  const { page, errors } = await openPage()
  await setUpAdmin(page, server)
  const close = async () => {
    await page.close()
    await server[Symbol.asyncDispose]()
  }
  // A passkey needs a host with a name.
  return { server, page, errors, named: `http://localhost:${server.port}`, [Symbol.asyncDispose]: close }
}

/** Returns a client of a user who signed in by the API. */
async function callAs(url: string, username: string) {
  const { body } = await apiCaller(url)('POST', '/api/signin', { username, password: PASSWORD, authType: 'oauth' })
  return apiCaller(url, { authorization: `Bearer ${body.payload.token}` })
}

async function signOut(page: Page) {
  await page.getByRole('button', { name: 'Account of ada' }).click()
  await page.getByRole('menuitem', { name: 'Sign out' }).click()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
}

async function signInByPassword(page: Page, password = PASSWORD) {
  await page.getByLabel('Username or e-mail address').fill('ada')
  await page.getByRole('textbox', { name: /^Password/ }).fill(password)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
}

describe.skipIf(!hasBrowser)('the sign-in of the admin page', () => {
  test('a user registers a passkey, renames it, signs in with it alone, and removes it', async () => {
    await using own = await openServer()
    const { page, errors, named } = own
    const devtools = await page.context().newCDPSession(page)
    await devtools.send('WebAuthn.enable')
    const { authenticatorId } = await devtools.send('WebAuthn.addVirtualAuthenticator', {
      options: {
        ...{ protocol: 'ctap2', transport: 'internal', hasResidentKey: true, hasUserVerification: true },
        ...{ isUserVerified: true, automaticPresenceSimulation: false },
      },
    })
    const setPresence = (enabled: boolean) =>
      devtools.send('WebAuthn.setAutomaticPresenceSimulation', { authenticatorId, enabled })
    await page.goto(`${named}/admin/account?show=sign-in`)
    await signInByPassword(page)
    await page.getByRole('heading', { name: 'Passkeys' }).waitFor()
    await setPresence(true)
    await page.getByRole('button', { name: 'Add a passkey' }).click()
    await page.getByText('You can sign in with this passkey from now on.').waitFor()
    await page.getByRole('button', { name: 'Rename Chrome on Linux' }).click()
    await page.getByLabel('Name of the passkey').fill('Laptop')
    await page.getByRole('button', { name: 'Rename', exact: true }).click()
    await page.getByText('Laptop', { exact: true }).waitFor()
    await setPresence(false)
    await inspectScreen(page, 'account-passkey')
    await signOut(page)
    await page.getByRole('button', { name: 'Sign in with a passkey' }).waitFor()
    await inspectScreen(page, 'sign-in-passkey')
    await setPresence(true)
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
    await page.getByRole('button', { name: 'Account of ada' }).waitFor()
    await page.goto(`${named}/admin/account?show=sign-in`)
    await page.getByRole('button', { name: 'Remove Laptop' }).click()
    await page.getByRole('button', { name: 'Remove passkey' }).click()
    await page.getByText('A passkey signs you in').waitFor()
    expect(errors).toEqual([])
  })

  test('a user who has forgotten the password chooses another with the code of the mail', async () => {
    await using own = await openServer()
    const { page, errors, server } = own
    const admin = await callAs(server.url, 'ada')
    await admin('POST', '/api/users', { username: 'root', password: PASSWORD, roles: ['admin'] })
    const [ada] = (await admin('GET', '/api/users?username=ada')).body
    const root = await callAs(server.url, 'root')
    await root('PUT', `/api/users/${ada._id}`, { email: 'ada@example.com' })
    await signOut(page)
    await page.getByRole('link', { name: 'Forgotten your password?' }).click()
    await page.getByLabel('E-mail address', { exact: true }).fill('ada@example.com')
    await inspectScreen(page, 'forgotten-password')
    await page.getByRole('button', { name: 'Send the mail' }).click()
    await page.getByLabel('Code from the mail').waitFor()
    await inspectScreen(page, 'reset-password')
    const readCode = async () => {
      for (;;) {
        const [mail] = (await root('GET', '/api/mails?to=ada@example.com')).body
        const code = mail && /^(\d{8})$/m.exec(mail.text ?? '')?.[1]
        if (code) return code
        await Bun.sleep(50)
      }
    }
    const code = await readCode()
    await page.getByLabel('Code from the mail').fill(code)
    await page.getByRole('textbox', { name: 'New password' }).fill('another horse')
    await page.getByRole('button', { name: 'Change the password' }).click()
    await page.getByText('Your password was changed. Sign in with it.').waitFor()
    await signInByPassword(page, 'another horse')
    await page.getByRole('button', { name: 'Account of ada' }).waitFor()
    expect(withoutRefusals(errors)).toEqual([])
  })

  test('the owner of an address whose password a sign-in by e-mail removed chooses another one', async () => {
    await using own = await openServer()
    const { server, page, errors } = own
    const admin = await callAs(server.url, 'ada')
    const metadata = { allowSignup: true, allowEmailSignIn: true }
    expect((await admin('PUT', '/api/configurations/auth-configuration', { metadata })).status).toBe(200)
    // Somebody else signed up with the address of grace.
    const thief = { username: 'grace', email: 'grace@example.com', password: 'eves own secret' }
    expect((await apiCaller(server.url)('POST', '/api/signup', { ...thief, authType: 'oauth' })).status).toBe(201)
    await signOut(page)
    await page.getByRole('button', { name: 'Sign in by e-mail' }).click()
    await page.getByLabel('E-mail address', { exact: true }).fill(thief.email)
    await page.getByRole('button', { name: 'Send the mail' }).click()
    const code = await waitUntil(
      async () => {
        const mails = (await admin('GET', `/api/mails?to=${thief.email}`)).body as { template: string; text?: string }[]
        const sent = mails.filter(({ template }) => template === 'emailSignIn')
        return sent.map(({ text = '' }) => /^(\d{8})$/m.exec(text)?.[1]).find(Boolean) ?? ''
      },
      (found) => found !== '',
    )
    await page.getByLabel('Code from the mail').fill(code)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByText('somebody else could have set the password of').waitFor()
    await inspectScreen(page, 'password-removed')
    expect(errors).toEqual([])
    await page.getByLabel('New password').fill('short')
    await page.getByRole('button', { name: 'Save the password' }).click()
    await page.getByText('The password must have at least 8 characters.').waitFor()
    errors.length = 0
    await page.getByLabel('New password').fill(PASSWORD)
    await page.getByRole('button', { name: 'Save the password' }).click()
    await page.getByRole('button', { name: 'Account of grace' }).waitFor()
    const signIn = (password: string) =>
      apiCaller(server.url)('POST', '/api/signin', { username: 'grace', password, authType: 'oauth' })
    expect([(await signIn(thief.password)).status, (await signIn(PASSWORD)).status]).toEqual([401, 200])
    expect(errors).toEqual([])
  })

  test('a user confirms an address, and undoes its change, by the links of mails once a button is pressed', async () => {
    await using own = await openServer()
    const { page, errors, server } = own
    const admin = await callAs(server.url, 'ada')
    await admin('POST', '/api/users', { username: 'grace', email: 'grace@example.com', password: PASSWORD })
    const grace = await callAs(server.url, 'grace')
    await grace('POST', '/api/me', { email: 'hopper@example.com' })
    const readLink = async (to: string) => {
      for (;;) {
        const [mail] = (await admin('GET', `/api/mails?to=${to}&state=kept`)).body
        const link = /^http.*\/admin\/.*$/m.exec(mail?.text ?? '')?.[0]
        if (link) return new URL(link)
        await Bun.sleep(50)
      }
    }
    const [confirm, undo] = [await readLink('hopper@example.com'), await readLink('grace@example.com')]
    expect([confirm.port, undo.port]).toEqual([new URL(server.url).port, new URL(server.url).port])
    await page.goto(`${server.url}${confirm.pathname}${confirm.search}${confirm.hash}`)
    await page.getByRole('button', { name: 'Confirm address' }).waitFor()
    await inspectScreen(page, 'verify-email')
    await page.getByRole('button', { name: 'Confirm address' }).click()
    await page.getByText('Your e-mail address is confirmed.').waitFor()
    expect((await grace('GET', '/api/me')).body).toMatchObject({ email: 'hopper@example.com', emailVerified: true })
    await page.goto('about:blank')
    await page.goto(`${server.url}${undo.pathname}${undo.search}${undo.hash}`)
    await page.getByRole('button', { name: 'Undo the change' }).waitFor()
    await inspectScreen(page, 'revert-email')
    await page.getByRole('button', { name: 'Undo the change' }).click()
    await page.getByText('Your account has its former e-mail address again').waitFor()
    const [found] = (await admin('GET', '/api/users?username=grace')).body
    expect(found.email).toBe('grace@example.com')
    expect(errors).toEqual([])
  })

  test('a user signs in by the code of a mail, and by the link of another once the button is pressed', async () => {
    await using own = await openServer()
    const { page, errors, server } = own
    const admin = await callAs(server.url, 'ada')
    const grace = { username: 'grace', email: 'grace@example.com', password: PASSWORD }
    await admin('POST', '/api/users', grace)
    await page.goto(`${server.url}/admin/settings/sign-in`)
    await page.getByLabel('Users may sign in by e-mail').check()
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved.').waitFor()
    const emailSignIn = { text: '{{code}} {{token}}' }
    await admin('PUT', '/api/configurations/mail-templates', { metadata: { emailSignIn } })
    const readMail = async (count: number) => {
      for (;;) {
        const mails = (await admin('GET', '/api/mails?to=grace@example.com&state=kept')).body
        if (mails.length === count) return String(mails[0].text).split(' ')
        await Bun.sleep(50)
      }
    }
    const requestMail = async () => {
      await page.getByRole('button', { name: 'Sign in by e-mail' }).click()
      await page.getByLabel('E-mail address', { exact: true }).fill('grace@example.com')
      await page.getByRole('button', { name: 'Send the mail' }).click()
      await page.getByLabel('Code from the mail').waitFor()
    }
    await signOut(page)
    await requestMail()
    await inspectScreen(page, 'email-sign-in')
    const [code = ''] = await readMail(1)
    await page.getByLabel('Code from the mail').fill('0000000')
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByText('The code is wrong or has expired.').waitFor()
    await page.getByLabel('Code from the mail').fill(code)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByRole('button', { name: 'Account of grace' }).click()
    await page.getByRole('menuitem', { name: 'Sign out' }).click()
    await requestMail()
    const [, token = ''] = await readMail(2)
    // A scanner opens the page of the link, too, and uses nothing up.
    for (let n = 0; n < 2; n++) {
      await page.goto(`${server.url}/admin/email-link?token=${token}`)
      await page.getByRole('button', { name: 'Sign in', exact: true }).waitFor()
    }
    await inspectScreen(page, 'email-link')
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByRole('button', { name: 'Account of grace' }).waitFor()
    expect(withoutRefusals(errors)).toEqual([])
  })

  test('a user signs in by a provider, and a link of the account to one can be removed', async () => {
    const provider = await startOauthProvider({ sub: 'ada', email: 'ada@example.com', email_verified: true })
    await using own = await openServer({ ATOLL_ALLOW_PRIVATE_NETWORK: 'on' })
    const { page, errors, server } = own
    const admin = await callAs(server.url, 'ada')
    const { id: clientId, secret: clientSecret } = provider.client
    const corp = { clientId, clientSecret, kind: 'oidc', issuer: provider.issuer }
    await admin('PUT', '/api/configurations/auth-configuration', { metadata: { providers: { corp } } })
    await page.goto(`${server.url}/admin/account?show=sign-in`)
    await page.getByRole('button', { name: 'Link Corp' }).click()
    await page.getByText('You can sign in with Corp from now on.').waitFor()
    await page.getByRole('list', { name: 'Sign-in providers' }).getByText('Corp').waitFor()
    await inspectScreen(page, 'account-provider')
    await signOut(page)
    await inspectScreen(page, 'sign-in-provider')
    await page.getByRole('link', { name: 'Continue with Corp' }).click()
    await page.waitForURL('**/admin/home')
    await page.getByRole('button', { name: 'Account of ada' }).waitFor()
    await page.goto(`${server.url}/admin/account?show=sign-in`)
    await page.getByRole('button', { name: 'Unlink Corp' }).click()
    await page.getByRole('button', { name: 'Unlink', exact: true }).click()
    await page.getByText('No provider is linked yet.').waitFor()
    await page.goto(`${server.url}/admin/link?error=PROVIDER_REFUSED`)
    await page.getByText('The provider did not sign you in.').waitFor()
    expect(errors).toEqual([])
    await provider.stop()
  })

  test('somebody who tries too many passwords is told when the next attempt is possible', async () => {
    await using own = await openServer()
    const { page, errors } = own
    await signOut(page)
    await page.context().clearCookies()
    for (let n = 0; n < 11; n++) {
      const answer = page.waitForResponse('**/api/signin')
      await signInByPassword(page, `wrong ${n}`)
      await answer
    }
    await page.getByText(/There were too many attempts. Try again at \d/).waitFor()
    await inspectScreen(page, 'sign-in-limited')
    expect(withoutRefusals(errors)).toEqual([])
  })
})
