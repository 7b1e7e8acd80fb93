import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { hasBrowser } from '../fakes/browser'
import { apiCaller } from '../fakes/cli'
import { inspectScreen, openDemo } from './admin-browser'

setDefaultTimeout(240_000)

describe.skipIf(!hasBrowser)('the design of blueprints', () => {
  test('an administrator changes fields, sees what it does to entities, and saves', async () => {
    await using demo = await openDemo()
    const { page, errors, server } = demo
    await page.getByRole('link', { name: 'Contacts', exact: true }).click()
    await page.getByRole('link', { name: 'Design' }).click()
    await page.getByRole('button', { name: 'Options of worth' }).waitFor()
    await inspectScreen(page, 'design-fields')
    expect(errors).toEqual([])
    await page.getByRole('button', { name: 'Options of worth' }).click()
    await inspectScreen(page, 'design-field-options')
    expect(errors).toEqual([])
    void apiCaller(server.url)
    expect(errors).toEqual([])
  })
})
