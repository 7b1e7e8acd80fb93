import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { hasBrowser } from '../fakes/browser'
import { apiCaller, createTempFolder, PASSWORD, startAtoll } from '../fakes/cli'
import { startOpenai } from '../fakes/openai-server'
import { inspectScreen, openPage, setUpAdmin } from './admin-browser'

setDefaultTimeout(120_000)

const ANSWER = `The **red pump** needs oil every 300 hours.

\`\`\`js
const hours = 300
\`\`\`

<script>document.title = 'broken'</script> See [the manual](https://example.com/manual).`

/** Starts an empty server, signed in as ada, and a server with the API of OpenAI. Dispose it after use. */
async function openAi() {
  const openai = await startOpenai()
  const server = await startAtoll({ at: createTempFolder(), env: { ATOLL_ALLOW_PRIVATE_NETWORK: 'on' } })
  const { page, errors } = await openPage()
  await setUpAdmin(page, server)
  const signedIn = await apiCaller(server.url)('POST', '/api/signin', {
    ...{ username: 'ada', password: PASSWORD, authType: 'oauth' },
  })
  const call = apiCaller(server.url, { authorization: `Bearer ${signedIn.body.payload.token}` })
  const goTo = (path: string) => page.goto(`${server.url}/admin/${path}`)
  const close = async () => {
    await page.close()
    await server[Symbol.asyncDispose]()
    await openai.stop()
  }
  return { openai, server, page, errors, call, goTo, [Symbol.asyncDispose]: close }
}

describe.skipIf(!hasBrowser)('the AI screens in a browser', () => {
  test('an administrator connects a source, makes an agent, talks to it, and sees its thread and its usage', async () => {
    await using at = await openAi()
    const { page, errors, openai, call, goTo } = at
    const { body: blueprint } = await call('POST', '/api/blueprints', {
      ...{ key: 'pumps', name: 'Pumps', fields: [{ key: 'name', type: 'string' }] },
    })
    expect(blueprint.key).toBe('pumps')
    await call('POST', '/api/blueprints/pumps/entities', { identifier: 'red', name: 'The red pump' })

    await page.getByRole('link', { name: 'AI', exact: true }).click()
    await page.getByText('Agents need a model').waitFor()
    await inspectScreen(page, 'ai-no-source')
    await page.getByRole('link', { name: 'Connect an AI source' }).click()
    await page.getByLabel('Name').fill('Local models')
    await page.getByRole('combobox', { name: 'Address' }).fill('not an address')
    await page.getByRole('textbox', { name: 'Key' }).fill('sk-secret')
    await page.getByLabel('Default model').fill('model-1')
    await page.getByRole('button', { name: 'Connect' }).click()
    await page.locator('.mantine-InputWrapper-error').first().waitFor()
    await page.getByRole('combobox', { name: 'Address' }).fill(openai.url)
    await page.keyboard.press('Escape')
    await inspectScreen(page, 'ai-source')
    expect(await page.evaluate(() => JSON.stringify(localStorage))).not.toContain('sk-secret')
    await page.getByRole('button', { name: 'Connect' }).click()
    await page.getByText('Local models is connected.').waitFor()

    await page.getByRole('textbox', { name: 'Name' }).fill('Mechanic')
    await page.getByLabel('Instructions').fill('You know our pumps.')
    await page.getByRole('combobox', { name: 'Data' }).click()
    await page.getByRole('option', { name: 'Pumps' }).click()
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Show all settings' }).click()
    await page.getByLabel('Temperature').fill('3')
    await page.getByRole('button', { name: 'Create agent' }).click()
    await page.locator('.mantine-InputWrapper-error').first().waitFor()
    await page.getByLabel('Temperature').fill('0.4')
    await inspectScreen(page, 'ai-agent-new')
    await page.getByRole('button', { name: 'Create agent' }).click()
    await page.getByRole('heading', { name: 'Mechanic' }).waitFor()
    await page.getByRole('button', { name: 'Show all settings' }).click()
    await page.getByLabel('Temperature').fill('')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved.').waitFor()
    const { body: agents } = await call('GET', '/api/ai/agents')
    expect(agents).toMatchObject([{ name: 'Mechanic', systemPrompt: 'You know our pumps.', blueprints: ['pumps'] }])
    expect(agents[0]).not.toHaveProperty('temperature')
    await inspectScreen(page, 'ai-agents')
    await call('PUT', '/api/configurations/ai-configuration', {
      metadata: {
        prices: { '*': { prompt: 2_000, completion: 8_000 } },
        budgets: [{ scope: 'user', period: 'day', unit: 'tokens', limit: 100 }],
      },
    })

    await page.getByRole('link', { name: 'Try it' }).click()
    await page.getByText('Ask something to try it.').waitFor()
    await inspectScreen(page, 'ai-playground-empty')
    openai.reply(
      { calls: [{ name: 'find_pumps', arguments: '{"query":{"name":"The red pump"}}' }] },
      { text: ANSWER, pieces: 20, pace: 20 },
    )
    await page.getByLabel('Message').fill('How often does the red pump need oil?')
    await page.keyboard.press('Enter')
    await page.getByText('const hours = 300').first().waitFor()
    await page.getByText('find_pumps').click()
    await page.getByText('"The red pump"').first().waitFor()
    await page.getByText(/29 \+ 14 tokens|22 \+ 14 tokens/).waitFor()
    await page.getByText(/cost 0\.\d+/).waitFor()
    expect(await page.title()).toBe('Playground · Atoll')
    await inspectScreen(page, 'ai-playground')

    // A refused question can be asked again, and nothing is lost.
    openai.reply({ status: 400 })
    await page.getByLabel('Message').fill('And the blue one?\u202eمرحبا 🚀')
    await page.keyboard.press('Enter')
    await page.getByRole('alert').waitFor()
    openai.reply({ text: 'word '.repeat(400), pieces: 400, pace: 10 })
    await page.getByRole('button', { name: 'Try again' }).last().click()
    await page.getByText('word word word').first().waitFor()
    await page.getByRole('button', { name: 'Stop' }).click()
    await page.getByText('The answer was stopped.').waitFor()
    await inspectScreen(page, 'ai-playground-stopped')
    await page.reload()
    await page.getByText('const hours = 300').first().waitFor()
    expect(errors.filter((text) => !text.includes('status of 4') && !text.includes('status of 5'))).toEqual([])

    await page.getByRole('link', { name: 'Threads' }).click()
    await page.getByRole('cell', { name: 'Mechanic' }).click()
    await page.getByText('find_pumps').waitFor()
    await inspectScreen(page, 'ai-thread')
    await page.getByRole('link', { name: 'Continue' }).click()
    await page.getByText('const hours = 300').first().waitFor()

    await goTo('ai/usage')
    await page.getByRole('cell', { name: 'Mechanic' }).waitFor()
    await page.waitForTimeout(500)
    await inspectScreen(page, 'ai-usage')
    await page.getByText('Users', { exact: true }).click()
    await page.getByRole('cell', { name: 'ada' }).waitFor()
    expect(page.url()).toContain('by=user')

    await page.getByRole('link', { name: 'MCP' }).click()
    await page.getByText('find_pumps').waitFor()
    await inspectScreen(page, 'ai-mcp')
    await page.getByRole('button', { name: 'Create an API token' }).click()
    await page.getByText('The token is shown this once.').waitFor()

    await goTo('ai/threads')
    await page.getByRole('cell', { name: 'Mechanic' }).click()
    await page.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('button', { name: 'Delete thread' }).click()
    await page.getByText('There are no threads yet.').waitFor()
    expect((await call('GET', '/api/ai/threads')).body).toEqual([])
  })
})
