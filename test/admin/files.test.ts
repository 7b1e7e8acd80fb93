// engine: sqlite
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { hasBrowser } from '../fakes/browser'
import { apiCaller, createTempFolder, PASSWORD, type RunningAtoll, startAtoll } from '../fakes/cli'
import { PNG } from '../files/fixtures'
import { inspectScreen, openPage, setUpAdmin } from './admin-browser'

setDefaultTimeout(240_000)

let server: RunningAtoll
let page: Page
let errors: string[]
let call: ReturnType<typeof apiCaller>
/** Returns what the browser reported, without the requests that the server refused on purpose. */
const unexpectedErrors = () => errors.filter((text) => !/status of (400|404|409)/.test(text))

const picture = (name: string) => ({ name, mimeType: 'image/png', buffer: PNG })
const text = (name: string) => ({ name, mimeType: 'text/plain', buffer: Buffer.from('text') })

/** Chooses files by a button that asks for them. */
async function choose(button: string, files: ReturnType<typeof picture>[]) {
  const chooser = page.waitForEvent('filechooser')
  await page.getByRole('button', { name: button }).click()
  await (await chooser).setFiles(files)
}

describe.skipIf(!hasBrowser)('files in a browser', () => {
  beforeAll(async () => {
    server = await startAtoll({ at: createTempFolder() })
    ;({ page, errors } = await openPage())
    await setUpAdmin(page, server)
    const credentials = { username: 'ada', password: PASSWORD, authType: 'oauth' }
    const { body } = await apiCaller(server.url)('POST', '/api/signin', credentials)
    call = apiCaller(server.url, { authorization: `Bearer ${body.payload.token}` })
    await call('POST', '/api/blueprints', {
      ...{ key: 'pages', name: 'Pages' },
      fields: [
        { key: 'title', type: 'string' },
        { key: 'cover', type: 'file', title: 'Cover', accept: ['image/*'], maxSize: '1K' },
        { key: 'papers', type: 'file', title: 'Papers', multi: true },
      ],
    })
  })
  afterAll(async () => {
    await page?.close()
    await server?.[Symbol.asyncDispose]()
  })

  test('an admin uploads files, filters them by type, copies a link and deletes one', async () => {
    await page.goto(`${server.url}/admin/content/files`)
    await page.getByText('There are no files yet.').waitFor()
    await choose('Upload files', [picture('dot.png'), text('notes.txt')])
    await page.getByRole('cell', { name: 'notes.txt' }).waitFor()
    await page.getByRole('cell', { name: 'dot.png' }).click()
    await page.getByRole('img', { name: 'dot.png' }).waitFor()
    await page.locator('dd', { hasText: /^(ada|Ada.*)$/ }).waitFor()
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await page.getByRole('button', { name: 'Copy link' }).click()
    const link = await page.evaluate<string>('navigator.clipboard.readText()')
    expect(link).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/api\/files\/[\w-]+\/dot\.png$/)
    await inspectScreen(page, 'files')
    await page.getByRole('combobox', { name: 'Type' }).click()
    await page.getByRole('option', { name: 'Texts' }).click()
    await page.getByRole('cell', { name: 'dot.png' }).waitFor({ state: 'detached' })
    await page.getByRole('cell', { name: 'notes.txt' }).click()
    await page.getByRole('heading', { name: 'notes.txt' }).waitFor()
    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByRole('button', { name: 'Delete file' }).click()
    await page.getByText('No file is of this type.').waitFor()
    const { body } = await call('GET', '/api/files')
    expect(body.map(({ name }: { name: string }) => name)).toEqual(['dot.png'])
    expect(unexpectedErrors()).toEqual([])
  })

  test('a form of an entity uploads chosen and dropped files, refuses others, and shows and removes them', async () => {
    await page.goto(`${server.url}/admin/data/pages`)
    await page
      .getByRole('button', { name: /^(New|Create)/ })
      .first()
      .click()
    await page.getByRole('textbox', { name: 'title' }).fill('First')
    await choose('Choose a file for Cover', [text('notes.txt')])
    await page.getByText('“notes.txt” is text/plain, but only image/* is taken.').waitFor()
    await choose('Choose a file for Cover', [{ ...picture('large.png'), buffer: Buffer.alloc(2_000) }])
    await page.getByText('“large.png” is larger than 1 KiB.').waitFor()
    await choose('Choose a file for Cover', [picture('cover.png')])
    await page.getByRole('img', { name: 'cover.png' }).waitFor()
    // The types of the tests know no browser.
    const dropped = await page.evaluateHandle(`(() => {
      const data = new DataTransfer()
      for (const name of ['1.txt', '2.txt']) data.items.add(new File([name], name, { type: 'text/plain' }))
      return data
    })()`)
    await page.dispatchEvent('[aria-label="Files of Papers"]', 'drop', { dataTransfer: dropped })
    await page.getByRole('link', { name: '2.txt' }).waitFor()
    await page.getByRole('textbox', { name: 'Add to Papers' }).fill('https://example.com/3.txt')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Remove 1.txt from Papers' }).click()
    await inspectScreen(page, 'file-fields')
    await page
      .getByRole('button', { name: /^(Create|Save)/ })
      .last()
      .click()
    await page.getByRole('cell', { name: 'cover.png' }).waitFor()
    const { body } = await call('GET', '/api/blueprints/pages/entities')
    expect(body[0].cover).toMatch(/^\/api\/files\/[\w-]+\/cover\.png$/)
    expect(body[0].papers).toEqual([expect.stringMatching(/\/2\.txt$/), 'https://example.com/3.txt'])
    expect(unexpectedErrors()).toEqual([])
  })

  test('a file that an entity names is deleted only after a question that tells where', async () => {
    const { body: files } = await call('GET', '/api/files?name=cover.png')
    await page.goto(`${server.url}/admin/content/files/${files[0]._id}`)
    await page.getByRole('heading', { name: 'cover.png' }).waitFor()
    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByRole('button', { name: 'Delete file' }).click()
    await page.getByText(/^pages .* \(cover\)/).waitFor()
    await page.getByRole('button', { name: 'Delete it nevertheless' }).click()
    await page.getByRole('heading', { name: 'cover.png' }).waitFor({ state: 'detached' })
    expect((await call('GET', `/api/files/${files[0]._id}`)).status).toBe(404)
    expect(unexpectedErrors()).toEqual([])
  })
})
