// engine: sqlite
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { strFromU8, strToU8, unzipSync, zipSync } from 'fflate'
import type { Page } from 'playwright-core'
import { hasBrowser } from '../fakes/browser'
import { apiCaller, createTempFolder, PASSWORD, type RunningAtoll, runAtoll, startAtoll } from '../fakes/cli'
import { inspectScreen, openPage, setUpAdmin } from './admin-browser'

setDefaultTimeout(240_000)

type Files = Record<string, string>

const title = { key: 'title', type: 'string' }
const toJson = (value: unknown) => `${JSON.stringify(value, null, 2)}\n`
const books = (...fields: object[]) => toJson({ fields, name: 'Books' })

let server: RunningAtoll
let page: Page
let errors: string[]
let call: ReturnType<typeof apiCaller>
const folder = createTempFolder()

describe.skipIf(!hasBrowser)('the screen of definitions in a browser', () => {
  beforeAll(async () => {
    server = await startAtoll({ at: folder })
    ;({ page, errors } = await openPage())
    await setUpAdmin(page, server)
    const { body } = await apiCaller(server.url)('POST', '/api/signin', {
      ...{ username: 'ada', password: PASSWORD, authType: 'oauth' },
    })
    call = apiCaller(server.url, { authorization: `Bearer ${body.payload.token}` })
    await call('POST', '/api/blueprints', {
      ...{ key: 'books', name: 'Books', fields: [title, { key: 'pages', type: 'number' }] },
    })
    await call('POST', '/api/blueprints/books/entities', { title: 'Emma', pages: 474 })
    await call('POST', '/api/blocks', { name: 'hero', content: 'Welcome' })
    await page.getByRole('link', { name: 'Settings' }).click()
    await page.getByRole('link', { name: 'Definitions' }).click()
    await page.getByRole('heading', { name: 'Definitions' }).waitFor()
  })
  afterAll(async () => {
    await page?.close()
    await server?.[Symbol.asyncDispose]()
  })

  async function download(): Promise<Files> {
    const [started] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Download' }).click(),
    ])
    expect(started.suggestedFilename()).toBe('definitions.zip')
    const unpacked = unzipSync(await Bun.file(await started.path()).bytes())
    return Object.fromEntries(Object.entries(unpacked).map(([path, bytes]) => [path, strFromU8(bytes)]))
  }
  const chooseZip = (files: Files) =>
    page
      .locator('input[aria-label="Archive"]')
      .setInputFiles({
        ...{ name: 'definitions.zip', mimeType: 'application/zip' },
        buffer: Buffer.from(
          zipSync(Object.fromEntries(Object.entries(files).map(([path, text]) => [path, strToU8(text)]))),
        ),
      })
  const rows = (label: string) => page.getByRole('list', { name: label, exact: true }).getByRole('listitem')
  const read = async () => (await call('GET', '/api/definitions')).body.files as Files

  test('a download has the files that a pull of this server writes', async () => {
    await inspectScreen(page, 'definitions-empty')
    const { body: token } = await call('POST', '/api/me/api-tokens', { nickname: 'ci', scopes: ['definitions:read'] })
    const command = ['pull', 'pulled', '--url', server.url, '--token', token.token]
    const pulled = await runAtoll(command, { at: folder })
    expect(pulled.code).toBe(0)
    const files = await download()
    expect(Object.keys(files)).toContain('blueprints/books.json')
    for (const [path, text] of Object.entries(files)) {
      const written = await Bun.file(join(folder, 'pulled', path)).text()
      if (path === '.atoll.json') expect(JSON.parse(text)).toEqual(JSON.parse(written))
      else expect(text).toBe(written)
    }
  })

  test('a folder is compared, asks for its secrets, and is pushed with its removals after a question', async () => {
    const at = join(folder, 'work/definitions')
    const files = {
      'blueprints/books.json': books({ key: 'name', type: 'string', renamedFrom: 'title' }),
      'connections/Models.json': toJson({ kind: 'openai', authentication: { token: `\${MODELS_TOKEN}` } }),
      'lambdas/cheap.ts': 'export default () => 1\n',
      'README.md': 'not a definition',
    }
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(join(at, dirname(path)), { recursive: true })
      writeFileSync(join(at, path), text)
    }
    await page.locator('input[aria-label="Folder"]').setInputFiles(at)
    await rows('Changes').nth(2).waitFor()
    expect(await rows('Changes').count()).toBe(3)
    await page.getByLabel('Remove what has no file').check()
    const hero = rows('Changes').filter({ hasText: 'block hero' })
    await hero.getByText('Remove', { exact: true }).waitFor()
    const renamed = rows('Changes').filter({ hasText: 'blueprint books' })
    expect(await renamed.textContent()).toContain('1 entity')
    await renamed.getByRole('button', { name: 'Compare the texts' }).click()
    await renamed.getByText('renamedFrom').first().waitFor()
    expect(await page.getByRole('alert').textContent()).toContain('the field "pages" and its values')
    await inspectScreen(page, 'definitions-plan')
    await renamed.getByRole('button', { name: 'Hide the texts' }).click()
    const push = page.getByRole('button', { name: /^Push \d+ changes$/ })
    await push.scrollIntoViewIfNeeded()
    await inspectScreen(page, 'definitions-push')
    await push.click()
    expect(await page.getByRole('dialog').count()).toBe(0) // the secret is required
    await page.getByRole('textbox', { name: 'MODELS_TOKEN' }).fill('sk-1')
    await push.click()
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
    expect(Object.keys(await read())).toContain('blocks/hero.json')
    await push.click()
    await page.getByRole('dialog').getByRole('button', { name: /^Push/ }).click()
    await rows('Changes that were made').first().waitFor()
    await inspectScreen(page, 'definitions-done')
    const now = await read()
    expect(Object.keys(now)).toContain('lambdas/cheap.ts')
    expect(Object.keys(now)).not.toContain('blocks/hero.json')
    const { body: entities } = await call('GET', '/api/blueprints/books/entities')
    expect(entities[0].name).toBe('Emma')
    expect(entities[0].pages).toBeUndefined()
  })

  test('a change that somebody else made since the download is shown on both sides, and can be compared anew', async () => {
    const files = await download()
    await call('POST', '/api/blocks', { name: 'hero', content: 'Hello' })
    await call('PUT', '/api/blueprints/books', { name: 'All books' })
    await chooseZip({
      ...files,
      'blueprints/books.json': books({ key: 'name', type: 'string' }).replace('Books', 'My books'),
    })
    await page.getByText('has changed since you pulled it').waitFor()
    await page.getByText('All books').first().waitFor()
    await page.getByText('My books').first().waitFor()
    await inspectScreen(page, 'definitions-mismatch')
    await page.getByRole('button', { name: 'Compare with what is there now' }).click()
    await page.getByRole('button', { name: 'Push 1 change' }).click()
    await page.getByText('Changed', { exact: true }).waitFor()
    expect(JSON.parse((await read())['blueprints/books.json']!).name).toBe('My books')
  })

  test('a push that answers before it is done goes on with the changes that remain', async () => {
    const block = (content: string) => toJson({ content })
    const all = { 'blocks/a.json': block('a'), 'blocks/b.json': block('b'), 'blocks/c.json': block('c') }
    const sent: Files[] = []
    // The first turn of a long push: the server makes one change, and says how many it has left.
    await page.route('**/api/definitions/push', async (route) => {
      const body = route.request().postDataJSON()
      sent.push(body.files)
      if (sent.length > 1) return route.continue()
      const first = { 'blocks/a.json': all['blocks/a.json'] }
      const response = await route.fetch({ postData: JSON.stringify({ ...body, files: first }) })
      return route.fulfill({ status: response.status(), json: { ...(await response.json()), remaining: 2 } })
    })
    await chooseZip(all)
    await page.getByRole('button', { name: 'Push 3 changes' }).click()
    await rows('Changes that were made').nth(2).waitFor()
    await page.unroute('**/api/definitions/push')
    expect(sent).toEqual([all, all])
    expect(Object.keys(await read())).toContain('blocks/c.json')
  })

  test('a secret is replaced without a file', async () => {
    await page.getByRole('button', { name: 'Replace secrets' }).click()
    const push = page.getByRole('button', { name: 'Push the secrets' })
    await push.waitFor()
    expect(await push.isDisabled()).toBe(true)
    await page.getByRole('textbox', { name: 'CONNECTION_MODELS_TOKEN' }).fill('sk-2')
    await inspectScreen(page, 'definitions-secrets')
    await push.click()
    await rows('Changes that were made').filter({ hasText: 'changes the secret token' }).waitFor()
    const values = { CONNECTION_MODELS_TOKEN: 'sk-2' }
    const { body } = await call('POST', '/api/definitions/diff', { files: await read(), secrets: values })
    expect(body).toEqual({ changes: [], missingSecrets: [], keptSecrets: Object.keys(values) })
  })

  test('files that are wrong, and a zip without definitions, are told and change nothing', async () => {
    const before = await read()
    await chooseZip({ 'a.txt': 'x' })
    await page.getByText('There are no definitions.').waitFor()
    await chooseZip({ 'blocks/x.json': '{', 'blueprints/y.json': '[]' })
    const flaws = page.getByRole('list', { name: 'What is wrong' })
    await flaws.waitFor()
    expect(await flaws.textContent()).toContain('"blocks/x.json" is not a JSON object.')
    await page.getByRole('button', { name: 'Choose others' }).click()
    await page.getByText('Drop a folder of definitions').waitFor()
    expect(await read()).toEqual(before)
    expect(errors.filter((text) => !/status of 4(00|12)/.test(text))).toEqual([])
  })
})
