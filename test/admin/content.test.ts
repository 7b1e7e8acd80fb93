// engine: sqlite
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { hasBrowser } from '../fakes/browser'
import { apiCaller, createTempFolder, PASSWORD, type RunningAtoll, startAtoll } from '../fakes/cli'
import { inspectScreen, openPage, setUpAdmin } from './admin-browser'

setDefaultTimeout(240_000)

let server: RunningAtoll
let page: Page
let errors: string[]
let call: ReturnType<typeof apiCaller>
/** Returns what the browser reported, without the requests that the server refused on purpose. */
const unexpectedErrors = () => errors.filter((text) => !/status of (400|404|409)/.test(text))

/** Replaces the text of a code editor. */
async function fillEditor(name: string, text: string) {
  await page.getByRole('textbox', { name }).click()
  await page.keyboard.press('Control+A')
  // The browser gives what replaces a selection the style of its beginning, which the policy forbids.
  await page.keyboard.press('Delete')
  await page.keyboard.insertText(text)
}

describe.skipIf(!hasBrowser)('the content screens in a browser', () => {
  beforeAll(async () => {
    server = await startAtoll({ at: createTempFolder() })
    ;({ page, errors } = await openPage())
    await setUpAdmin(page, server)
    const credentials = { username: 'ada', password: PASSWORD, authType: 'oauth' }
    const { body } = await apiCaller(server.url)('POST', '/api/signin', credentials)
    call = apiCaller(server.url, { authorization: `Bearer ${body.payload.token}` })
  })
  afterAll(async () => {
    await page?.close()
    await server?.[Symbol.asyncDispose]()
  })

  test('a block of HTML is written, and its preview shows what the server leaves of it', async () => {
    await page.getByRole('link', { name: 'Content', exact: true }).click()
    await page.getByRole('button', { name: 'Create a block' }).click()
    await page.getByRole('textbox', { name: 'Name' }).fill('hero')
    await fillEditor('Content', '<h1>Hello</h1><script>parent.document.title = "broken"</script>')
    await page.getByRole('button', { name: 'Create block' }).click()
    await page.getByText('What could run or cover the page is left out.').waitFor()
    const preview = page.frameLocator('iframe[title="Preview of the block"]')
    await preview.getByRole('heading', { name: 'Hello' }).waitFor()
    expect(await page.title()).toBe('hero · Atoll')
    await inspectScreen(page, 'content-block')
    await page.getByLabel('Description').fill('At the top.')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved.').first().waitFor()
    await page.getByRole('link', { name: 'Blocks' }).click()
    await page.getByRole('cell', { name: 'At the top.' }).waitFor()
    await inspectScreen(page, 'content-blocks')
    const { body } = await call('GET', '/api/blocks?raw=true')
    expect(body).toMatchObject([{ name: 'hero', contentType: 'html', description: 'At the top.' }])
    expect(body[0].content).toContain('<script>')
    await page.getByRole('cell', { name: 'hero' }).click()
    await page.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('button', { name: 'Delete block' }).click()
    await page.getByText('There are no blocks yet.').waitFor()
    expect(unexpectedErrors()).toEqual([])
  })

  test('a component is compiled, its flaws stand at their line, and files are imported with a result for each', async () => {
    await page.goto(`${server.url}/admin/content/components`)
    await page.getByRole('button', { name: 'Create a component' }).click()
    await page.getByRole('textbox', { name: 'Identifier' }).fill('hello')
    await page.getByRole('combobox', { name: 'Required props' }).fill('name: string')
    await page.keyboard.press('Enter')
    await fillEditor('Code', 'export const Hello = () =>\n  <b>broken')
    await page.getByRole('button', { name: 'Create component' }).click()
    await page
      .getByText(/^Line \d+, column \d+/)
      .first()
      .waitFor()
    await inspectScreen(page, 'content-component-refused')
    await fillEditor(
      'Code',
      'export const Hello = ({ name }: { name: string }) => <b>Hello {name}</b>\n<style>b { color: teal }</style>',
    )
    await page.getByRole('button', { name: 'Create component' }).click()
    await page.getByRole('button', { name: 'Copy Style sheet' }).waitFor()
    await page.getByText(/import \{ Hello \} from/).waitFor()
    await inspectScreen(page, 'content-component')
    expect((await call('GET', '/api/components/hello')).body.requiredProps).toEqual([{ prop: 'name', type: 'string' }])
    await page.getByRole('link', { name: 'Components' }).click()
    const chooser = page.waitForEvent('filechooser')
    await page.getByRole('button', { name: 'Import files' }).click()
    await (await chooser).setFiles([
      { name: 'card.tsx', mimeType: 'text/plain', buffer: Buffer.from('export const Card = () => <i>card</i>') },
      { name: 'broken.tsx', mimeType: 'text/plain', buffer: Buffer.from('export const = ') },
    ])
    await page.getByText('1 of 2 components were stored.').waitFor()
    await page.getByRole('cell', { name: 'card', exact: true }).first().waitFor()
    await inspectScreen(page, 'content-components')
    expect(unexpectedErrors()).toEqual([])
  })

  test('configurations are listed with those of the server, and a change sends what was removed', async () => {
    await page.goto(`${server.url}/admin/content/configurations`)
    await page.getByRole('cell', { name: 'ai-configuration' }).waitFor()
    await page.getByRole('button', { name: 'New configuration' }).click()
    await page.getByRole('textbox', { name: 'Key' }).fill('opening-hours')
    await page.getByLabel('Everybody may read it').check()
    await fillEditor('Values', '{"monday": "9-17", ')
    await page.getByText('This is not JSON yet').waitFor()
    await fillEditor('Values', '{"monday": "9-17", "sunday": "closed"}')
    await page.getByRole('button', { name: 'Create configuration' }).click()
    await page.getByRole('heading', { name: 'opening-hours' }).waitFor()
    await fillEditor('Values', '{"monday": "9-18"}')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved.').waitFor()
    expect((await apiCaller(server.url)('GET', '/api/configurations/opening-hours')).body.metadata).toEqual({
      monday: '9-18',
    })
    await page.getByRole('cell', { name: 'app-configuration' }).click()
    await page.getByText('websiteUrls').first().waitFor()
    await fillEditor('Values', '{"websiteUrls": ["nonsense"], "theme": "dark"}')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('is not the address of a website').waitFor()
    await inspectScreen(page, 'content-configuration')
    await fillEditor('Values', '{"websiteUrls": ["https://shop.example.com"], "theme": "dark"}')
    const answer = page.waitForResponse((response) => response.request().method() === 'PUT' && response.ok())
    await page.getByRole('button', { name: 'Save' }).click()
    await answer
    expect((await call('GET', '/api/configurations/app-configuration')).body.metadata).toEqual({
      websiteUrls: ['https://shop.example.com'],
      theme: 'dark',
    })
    expect(unexpectedErrors()).toEqual([])
  })
})
