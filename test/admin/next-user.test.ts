// engine: sqlite
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { hasBrowser } from '../fakes/browser'
import { apiCaller, PASSWORD } from '../fakes/cli'
import { openEmpty } from './admin-browser'

setDefaultTimeout(240_000)

async function signIn(page: Page, username: string) {
  await page.getByLabel('Username or e-mail address').fill(username)
  await page.getByRole('textbox', { name: /^Password/ }).fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
}

/** Starts a server with the administrator ada and the user bob. */
async function openWithBob() {
  const own = await openEmpty()
  const { body } = await apiCaller(own.server.url)('POST', '/api/signin', {
    ...{ username: 'ada', password: PASSWORD, authType: 'oauth' },
  })
  const admin = apiCaller(own.server.url, { authorization: `Bearer ${body.payload.token}` })
  const bob = (await admin('POST', '/api/users', { username: 'bob', password: PASSWORD, roles: ['user'] })).body
  return { ...own, admin, bob, ada: body.payload.user }
}

describe.skipIf(!hasBrowser)('the next user of the same browser', () => {
  test('somebody who signs in after the session of another user ended sees none of their drafts', async () => {
    await using own = await openWithBob()
    const { page, server } = own
    await page.goto(`${server.url}/admin/account`)
    await page.getByLabel('First name').fill('Ada the first')
    await page.context().clearCookies()
    await page.reload()
    await signIn(page, 'bob')
    await page.getByRole('button', { name: 'Account of bob' }).waitFor()
    expect(await page.getByLabel('First name').inputValue()).toBe('')
    await page.context().clearCookies()
    await page.reload()
    await signIn(page, 'ada')
    await page.getByRole('button', { name: 'Account of ada' }).waitFor()
    expect(await page.getByLabel('First name').inputValue()).toBe('Ada the first')
  })

  test('another user who signs in over the screen begins anew, and nothing is saved in their name', async () => {
    await using own = await openWithBob()
    const { page, server, admin, bob } = own
    await page.goto(`${server.url}/admin/account`)
    await page.getByLabel('First name').fill('Ada the first')
    await page.context().clearCookies()
    await page.getByRole('button', { name: 'Save' }).first().click()
    await page.getByRole('dialog', { name: 'Your session has ended' }).waitFor()
    await signIn(page, 'bob')
    await page.getByRole('button', { name: 'Account of bob' }).waitFor()
    await page.waitForURL('**/admin/home')
    expect((await admin('GET', `/api/users/${bob._id}`)).body.firstName).toBe('')
  })

  test('a user who signs in after an admin who acted as somebody acts as themselves', async () => {
    await using own = await openWithBob()
    const { page, server, ada } = own
    await page.evaluate(
      (user) => sessionStorage.setItem('atoll-impersonation', JSON.stringify({ user, name: 'ada' })),
      ada._id,
    )
    await page.context().clearCookies()
    await page.goto(`${server.url}/admin/home`)
    await signIn(page, 'bob')
    await page.getByRole('button', { name: 'Account of bob' }).waitFor()
    expect(await page.getByText('You act as').count()).toBe(0)
  })
})
