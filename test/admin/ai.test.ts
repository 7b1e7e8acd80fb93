// engine: sqlite
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { hasBrowser } from '../fakes/browser'
import { apiCaller, createTempFolder, PASSWORD, type RunningAtoll, startAtoll } from '../fakes/cli'
import { type OpenaiServer, startOpenai } from '../fakes/openai-server'
import { inspectScreen, openPage, setUpAdmin } from './admin-browser'

setDefaultTimeout(240_000)

const ANSWER = `The **red pump** needs oil every 300 hours.

\`\`\`js
const hours = 300
\`\`\`

<script>document.title = 'broken'</script> See [the manual](https://example.com/manual).`

let openai: OpenaiServer
let server: RunningAtoll
let page: Page
let errors: string[]
let call: ReturnType<typeof apiCaller>
let agent: string
const goTo = (path: string) => page.goto(`${server.url}/admin/${path}`)
/** Returns what the browser reported, without the requests that the server refused on purpose. */
const unexpectedErrors = () => errors.filter((text) => !/status of (400|404|502)/.test(text))

test.skipIf(!hasBrowser)('usage and knowledge open without a failed request where nothing is configured', async () => {
  await using empty = await startAtoll({ at: createTempFolder() })
  const { page, errors } = await openPage()
  await setUpAdmin(page, empty)
  for (const [path, heading] of [
    ['ai/usage', 'Usage'],
    ['ai/knowledge', 'Knowledge'],
  ] as const) {
    await page.goto(`${empty.url}/admin/${path}`)
    await page.getByRole('heading', { name: heading }).first().waitFor()
    await page.waitForLoadState('networkidle')
  }
  expect(errors).toEqual([])
  await page.close()
})

describe.skipIf(!hasBrowser)('the AI screens in a browser', () => {
  beforeAll(async () => {
    openai = await startOpenai()
    server = await startAtoll({ at: createTempFolder(), env: { ATOLL_ALLOW_PRIVATE_NETWORK: 'on' } })
    ;({ page, errors } = await openPage())
    await setUpAdmin(page, server)
    const credentials = { username: 'ada', password: PASSWORD, authType: 'oauth' }
    const { body } = await apiCaller(server.url)('POST', '/api/signin', credentials)
    call = apiCaller(server.url, { authorization: `Bearer ${body.payload.token}` })
    await call('POST', '/api/blueprints', { key: 'pumps', name: 'Pumps', fields: [{ key: 'name', type: 'string' }] })
    await call('POST', '/api/blueprints/pumps/entities', { identifier: 'red', name: 'The red pump' })
    await page.reload()
  })
  afterAll(async () => {
    await page?.close()
    await server?.[Symbol.asyncDispose]()
    await openai?.stop()
  })

  test('an administrator connects a source, whose key is not kept in the browser, and makes an agent', async () => {
    await page.getByRole('link', { name: 'AI', exact: true }).click()
    await page.getByText('Agents need a model').waitFor()
    await inspectScreen(page, 'ai-no-source')
    await page.getByRole('link', { name: 'Connect an AI source' }).click()
    await page.getByLabel('Name').fill('Local models')
    await page.getByRole('combobox', { name: 'Address' }).fill('not an address')
    await page.getByRole('textbox', { name: 'Key' }).fill('sk-secret')
    await page.getByLabel('Default model').fill('model-1')
    await page.getByLabel('Model for embeddings').fill('words-512')
    await page.getByRole('button', { name: 'Connect' }).click()
    await page.getByText('Write a whole address').waitFor()
    await page.getByRole('combobox', { name: 'Address' }).fill(openai.url)
    await page.keyboard.press('Escape')
    expect(await page.evaluate(() => JSON.stringify(localStorage))).not.toContain('sk-secret')
    await page.getByRole('button', { name: 'Connect' }).click()
    await page.getByText('Local models is connected.').waitFor()

    // The form of the source has a name, too.
    await page.getByLabel('Instructions').waitFor()
    await page.getByRole('textbox', { name: 'Name' }).fill('Mechanic')
    await page.getByLabel('Instructions').fill('You know our pumps.')
    await page.getByRole('combobox', { name: 'Data' }).click()
    await page.getByRole('option', { name: 'Pumps' }).click()
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Show all settings' }).click()
    await page.getByLabel('Temperature').fill('3')
    await page.getByRole('button', { name: 'Create agent' }).click()
    await page.getByText('temperature must be a number from 0 to 2.').waitFor()
    await page.getByLabel('Temperature').fill('0.4')
    await page.getByRole('button', { name: 'Create agent' }).click()
    await page.getByRole('heading', { name: 'Mechanic' }).waitFor()
    await page.getByRole('button', { name: 'Show all settings' }).click()
    await page.getByLabel('Temperature').fill('')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved.').waitFor()
    await inspectScreen(page, 'ai-agents')
    const { body: agents } = await call('GET', '/api/ai/agents')
    expect(agents).toMatchObject([{ name: 'Mechanic', systemPrompt: 'You know our pumps.', blueprints: ['pumps'] }])
    expect(agents[0]).not.toHaveProperty('temperature')
    agent = agents[0]._id
    expect(unexpectedErrors()).toEqual([])
  })

  test('the playground streams an answer with its tools and cost, stops, tries again, and keeps the conversation', async () => {
    await call('POST', '/api/configurations', {
      key: 'ai-configuration',
      metadata: {
        prices: { '*': { prompt: 2_000, completion: 8_000 } },
        budgets: [{ scope: 'user', period: 'day', unit: 'tokens', limit: 1_000_000 }],
      },
    })
    await page.getByRole('link', { name: 'Try it' }).click()
    await page.getByText('Ask something to try it.').waitFor()
    openai.reply(
      { calls: [{ name: 'find_pumps', arguments: '{"query":{"name":"The red pump"}}' }] },
      { text: ANSWER, pieces: 20, pace: 20 },
    )
    await page.getByRole('textbox', { name: 'Message' }).fill('How often does the red pump need oil?')
    await page.keyboard.press('Enter')
    await page.getByText('const hours = 300').first().waitFor()
    await page.getByText('find_pumps').click()
    await page.getByText('"The red pump"').first().waitFor()
    await page.getByText('22 + 14 tokens · cost 0.156').waitFor()
    expect(await page.title()).toBe('Playground · Atoll')
    await inspectScreen(page, 'ai-playground')

    openai.reply({ status: 400 })
    await page.getByRole('textbox', { name: 'Message' }).fill('And the blue one? مرحبا 🚀')
    await page.keyboard.press('Enter')
    await page.getByText('AI_UPSTREAM').waitFor()
    openai.reply({ text: 'word '.repeat(400), pieces: 400, pace: 10 })
    await page.getByRole('button', { name: 'Try again' }).last().click()
    await page.getByText('word word word').first().waitFor()
    await page.getByRole('button', { name: 'Stop' }).click()
    await page.getByText('The answer was stopped.').waitFor()
    await inspectScreen(page, 'ai-playground-stopped')
    await page.reload()
    await page.getByText('const hours = 300').first().waitFor()
    expect(unexpectedErrors()).toEqual([])
  })

  test('a thread is read, continued in the playground, and deleted', async () => {
    await page.getByRole('link', { name: 'Threads' }).click()
    await page.getByRole('cell', { name: 'Mechanic' }).click()
    await page.getByText('find_pumps').waitFor()
    await inspectScreen(page, 'ai-thread')
    await page.getByRole('link', { name: 'Continue' }).click()
    await page.getByText('const hours = 300').first().waitFor()
    await goTo('ai/threads')
    await page.getByRole('cell', { name: 'Mechanic' }).click()
    await page.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('button', { name: 'Delete thread' }).click()
    await page.getByText('There are no threads yet.').waitFor()
    expect((await call('GET', '/api/ai/threads')).body).toEqual([])
    expect(unexpectedErrors()).toEqual([])
  })

  test('files, texts and entities become knowledge, which a search finds and answers cite', async () => {
    await goTo('ai/knowledge')
    await page.getByRole('button', { name: 'Add the first' }).click()
    await page.getByRole('combobox', { name: 'Agent' }).click()
    await page.getByRole('option', { name: 'Mechanic' }).click()
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByText('There are no files yet.').waitFor()
    const chooser = page.waitForEvent('filechooser')
    await page.getByRole('button', { name: 'Choose files' }).click()
    await (await chooser).setFiles([
      {
        name: 'pumps.md',
        mimeType: 'text/markdown',
        buffer: Buffer.from('# Pumps\n\nThe red pump needs oil every 300 hours.'),
      },
      { name: 'logo.png', mimeType: 'image/png', buffer: Buffer.from('\x89PNG\0\0') },
    ])
    await page.getByText('This is not a file of text.').waitFor()
    await page.getByRole('button', { name: 'Paste text' }).click()
    await page.getByLabel('Name').fill('Valves')
    await page.getByRole('textbox', { name: 'Text' }).fill('Valves are checked once a year.')
    await page.getByRole('button', { name: 'Add text' }).click()
    await page.getByRole('combobox', { name: 'Add the entities of a blueprint' }).click()
    await page.getByRole('option', { name: 'Pumps' }).click()
    await page.getByRole('button', { name: 'Remove pumps.json' }).waitFor()
    await inspectScreen(page, 'ai-knowledge')
    await page.getByRole('tab', { name: 'Test the search' }).click()
    await page.getByLabel('Question').fill('How often does the red pump need oil?')
    await page.keyboard.press('Enter')
    await page.getByText('pumps.md, part 1').waitFor()
    await inspectScreen(page, 'ai-knowledge-test')

    await goTo(`ai/playground?agent=${agent}`)
    openai.reply({ text: 'Every 300 hours [1].' })
    await page.getByRole('textbox', { name: 'Message' }).fill('How often does the red pump need oil?')
    await page.keyboard.press('Enter')
    await page.getByRole('link', { name: '[1] pumps.md, part 1' }).click()
    await page.getByRole('button', { name: 'Remove all files' }).waitFor()
    await page.getByRole('button', { name: 'Remove all files' }).click()
    await page.getByLabel('Type Mechanic to confirm').fill('Mechanic')
    await page.getByRole('dialog').getByRole('button', { name: 'Remove all files' }).click()
    await page.getByText('There are no files yet.').waitFor()
    expect(unexpectedErrors()).toEqual([])
  })

  test('usage is shown by agent and by user beside its budgets, and MCP is set up with a token', async () => {
    await goTo('ai/usage')
    await page.getByRole('cell', { name: 'Mechanic' }).waitFor()
    await page.getByRole('img').last().waitFor()
    await page.getByText(/ada: [\d,]+ tokens of 1,000,000 tokens/).waitFor()
    await inspectScreen(page, 'ai-usage')
    await page.getByText('Users', { exact: true }).click()
    await page.getByRole('cell', { name: 'ada' }).waitFor()
    expect(page.url()).toContain('by=user')
    await page.getByRole('link', { name: 'MCP' }).click()
    await page.getByText('find_pumps').waitFor()
    await page.getByRole('button', { name: 'Create an API token' }).click()
    await page.getByText('The token is shown only once.').waitFor()
    await inspectScreen(page, 'ai-mcp')
    expect(unexpectedErrors()).toEqual([])
  })

  test('blueprints are drafted from a description, reviewed, renamed, and made with sample data', async () => {
    const permissions = [{ operation: 'read', scope: 'tenant', roleBased: ['*'] }]
    const authors = {
      key: 'authors',
      name: 'Authors',
      fields: [{ key: 'name', type: 'string', required: true }],
      permissions,
    }
    const books = {
      ...{ key: 'books', name: 'Books', description: 'What can be read.', permissions },
      fields: [
        { key: 'title', type: 'string' },
        { key: 'author', type: 'relation', target: 'authors' },
        { key: 'secret', type: 'text' },
      ],
    }
    const samples = {
      writers: [{ identifier: 'ada', name: 'Ada' }],
      books: [{ identifier: 'notes', title: 'Notes', author: 'ada' }],
    }
    openai.reply({ text: JSON.stringify({ blueprints: [books, authors] }) }, { text: JSON.stringify(samples) })
    await goTo('blueprints/draft')
    await page.getByLabel('What do you want to keep?').fill('A library with books and authors')
    await page.getByRole('button', { name: 'Draft blueprints' }).click()
    await page.getByText('Nothing is made yet.').waitFor()
    expect((await call('GET', '/api/blueprints/books')).status).toBe(404)
    await page
      .getByRole('group', { name: 'Authors' })
      .getByRole('textbox', { name: 'Key', exact: true })
      .fill('writers')
    await page.getByLabel('Include secret of Books').uncheck()
    await page.getByLabel('Name of title of Books').fill('heading')
    await page.getByLabel('Name of title of Books').fill('title')
    await page.getByRole('button', { name: 'Write sample data' }).click()
    await page.getByText('1 writers: ada').waitFor()
    await inspectScreen(page, 'ai-blueprint-draft')
    await page.getByRole('button', { name: 'Create 2 blueprints' }).click()
    await page.waitForURL('**/admin/data/writers')
    const { body } = await call('GET', '/api/blueprints/books')
    expect(body.fields).toMatchObject([{ key: 'title' }, { key: 'author', target: 'writers' }])
    expect((await call('GET', '/api/blueprints/books/entities')).body).toMatchObject([
      { title: 'Notes', author: 'ada' },
    ])
    expect(unexpectedErrors()).toEqual([])
  })
})
