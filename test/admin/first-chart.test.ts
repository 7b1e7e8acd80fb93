// engine: sqlite
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { Locator, Page } from 'playwright-core'
import { hasBrowser } from '../fakes/browser'
import { createTempFolder, startAtoll } from '../fakes/cli'
import { findLink, inspectScreen, openPage } from './admin-browser'

setDefaultTimeout(240_000)

const MAX_ACTS = 60

/** Does what hands do, and counts it: each click, and each key, also those of the words. */
function countActs(page: Page) {
  let count = 0
  return {
    click: async (target: Locator) => {
      await target.click()
      count++
    },
    type: async (text: string) => {
      await page.keyboard.type(text)
      count += text.length
    },
    /** Keys that are held together count each. */
    press: async (keys: string) => {
      await page.keyboard.press(keys)
      count += keys.split('+').length
    },
    chooseFile: async (name: string, text: string) => {
      const file = { name, mimeType: 'text/csv', buffer: Buffer.from(text) }
      await page.locator('input[type=file]').setInputFiles(file)
      // A drag and its drop.
      count += 2
    },
    read: () => count,
  }
}
type Hands = ReturnType<typeof countActs>

/** Opens the set-up link, and creates the first account. */
async function setUp(page: Page, hands: Hands, link: string) {
  await page.goto(link)
  await page.getByLabel('Username').waitFor()
  await hands.type('ada')
  await hands.press('Tab')
  await hands.press('Tab')
  await hands.type('lovelace')
  await hands.press('Enter')
}

describe.skipIf(!hasBrowser)('the way to the first chart', () => {
  test(`a chart of data that were typed in takes fewer than ${MAX_ACTS} clicks and keys from the set-up link on`, async () => {
    await using server = await startAtoll({ at: createTempFolder() })
    const { page, errors } = await openPage()
    const hands = countActs(page)
    await setUp(page, hands, await findLink(server, '/admin/set-up'))
    await hands.click(page.getByRole('link', { name: 'start empty' }))
    await hands.click(page.getByRole('link', { name: 'Create a blueprint' }))
    await page.getByLabel('Name', { exact: false }).first().waitFor()
    await hands.type('Pets')
    await hands.press('Enter')
    await page.getByText('There are no pets yet.').waitFor()
    for (const name of ['Rex', 'Mia', 'Tom']) {
      await hands.press('n')
      await page.getByRole('textbox', { name: 'name' }).waitFor()
      await hands.type(name)
      await hands.press('Control+Enter')
      await page.getByRole('heading', { name }).waitFor()
      await hands.press('Escape')
    }
    await page.getByText('3 pets').waitFor()
    await hands.click(page.getByRole('link', { name: 'Chart', exact: true }))
    await page.getByRole('img', { name: 'Pets by day of creation' }).waitFor()
    await hands.click(page.getByRole('button', { name: 'Save to dashboard' }))
    await page.getByRole('figure', { name: 'Pets by day of creation' }).getByRole('img', { name: 'data' }).waitFor()
    console.log(`From the set-up link to a chart of typed data: ${hands.read()} clicks and keys.`)
    expect(hands.read()).toBeLessThan(MAX_ACTS)
    expect(errors).toEqual([])
    await page.close()
  })

  test(`a chart of the rows of a file takes fewer than ${MAX_ACTS} clicks and keys from the set-up link on`, async () => {
    await using server = await startAtoll({ at: createTempFolder() })
    const { page, errors } = await openPage()
    const hands = countActs(page)
    const rows = Array.from(
      { length: 60 },
      (_, n) => `Game ${n},${n % 2 ? 'yes' : 'no'},${1 + (n % 5)},2026-0${1 + (n % 6)}-11`,
    )
    await setUp(page, hands, await findLink(server, '/admin/set-up'))
    await hands.click(page.getByRole('link', { name: 'with a file of your own' }))
    await page.getByText('Drop a CSV or NDJSON file here.').waitFor()
    await hands.chooseFile('board-games.csv', `Name,Owned,Players,Bought on\n${rows.join('\n')}\n`)
    await page.getByText('60 rows').waitFor()
    expect(await page.getByRole('combobox', { name: 'Type of Bought on' }).inputValue()).toBe('Date')
    await inspectScreen(page, 'blueprint-from-file')
    await hands.click(page.getByRole('button', { name: 'Create and import' }))
    await page.getByText('60 rows imported.').waitFor()
    await page.getByText('60 board games').waitFor()
    await hands.click(page.getByRole('link', { name: 'Chart', exact: true }))
    await page.getByRole('img', { name: 'Board games by Owned' }).waitFor()
    await hands.click(page.getByRole('button', { name: 'Save to dashboard' }))
    await page.getByRole('figure', { name: 'Board games by Owned' }).getByRole('img', { name: 'data' }).waitFor()
    console.log(`From the set-up link to a chart of a file: ${hands.read()} clicks and keys.`)
    expect(hands.read()).toBeLessThan(MAX_ACTS)
    expect(errors).toEqual([])
    await page.close()
  })
})
