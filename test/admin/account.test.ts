// engine: sqlite
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { codeAt, decodeBase32, stepAt } from '../../src/accounts/totp/codes'
import { extractCode } from '../accounts/mail/mail-fixtures'
import { hasBrowser } from '../fakes/browser'
import { apiCaller, createTempFolder, PASSWORD, startAtoll } from '../fakes/cli'
import { inspectScreen, openPage, setUpAdmin } from './admin-browser'

setDefaultTimeout(240_000)

const OPERATOR_TOKEN = 'operator-token-of-a-test-0123456789'
const ELEVEN_MINUTES_MS = 11 * 60_000

/** Starts an empty server whose clock can be moved, signed in as its first administrator. */
async function openAccount() {
  const env = { ATOLL_TEST_CLOCK: 'on', ATOLL_OPERATOR_TOKEN: OPERATOR_TOKEN }
  const server = await startAtoll({ at: createTempFolder(), env })
  const { page, errors } = await openPage()
  await setUpAdmin(page, server)
  const operate = apiCaller(server.url, { authorization: `Bearer ${OPERATOR_TOKEN}` })
  let time = Date.now()
  const advanceClock = async (ms: number) => {
    time += ms
    const { status } = await operate('POST', '/operator/clock', { now: new Date(time).toISOString() })
    expect(status).toBe(200)
  }
  const close = async () => {
    await page.close()
    await server[Symbol.asyncDispose]()
  }
  return { server, page, errors, advanceClock, now: () => time, [Symbol.asyncDispose]: close }
}

const withoutRefusals = (errors: string[]) => errors.filter((each) => !/status of 4\d\d/.test(each))

describe.skipIf(!hasBrowser)('the own account on the admin page', () => {
  test('a user changes profile, address and password, and confirms who they are where the server asks', async () => {
    await using own = await openAccount()
    const { page, errors, server, advanceClock } = own
    const call = apiCaller(server.url)
    await call('POST', '/api/signin', { username: 'ada', password: PASSWORD, authType: 'oauth' })
    await page.getByRole('button', { name: 'Account of ada' }).click()
    await page.getByRole('menuitem', { name: 'Your account' }).click()
    await page.waitForURL('**/admin/account')
    await page.getByText('You have none, so you cannot').waitFor()
    await inspectScreen(page, 'account')
    await page.getByLabel('First name').fill('Ada')
    await page.getByRole('button', { name: 'Save profile' }).click()
    await page.getByText('Saved.').waitFor()
    await page.getByRole('tab', { name: 'Sessions' }).click()
    await page.getByText('this one').waitFor()
    await page.getByRole('button', { name: 'End all others' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'End sessions' }).click()
    await page.getByText('Your other sessions have ended.').waitFor()
    expect(errors).toEqual([])

    await advanceClock(ELEVEN_MINUTES_MS)
    await page.getByRole('tab', { name: 'Profile' }).click()
    await page.getByLabel('New address').fill('ada@example.com')
    await page.getByRole('button', { name: 'Change address' }).click()
    const dialog = page.getByRole('dialog', { name: 'Confirm that it is you' })
    await dialog.getByRole('textbox', { name: 'Current password' }).fill('wrong horse')
    await dialog.getByRole('button', { name: 'Confirm' }).click()
    await dialog.getByText('The current password is incorrect.').waitFor()
    await inspectScreen(page, 'proof')
    await dialog.getByRole('textbox', { name: 'Current password' }).fill(PASSWORD)
    await dialog.getByRole('button', { name: 'Confirm' }).click()
    await page.getByText('not confirmed').waitFor()

    await page.getByRole('tab', { name: 'Sign-in' }).click()
    await page.getByRole('textbox', { name: 'New password' }).fill('another horse')
    await page.getByRole('button', { name: 'Change password' }).click()
    await page.getByText('currentPassword is required.').waitFor()
    await page.getByRole('textbox', { name: 'Current password' }).fill(PASSWORD)
    await page.getByRole('button', { name: 'Change password' }).click()
    await page.getByText('Your password was changed.').waitFor()
    const signIn = await call('POST', '/api/signin', {
      username: 'ada@example.com',
      password: 'another horse',
      authType: 'oauth',
    })
    expect(signIn.status).toBe(200)
    const asAda = apiCaller(server.url, { authorization: `Bearer ${signIn.body.payload.token}` })
    expect((await asAda('GET', '/api/me')).body).toMatchObject({ firstName: 'Ada', emailVerified: false })
    // Without a mail server, mails are kept, and admins read them.
    await page.waitForTimeout(500)
    const [mail] = (await asAda('GET', '/api/mails?to=ada@example.com')).body
    const code = extractCode(mail.text)
    await page.getByRole('tab', { name: 'Profile' }).click()
    await page.getByLabel('Code from the mail').fill(code)
    await page.getByRole('button', { name: 'Confirm address' }).click()
    await page.getByText('Your e-mail address is confirmed.').waitFor()
    expect((await asAda('GET', '/api/me')).body.emailVerified).toBe(true)
    expect(withoutRefusals(errors)).toEqual([])
  })

  test('a user creates an API token with scopes, sees it once, and deletes it, and a request of a screen makes one, too', async () => {
    await using own = await openAccount()
    const { page, errors, server, advanceClock } = own
    await page.goto(`${server.url}/admin/account?show=tokens`)
    await page.getByRole('button', { name: 'Create an API token' }).click()
    await page.getByRole('textbox', { name: 'Name', exact: false }).last().fill('reports')
    await page.getByRole('combobox', { name: 'Scopes' }).fill('entities:read')
    await page.getByRole('option', { name: 'entities:read' }).click()
    await page.keyboard.press('Escape')
    await page.getByRole('combobox', { name: 'Expires' }).click()
    await page.getByRole('option', { name: 'in 90 days' }).click()
    await page.getByRole('button', { name: 'Create token' }).click()
    const token = await page.getByText(/^atl_[a-f0-9]{64}$/).textContent()
    await inspectScreen(page, 'account-token')
    const call = apiCaller(server.url, { 'x-api-key': token! })
    expect((await call('GET', '/api/blueprints')).status).toBe(403)
    await page.getByRole('button', { name: 'Delete reports' }).click()
    await page.getByRole('button', { name: 'Delete token' }).click()
    await page.getByText('You have none.').waitFor()
    expect((await call('GET', '/api/blueprints')).status).toBe(401)

    await advanceClock(ELEVEN_MINUTES_MS)
    await page.goto(`${server.url}/admin/people/users`)
    await page.getByRole('button', { name: 'API', exact: true }).click()
    await page.getByRole('button', { name: 'Create an API token' }).click()
    await page.getByRole('textbox', { name: 'Current password' }).fill(PASSWORD)
    await page.getByRole('button', { name: 'Confirm' }).click()
    await page
      .getByText(/x-api-key: atl_[a-f0-9]{64}/i)
      .first()
      .waitFor()
    expect(withoutRefusals(errors)).toEqual([])
  })

  test('a user sets up a second factor, keeps the recovery codes, signs in by both, and turns it off', async () => {
    await using own = await openAccount()
    const { page, errors, server, advanceClock, now } = own
    await page.goto(`${server.url}/admin/account?show=sign-in`)
    await page.getByRole('button', { name: 'Set up a second factor' }).click()
    await page.getByRole('img', { name: 'QR code of the second factor' }).waitFor()
    await inspectScreen(page, 'second-factor-setup')
    const groups = await page.getByText(/^([A-Z2-7]{4} ?){8}$/).textContent()
    const secret = decodeBase32(groups!.replaceAll(' ', ''))
    const code = () => codeAt(secret, stepAt(now()))
    await page.getByLabel('Enter the six digits').fill(code())
    await page.getByRole('button', { name: 'Turn on' }).click()
    await page.getByRole('list', { name: 'Recovery codes' }).waitFor()
    const codes = await page.getByRole('list', { name: 'Recovery codes' }).getByRole('listitem').allTextContents()
    expect(codes).toHaveLength(10)
    await inspectScreen(page, 'recovery-codes')
    const download = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Download' }).click()
    expect((await download).suggestedFilename()).toBe('recovery-codes.txt')
    await page.getByRole('button', { name: 'I have kept them' }).click()
    await page.getByText('10 recovery codes are left.').waitFor()

    const signIn = async () => {
      await page.getByRole('button', { name: 'Account of ada' }).click()
      await page.getByRole('menuitem', { name: 'Sign out' }).click()
      await page.getByLabel('Username or e-mail address').fill('ada')
      await page.getByRole('textbox', { name: /^Password/ }).fill(PASSWORD)
      await page.getByRole('button', { name: 'Sign in', exact: true }).click()
      await page.getByLabel('Second-factor code').waitFor()
    }
    await signIn()
    await inspectScreen(page, 'sign-in-second-factor')
    await page.getByLabel('Second-factor code').fill('000000')
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByText('The code is incorrect').waitFor()
    await advanceClock(60_000)
    await page.getByLabel('Second-factor code').fill(code())
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByRole('button', { name: 'Account of ada' }).waitFor()
    await signIn()
    await page.getByRole('button', { name: 'Use a recovery code' }).click()
    await page.getByLabel('Recovery code').fill(codes[0]!)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
    await page.getByRole('button', { name: 'Account of ada' }).waitFor()

    await page.goto(`${server.url}/admin/account?show=sign-in`)
    await page.getByText('9 recovery codes are left.').waitFor()
    await page.getByRole('button', { name: 'Turn off' }).click()
    await page.getByLabel('Code from your app').fill(codes[1]!)
    await page.getByRole('button', { name: 'Turn off' }).click()
    await page.getByText('The second factor is off.').waitFor()
    expect(withoutRefusals(errors)).toEqual([])
  })

  test('an invited user accepts an invitation and makes the workspace the active one', async () => {
    await using own = await openAccount()
    const { page, errors, server } = own
    const call = apiCaller(server.url)
    const signUp = async (username: string) => {
      const { body } = await call('POST', '/api/signup', { username, password: PASSWORD, authType: 'oauth' })
      return apiCaller(server.url, { authorization: `Bearer ${body.payload.token}` })
    }
    const asGrace = await signUp('grace')
    const { body: office } = await asGrace('POST', '/api/workspaces', { name: 'Office' })
    await page.goto(`${server.url}/admin/people/users`)
    await page.getByRole('cell', { name: 'ada', exact: true }).click()
    await page.getByLabel('E-mail address').fill('ada@example.com')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved.').waitFor()
    await asGrace('POST', `/api/workspaces/${office._id}/invites`, { email: 'ada@example.com' })
    await page.goto(`${server.url}/admin/account`)
    await page.getByRole('button', { name: 'Accept' }).click()
    // The answered invitation leaves, which moves the tabs.
    await page.getByRole('button', { name: 'Accept' }).waitFor({ state: 'detached' })
    await page.getByRole('tab', { name: 'Workspaces' }).click()
    await page.getByRole('button', { name: 'Activate' }).click()
    await page.getByText('active', { exact: true }).waitFor()
    expect((await asGrace('GET', `/api/workspaces/${office._id}`)).body.members).toHaveLength(2)
    expect(errors).toEqual([])
  })
})
