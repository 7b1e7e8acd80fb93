// engine: sqlite
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { hasBrowser } from '../fakes/browser'
import { openEmpty } from './admin-browser'
import { runShell } from './shell'

setDefaultTimeout(240_000)

const SECONDS_PER_CLICK = 2
const SECONDS_PER_KEY = 0.4
const MAX_SECONDS = 180

/** Clicks and types like a slow person, and counts both. */
function slowPerson(page: Page) {
  const counted = { clicks: 0, keys: 0 }
  return {
    counted,
    click: async (role: 'button' | 'link' | 'option' | 'combobox' | 'radio', name: string) => {
      counted.clicks++
      await page.getByRole(role, { name, exact: true }).first().click()
    },
    /** Clicks an input, unless it waits for keys already. */
    focus: async (name: string) => {
      const input = page.getByRole('textbox', { name, exact: true })
      await input.waitFor()
      if (await page.locator('input:focus').and(input).count()) return
      counted.clicks++
      await input.click()
    },
    type: async (text: string) => {
      counted.keys += text.length
      await page.keyboard.type(text)
    },
    press: async (key: string) => {
      counted.keys += key.split('+').length
      await page.keyboard.press(key)
    },
    get seconds() {
      return counted.clicks * SECONDS_PER_CLICK + counted.keys * SECONDS_PER_KEY
    },
  }
}

describe.skipIf(!hasBrowser)('the first collection', () => {
  test('a slow person makes one with four fields and three rows, lets guests read it, and reads it in 3 minutes', async () => {
    await using empty = await openEmpty()
    const { page, errors } = empty
    const person = slowPerson(page)
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await person.click('link', 'Create a blueprint')
    await page.getByRole('heading', { name: 'New blueprint' }).waitFor()
    await person.type('Games')
    for (const [number, key, type] of [
      [2, 'players', 'Whole number'],
      [3, 'published', 'Date'],
      [4, 'owned', 'Yes or no'],
    ] as const) {
      await person.click('button', 'Add field')
      await page
        .getByRole('textbox', { name: `Name of field ${number}` })
        .and(page.locator(':focus'))
        .waitFor()
      await person.type(key)
      await person.click('combobox', `Type of field ${number}`)
      await person.click('option', type)
    }
    await person.click('radio', 'Everybody reads all')
    await person.click('button', 'Create blueprint')
    await page.getByText('There are no games yet.').waitFor()
    for (const [name, players] of [
      ['Go', '2'],
      ['Chess', '2'],
      ['Catan', '4'],
    ] as const) {
      await person.click('button', 'New')
      await person.focus('name')
      await person.type(name)
      await person.press('Tab')
      await person.type(players)
      await person.press('Control+Enter')
      await page.getByRole('heading', { name, exact: true }).waitFor()
    }
    await person.click('link', 'API')
    await page.getByText('Guests may do this, so it needs no token.').first().waitFor()
    await person.click('button', 'Copy List')
    const command = await page.evaluate<string>('navigator.clipboard.readText()')
    expect(command).not.toContain('X-Api-Key')
    const rows = JSON.parse(await runShell(command))
    expect(rows.map(({ name }: { name: string }) => name).toSorted()).toEqual(['Catan', 'Chess', 'Go'])
    const { clicks, keys } = person.counted
    console.log(`The first collection takes ${clicks} clicks and ${keys} keys: ${Math.round(person.seconds)} s.`)
    expect(person.seconds).toBeLessThan(MAX_SECONDS)
    expect(errors).toEqual([])
  })
})
