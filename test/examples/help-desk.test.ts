// engine: sqlite
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { extractCode } from '../accounts/mail/mail-fixtures'
import { inspectScreen } from '../admin/admin-browser'
import { hasBrowser, launchBrowser } from '../fakes/browser'
import { apiCaller, PASSWORD, type RunningAtoll, signIn, startAtoll } from '../fakes/cli'
import { type OpenaiServer, startOpenai } from '../fakes/openai-server'
import { makePng } from '../files/pictures'
import { waitUntil } from '../wait-until'
import { copyHelpDesk, runPackage, TENANT } from './help-desk-files'

setDefaultTimeout(120_000)

const ANSWER = 'Dear Ada, please switch it off and on again. Kind regards'

let models: OpenaiServer
let server: RunningAtoll
let browser: Browser
let call: ReturnType<typeof apiCaller>
const errors: string[] = []
beforeAll(async () => {
  if (!hasBrowser) return
  models = await startOpenai({ text: ANSWER, pieces: 20, pace: 100 })
  const desk = await copyHelpDesk({ ATOLL_ALLOW_PRIVATE_NETWORK: 'on' }, async (folder) => {
    const path = join(folder, 'definitions/connections/Models.json')
    const connection = await Bun.file(path).json()
    connection.metadata.apiUrl = models.url
    await Bun.write(path, JSON.stringify(connection))
  })
  await runPackage(desk.folder, 'typescript/bin/tsc')
  await runPackage(desk.folder, 'vite/bin/vite.js', 'build')
  await desk.run('site', 'deploy', 'dist', '--spa', '--tenant', TENANT)
  server = await startAtoll(desk.options)
  call = apiCaller(server.url, await signIn(server.url, TENANT))
  browser = await launchBrowser()
})
afterAll(async () => {
  await browser?.close()
  await server?.end('SIGKILL')
  await models?.stop()
})

/** Opens the site in a browser of its own. */
async function openSite() {
  const context = await browser.newContext({ locale: 'en' })
  context.setDefaultTimeout(20_000)
  const page = await context.newPage()
  page.on('pageerror', (error) => errors.push(error.message))
  await page.goto(server.url)
  return page
}

async function signInTo(page: Page, username: string) {
  await page.getByLabel('Username').fill(username)
  await page.getByLabel('Password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign in' }).click()
}

async function createAccount(page: Page, username: string, name: string) {
  await page.getByRole('button', { name: 'I am new here' }).click()
  await page.getByLabel('Your name').fill(name)
  await page.getByLabel('E-mail address').fill(`${username}@example.com`)
  await page.getByLabel('Username').fill(username)
  await page.getByLabel('Password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Create account' }).click()
}

async function signUpAt(page: Page, username: string, name: string, company: string) {
  await createAccount(page, username, name)
  await page.getByLabel('Name of the company').fill(company)
  await page.getByRole('button', { name: 'Add company' }).click()
  await page.getByText('There are no open tickets.').waitFor()
}

async function createTicket(page: Page, subject: string) {
  await page.getByRole('link', { name: 'New ticket' }).click()
  await page.getByLabel('Subject').fill(subject)
  await page.getByLabel('What happened?').fill('There is smoke.')
  const picture = { name: 'smoke.png', mimeType: 'image/png', buffer: makePng(800, 600) }
  await page.getByLabel('Attachments').setInputFiles(picture)
  await page.getByRole('button', { name: 'Send' }).click()
}

test.skipIf(!hasBrowser)(
  'a customer opens a ticket with a picture, and support drafts an answer by the agent and comments live',
  async () => {
    const customer = await openSite()
    await inspectScreen(customer, 'help-desk-sign-in')
    await signUpAt(customer, 'ada', 'Ada Lovelace', 'Engines')
    await createTicket(customer, 'The printer is on fire')
    const picture = customer.getByRole('img', { name: 'smoke.png' })
    await picture.waitFor()
    await customer.waitForFunction('document.querySelector("img")?.naturalWidth > 0')
    expect(await picture.getAttribute('src')).toContain('thumb=400x400')
    expect(await customer.getByRole('button', { name: 'Draft an answer' }).count()).toBe(0)

    const workspaces: { _id: string; name: string }[] = (await call('GET', '/api/workspaces/all')).body
    const engines = workspaces.find(({ name }) => name === 'Engines')!
    const grace = { username: 'grace', password: PASSWORD, fullName: 'Grace Hopper', roles: ['user', 'support'] }
    const { _id: userId } = (await call('POST', '/api/users', grace)).body
    const added = await call('POST', `/api/workspaces/${engines._id}/members`, { userId, roles: ['support'] })
    expect(added.status).toBeLessThan(300)
    const support = await openSite()
    await signInTo(support, 'grace')
    await support.getByLabel('Company', { exact: true }).selectOption('Engines')
    await support.getByRole('link', { name: 'The printer is on fire' }).click()
    await support.getByRole('button', { name: 'Draft an answer' }).click()
    const comment = support.getByLabel('Your comment')
    await support.waitForFunction('document.querySelector("textarea")?.value.startsWith("Dear")')
    expect((await comment.inputValue()).length).toBeLessThan(ANSWER.length)
    await support.waitForFunction('document.querySelector("textarea")?.value.endsWith("regards")')
    expect(await comment.inputValue()).toBe(ANSWER)
    expect(JSON.stringify(models.last().body.messages)).toContain('There is smoke.')

    await support.getByRole('button', { name: 'Comment', exact: true }).click()
    const comments = customer.getByRole('listitem').filter({ hasText: ANSWER })
    await comments.filter({ hasText: 'Grace Hopper' }).waitFor()
    await inspectScreen(customer, 'help-desk-ticket')
    await customer.getByRole('link', { name: 'Tickets' }).click()
    await customer.getByRole('link', { name: 'The printer is on fire' }).waitFor()
    await inspectScreen(customer, 'help-desk-tickets')
    await customer.getByRole('link', { name: 'New ticket' }).click()
    await inspectScreen(customer, 'help-desk-new-ticket')
    await customer.getByRole('link', { name: 'Company' }).click()
    await inspectScreen(customer, 'help-desk-company')
  },
)

test.skipIf(!hasBrowser)('a customer sees the plan, and takes it with a coupon', async () => {
  const page = await openSite()
  await signUpAt(page, 'charles', 'Charles Babbage', 'Difference')
  await page.getByRole('link', { name: 'Plan' }).click()
  const plan = page.getByRole('region', { name: 'Team' })
  expect(await plan.textContent()).toContain('€29.00 a month')
  await plan.getByRole('button', { name: 'Subscribe' }).click()
  await plan.getByRole('alert').waitFor() // no provider is connected
  await plan.getByLabel('Coupon').fill('welcome')
  await plan.getByRole('button', { name: 'Subscribe' }).click()
  await plan.getByText('Your company has this plan (active).').waitFor()
  await inspectScreen(page, 'help-desk-plan')
})

test.skipIf(!hasBrowser)('a member of another company neither sees a ticket nor opens it by its address', async () => {
  const owner = await openSite()
  await signUpAt(owner, 'mary', 'Mary Somerville', 'Mechanism')
  await createTicket(owner, 'Only for us')
  await owner.getByRole('heading', { name: 'Only for us' }).waitFor()
  const other = await openSite()
  await signUpAt(other, 'caroline', 'Caroline Herschel', 'Comets')
  await other.getByText('There are no open tickets.').waitFor()
  await other.goto(owner.url())
  await other.getByText('There is no such ticket.').waitFor()
})

/** Confirms the address of a user by the code in the mail. */
async function confirmAddress(page: Page, username: string) {
  const find = async () =>
    (await call('GET', '/api/mails?limit=50')).body as { to: string; subject: string | null; text: string }[]
  // A mail that waits has no subject yet.
  const isTheirs = ({ to, subject }: { to: string; subject: string | null }) =>
    to.includes(`${username}@`) && !!subject?.startsWith('Confirm your e-mail address')
  await waitUntil(async () => (await find()).some(isTheirs))
  const code = extractCode((await find()).find(isTheirs)!.text)
  await page.getByRole('link', { name: 'Confirm it' }).click()
  await page.getByLabel('Code in the mail').fill(code)
  await inspectScreen(page, 'help-desk-verify-email')
  await page.getByRole('button', { name: 'Confirm' }).click()
  await page.getByRole('link', { name: 'Go on' }).click()
}

test.skipIf(!hasBrowser)('an invited colleague joins the company, becomes an admin of it, and is removed', async () => {
  const owner = await openSite()
  await signUpAt(owner, 'emmy', 'Emmy Noether', 'Rings')
  await owner.getByRole('link', { name: 'People' }).click()
  for (const name of ['sofia', 'nobody']) {
    await owner.getByLabel('E-mail address').fill(`${name}@example.com`)
    await owner.getByRole('button', { name: 'Invite', exact: true }).click()
    await owner.getByRole('button', { name: `Withdraw the invite of ${name}@example.com` }).waitFor()
  }
  await owner.getByRole('button', { name: 'Withdraw the invite of nobody@example.com' }).click()

  const colleague = await openSite()
  await createAccount(colleague, 'sofia', 'Sofia Kovalevskaya')
  await confirmAddress(colleague, 'sofia')
  const join = colleague.getByRole('button', { name: 'Join Rings' })
  await join.waitFor()
  await inspectScreen(colleague, 'help-desk-invitation')
  await join.click()
  await colleague.getByText('There are no open tickets.').waitFor()
  await colleague.getByRole('link', { name: 'People' }).click()
  await colleague.getByText('Emmy Noether').waitFor()
  expect(await colleague.getByRole('button', { name: /^(Remove|Invite)/ }).count()).toBe(0)

  await owner.reload()
  await owner.getByLabel('Role of Sofia Kovalevskaya').selectOption('admin')
  await inspectScreen(owner, 'help-desk-people')
  await colleague.reload()
  await colleague.getByRole('button', { name: 'Invite', exact: true }).waitFor()
  await owner.getByRole('button', { name: 'Remove Sofia Kovalevskaya' }).click()
  await owner.getByRole('button', { name: 'Remove Sofia Kovalevskaya' }).waitFor({ state: 'detached' })
  expect(errors).toEqual([])
})
