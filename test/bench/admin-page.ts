// `bun test/bench/admin-page.ts [rounds]`: what the admin page costs in the browser and in the server: bytes of the first
// load, the time until its first screen can be used, the time until later screens stand, its share of the binary, and
// the memory of the server before and after somebody opened it.
import { readFileSync, rmSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { bundleAssets } from '../../src/operations/admin/bundle'
import { launchBrowser } from '../fakes/browser'
import { createTempFolder, startAtoll } from '../fakes/cli'

const rounds = Number(process.argv[2] ?? 5)
const SCREENS: [path: string, heading: string][] = [
  ['/admin/data/contacts', 'Contacts'],
  ['/admin/people/users', 'Users'],
  ['/admin/automation/integrations', 'Integrations'],
  ['/admin/payments/plans', 'Plans'],
  ['/admin/home', 'Home'],
]

const formatBytes = (bytes: number) => `${(bytes / 1_024).toFixed(0)} KB`
const median = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!
const print = (name: string, figure: string) => console.log(`${name.padEnd(52)} ${figure}`)

/** Follows a link within the page as a click does. Returns the time until its heading stands and it was painted, in ms. */
const openScreen = (page: Page, path: string, heading: string): Promise<number> =>
  // As text, because the types of these files know no browser.
  page.evaluate(`(async ([path, heading]) => {
    const began = performance.now()
    history.pushState({}, '', path)
    dispatchEvent(new PopStateEvent('popstate'))
    while (document.querySelector('h1')?.textContent !== heading) await new Promise(requestAnimationFrame)
    await new Promise(requestAnimationFrame)
    return performance.now() - began
  })(${JSON.stringify([path, heading])})`)

const assets = await bundleAssets(11)
const total = [...assets.values()].reduce((sum, { length }) => sum + length, 0)
print('files of the page in the binary, compressed', formatBytes(total))

const at = createTempFolder()
{
  await using server = await startAtoll({ at }, '--demo')
  const link = (await server.until(/http:\/\/127\.0\.0\.1:\d+\/admin\/link\S*#\S+/))[0]
  const memory = () => Number(readFileSync(`/proc/${server.pid}/status`, 'utf8').match(/VmRSS:\s+(\d+)/)![1]) / 1_024
  print('memory of the server before', `${memory().toFixed(0)} MB`)

  const browser = await launchBrowser()
  const context = await browser.newContext({ viewport: { width: 1_280, height: 800 } })
  const page = await context.newPage()
  await page.goto(link)
  await page.waitForURL('**/admin/home')

  /** Opens the home screen without a cache. Returns the time until its list can be used, and the bytes that were sent. */
  const openAnew = async () => {
    const session = await context.newCDPSession(page)
    await session.send('Network.enable')
    await session.send('Network.setCacheDisabled', { cacheDisabled: true })
    let bytes = 0
    session.on('Network.loadingFinished', ({ encodedDataLength }) => {
      bytes += encodedDataLength
    })
    const began = performance.now()
    await page.goto(`${server.url}/admin/home`)
    await page.getByRole('link', { name: 'Contacts', exact: true }).first().click({ trial: true })
    const time = performance.now() - began
    await session.detach()
    return { time, bytes }
  }
  const openings: Awaited<ReturnType<typeof openAnew>>[] = []
  for (let round = 0; round < rounds; round++) openings.push(await openAnew())
  print('first screen, until it can be used', `${median(openings.map(({ time }) => time)).toFixed(0)} ms`)
  print('first screen, sent (with the answers of the API)', formatBytes(median(openings.map(({ bytes }) => bytes))))

  for (const [path, heading] of SCREENS) {
    const times: number[] = []
    for (let round = 0; round < rounds; round++) times.push(await openScreen(page, path, heading))
    print(`${path}, first time and later ones`, `${times[0]!.toFixed(0)} ms, ${median(times.slice(1)).toFixed(0)} ms`)
  }
  print('memory of the server afterwards', `${memory().toFixed(0)} MB`)
  await browser.close()
}
rmSync(at, { recursive: true })
