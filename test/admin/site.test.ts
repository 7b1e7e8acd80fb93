// engine: sqlite
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { zipSync } from 'fflate'
import type { Page } from 'playwright-core'
import { hasBrowser } from '../fakes/browser'
import { createTempFolder, type RunningAtoll, startAtoll } from '../fakes/cli'
import { packTar } from '../sites/fixtures'
import { inspectScreen, openPage, setUpAdmin } from './admin-browser'

setDefaultTimeout(240_000)

let server: RunningAtoll
let page: Page
let errors: string[]
const folder = createTempFolder()
const LONG_NAME = `${'a-folder-with-a-long-name/'.repeat(6)}page.html`

describe.skipIf(!hasBrowser)('the screen of the site in a browser', () => {
  beforeAll(async () => {
    server = await startAtoll({ at: folder })
    ;({ page, errors } = await openPage())
    await setUpAdmin(page, server)
    await page.goto(`${server.url}/admin/content/site`)
  })
  afterAll(async () => {
    await page?.close()
    await server?.[Symbol.asyncDispose]()
  })

  const read = async (path = '/') => (await fetch(`${server.url}${path}`)).text()
  const rows = () => page.getByRole('list', { name: 'Deployments' }).getByRole('listitem')
  const waitForRows = (count: number) =>
    rows()
      .nth(count - 1)
      .waitFor()

  test('a folder is chosen and deployed without its names that begin with a dot, and the screen links to it', async () => {
    await page.getByText('There are no deployments yet.').waitFor()
    await inspectScreen(page, 'site-empty')
    const dist = join(folder, 'dist')
    mkdirSync(join(dist, LONG_NAME, '..'), { recursive: true })
    writeFileSync(join(dist, 'index.html'), 'from a folder')
    writeFileSync(join(dist, LONG_NAME), 'deep')
    writeFileSync(join(dist, '.DS_Store'), 'x')
    await page.locator('input[aria-label="Folder"]').setInputFiles(dist)
    await page.getByText('The site is deployed.').first().waitFor()
    await waitForRows(1)
    expect(await rows().first().textContent()).toContain('2 files')
    expect(await read()).toBe('from a folder')
    expect(await read(`/${LONG_NAME}`)).toBe('deep')
    expect(await page.getByRole('link', { name: `${server.url}/` }).getAttribute('href')).toBe(`${server.url}/`)
  })

  test('a zip and a tar replace the site, with the router of an app where that is chosen', async () => {
    const text = (value: string) => new TextEncoder().encode(value)
    const zip = zipSync({ 'build/index.html': text('from a zip'), 'build/a/b.txt': text('b'), 'readme.md': text('x') })
    await page.getByLabel('An app with its own router').check()
    const archive = page.locator('input[aria-label="Archive"]')
    await archive.setInputFiles({ name: 'site.zip', mimeType: 'application/zip', buffer: Buffer.from(zip) })
    await waitForRows(2)
    expect([await read(), await read('/a/b.txt')]).toEqual(['from a zip', 'b'])
    expect(await (await fetch(`${server.url}/any`, { headers: { accept: 'text/html' } })).text()).toBe('from a zip')
    const tar = await packTar(['index.html', 'from a tar'])
    await archive.setInputFiles({ name: 'site.tar', mimeType: 'application/x-tar', buffer: Buffer.from(tar) })
    await waitForRows(3)
    expect(await read()).toBe('from a tar')
    await inspectScreen(page, 'site')
  })

  test('files that are dropped are deployed', async () => {
    await page.evaluate(`{
      const transfer = new DataTransfer()
      transfer.items.add(new File(['dropped'], 'index.html'))
      transfer.items.add(new File(['style'], 'style.css'))
      const drop = document.querySelector('section[aria-label="Deploy"]')
      drop.dispatchEvent(new DragEvent('drop', { dataTransfer: transfer, bubbles: true, cancelable: true }))
    }`)
    await waitForRows(4)
    expect([await read(), await read('/style.css')]).toEqual(['dropped', 'style'])
  })

  test('an archive without index.html, and one that the server refuses, are told and change nothing', async () => {
    const archive = page.locator('input[aria-label="Archive"]')
    const before = [await read(), await rows().count()]
    const zip = Buffer.from(zipSync({ 'a.txt': new Uint8Array(1) }))
    await archive.setInputFiles({ name: 'x.zip', mimeType: 'application/zip', buffer: zip })
    await page.getByText('There is no index.html.').waitFor()
    const tar = Buffer.from(await packTar(['index.html', 'x'], ['api/x', 'y']))
    await archive.setInputFiles({ name: 'x.tar', mimeType: 'application/x-tar', buffer: tar })
    await page.getByText('/api belongs to the server').first().waitFor()
    expect([await read(), await rows().count()]).toEqual(before)
  })

  test('a former deployment is made active, and the site is removed after a question', async () => {
    await rows().last().getByRole('button', { name: 'Make active' }).click()
    await rows().last().getByText('Active').waitFor()
    expect(await read()).toBe('from a folder')
    await page.getByRole('button', { name: 'Remove the site' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Remove the site' }).click()
    await page.getByText('There are no deployments yet.').waitFor()
    expect(await read()).not.toBe('from a folder')
    expect(errors.filter((text) => !/status of 400/.test(text))).toEqual([])
  })
})
