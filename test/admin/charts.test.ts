// engine: sqlite
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { hasBrowser } from '../fakes/browser'
import { dragOnto, inspectScreen, keepScreenshot, openDemo } from './admin-browser'

setDefaultTimeout(240_000)

const TENANT = { tenant: 'demo' }

describe.skipIf(!hasBrowser)('charts in a browser', () => {
  test('an admin draws contacts by stage, saves the chart to the dashboard, and arranges and removes charts there', async () => {
    await using demo = await openDemo()
    const { page, errors, server } = demo
    const readCharts = async () => {
      const answer = await page.request.get(`${server.url}/api/configurations/dashboard-configuration`, {
        headers: TENANT,
      })
      return (await answer.json()).metadata.charts
    }
    await page.getByText('300 contacts').waitFor()
    await page.getByRole('link', { name: 'Draw the first' }).click()
    await page.getByRole('img', { name: 'Companies by industry' }).waitFor()
    await page.getByRole('combobox', { name: 'Blueprint' }).click()
    await page.getByRole('option', { name: 'Contacts' }).click()
    await page.getByRole('img', { name: 'Contacts by stage' }).waitFor()
    await inspectScreen(page, 'chart-builder')
    await page.getByText('Numbers').click()
    const numbers = page.getByRole('table', { name: 'Numbers of Contacts by stage' })
    expect(await numbers.getByRole('row').count()).toBe(4)
    await page.getByRole('button', { name: 'Save to dashboard' }).click()
    await page.getByRole('figure', { name: 'Contacts by stage' }).waitFor()
    expect(await readCharts()).toMatchObject([{ blueprint: 'contacts', kind: 'bar', groupBy: 'stage', width: 'half' }])

    await page.getByRole('navigation').getByRole('link', { name: 'Contacts', exact: true }).click()
    await page.getByRole('cell', { name: 'Nadia Virtanen' }).waitFor()
    await page.goto(`${server.url}/admin/data/contacts?worth[$gte]=50000`)
    await page.getByText('132 shown').waitFor()
    await page.getByRole('link', { name: 'Chart', exact: true }).click()
    await page.getByText(/worth is at least 50/).waitFor()
    await page.getByText('Line', { exact: true }).click()
    await page.getByRole('combobox', { name: 'What' }).click()
    await page.getByRole('option', { name: 'Sum of worth' }).click()
    await page.getByRole('combobox', { name: 'Grouped by' }).click()
    await page.getByRole('option', { name: 'lastCall' }).click()
    await page.getByRole('combobox', { name: 'Each' }).click()
    await page.getByRole('option', { name: 'Week', exact: true }).click()
    await page.getByLabel('Title').fill('Worth of the rich')
    await page.getByRole('img', { name: 'Worth of the rich' }).waitFor()
    await inspectScreen(page, 'chart-line')
    await page.getByRole('button', { name: 'Save to dashboard' }).click()
    await page.getByRole('figure', { name: 'Worth of the rich' }).waitFor()

    for (const [kind, title] of [
      ['pie', 'Contacts by company'],
      ['number', 'All contacts'],
    ] as const) {
      await page.goto(`${server.url}/admin/data/contacts/all/chart?$kind=${kind}&$x=company`)
      await page.getByLabel('Title').fill(title)
      await page.getByRole('region', { name: 'Preview' }).getByRole('heading', { name: title }).waitFor()
      await page.getByRole('button', { name: 'Save to dashboard' }).click()
      await page.getByRole('figure', { name: title }).waitFor()
    }
    await page.getByText('300', { exact: true }).last().waitFor()
    await page.getByRole('img', { name: 'Contacts by company' }).waitFor()
    await inspectScreen(page, 'dashboard')

    await page.getByRole('button', { name: 'Actions of Worth of the rich' }).click()
    await page.getByRole('menuitem', { name: 'Make wide' }).click()
    await page.getByRole('button', { name: 'Actions of All contacts' }).click()
    await page.getByRole('menuitem', { name: 'Move before' }).click()
    await page.getByRole('button', { name: 'Actions of Contacts by stage' }).click()
    await page.getByRole('menuitem', { name: 'Remove' }).click()
    await page.getByText('“Contacts by stage” was removed.').waitFor()
    const titlesOf = (charts: { title: string }[]) => charts.map(({ title }) => title)
    await page.getByRole('figure', { name: 'Contacts by stage' }).waitFor({ state: 'detached' })
    await page.waitForLoadState('networkidle')
    expect(titlesOf(await readCharts())).toEqual(['Worth of the rich', 'All contacts', 'Contacts by company'])
    await page.getByRole('button', { name: 'Undo' }).click()
    await page.getByRole('figure', { name: 'Contacts by stage' }).waitFor()
    await page.waitForLoadState('networkidle')
    expect((await readCharts()).find(({ title }: { title: string }) => title === 'Worth of the rich').width).toBe(
      'full',
    )
    // By the pointer, the last chart becomes the first, and stays so.
    const titles = titlesOf(await readCharts())
    await page.setViewportSize({ width: 1_280, height: 1_800 })
    await page.evaluate('scrollTo(0, 0)')
    const handle = (title: string) => page.getByRole('button', { name: `Move ${title}`, exact: true })
    await dragOnto(page, handle(titles.at(-1)!), handle(titles[0]!))
    await keepScreenshot(page, 'dashboard-dragged')
    const dragged = [titles.at(-1)!, ...titles.slice(0, -1)]
    while (titlesOf(await readCharts())[0] !== dragged[0]) await Bun.sleep(50)
    expect(titlesOf(await readCharts())).toEqual(dragged)
    await page.reload()
    await page.getByRole('figure').last().waitFor()
    const figures = await page.getByRole('figure').all()
    const shown = await Promise.all(figures.map((figure) => figure.getAttribute('aria-label')))
    expect(shown).toEqual(dragged)
    expect(errors).toEqual([])
  })
})
