// engine: sqlite
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { hasBrowser } from '../fakes/browser'
import { apiCaller, createTempFolder, PASSWORD, startAtoll } from '../fakes/cli'
import { findLink, openPage } from './admin-browser'

setDefaultTimeout(240_000)

/** What guests may read of each template, and the chart that its home screen shows. */
const expected = [
  { name: 'Shop', readable: 'products', hidden: 'customers', entities: 62, chart: 'Sales by month' },
  { name: 'Help desk', readable: 'articles', hidden: 'tickets', entities: 67, chart: 'Tickets by week' },
  { name: 'CRM', hidden: 'deals', entities: 48, chart: 'Worth of deals by stage' },
  { name: 'Blog', readable: 'posts', hidden: 'drafts', entities: 26, chart: 'Posts by month' },
]

describe.skipIf(!hasBrowser)('templates', () => {
  for (const { name, readable, hidden, entities, chart } of expected)
    test(`the first administrator creates the template "${name}" with its rules, sample data and charts`, async () => {
      await using server = await startAtoll({ at: createTempFolder() })
      const { page, errors } = await openPage()
      await page.goto(await findLink(server, '/admin/set-up'))
      await page.getByLabel('Username').fill('ada')
      await page.getByRole('textbox', { name: /^Password/ }).fill(PASSWORD)
      await page.getByRole('button', { name: 'Create account' }).click()
      await page.getByRole('button', { name: `Create ${name}` }).click()
      await page.waitForURL('**/admin/home')
      const call = apiCaller(server.url)
      const read = async (key: string) => (await call('GET', `/api/blueprints/${key}/entities?$limit=1`)).status
      expect(await read(hidden)).toBe(401)
      if (readable) expect(await read(readable)).toBe(200)
      const { total, configurations } = await page.evaluate(async () => {
        const blueprints = (await (await fetch('/api/blueprints')).json()) as { key: string }[]
        let total = 0
        for (const { key } of blueprints) {
          const { headers } = await fetch(`/api/blueprints/${key}/entities?$limit=1&$count=true`)
          total += Number(headers.get('x-total-count'))
        }
        return { total, configurations: await (await fetch('/api/configurations')).text() }
      })
      expect(total).toBe(entities)
      expect(configurations).toContain(chart)
      expect(errors).toEqual([])
      await page.close()
    })
})
