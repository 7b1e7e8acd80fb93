import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { hasBrowser, launchBrowser } from '../fakes/browser'
import { apiCaller, PASSWORD, type RunningAtoll, signIn, startAtoll } from '../fakes/cli'
import { type OpenaiServer, startOpenai } from '../fakes/openai-server'
import { makePng } from '../files/pictures'
import { copyHelpDesk, runPackage, TENANT } from './help-desk-files'

setDefaultTimeout(120_000)

const ANSWER = 'Dear Ada, please switch it off and on again. Kind regards'

let models: OpenaiServer
let server: RunningAtoll
let browser: Browser
let call: ReturnType<typeof apiCaller>
beforeAll(async () => {
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
  await page.goto(server.url)
  return page
}

async function signInTo(page: Page, username: string) {
  await page.getByLabel('Username').fill(username)
  await page.getByLabel('Password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign in' }).click()
}

async function signUpAt(page: Page, username: string, name: string, company: string) {
  await page.getByRole('button', { name: 'I am new here' }).click()
  await page.getByLabel('Your name').fill(name)
  await page.getByLabel('Username').fill(username)
  await page.getByLabel('Password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Create account' }).click()
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
    await customer.getByRole('button', { name: 'I am new here' }).click()
    await customer.getByLabel('Your name').fill('Ada Lovelace')
    await customer.getByLabel('Username').fill('ada')
    await customer.getByLabel('Password').fill(PASSWORD)
    await customer.getByRole('button', { name: 'Create account' }).click()
    await customer.getByLabel('Name of the company').fill('Engines')
    await customer.getByRole('button', { name: 'Add company' }).click()

    await customer.getByRole('link', { name: 'New ticket' }).click()
    await customer.getByLabel('Subject').fill('The printer is on fire')
    await customer.getByLabel('What happened?').fill('There is smoke.')
    await customer
      .getByLabel('Attachments')
      .setInputFiles({ ...{ name: 'smoke.png', mimeType: 'image/png', buffer: makePng(800, 600) } })
    await customer.getByRole('button', { name: 'Send' }).click()
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
