import { expect } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, BrowserContextOptions, Locator, Page, Request } from 'playwright-core'
import { launchBrowser } from '../fakes/browser'
import { apiCaller, createTempFolder, PASSWORD, type RunningAtoll, startAtoll } from '../fakes/cli'

/** Machines are shared: a step that takes a second may take many. */
const PAGE_TIMEOUT_MS = 60_000

/** Where screenshots are kept, to be looked at, with TEST_SCREENSHOTS=1. */
const SCREENSHOTS = join(import.meta.dir, '../../dist/screenshots')
const DESKTOP = { width: 1_280, height: 800 }
/** The size of a phone. */
export const PHONE = { width: 390, height: 800 }

/** A name that the browser finds on this machine. Over plain HTTP, its pages are no secure contexts. */
export const PLAIN_HOST = 'atoll.test'

/** All files of a process share one browser, which ends with the process. */
let browser: Promise<Browser> | undefined

/** The requests of pages that have no complete answer yet. An answer that goes on, such as a stream, counts from its begin. */
const unansweredRequests = new WeakMap<Page, Set<Request>>()

function countRequests(page: Page) {
  const unanswered = new Set<Request>()
  unansweredRequests.set(page, unanswered)
  page.on('request', (request) => unanswered.add(request))
  page.on('response', (response) => {
    if (response.headers()['content-type']?.startsWith('text/event-stream')) unanswered.delete(response.request())
  })
  for (const event of ['requestfinished', 'requestfailed'] as const)
    page.on(event as 'requestfinished', (request) => unanswered.delete(request))
}

const SETTLED_FRAMES = 6

/** Resolves when the page has asked for all that it shows: some frames after its last answer, it has asked no more. */
export async function waitUntilSettled(page: Page) {
  for (let frames = 0; frames < SETTLED_FRAMES; frames++) {
    await page.evaluate('new Promise(requestAnimationFrame)')
    if (unansweredRequests.get(page)!.size) frames = -1
  }
}

/** Opens a page that records what the browser reports as an error. Refused requests are reported by their status. */
export async function openPage(options: BrowserContextOptions = {}) {
  browser ??= launchBrowser(`--host-resolver-rules=MAP ${PLAIN_HOST} 127.0.0.1`)
  const page = await (await browser).newPage({ viewport: DESKTOP, ...options })
  page.setDefaultTimeout(PAGE_TIMEOUT_MS)
  countRequests(page)
  const errors: string[] = []
  page.on(
    'console',
    (message) => message.type() === 'error' && errors.push(`${message.text()} ${message.location().url}`),
  )
  page.on('pageerror', (error) => errors.push(error.message))
  return { page, errors }
}

type AxeRule = { id: string; impact: string }

/** The minified source is parsed in each document in half the time. Its value, which is sent back, is small. */
const axeSource = `${readFileSync(Bun.resolveSync('axe-core/axe.min.js', import.meta.dir), 'utf8')};0`

/** Returns the serious and critical faults of accessibility of what the page shows. */
async function findFaults(page: Page) {
  const isLoaded = await page.evaluate(() => 'axe' in globalThis)
  if (!isLoaded) await page.evaluate(axeSource)
  const { violations } = await page.evaluate(() => {
    const { axe } = globalThis as unknown as { axe: typeof import('axe-core') & { _audit: { rules: AxeRule[] } } }
    // The impact of a fault is that of its rule, so the others need not be looked for.
    const minor = axe._audit.rules.filter(({ impact }) => impact !== 'serious' && impact !== 'critical')
    const rules = Object.fromEntries(minor.map(({ id }) => [id, { enabled: false }]))
    // Selectors of all elements, which nobody reads, take a third of the time.
    return axe.run({ resultTypes: ['violations'], preload: false, selectors: false, rules })
  })
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`)
}

/** Resolves when the page has no colour or place any more that is still changing. */
const WAIT_FOR_TRANSITIONS = `(async () => {
  for (let frame = 0; frame < 2; frame++) await new Promise(requestAnimationFrame)
  const ending = document.getAnimations().filter(({ effect }) => effect.getComputedTiming().endTime !== Infinity)
  await Promise.allSettled(ending.map(({ finished }) => finished))
})()`

/** Whether each size is inspected in light and in dark colours, which takes twice the time. */
const areAllLooksInspected = process.env.TEST_ALL_LOOKS === '1'
const areScreenshotsKept = process.env.TEST_SCREENSHOTS === '1'

/** Keeps a screenshot to be looked at, when the run is asked to. */
export const keepScreenshot = async (page: Page, name: string) => {
  if (areScreenshotsKept) await page.screenshot({ path: join(SCREENSHOTS, `${name}.png`) })
}

/** Expects no fault of accessibility in a screen, wide in light and narrow in dark colours. */
export async function inspectScreen(page: Page, name: string, viewports = [DESKTOP, PHONE]) {
  for (const colorScheme of ['light', 'dark'] as const)
    for (const viewport of viewports) {
      const isUsual = viewports.length === 1 || (viewport === viewports[0]) === (colorScheme === 'light')
      if (!isUsual && !areAllLooksInspected) continue
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
      await page.setViewportSize(viewport)
      await page.evaluate(WAIT_FOR_TRANSITIONS)
      await keepScreenshot(page, `${name}-${viewport.width}-${colorScheme}`)
      expect(await findFaults(page), `${name} ${viewport.width} ${colorScheme}`).toEqual([])
    }
  await page.emulateMedia({ colorScheme: 'light' })
  await page.setViewportSize(viewports[0] ?? DESKTOP)
}

/** Closes the notices of what was done, which cover a part of the page for some seconds. */
export const closeNotices = (page: Page) =>
  page.waitForFunction(() => {
    const { document } = globalThis as unknown as { document: ButtonList }
    const buttons = [...document.querySelectorAll('.mantine-Notification-closeButton')]
    for (const button of buttons) button.click()
    return !buttons.length
  })
type ButtonList = { querySelectorAll(selector: string): Iterable<{ click(): void }> }

/** Returns the middle of what is in view, for the mouse. */
export async function centerOf(place: Locator) {
  const box = await place.boundingBox()
  if (!box) throw new Error('Nobody can see it.')
  return [box.x + box.width / 2, box.y + box.height / 2] as const
}

/** Drags one thing onto another by the pointer, in steps as a hand does. */
export async function dragOnto(page: Page, from: Locator, to: Locator) {
  await page.mouse.move(...(await centerOf(from)))
  await page.mouse.down()
  await page.mouse.move(...(await centerOf(to)), { steps: 20 })
  // What is moved out of the way has to arrive.
  await page.waitForTimeout(300)
  await page.mouse.up()
  await page.waitForTimeout(300)
}

/** Returns a link that the server printed. */
export const findLink = async (server: RunningAtoll, path: string) =>
  (await server.until(new RegExp(`http://127\\.0\\.0\\.1:\\d+${path}\\S*#\\S+`)))[0]

/** Creates the administrator ada with the token of the set-up link, and opens the home screen as her. */
export async function setUpAdmin(page: Page, server: RunningAtoll) {
  const token = new URL(await findLink(server, '/admin/set-up')).hash.slice(1)
  const data = { username: 'ada', password: PASSWORD, token }
  const answer = await page.request.post(`${server.url}/api/setup`, { data, headers: { origin: server.url } })
  expect(answer.status(), await answer.text()).toBe(201)
  await page.goto(`${server.url}/admin/home`)
  await page.getByRole('heading', { name: 'Home' }).waitFor()
}

/** Starts a server with the demo, signed in as its administrator. Dispose it after use. */
export async function openDemo() {
  const server = await startAtoll({ at: createTempFolder() }, '--demo')
  const { page, errors } = await openPage()
  await page.goto(await findLink(server, '/admin/link'))
  await page.waitForURL('**/admin/home')
  const close = async () => {
    await page.close()
    await server[Symbol.asyncDispose]()
  }
  return { server, page, errors, [Symbol.asyncDispose]: close }
}

/** Starts an empty server, signed in as its first administrator. Dispose it after use. */
export async function openEmpty() {
  const server = await startAtoll({ at: createTempFolder() })
  const { page, errors } = await openPage()
  await setUpAdmin(page, server)
  const close = async () => {
    await page.close()
    await server[Symbol.asyncDispose]()
  }
  return { server, page, errors, [Symbol.asyncDispose]: close }
}

/** Returns a caller of the demo's API, with the token that the server printed. */
export async function callDemo(server: RunningAtoll) {
  const [, token = ''] = await server.until(/x-api-key: (\S+)'/)
  return apiCaller(server.url, { 'x-api-key': token, tenant: 'demo' })
}
