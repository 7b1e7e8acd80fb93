import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { hasBrowser } from '../fakes/browser'
import { apiCaller } from '../fakes/cli'
import { inspectScreen, openDemo } from './admin-browser'

setDefaultTimeout(120_000)

/** Returns a client of the demo with the token that it prints. */
async function callerOf({ server }: Pick<Awaited<ReturnType<typeof openDemo>>, 'server'>) {
  const [, token = ''] = await server.until(/x-api-key: (\S+)'/)
  return apiCaller(server.url, { 'x-api-key': token, tenant: 'demo' })
}

describe.skipIf(!hasBrowser)('the entities of a blueprint in a browser', () => {
  let demo: Awaited<ReturnType<typeof openDemo>>
  let call: ReturnType<typeof apiCaller>
  beforeAll(async () => {
    demo = await openDemo()
    call = await callerOf(demo)
  })
  afterAll(() => demo?.[Symbol.asyncDispose]())

  const openList = async (query = '') => {
    await demo.page.goto(`${demo.server.url}/admin/data/contacts${query}`)
    await demo.page.getByRole('cell').nth(3).waitFor()
  }

  test('relations show what they refer to, and columns are chosen, put in order, resized, kept and reset', async () => {
    const { page } = demo
    await openList()
    await page
      .getByRole('link', { name: /GmbH|Ltd|AS/ })
      .first()
      .waitFor()
    await page.getByText('live', { exact: true }).waitFor()
    await inspectScreen(page, 'entities-table')
  })
})
